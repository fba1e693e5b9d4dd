/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sources/api_url.h"

static void assert_parts(const char *text, const char *host, unsigned int port, const char *path)
{
	cleanup_api_url struct api_url url = {0};
	struct err err;

	assert_int_equal(api_url_parse(text, &url, &err), 0);
	assert_string_equal(url.host, host);
	assert_int_equal(url.port, port);
	assert_string_equal(url.path, path);
}

static void a_url_has_a_host_a_port_and_a_path(void **state attr_unused)
{
	assert_parts("https://10.0.0.1:6443", "10.0.0.1", 6443, "");
	assert_parts("https://k.example", "k.example", 443, "");
	assert_parts("HTTP://k/a/b//", "k", 80, "/a/b");
	assert_parts("https://[fd00::1]", "fd00::1", 443, "");
	assert_parts("https://[fd00::1]:6443/", "fd00::1", 6443, "");
	assert_parts("socks5://p", "p", 1080, "");
	assert_parts("socks5h://p:1", "p", 1, "");
	assert_parts("https://u:p%40ss@k:1/x", "k", 1, "/x");
}

static void what_is_no_url_is_refused(void **state attr_unused)
{
	static const char *const bad[] = {
		"",
		"k",
		"ftp://k",
		"https://",
		"https://:1",
		"https://k:",
		"https://k:0",
		"https://k:65536",
		"https://k:1x",
		"https://k:99999999999",
		"https://[fd00::1",
		"https://[10.0.0.1]",
		"https://[k]",
		"https://[fd00::1]x",
		"https://fd00::1",
		"https://k e",
		"https://k\r\nx",
		"https://k/a b",
		"https://k/\x01",
		"https://k?x",
		"https://k/#x",
		"https://u%4@k",
		"https://u%00@k",
		"https://u%zz@k",
	};
	struct api_url url;
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_true(api_url_parse(bad[i], &url, &err) < 0);
}

static void user_and_password_are_decoded_and_told_to_nobody(void **state attr_unused)
{
	cleanup_api_url struct api_url url = {0};
	cleanup_free char *text = NULL, *basic = NULL;
	struct err err;

	assert_int_equal(api_url_parse("https://Aladdin:open%20sesame@k:1/x", &url, &err), 0);
	assert_string_equal(url.user, "Aladdin:open sesame");
	assert_string_equal(url.authority, "k:1");
	text = api_url_text(&url);
	assert_string_equal(text, "https://k:1/x");
	basic = api_url_basic(&url);
	assert_string_equal(basic, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

static void assert_hidden(const char *text, const char *expected)
{
	cleanup_free char *hidden = api_url_hide(text);

	assert_string_equal(hidden, expected);
}

static void what_may_be_a_password_is_hidden_even_in_what_is_no_url(void **state attr_unused)
{
	struct api_url url;
	struct err err;

	assert_hidden("https://k:1/x", "https://k:1/x");
	assert_hidden("https://user:geheim@k:1", "https://k:1");
	assert_hidden("user:geheim@k:1", "k:1");
	assert_hidden("ftp://user:geh/eim@k", "ftp://k");
	assert_hidden("https://user:geh@eim@k", "https://k");
	assert_hidden("user:geh://eim@k", "k");
	assert_true(api_url_parse("https://user:geheim@k:x", &url, &err) < 0);
	assert_null(strstr(err.text, "geheim"));
	assert_non_null(strstr(err.text, "https://k:x is not a URL"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_url_has_a_host_a_port_and_a_path),
		cmocka_unit_test(what_is_no_url_is_refused),
		cmocka_unit_test(user_and_password_are_decoded_and_told_to_nobody),
		cmocka_unit_test(what_may_be_a_password_is_hidden_even_in_what_is_no_url),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
