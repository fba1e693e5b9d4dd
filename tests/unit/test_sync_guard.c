/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sources/sync_guard.h"

#define MINUTE SYNC_GUARD_CONFIRM_MS

static enum sync_guard_verdict judge(struct sync_guard *guard, size_t known, size_t lost,
				     size_t fresh, int64_t now_ms)
{
	const struct sync_guard_loss loss = {.known = known, .lost = lost, .fresh = fresh};

	return sync_guard_judge(guard, &loss, now_ms);
}

static bool holds(struct sync_guard *guard, size_t known, size_t lost, size_t fresh, int64_t now_ms)
{
	return judge(guard, known, lost, fresh, now_ms) == SYNC_GUARD_HELD;
}

static void only_more_than_the_share_of_enough_is_too_much(void **state attr_unused)
{
	static const struct {
		unsigned int percent;
		size_t known, lost;
		bool holds;
	} rows[] = {
		{50, 50, 50, true},     {50, 50, 26, true},   {50, 50, 25, false},
		{50, 20, 11, true},     {50, 20, 10, false},  {50, 19, 19, false},
		{50, 0, 0, false},      {50, 50, 0, false},   {10, 100, 11, true},
		{10, 100, 10, false},   {99, 100, 99, false}, {99, 100, 100, true},
		{0, 1000, 1000, false}, /* off */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sync_guard guard = {.percent = rows[i].percent};

		assert_int_equal(holds(&guard, rows[i].known, rows[i].lost, rows[i].lost, 1000),
				 rows[i].holds);
		assert_int_equal(guard.holding, rows[i].holds);
	}
}

static void the_same_a_minute_later_counts(void **state attr_unused)
{
	struct sync_guard guard = {.percent = 50};

	assert_true(holds(&guard, 50, 50, 50, 1000));
	assert_int_equal(sync_guard_due_ms(&guard), 1000 + MINUTE);
	assert_int_equal(judge(&guard, 50, 50, 0, 1000 + MINUTE), SYNC_GUARD_CONFIRMED);
	assert_false(guard.holding);
}

static void the_same_before_the_minute_is_over_does_not_count(void **state attr_unused)
{
	struct sync_guard guard = {.percent = 50};

	assert_true(holds(&guard, 50, 50, 50, 1000));
	assert_true(holds(&guard, 50, 50, 0, 1000 + MINUTE - 1));
	assert_int_equal(sync_guard_due_ms(&guard), 1000 + MINUTE); /* it goes on from the first */
	assert_false(holds(&guard, 50, 50, 0, 1000 + MINUTE));
}

static void a_list_that_lacks_others_begins_the_minute_anew(void **state attr_unused)
{
	struct sync_guard guard = {.percent = 50};

	assert_true(holds(&guard, 50, 30, 30, 0));
	assert_true(holds(&guard, 50, 30, 5, 2 * MINUTE));
	assert_int_equal(sync_guard_due_ms(&guard), 3 * MINUTE);
	assert_true(holds(&guard, 50, 30, 0, 3 * MINUTE - 1));
	assert_false(holds(&guard, 50, 30, 0, 3 * MINUTE));
}

static void a_list_that_lacks_little_counts_at_once(void **state attr_unused)
{
	struct sync_guard guard = {.percent = 50};

	assert_true(holds(&guard, 50, 50, 50, 0));
	assert_int_equal(judge(&guard, 50, 3, 0, 10), SYNC_GUARD_FREE);
	assert_false(guard.holding);
	assert_true(holds(&guard, 47, 47, 47, 20)); /* and the next time it is the first again */
}

static void what_is_let_through_is_not_held_any_more(void **state attr_unused)
{
	struct sync_guard guard = {.percent = 50};

	assert_true(holds(&guard, 50, 50, 50, 0));
	sync_guard_release(&guard);
	assert_false(guard.holding);
	assert_true(holds(&guard, 50, 50, 50, 5));
	assert_int_equal(sync_guard_due_ms(&guard), 5 + MINUTE);
}

static void a_first_list_of_nothing_is_too_much(void **state attr_unused)
{
	const struct sync_guard_loss blank = {.blank = true};
	struct sync_guard guard = {.percent = 50}, off = {0};

	assert_int_equal(sync_guard_judge(&off, &blank, 0), SYNC_GUARD_FREE);
	assert_int_equal(sync_guard_judge(&guard, &blank, 0), SYNC_GUARD_HELD);
	assert_int_equal(sync_guard_judge(&guard, &blank, MINUTE - 1), SYNC_GUARD_HELD);
	assert_int_equal(sync_guard_judge(&guard, &blank, MINUTE), SYNC_GUARD_CONFIRMED);
}

static void numbers_of_any_size_do_not_overflow(void **state attr_unused)
{
	struct sync_guard guard = {.percent = 50};

	assert_true(holds(&guard, 1u << 30, 1u << 30, 1, 0));
}

static void a_share_is_a_word_or_a_percentage(void **state attr_unused)
{
	static const struct {
		const char *text;
		int percent; /* -1: none */
	} rows[] = {
		{"off", 0},  {"on", 50},  {"1", 1},    {"99", 99},   {"30%", 30}, {"0", -1},
		{"100", -1}, {"-5", -1},  {"", -1},    {"On", -1},   {"5x", -1},  {"5%%", -1},
		{"%", -1},   {"0.5", -1}, {"007", -1}, {"true", -1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		unsigned int percent = 1234;

		assert_int_equal(sync_guard_parse(rows[i].text, &percent), rows[i].percent >= 0);
		assert_int_equal(percent, rows[i].percent >= 0 ? rows[i].percent : 1234);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_more_than_the_share_of_enough_is_too_much),
		cmocka_unit_test(the_same_a_minute_later_counts),
		cmocka_unit_test(the_same_before_the_minute_is_over_does_not_count),
		cmocka_unit_test(a_list_that_lacks_others_begins_the_minute_anew),
		cmocka_unit_test(a_list_that_lacks_little_counts_at_once),
		cmocka_unit_test(what_is_let_through_is_not_held_any_more),
		cmocka_unit_test(a_share_is_a_word_or_a_percentage),
		cmocka_unit_test(a_first_list_of_nothing_is_too_much),
		cmocka_unit_test(numbers_of_any_size_do_not_overflow),
	};

	return cmocka_run_group_tests_name("sync_guard", tests, NULL, NULL);
}
