/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/pace.h"
#include "base/util.h"

#define MS INT64_C(1000000)
#define S  (1000 * MS)

static void test_the_first_repair_is_prompt(void **state attr_unused)
{
	struct pace pace = {0};

	assert_true(pace_next(&pace, 100 * S) <= 100 * S + 20 * MS);
}

static void test_a_dear_repair_is_followed_by_a_pause_as_long(void **state attr_unused)
{
	struct pace pace = {0};

	pace_repaired(&pace, 700 * MS, true, 100 * S);
	assert_int_equal(pace_next(&pace, 100 * S), 100 * S + 700 * MS);
}

static void test_damage_that_repeats_is_repaired_less_and_less_often(void **state attr_unused)
{
	struct pace pace = {0};
	int64_t now = 100 * S;
	size_t repairs = 0;

	while (now < 100 * S + 600 * S) { /* ten minutes of a storm */
		now = pace_next(&pace, now);
		pace_repaired(&pace, 5 * MS, true, now);
		repairs++;
	}
	assert_in_range(repairs, 100, 140);
	assert_int_equal(pace_next(&pace, now) - now, PACE_MAX_NS);
	now += 2 * PACE_MAX_NS + PACE_FORGET_NS + S; /* peace */
	pace_repaired(&pace, 5 * MS, true, now);
	assert_true(pace_next(&pace, now) <= now + 20 * MS);
}

static void test_dear_repairs_of_damage_that_repeats_do_not_fill_the_time(void **state attr_unused)
{
	struct pace pace = {0};
	int64_t now = 100 * S;
	size_t repairs = 0;

	while (now < 100 * S + 60 * S) {
		now = pace_next(&pace, now) + 700 * MS;
		pace_repaired(&pace, 700 * MS, true, now);
		repairs++;
	}
	assert_in_range(repairs, 10, 18);
}

static void test_damage_now_and_then_is_always_repaired_at_once(void **state attr_unused)
{
	struct pace pace = {0};

	for (int64_t now = 100 * S; now < 200 * S; now += 2 * S) {
		assert_true(pace_next(&pace, now) <= now + 20 * MS);
		pace_repaired(&pace, 100 * MS, true, now + 110 * MS);
	}
}

static void test_looking_without_finding_anything_is_no_reason_to_wait(void **state attr_unused)
{
	struct pace pace = {0};

	for (int i = 0; i < 20; i++)
		pace_repaired(&pace, 2 * MS, false, 100 * S);
	assert_true(pace_next(&pace, 100 * S) <= 100 * S + 20 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_repair_is_prompt),
		cmocka_unit_test(test_a_dear_repair_is_followed_by_a_pause_as_long),
		cmocka_unit_test(test_damage_that_repeats_is_repaired_less_and_less_often),
		cmocka_unit_test(test_dear_repairs_of_damage_that_repeats_do_not_fill_the_time),
		cmocka_unit_test(test_damage_now_and_then_is_always_repaired_at_once),
		cmocka_unit_test(test_looking_without_finding_anything_is_no_reason_to_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
