/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "config/duration.h"

#define MS INT64_C(1000000)
#define S  (1000 * MS)

static void reads_what_go_reads(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} cases[] = {
		{"0", 0},
		{"-0", 0},
		{"0s", 0},
		{"30s", 30 * S},
		{"+5s", 5 * S},
		{"-5s", -5 * S},
		{"1m30s", 90 * S},
		{"100ms", 100 * MS},
		{"1h", 3600 * S},
		{"2h22m", (2 * 60 + 22) * 60 * S},
		{"1.5h", 5400 * S},
		{".5s", 500 * MS},
		{"5.s", 5 * S},
		{"1.004s", 1004 * MS},
		{"7ns", 7},
		{"7us", 7000},
		{"7\u00b5s", 7000},
		{"7\u03bcs", 7000},
		{"0.3333333333333333333h", 20 * 60 * S},
		{"1s1s", 2 * S},
		{"9223372036854775807ns", INT64_MAX},
		{"-9223372036854775808ns", INT64_MIN},
		{"2540400h", INT64_C(2540400) * 3600 * S},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t ns = 42;

		if (duration_parse(cases[i].text, &ns) != 0 || ns != cases[i].ns)
			fail_msg("%s: %lld", cases[i].text, (long long)ns);
	}
}

static void refuses_what_go_refuses(void **state)
{
	static const char *const cases[] = {
		"",
		"3",
		"-",
		"s",
		".",
		"-.",
		".s",
		"+.s",
		"1d",
		"1 s",
		" 1s",
		"1s ",
		"1m30",
		"\xffs",
		"9223372036854775808ns",
		"3e3s",
		"0x10s",
		"1s-2s",
		"-9223372036854775809ns",
		"2562047h47m16.854775808s",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t ns = 42;

		if (duration_parse(cases[i], &ns) == 0 || ns != 42)
			fail_msg("\"%s\" was read as %lld", cases[i], (long long)ns);
	}
}

static void prints_as_go_prints(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{0, "0s"},
		{1, "1ns"},
		{1100, "1.1\u00b5s"},
		{2200000, "2.2ms"},
		{100 * MS, "100ms"},
		{3300 * MS, "3.3s"},
		{30 * S, "30s"},
		{90 * S, "1m30s"},
		{3600 * S, "1h0m0s"},
		{4 * 60 * S + 1, "4m0.000000001s"},
		{-90 * S, "-1m30s"},
		{-100 * MS, "-100ms"},
		{INT64_MAX, "2562047h47m16.854775807s"},
		{INT64_MIN, "-2562047h47m16.854775808s"},
	};
	char text[DURATION_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(duration_print(cases[i].ns, text), strlen(cases[i].text));
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_go_reads),
		cmocka_unit_test(refuses_what_go_refuses),
		cmocka_unit_test(prints_as_go_prints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
