/* SPDX-License-Identifier: Apache-2.0 */

/* Servers that abuse HTTP/2, frame by frame: none makes us keep more and more. What works is in test_api_http.c. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sources/api_h2.h"

enum {
	DATA = 0,
	HEADERS = 1,
	RST_STREAM = 3,
	SETTINGS = 4,
	PING = 6,
	GOAWAY = 7,
	CONTINUATION = 9
};

static struct {
	struct api_h2 *h2;
	int heads, ends;
	enum api_failure failure;
	bool refused;
	struct err err;
} world;

static void on_head(void *arg attr_unused, const struct api_answer *answer attr_unused)
{
	world.heads++;
}

static void on_data(void *arg attr_unused, struct api_bytes data attr_unused)
{
}

static void on_end(void *arg attr_unused, enum api_failure failure, bool refused,
		   const char *text attr_unused)
{
	world.ends++;
	world.failure = failure;
	world.refused = refused;
}

static void drain(void)
{
	struct api_bytes piece;

	while (api_h2_pull(world.h2, &piece, &world.err) == 0 && piece.n > 0)
		;
}

/* -EPIPE: it is over, after a last message to the server. */
static int feed(uint8_t type, uint8_t flags, uint8_t stream, const void *data, size_t n)
{
	uint8_t frame[9 + 16384] = {0, (uint8_t)(n >> 8), (uint8_t)n, type, flags, 0, 0, 0, stream};
	int r;

	memcpy(frame + 9, data, n);
	r = api_h2_feed(world.h2, (struct api_bytes){frame, 9 + n}, &world.err);
	return r < 0 ? r : api_h2_is_over(world.h2) ? -EPIPE : 0;
}

static int set_up(void **state attr_unused)
{
	static const struct api_exchange_handler handler = {on_head, on_data, on_end};
	const struct api_exchange get = {
		.method = "GET", .scheme = "https", .authority = "k", .target = "/"};

	memset(&world, 0, sizeof(world));
	assert_int_equal(api_h2_new(&handler, &world.h2, &world.err), 0);
	assert_int_equal(api_h2_start(world.h2, &get, &world, &world.err), 0);
	drain();
	assert_int_equal(feed(SETTINGS, 0, 0, "", 0), 0);
	drain();
	return 0;
}

static int tear_down(void **state attr_unused)
{
	world.h2 = api_h2_free(world.h2);
	return 0;
}

/* How often it may be sent while nothing of ours is taken, at most so often. */
static int count(int most, uint8_t type, uint8_t flags, uint8_t stream, const void *data, size_t n)
{
	for (int i = 0; i < most; i++)
		if (feed(type, flags, stream, data, n) < 0)
			return i;
	return most;
}

static void pings_and_settings_that_are_not_taken_back_are_bounded(void **state attr_unused)
{
	assert_true(count(100000, PING, 0, 0, "12345678", 8) < 2000);
	assert_string_equal(world.err.text, "HTTP/2: the server sends without listening");
	tear_down(NULL);
	set_up(NULL);
	assert_true(count(100000, SETTINGS, 0, 0, "\0\1\0\0\x10\0", 6) < 2000);
}

/* ":status: 200", then headers of one byte each; the last frame never comes. */
static void a_head_without_end_is_given_up(void **state attr_unused)
{
	static uint8_t filler[16000];

	for (size_t i = 0; i + 3 < sizeof(filler); i += 4)
		memcpy(filler + i, "\0\1a\0", 4);
	assert_int_equal(feed(HEADERS, 0, 1, "\x88", 1), 0);
	assert_true(count(1000, CONTINUATION, 0, 1, filler, sizeof(filler)) < 1000);
	assert_int_equal(world.heads, 0);
}

static void interim_heads_are_bounded_together(void **state attr_unused)
{
	static const char interim[] = "\x08\3"
				      "103"; /* ":status: 103" */

	count(100000, HEADERS, 4, 1, interim, 5);
	drain();
	assert_int_equal(world.heads, 0);
	assert_int_equal(world.ends, 1); /* the stream was reset */
	assert_int_equal(world.failure, API_FAILURE_GARBAGE);
}

static void a_stream_that_ends_too_early_is_a_failure(void **state attr_unused)
{
	assert_int_equal(feed(HEADERS, 4, 1, "\x88", 1), 0);
	assert_int_equal(feed(RST_STREAM, 0, 1, "\0\0\0\0", 4), 0); /* NO_ERROR, says the server */
	assert_int_equal(world.heads, 1);
	assert_int_equal(world.ends, 1);
	assert_int_equal(world.failure, API_FAILURE_CONNECT);
	assert_false(world.refused);
}

static void a_farewell_says_which_requests_were_not_touched(void **state attr_unused)
{
	assert_true(api_h2_is_open(world.h2));
	feed(GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	assert_false(api_h2_is_open(world.h2));
	assert_int_equal(world.ends, 1);
	assert_true(world.refused);
}

static void frames_against_the_rules_end_the_connection(void **state attr_unused)
{
	int r = feed(DATA, 0, 2, "x", 1); /* a stream that there is not */

	drain();
	assert_true(r < 0 || api_h2_is_over(world.h2));
	api_h2_fail(world.h2, API_FAILURE_GARBAGE, "");
	assert_int_equal(world.ends, 1);
	assert_int_equal(world.failure, API_FAILURE_GARBAGE);
}

static void a_cancelled_request_is_not_told_of_again(void **state attr_unused)
{
	api_h2_cancel(world.h2, &world);
	assert_int_equal(feed(HEADERS, 4, 1, "\x88", 1), 0);
	assert_int_equal(feed(DATA, 1, 1, "x", 1), 0);
	drain();
	api_h2_fail(world.h2, API_FAILURE_CONNECT, "");
	assert_int_equal(world.heads + world.ends, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(pings_and_settings_that_are_not_taken_back_are_bounded),
		TEST(a_head_without_end_is_given_up),
		TEST(interim_heads_are_bounded_together),
		TEST(a_stream_that_ends_too_early_is_a_failure),
		TEST(a_farewell_says_which_requests_were_not_touched),
		TEST(frames_against_the_rules_end_the_connection),
		TEST(a_cancelled_request_is_not_told_of_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
