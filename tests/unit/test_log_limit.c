/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/log_limit.h"

#define SECOND INT64_C(1000000000)

static struct log_limit limit;
static struct log_site here, there;

static int set_up(void **state attr_unused)
{
	here = there = (struct log_site){.file = "x.c"};
	return 0;
}

static int tear_down(void **state attr_unused)
{
	log_limit_forget(&limit);
	return 0;
}

static int64_t ask(struct log_site *site, uint64_t object, const char *line, int64_t now_ns)
{
	return log_limit_ask(&limit, site, object, line, strlen(line), 2, now_ns);
}

/* The next kept line must be this one. */
static void assert_next(int64_t now_ns, const char *line, unsigned long left_out, bool of_site)
{
	struct log_kept kept;

	assert_true(log_limit_next(&limit, false, now_ns, &kept));
	assert_int_equal(kept.n, strlen(line));
	assert_memory_equal(kept.line, line, kept.n);
	assert_int_equal(kept.severity, 2);
	assert_int_equal(kept.left_out, left_out);
	assert_int_equal(kept.of_site, of_site);
	free(kept.line);
}

static void assert_none(int64_t now_ns)
{
	struct log_kept kept;

	assert_false(log_limit_next(&limit, false, now_ns, &kept));
}

static void the_same_passes_once_in_ten_seconds(void **state attr_unused)
{
	assert_int_equal(ask(&here, 1, "a", SECOND), 0);
	assert_int_equal(ask(&here, 1, "b", 2 * SECOND), 11 * SECOND);
	assert_int_equal(ask(&here, 1, "c", 3 * SECOND), 11 * SECOND);
	assert_int_equal(ask(&here, 1, "d", 11 * SECOND - 1), 11 * SECOND);
	assert_int_equal(log_limit_due(&limit), 11 * SECOND);
	assert_none(11 * SECOND - 1);
	assert_next(11 * SECOND, "d", 2, false);
	assert_none(11 * SECOND);
	assert_int_equal(log_limit_due(&limit), INT64_MAX);
	/* what was written then begins ten seconds of its own */
	assert_int_equal(ask(&here, 1, "e", 20 * SECOND), 21 * SECOND);
	assert_next(21 * SECOND, "e", 0, false);
	assert_int_equal(ask(&here, 1, "f", 31 * SECOND), 0);
}

static void what_is_kept_comes_before_what_is_new(void **state attr_unused)
{
	ask(&here, 1, "a", SECOND);
	ask(&here, 1, "b", 2 * SECOND);
	/* its time is over, and the timer has not been here yet */
	assert_true(ask(&here, 1, "c", 12 * SECOND) > 0);
	assert_next(12 * SECOND, "c", 1, false);
}

static void one_object_does_not_hide_another(void **state attr_unused)
{
	ask(&here, 1, "flood", SECOND);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(ask(&here, 1, "flood", SECOND + i), 11 * SECOND);
	assert_int_equal(ask(&here, 2, "quiet", 2 * SECOND), 0);
	assert_next(11 * SECOND, "flood", 99999, false);
}

static void a_flood_of_objects_fills_its_own_site_only(void **state attr_unused)
{
	size_t passed = 0;

	for (uint64_t i = 1; i <= 10000; i++)
		passed += ask(&here, i, i == 10000 ? "last" : "other", SECOND) == 0;
	assert_int_equal(passed, LOG_LIMIT_SITE);
	assert_int_equal(ask(&there, 20000, "error of another kind", SECOND), 0);
	assert_next(11 * SECOND, "last", 10000 - LOG_LIMIT_SITE - 1, true);
	assert_none(11 * SECOND);
	/* and is open again */
	assert_int_equal(ask(&here, 30000, "later", 22 * SECOND), 0);
}

/* Sites that are many enough to overflow the table: nothing that is kept is lost. */
static void what_is_kept_is_never_pushed_out(void **state attr_unused)
{
	static struct log_site sites[40];
	unsigned long told = 0;
	struct log_kept kept;
	uint64_t object = 0;
	size_t passed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sites); i++) {
		for (size_t j = 0; j < LOG_LIMIT_SITE; j++) {
			object++;
			passed += ask(&sites[i], object, "first", SECOND) == 0;
			passed += ask(&sites[i], object, "second", SECOND) == 0;
		}
	}
	while (log_limit_next(&limit, true, SECOND, &kept)) {
		told += kept.left_out + 1;
		free(kept.line);
	}
	assert_int_equal(passed + told, 2 * ARRAY_SIZE(sites) * LOG_LIMIT_SITE);
}

static void kept_lines_come_in_the_order_of_their_time(void **state attr_unused)
{
	static const char *const lines[] = {"down", "up", "down again", "up again"};

	for (size_t i = 0; i < 4; i++)
		ask(&here, 1 + i % 2, lines[i], (int64_t)(1 + i) * SECOND);
	ask(&there, 3, "x", 4 * SECOND);
	assert_int_equal(log_limit_due(&limit), 11 * SECOND);
	assert_next(20 * SECOND, "down again", 0, false);
	assert_next(20 * SECOND, "up again", 0, false);
	assert_none(20 * SECOND);
}

static void at_the_end_all_is_told(void **state attr_unused)
{
	struct log_kept kept;

	ask(&here, 1, "a", SECOND);
	ask(&here, 1, "b", SECOND);
	assert_none(SECOND);
	assert_true(log_limit_next(&limit, true, SECOND, &kept));
	free(kept.line);
	assert_false(log_limit_next(&limit, true, SECOND, &kept));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_same_passes_once_in_ten_seconds),
		TEST(what_is_kept_comes_before_what_is_new),
		TEST(one_object_does_not_hide_another),
		TEST(a_flood_of_objects_fills_its_own_site_only),
		TEST(what_is_kept_is_never_pushed_out),
		TEST(kept_lines_come_in_the_order_of_their_time),
		TEST(at_the_end_all_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
