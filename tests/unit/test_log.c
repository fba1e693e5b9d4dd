/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

/* Packets keep the borders between writes, so one read sees exactly one write. */
static int sockets[2];

static int set_up(void **state attr_unused)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) < 0)
		return -1;
	log_set_fd(sockets[1]);
	log_setup(LOG_FORMAT_TEXT, 0);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	close(sockets[0]);
	close(sockets[1]);
	log_set_fd(STDERR_FILENO);
	log_setup(LOG_FORMAT_TEXT, 0);
	return 0;
}

static const char *next_write(void)
{
	static char buffer[4096];
	ssize_t n = recv(sockets[0], buffer, sizeof(buffer) - 1, MSG_DONTWAIT);

	buffer[MAX(n, 0)] = '\0';
	return buffer;
}

static void assert_matches(const char *text, const char *pattern)
{
	regex_t regex;

	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	if (regexec(&regex, text, 0, NULL, 0) != 0)
		fail_msg("'%s' does not match '%s'", text, pattern);
	regfree(&regex);
}

/* What follows the header of a text line, without the end of line. */
static char *body(const char *line)
{
	static char copy[4096];
	const char *start = strstr(line, "] ");

	assert_non_null(start);
	snprintf(copy, sizeof(copy), "%s", start + 2);
	assert_int_equal(copy[strlen(copy) - 1], '\n');
	copy[strlen(copy) - 1] = '\0';
	return copy;
}

static void text_line_has_klog_header(void **state attr_unused)
{
	char pattern[256];

	snprintf(pattern, sizeof(pattern),
		 "^I(0[1-9]|1[0-2])[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{6} %7d "
		 "test_log\\.c:%d\\] \"Ready\"\n$",
		 getpid(), __LINE__ + 1);
	log_info("Ready");
	assert_matches(next_write(), pattern);
}

static void severity_is_the_first_letter(void **state attr_unused)
{
	log_info("m");
	assert_int_equal(next_write()[0], 'I');
	log_warning("m");
	assert_int_equal(next_write()[0], 'W');
	log_error("m");
	assert_int_equal(next_write()[0], 'E');
}

static void file_is_named_without_its_folder(void **state attr_unused)
{
	struct log_site site = {.file = "../src/sources/manifests.c", .line = 77};

	log_write(&site, LOG_SEVERITY_INFO, 0, "m", NULL, 0);
	assert_non_null(strstr(next_write(), " manifests.c:77] \"m\"\n"));
}

static void text_quotes_strings_and_leaves_numbers_bare(void **state attr_unused)
{
	log_info("Reading manifests", KV("dir", LOG_STR("/etc/p")), KV("files", LOG_INT(-3)),
		 KV("ok", LOG_BOOL(true)), KV("late", LOG_BOOL(false)), KV("none", LOG_STR(NULL)));
	assert_string_equal(body(next_write()), "\"Reading manifests\" dir=\"/etc/p\" files=-3 "
						"ok=true late=false none=\"\"");
}

