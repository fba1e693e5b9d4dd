/* SPDX-License-Identifier: Apache-2.0 */

/* Answers of HTTP/1.1, each in one piece and byte by byte: both must be read as the same. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sources/api_h1.h"

static struct {
	int status, retry_after_s, heads;
	char body[4096];
	size_t n_body;
} seen;

static void on_head(void *arg attr_unused, const struct api_answer *answer)
{
	seen.status = answer->status;
	seen.retry_after_s = answer->retry_after_s;
	seen.heads++;
}

static void on_data(void *arg attr_unused, struct api_bytes data)
{
	assert_true(seen.n_body + data.n < sizeof(seen.body));
	memcpy(seen.body + seen.n_body, data.data, data.n);
	seen.n_body += data.n;
	seen.body[seen.n_body] = '\0';
}

static const struct api_exchange_handler handler = {on_head, on_data, NULL};

/* How many bytes were taken, or the error. */
static ssize_t feed(struct api_h1 *h1, const char *text, size_t n, size_t piece, struct err *err)
{
	size_t taken = 0;

	memset(&seen, 0, sizeof(seen));
	api_h1_init(h1, &handler, NULL);
	while (taken < n && h1->state != API_H1_DONE) {
		struct api_bytes data = {(const uint8_t *)text + taken, MIN(piece, n - taken)};
		ssize_t r = api_h1_feed(h1, data, err);

		if (r < 0)
			return r;
		taken += (size_t)r;
	}
	return (ssize_t)taken;
}

/* ended: with the connection, if not before. */
static void assert_answer(const char *text, int status, const char *body, bool last)
{
	for (size_t piece = 1; piece < 4096; piece *= 4) {
		struct api_h1 h1;
		struct err err;

		assert_int_equal(feed(&h1, text, strlen(text), piece, &err), strlen(text));
		assert_int_equal(api_h1_end(&h1, &err), 0);
		assert_int_equal(seen.heads, 1);
		assert_int_equal(seen.status, status);
		assert_string_equal(seen.body, body);
		assert_int_equal(h1.last, last);
	}
}

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

static void lengths_chunks_and_the_end_bound_a_body(void **state attr_unused)
{
	assert_answer(OK_HEAD "Content-Length: 5\r\n\r\nhello", 200, "hello", false);
	assert_answer(OK_HEAD "content-length:5\r\ncontent-length: 5 \r\n\r\nhello", 200, "hello",
		      false);
	assert_answer(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n"
			      "3\r\nhel\r\n002;x=y\r\nlo\r\n0\r\nTrailer: x\r\n\r\n",
		      200, "hello", false);
	assert_answer(OK_HEAD "\r\nhello", 200, "hello", true);
	assert_answer("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", true);
	assert_answer(OK_HEAD "Connection: Close\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", true);
	assert_answer("HTTP/1.1 204\r\n\r\n", 204, "", false);
	assert_answer("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, "", false);
	assert_answer(OK_HEAD "Content-Length: 0\r\n\r\n", 200, "", false);
}

static void interim_answers_are_passed_over(void **state attr_unused)
{
	assert_answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nLink: y\r\n\r\n" OK_HEAD
		      "Content-Length: 2\r\n\r\nhi",
		      200, "hi", false);
}

static void retry_after_is_read_in_seconds(void **state attr_unused)
{
	assert_answer("HTTP/1.1 429 x\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", 429, "",
		      false);
	assert_int_equal(seen.retry_after_s, 7);
	assert_answer("HTTP/1.1 429 x\r\nRetry-After: 99999999999999\r\nContent-Length: 0\r\n\r\n",
		      429, "", false);
	assert_int_equal(seen.retry_after_s, 86400);
	assert_answer("HTTP/1.1 429 x\r\nRetry-After: Fri, 31 Dec\r\nContent-Length: 0\r\n\r\n",
		      429, "", false);
	assert_int_equal(seen.retry_after_s, 0);
}

