/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/nearest.h"
#include "config/flags.h"

#define HERE  1u
#define THERE 2u

struct values {
	bool on;
	bool off;
	int32_t bit;
	int32_t level;
	const char *mode;
	const char *version;
	struct flag_list cidrs;
	int64_t period_ns;
};

static const struct flag table[] = {
	{.group = "G",
	 .name = "masquerade-all",
	 .kind = FLAG_BOOL,
	 .offset = offsetof(struct values, on),
	 .commands = HERE,
	 .help = "On."},
	{.group = "G",
	 .name = "localhost",
	 .letter = 'l',
	 .kind = FLAG_BOOL,
	 .offset = offsetof(struct values, off),
	 .commands = HERE,
	 .initial = "true",
	 .help = "Off."},
	{.group = "G",
	 .name = "masquerade-bit",
	 .kind = FLAG_INT,
	 .offset = offsetof(struct values, bit),
	 .commands = HERE,
	 .initial = "14",
	 .help = "Bit."},
	{.group = "H",
	 .name = "v",
	 .letter = 'v',
	 .kind = FLAG_LEVEL,
	 .offset = offsetof(struct values, level),
	 .commands = HERE,
	 .initial = "0",
	 .help = "Level."},
	{.group = "H",
	 .name = "proxy-mode",
	 .kind = FLAG_STRING,
	 .offset = offsetof(struct values, mode),
	 .commands = HERE,
	 .value = "mode",
	 .help = "Mode."},
	{.group = "H",
	 .name = "version",
	 .kind = FLAG_WORD,
	 .offset = offsetof(struct values, version),
	 .commands = HERE,
	 .help = "Version."},
	{.group = "H",
	 .name = "cidrs",
	 .kind = FLAG_LIST,
	 .offset = offsetof(struct values, cidrs),
	 .commands = HERE,
	 .help = "CIDRs."},
	{.group = "H",
	 .name = "sync-period",
	 .kind = FLAG_DURATION,
	 .offset = offsetof(struct values, period_ns),
	 .commands = HERE,
	 .initial = "30s",
	 .help = "Period."},
	{.group = "I",
	 .name = "elsewhere",
	 .kind = FLAG_STRING,
	 .offset = offsetof(struct values, mode),
	 .commands = THERE,
	 .help = "Not here."},
};

struct fixture {
	struct values values;
	struct err err;
};

/* Reads the words up to NULL into a fresh fixture. */
static int parse(struct fixture *fixture, ...)
{
	char *words[16];
	int n = 0;
	va_list args;

	flags_done(table, ARRAY_SIZE(table), &fixture->values);
	*fixture = (struct fixture){0};
	flags_init(table, ARRAY_SIZE(table), &fixture->values);
	va_start(args, fixture);
	while ((words[n] = va_arg(args, char *)))
		n++;
	va_end(args);
	return flags_parse(table, ARRAY_SIZE(table), HERE, n, words, &fixture->values,
			   &fixture->err);
}

static int set_up(void **state)
{
	*state = xcalloc(1, sizeof(struct fixture));
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	flags_done(table, ARRAY_SIZE(table), &fixture->values);
	free(fixture);
	return 0;
}

static void defaults_without_flags(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, NULL), 0);
	assert_false(f->values.on);
	assert_true(f->values.off);
	assert_int_equal(f->values.bit, 14);
	assert_null(f->values.mode);
	assert_int_equal(f->values.cidrs.n, 0);
	assert_int_equal(f->values.period_ns, INT64_C(30000000000));
}

static void value_behind_equals_sign_or_blank(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "--proxy-mode=iptables", "--masquerade-bit", "3", NULL), 0);
	assert_string_equal(f->values.mode, "iptables");
	assert_int_equal(f->values.bit, 3);
	assert_int_equal(parse(f, "--proxy-mode=", NULL), 0);
	assert_string_equal(f->values.mode, "");
	assert_int_equal(parse(f, "--proxy-mode=a=b", NULL), 0);
	assert_string_equal(f->values.mode, "a=b");
	assert_int_equal(parse(f, "--proxy-mode", "--masquerade-all", NULL), 0);
	assert_string_equal(f->values.mode, "--masquerade-all"); /* the next word, whatever it is */
	assert_false(f->values.on);
}

