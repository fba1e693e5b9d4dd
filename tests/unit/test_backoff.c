/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sources/backoff.h"

static void steps_double_up_to_the_ceiling(void **state attr_unused)
{
	static const int64_t expected[] = {800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
	struct backoff backoff = {.first_ms = 800, .max_ms = 30000};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_int_equal(backoff_next(&backoff, 0), expected[i]);
}

static void chance_takes_up_to_half_off(void **state attr_unused)
{
	for (uint32_t random = 0; random < 100000; random += 7) {
		struct backoff backoff = {.first_ms = 800, .max_ms = 30000};
		int64_t wait = backoff_next(&backoff, random * 2654435761u);

		assert_in_range(wait, 400, 800);
	}
}

static void chance_reaches_both_ends(void **state attr_unused)
{
	struct backoff backoff = {.first_ms = 800, .max_ms = 30000};

	assert_int_equal(backoff_next(&backoff, 400), 400);
	backoff_reset(&backoff);
	assert_int_equal(backoff_next(&backoff, 401), 800);
}

static void success_starts_over(void **state attr_unused)
{
	struct backoff backoff = {.first_ms = 800, .max_ms = 30000};

	for (int i = 0; i < 5; i++)
		backoff_next(&backoff, 0);
	backoff_reset(&backoff);
	assert_int_equal(backoff_next(&backoff, 0), 800);
}

static void many_failures_do_not_overflow(void **state attr_unused)
{
	struct backoff backoff = {.first_ms = 800, .max_ms = 30000, .failures = UINT32_MAX};

	assert_int_equal(backoff_next(&backoff, 0), 30000);
	assert_int_equal(backoff_next(&backoff, 0), 30000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_double_up_to_the_ceiling),
		cmocka_unit_test(chance_takes_up_to_half_off),
		cmocka_unit_test(chance_reaches_both_ends),
		cmocka_unit_test(success_starts_over),
		cmocka_unit_test(many_failures_do_not_overflow),
	};

	return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