static void text_escapes_as_go_does(void **state attr_unused)
{
	static const char *const strings[][2] = {
		{"two\nlines\r\n", "\"two\\nlines\\r\\n\""},
		{"\"quoted\" \\ \t\a\b\f\v", "\"\\\"quoted\\\" \\\\ \\t\\a\\b\\f\\v\""},
		{"\x01\x1b\x7f", "\"\\x01\\x1b\\x7f\""},
		{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x9a\xa2",
		 "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x9a\xa2\""},
		{"\xff\xc3(", "\"\\xff\\xc3(\""},                            /* no UTF-8 */
		{"\xc0\xaf \xe0\x80\x80", "\"\\xc0\\xaf \\xe0\\x80\\x80\""}, /* overlong */
		{"\xed\xa0\x80", "\"\\xed\\xa0\\x80\""},                     /* a surrogate */
		{"\xf4\x90\x80\x80 \xf8", "\"\\xf4\\x90\\x80\\x80 \\xf8\""},
		{"\xe2\x82", "\"\\xe2\\x82\""}, /* cut short */
		{"\xc2\xa0 \xe2\x80\xa8 \xef\xbb\xbf \xf3\xa0\x80\x81",
		 "\"\\u00a0 \\u2028 \\ufeff \\U000e0001\""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
		log_info(strings[i][0]);
		assert_string_equal(body(next_write()), strings[i][1]);
	}
}

static void json_line_is_one_object(void **state attr_unused)
{
	char pattern[256];

	log_setup(LOG_FORMAT_JSON, 4);
	snprintf(pattern, sizeof(pattern),
		 "^\\{\"ts\":[0-9]{13}\\.[0-9]{3},\"caller\":\"test_log\\.c:%d\",\"msg\":\"Sync "
		 "done\",\"v\":4,\"family\":\"IPv4\",\"ms\":12,\"full\":true\\}\n$",
		 __LINE__ + 2);
	/* clang-format off */
	log_debug(4, "Sync done", KV("family", LOG_STR("IPv4")), KV("ms", LOG_INT(12)), KV("full", LOG_BOOL(true)));
	/* clang-format on */
	assert_matches(next_write(), pattern);
}

static void json_error_has_no_verbosity(void **state attr_unused)
{
	log_setup(LOG_FORMAT_JSON, 0);
	log_error("Failed", KV("err", LOG_STR("no")));
	assert_matches(next_write(), "\"msg\":\"Failed\",\"err\":\"no\"\\}\n$");
	log_warning("Hm");
	assert_matches(next_write(), "\"msg\":\"Hm\",\"v\":0\\}\n$");
}

static void json_escapes_and_mends_utf8(void **state attr_unused)
{
	log_setup(LOG_FORMAT_JSON, 0);
	log_info("a\n\"\\\t\r\x01\x1f\x7f", KV("s", LOG_STR("\xc3\xbc\xff\xe2\x82")));
	assert_non_null(strstr(next_write(),
			       "\"msg\":\"a\\n\\\"\\\\\\t\\r\\u0001\\u001f\x7f\",\"v\":0,"
			       "\"s\":\"\xc3\xbc\\ufffd\\ufffd\\ufffd\"}\n"));
}

static void verbosity_decides_about_debug_lines(void **state attr_unused)
{
	log_setup(LOG_FORMAT_TEXT, 2);
	assert_true(log_enabled(2));
	assert_false(log_enabled(3));
	log_debug(3, "hidden");
	log_debug(2, "shown", KV("n", LOG_INT(1)));
	assert_string_equal(body(next_write()), "\"shown\" n=1");
	assert_string_equal(next_write(), "");
}

static void long_line_is_one_write(void **state attr_unused)
{
	cleanup_free char *longest = xcalloc(1, 3001);

	memset(longest, 'x', 3000);
	log_info("m", KV("s", LOG_STR(longest)));
	assert_int_equal(strlen(body(next_write())), 3000 + strlen("\"m\" s=\"\""));
	assert_string_equal(next_write(), "");
}

static void logging_keeps_errno_and_survives_a_closed_fd(void **state attr_unused)
{
	log_set_fd(-1);
	errno = ENOENT;
	log_error("nobody listens");
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(text_line_has_klog_header, set_up, tear_down),
		cmocka_unit_test_setup_teardown(severity_is_the_first_letter, set_up, tear_down),
		cmocka_unit_test_setup_teardown(file_is_named_without_its_folder, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(text_quotes_strings_and_leaves_numbers_bare, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(text_escapes_as_go_does, set_up, tear_down),
		cmocka_unit_test_setup_teardown(json_line_is_one_object, set_up, tear_down),
		cmocka_unit_test_setup_teardown(json_error_has_no_verbosity, set_up, tear_down),
		cmocka_unit_test_setup_teardown(json_escapes_and_mends_utf8, set_up, tear_down),
		cmocka_unit_test_setup_teardown(verbosity_decides_about_debug_lines, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(long_line_is_one_write, set_up, tear_down),
		cmocka_unit_test_setup_teardown(logging_keeps_errno_and_survives_a_closed_fd,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