static void switches_take_values_only_with_equals_sign(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "--masquerade-all", "--localhost=false", NULL), 0);
	assert_true(f->values.on);
	assert_false(f->values.off);
	assert_int_equal(parse(f, "--masquerade-all=T", "--localhost=0", NULL), 0);
	assert_true(f->values.on);
	assert_false(f->values.off);
	assert_int_equal(parse(f, "--localhost", "false", NULL), -EINVAL);
	assert_non_null(strstr(f->err.text, "unexpected argument \"false\""));
	assert_int_equal(parse(f, "--localhost=no", NULL), -EINVAL);
	assert_non_null(strstr(f->err.text, "--localhost"));
}

static void underscore_and_dash_are_the_same_in_names(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "--masquerade_bit=7", "--sync_period=1m", NULL), 0);
	assert_int_equal(f->values.bit, 7);
	assert_int_equal(f->values.period_ns, INT64_C(60000000000));
	assert_int_equal(parse(f, "--proxy_mode=a_b", NULL), 0);
	assert_string_equal(f->values.mode, "a_b"); /* values stay as they are */
}

static void short_forms(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "-v4", NULL), 0);
	assert_int_equal(f->values.level, 4);
	assert_int_equal(parse(f, "-v=5", NULL), 0);
	assert_int_equal(f->values.level, 5);
	assert_int_equal(parse(f, "-v", "6", NULL), 0);
	assert_int_equal(f->values.level, 6);
	assert_int_equal(parse(f, "--v=7", NULL), 0);
	assert_int_equal(f->values.level, 7);
	assert_int_equal(parse(f, "--v", "8", NULL), 0);
	assert_int_equal(f->values.level, 8);
	assert_int_equal(parse(f, "-lv9", NULL), 0); /* a switch before it */
	assert_true(f->values.off);
	assert_int_equal(f->values.level, 9);
	assert_int_equal(parse(f, "-l=false", NULL), 0);
	assert_false(f->values.off);
	assert_int_equal(parse(f, "-v", NULL), -EINVAL);
	assert_int_equal(parse(f, "-v=", NULL), -EINVAL);
	assert_int_equal(parse(f, "-x", NULL), -EINVAL);
	assert_non_null(strstr(f->err.text, "-x"));
	assert_int_equal(parse(f, "-v-1", NULL), -EINVAL);
}

static void lists_split_at_commas_and_grow(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "--cidrs=a,b", "--cidrs", "c", "--cidrs=", NULL), 0);
	assert_int_equal(f->values.cidrs.n, 3);
	assert_string_equal(f->values.cidrs.v[0], "a");
	assert_string_equal(f->values.cidrs.v[1], "b");
	assert_string_equal(f->values.cidrs.v[2], "c");
}

static void last_of_a_repeated_flag_counts(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "--masquerade-bit=1", "--masquerade-bit=2", NULL), 0);
	assert_int_equal(f->values.bit, 2);
}

static void numbers_as_go_reads_them(void **state)
{
	static const struct {
		const char *text;
		int32_t value;
	} good[] = {{"0x1f", 31}, {"017", 15},   {"0o17", 15}, {"0b101", 5}, {"-3", -3},
		    {"+3", 3},    {"-0b11", -3}, {"1_0", 10},  {"0x_1f", 31}};
	static const char *const bad[] = {"",    "a",          "1a",   "1.0",
					  " 1",  "08",         "0b2",  "0b",
					  "--1", "2147483648", "0x",   "99999999999999999999",
					  "_1",  "1_",         "1__0", "-_1"};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(parse(f, "--masquerade-bit", good[i].text, NULL), 0);
		assert_int_equal(f->values.bit, good[i].value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse(f, "--masquerade-bit", bad[i], NULL) != -EINVAL)
			fail_msg("\"%s\" was read as %d", bad[i], f->values.bit);
		assert_non_null(strstr(f->err.text, "--masquerade-bit"));
	}
}

