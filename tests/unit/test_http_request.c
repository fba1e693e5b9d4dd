/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/http_request.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <stdlib.h>

static int parse(const char *text, char buffer[static HTTP_HEAD_MAX], struct http_request *ret)
{
	size_t n = strlen(text);

	memcpy(buffer, text, n);
	return http_request_parse(buffer, n, ret);
}

static void reads_method_path_and_query(void **state attr_unused)
{
	static const char text[] = "GET /explain?dest=a%20b&x=1 HTTP/1.1\r\nHost: h\r\n\r\nrest";
	char buffer[HTTP_HEAD_MAX];
	struct http_request request;

	assert_int_equal(parse(text, buffer, &request), (int)strlen(text) - 4);
	assert_int_equal(request.method, HTTP_GET);
	assert_string_equal(request.path, "/explain");
	assert_string_equal(request.query, "dest=a%20b&x=1");
	assert_true(request.keep_alive);
}

static void waits_for_the_empty_line(void **state attr_unused)
{
	char buffer[HTTP_HEAD_MAX];
	struct http_request request;

	assert_int_equal(parse("", buffer, &request), 0);
	assert_int_equal(parse("GET / HTTP/1.1\r\n", buffer, &request), 0);
	assert_int_equal(parse("GET / HTTP/1.1\r\n\r", buffer, &request), 0);
	assert_true(parse("GET / HTTP/1.1\nHost: h\n\n", buffer, &request) > 0);
}

static void refuses_what_is_no_request(void **state attr_unused)
{
	static const char *const bad[] = {
		"\r\n\r\n",
		"GET\r\n\r\n",
		"GET /\r\n\r\n",
		"GET / HTTP/2.0\r\n\r\n",
		"GET / HTTP/1.x\r\n\r\n",
		"G T / HTTP/1.1\r\n\r\n",
		"GET relative HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nno colon\r\n\r\n",
		"GET / HTTP/1.1\r\n: no name\r\n\r\n",
		"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
		"GET / HTTP/1.1\r\nA: \x01\r\n\r\n",
		"GET /\x7f HTTP/1.1\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char buffer[HTTP_HEAD_MAX];
		struct http_request request;

		assert_int_equal(parse(bad[i], buffer, &request), -EBADMSG);
	}
}

static void a_byte_of_zero_is_refused(void **state attr_unused)
{
	char text[] = "GET / HTTP/1.1\r\nA: b\0c\r\n\r\n";
	struct http_request request;

	assert_int_equal(http_request_parse(text, sizeof(text) - 1, &request), -EBADMSG);
}

static void connection_ends_as_asked_or_after_a_body(void **state attr_unused)
{
	static const struct {
		const char *text;
		bool keep_alive;
	} cases[] = {
		{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", true},
		{"GET / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n", false},
		{"GET / HTTP/1.0\r\n\r\n", false},
		{"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n", true},
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", true},
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", true},
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 65\r\n\r\n", false},
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n",
		 false},
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1 \r\nContent-Length: 1\r\n\r\nx",
		 true},
		{"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: "
		 "keep-alive\r\n\r\n",
		 false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char buffer[HTTP_HEAD_MAX];
		struct http_request request;

		assert_true(parse(cases[i].text, buffer, &request) > 0);
		assert_int_equal(request.keep_alive, cases[i].keep_alive);
	}
}

static void a_short_body_belongs_to_the_request(void **state attr_unused)
{
	static const char text[] =
		"PUT / HTTP/1.1\r\nAccept: a/b\r\nHost: c:1\r\nContent-Length: 2\r\n\r\n10GET";
	char buffer[HTTP_HEAD_MAX];
	struct http_request request;

	assert_int_equal(parse(text, buffer, &request), strlen(text) - 3);
	assert_int_equal(request.method, HTTP_PUT);
	assert_string_equal(request.accept, "a/b");
	assert_string_equal(request.host, "c:1");
	assert_int_equal(request.n_body, 2);
	assert_memory_equal(request.body, "10", 2);
	assert_int_equal(
		parse("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n1", buffer, &request),
		0);
}