static void what_is_not_strictly_http_is_refused(void **state attr_unused)
{
	static const char *const bad[] = {
		"HTTP/2 200 OK\r\n",
		"HTTP/1.1 20 OK\r\n",
		"HTTP/1.1 2000 OK\r\n",
		"HTTP/1.1 099 OK\r\n",
		"HTTP/1.1  200 OK\r\n",
		"\r\n" OK_HEAD,
		"<html>\r\n",
		"HTTP/1.1 200 OK\n\n",
		OK_HEAD "Content-Length: 5\n\r\n",
		OK_HEAD "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
		OK_HEAD "Content-Length: 5, 5\r\n\r\n",
		OK_HEAD "Content-Length: +5\r\n\r\n",
		OK_HEAD "Content-Length:\r\n\r\n",
		OK_HEAD "Content-Length: 9999999999999999999999\r\n\r\n",
		OK_HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		OK_HEAD "Transfer-Encoding: gzip\r\n\r\n",
		OK_HEAD "Transfer-Encoding: chunked, chunked\r\n\r\n",
		OK_HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		OK_HEAD " folded: x\r\n\r\n",
		OK_HEAD "a: b\r\n c\r\n\r\n",
		OK_HEAD "no colon\r\n\r\n",
		OK_HEAD "a b: c\r\n\r\n",
		OK_HEAD ": c\r\n\r\n",
		OK_HEAD "a: b\rc\r\n\r\n",
		OK_HEAD "Transfer-Encoding: chunked\r\n\r\nx\r\n",
		OK_HEAD "Transfer-Encoding: chunked\r\n\r\n\r\n",
		OK_HEAD "Transfer-Encoding: chunked\r\n\r\n-1\r\n",
		OK_HEAD "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
		OK_HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
		"HTTP/1.1 101 Switching\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		for (size_t piece = 1; piece < 4096; piece *= 4) {
			struct api_h1 h1;
			struct err err;

			if (feed(&h1, bad[i], strlen(bad[i]), piece, &err) != -EBADMSG)
				fail_msg("taken for an answer: %s", bad[i]);
		}
	}
}

/* Repeats a line behind a head until it is too much. */
static size_t taken_of(const char *head, const char *line)
{
	struct api_h1 h1;
	struct err err;
	size_t taken = 0;

	assert_int_equal(feed(&h1, head, strlen(head), 4096, &err), strlen(head));
	while (taken < 1u << 20 &&
	       api_h1_feed(&h1, (struct api_bytes){(const uint8_t *)line, strlen(line)}, &err) >= 0)
		taken += strlen(line);
	return taken;
}

static void nothing_but_bodies_is_without_end(void **state attr_unused)
{
	assert_true(taken_of("HTTP/1.1 200 ", "xxxxxxxx") <= API_H1_LINE_MAX);
	assert_true(taken_of(OK_HEAD, "header: value\r\n") <= API_EXCHANGE_HEAD_MAX);
	assert_true(taken_of(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\n",
			     "trailer: value\r\n") <= API_EXCHANGE_HEAD_MAX);
	assert_true(taken_of("", "HTTP/1.1 100 Continue\r\n\r\n") <= 8 * 25);
	assert_true(taken_of(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n1;", "extension") <=
		    API_H1_LINE_MAX);
}

static void a_connection_that_ends_in_the_middle_is_told(void **state attr_unused)
{
	static const char *const cut[] = {
		"",
		"HTTP/1.1 200 O",
		OK_HEAD,
		OK_HEAD "Content-Length: 5\r\n\r\nhell",
		OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhell",
		OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		OK_HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(cut); i++) {
		struct api_h1 h1;
		struct err err;

		assert_int_equal(feed(&h1, cut[i], strlen(cut[i]), 4096, &err), strlen(cut[i]));
		assert_int_equal(api_h1_end(&h1, &err), -EPIPE);
	}
}

static void bytes_behind_an_answer_are_left(void **state attr_unused)
{
	static const char text[] = OK_HEAD "Content-Length: 2\r\n\r\nhiHTTP";
	struct api_h1 h1;
	struct err err;

	assert_int_equal(feed(&h1, text, strlen(text), 4096, &err), strlen(text) - 4);
}

static void a_request_is_written_with_its_body(void **state attr_unused)
{
	const struct api_header headers[] = {{"accept", "x"}};
	const struct api_exchange exchange = {
		.method = "POST",
		.authority = "k:1",
		.target = "/a?b",
		.headers = headers,
		.n_headers = 1,
		.body = "hello",
		.n_body = 5,
	};
	cleanup_text struct text out = {0};
	cleanup_free char *text = NULL;

	api_h1_request(&exchange, &out);
	text = text_dup(&out);
	assert_string_equal(text, "POST /a?b HTTP/1.1\r\nHost: k:1\r\naccept: x\r\n"
				  "content-length: 5\r\n\r\nhello");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_chunks_and_the_end_bound_a_body),
		cmocka_unit_test(interim_answers_are_passed_over),
		cmocka_unit_test(retry_after_is_read_in_seconds),
		cmocka_unit_test(what_is_not_strictly_http_is_refused),
		cmocka_unit_test(nothing_but_bodies_is_without_end),
		cmocka_unit_test(a_connection_that_ends_in_the_middle_is_told),
		cmocka_unit_test(bytes_behind_an_answer_are_left),
		cmocka_unit_test(a_request_is_written_with_its_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