static void a_word_without_value_means_true(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "--version", NULL), 0);
	assert_string_equal(f->values.version, "true");
	assert_int_equal(parse(f, "--version=raw", NULL), 0);
	assert_string_equal(f->values.version, "raw");
}

static void two_dashes_end_the_flags(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "--masquerade-all", "--", NULL), 0);
	assert_true(f->values.on);
	assert_int_equal(parse(f, "--", "--masquerade-all", NULL), -EINVAL);
	assert_non_null(strstr(f->err.text, "unexpected argument"));
}

static void arguments_are_an_error_unless_empty(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "", "--masquerade-all", "", NULL), 0);
	assert_true(f->values.on);
	assert_int_equal(parse(f, "stray", NULL), -EINVAL);
	assert_non_null(strstr(f->err.text, "\"stray\""));
	assert_int_equal(parse(f, "-", NULL), -EINVAL);
}

static void a_missing_value_is_an_error(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "--sync-period", NULL), -EINVAL);
	assert_non_null(strstr(f->err.text, "--sync-period needs a value"));
	assert_int_equal(parse(f, "--sync-period=10", NULL), -EINVAL);
	assert_non_null(strstr(f->err.text, "\"10\""));
}

static void bad_syntax_is_an_error(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "---v=1", NULL), -EINVAL);
	assert_int_equal(parse(f, "--=1", NULL), -EINVAL);
}

static void an_unknown_flag_gets_a_suggestion(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(parse(f, "--proxymode=x", NULL), -EINVAL);
	assert_string_equal(f->err.text, "unknown flag --proxymode; did you mean --proxy-mode?");
	assert_int_equal(parse(f, "--something-else", NULL), -EINVAL);
	assert_null(strstr(f->err.text, "did you mean"));
	assert_int_equal(parse(f, "--elsewhere=x", NULL), -EINVAL); /* a flag of another command */
}

static void suggestions_are_near_or_absent(void **state)
{
	struct nearest nearest;

	(void)state;
	nearest_init(&nearest, "redner");
	nearest_offer(&nearest, "run");
	nearest_offer(&nearest, "render");
	nearest_offer(&nearest, "cleanup");
	assert_string_equal(nearest.best, "render");
	nearest_init(&nearest, "frobnicate");
	nearest_offer(&nearest, "run");
	assert_null(nearest.best);
}

static void help_lists_the_flags_of_the_command(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	flags_help(table, ARRAY_SIZE(table), HERE, out);
	fclose(out);
	assert_non_null(strstr(text, "\nG:\n"));
	assert_non_null(strstr(text, "  --masquerade-bit int\n        Bit. (default 14)\n"));
	assert_non_null(strstr(text, "  -v, --v level\n"));
	assert_non_null(strstr(text, "  --proxy-mode mode\n"));
	assert_non_null(strstr(text, "  --masquerade-all\n"));
	assert_null(strstr(text, "elsewhere"));
	free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(defaults_without_flags),
		TEST(value_behind_equals_sign_or_blank),
		TEST(switches_take_values_only_with_equals_sign),
		TEST(underscore_and_dash_are_the_same_in_names),
		TEST(short_forms),
		TEST(lists_split_at_commas_and_grow),
		TEST(last_of_a_repeated_flag_counts),
		TEST(numbers_as_go_reads_them),
		TEST(a_word_without_value_means_true),
		TEST(two_dashes_end_the_flags),
		TEST(arguments_are_an_error_unless_empty),
		TEST(a_missing_value_is_an_error),
		TEST(bad_syntax_is_an_error),
		TEST(an_unknown_flag_gets_a_suggestion),
		TEST(suggestions_are_near_or_absent),
		TEST(help_lists_the_flags_of_the_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