static void a_target_with_a_host_counts_by_its_path(void **state attr_unused)
{
	char buffer[HTTP_HEAD_MAX];
	struct http_request request;

	assert_true(parse("HEAD http://h:1/metrics?a HTTP/1.1\r\nHost: H:1\r\n\r\n", buffer,
			  &request) > 0);
	assert_int_equal(request.method, HTTP_HEAD);
	assert_string_equal(request.path, "/metrics");
	assert_string_equal(request.query, "a");
	assert_string_equal(request.host, "H:1");
	assert_true(parse("GET http://h HTTP/1.0\r\n\r\n", buffer, &request) > 0);
	assert_string_equal(request.path, "/");
	assert_string_equal(request.host, "h");
}

/* Two readers in a row must see the same request, with the same end. */
static void what_can_be_understood_in_two_ways_is_refused(void **state attr_unused)
{
	static const char *const bad[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
		"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: a:80\r\n\r\n",
		"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http:///metrics HTTP/1.1\r\nHost: a\r\n\r\n",
		"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
		"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 65\r\nContent-Length: 1\r\n\r\n1",
		"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n1",
		"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n1",
		"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n1",
		"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n1",
		"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
		"Transfer-Encoding: chunked\r\n\r\n1",
		"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		"Content-Length: 0\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char buffer[HTTP_HEAD_MAX];
		struct http_request request;

		if (parse(bad[i], buffer, &request) != -EBADMSG)
			fail_msg("%s", bad[i]);
	}
}

static void addresses_and_own_names_are_ours(void **state attr_unused)
{
	static const char *const ours[] = {
		"",
		"127.0.0.1:10249",
		"192.168.0.2",
		"[::1]:10249",
		"[2001:db8::1]",
		"LocalHost:1",
		"Node-A:10249",
		"node-a",
	};
	static const char *const foreign[] = {
		"node-a.evil.example",
		"localhost.evil.example:10249",
		"127.0.0.1.evil.example",
		"evil.example",
		"[::1",
		"[::1]evil.example",
		"localhost:80:evil.example",
		"localhost@evil.example",
		"user@localhost",
		":10249",
	};

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (!http_request_is_for(&(struct http_request){.host = ours[i]}, "node-a"))
			fail_msg("%s", ours[i]);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (http_request_is_for(&(struct http_request){.host = foreign[i]}, "node-a"))
			fail_msg("%s", foreign[i]);
}

static void query_values_are_decoded(void **state attr_unused)
{
	static const struct {
		const char *query, *name, *value;
	} cases[] = {
		{"a=1&b=x%2fy+z&c=", "b", "x/y z"},
		{"a=1&b=2&c=", "c", ""},
		{"a=1", "b", NULL},
		{"ab=1", "a", NULL},
		{"a=%4", "a", NULL},
		{"a=%zz", "a", NULL},
		{"a=%00", "a", NULL},
		{"&&a=%41", "a", "A"},
		{"", "a", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_free char *value = http_query_get(cases[i].query, cases[i].name);

		if (!cases[i].value)
			assert_null(value);
		else
			assert_string_equal(value, cases[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_method_path_and_query),
		cmocka_unit_test(waits_for_the_empty_line),
		cmocka_unit_test(refuses_what_is_no_request),
		cmocka_unit_test(a_byte_of_zero_is_refused),
		cmocka_unit_test(connection_ends_as_asked_or_after_a_body),
		cmocka_unit_test(a_short_body_belongs_to_the_request),
		cmocka_unit_test(a_target_with_a_host_counts_by_its_path),
		cmocka_unit_test(what_can_be_understood_in_two_ways_is_refused),
		cmocka_unit_test(addresses_and_own_names_are_ours),
		cmocka_unit_test(query_values_are_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
