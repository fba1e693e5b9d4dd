/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sources/resource_version.h"

static void only_numbers_are_compared_and_by_value(void **state attr_unused)
{
	static const struct {
		const char *a, *b;
		bool older;
	} rows[] = {
		{"1", "2", true},
		{"2", "1", false},
		{"7", "7", false},
		{"9", "10", true},
		{"10", "9", false},
		{"007", "8", true},
		{"0", "00", false},
		{"18446744073709551615", "18446744073709551616", true}, /* beyond 64 bits */
		{"99999999999999999999999999999999", "1", false},
		{"1", "b2", false},
		{"a1", "2", false},
		{"-1", "2", false},
		{"", "2", false},
		{"1", "", false},
		{NULL, "2", false},
		{"1", NULL, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(resource_version_is_older(rows[i].a, rows[i].b), rows[i].older);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_numbers_are_compared_and_by_value),
	};

	return cmocka_run_group_tests_name("resource_version", tests, NULL, NULL);
}
