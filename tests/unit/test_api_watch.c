/* SPDX-License-Identifier: Apache-2.0 */

/* Everything that a server can answer, without a server: requests and waits are noted, answers are
 * bytes made by hand, and time and chance stand still unless moved. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api_bytes.h"
#include "sources/api_watch.h"

static struct world {
	struct api_watch *watch;
	char target[1024]; /* of the request under way; "" when there is none */
	bool stream;
	int requests;
	int64_t wait_ms;
	int64_t now_ms;
	uint32_t random;
	int listed, recovered, failures;
	enum api_failure failure;
	char log[2048];     /* "+a" set, "-a" removed */
	char reports[2048]; /* one a line */
	char reason[512];   /* of the last failure */
	const char *refuse; /* set() says so about objects of this name */
	const char *skip;
	const char *remark; /* and notes this about all */
} world;

static void say(char *to, size_t size, const char *a, const char *b)
{
	size_t used = strlen(to);

	snprintf(to + used, size - used, "%s%s", a, b);
}

static void on_get(void *arg attr_unused, const char *target, bool stream)
{
	assert_string_equal(world.target, ""); /* one at a time */
	snprintf(world.target, sizeof(world.target), "%s", target);
	world.stream = stream;
	world.requests++;
}

static void on_stop(void *arg attr_unused)
{
	world.target[0] = '\0';
}

static void on_wait(void *arg attr_unused, int64_t ms)
{
	world.wait_ms = ms;
}

static int64_t on_now(void *arg attr_unused)
{
	return world.now_ms;
}

static uint32_t on_random(void *arg attr_unused)
{
	return world.random;
}

static void on_failed(void *arg attr_unused, enum api_failure failure, const char *text)
{
	world.failure = failure;
	world.failures++;
	snprintf(world.reason, sizeof(world.reason), "%s", text);
}

static void on_recovered(void *arg attr_unused)
{
	world.failure = API_FAILURE_NONE;
	world.recovered++;
}

static void on_report(void *arg attr_unused, enum log_severity severity attr_unused,
		      const char *text)
{
	say(world.reports, sizeof(world.reports), text, "\n");
}

/* The name is the object's first field's first field. */
static int on_set(void *arg attr_unused, struct api_bytes object,
		  void (*note)(void *, const char *), void *note_arg, struct err *err)
{
	char name[64];

	snprintf(name, sizeof(name), "%.*s", object.data[3], (const char *)object.data + 4);
	if (world.refuse && streq(world.refuse, name))
		return err_set(err, -EINVAL, "no good");
	if (world.skip && streq(world.skip, name))
		return 0;
	if (world.remark)
		note(note_arg, world.remark);
	say(world.log, sizeof(world.log), "+", name);
	return 1;
}

static void on_remove(void *arg attr_unused, const char *key)
{
	say(world.log, sizeof(world.log), "-", strchr(key, '/') + 1);
}

static void on_listed(void *arg attr_unused)
{
	world.listed++;
}

static int setup(void **state attr_unused)
{
	const struct api_watch_kind kind = {"Service", "/api/v1/services", "labelSelector=x", true,
					    on_set,    on_remove,          on_listed,         NULL};
	const struct api_watch_io io = {
		.get = on_get,
		.stop = on_stop,
		.wait = on_wait,
		.now_ms = on_now,
		.random = on_random,
		.failed = on_failed,
		.recovered = on_recovered,
		.report = on_report,
	};

	world = (struct world){0};
	world.watch = api_watch_new(&kind, &io);
	return 0;
}

static int teardown(void **state attr_unused)
{
	world.watch = api_watch_free(world.watch);
	return 0;
}

/* -- what the server does -- */

static void send(struct bytes bytes)
{
	struct api_bytes view = bytes_view(bytes);

	/* in two pieces, as it may come */
	api_watch_data(world.watch, (struct api_bytes){view.data, view.n / 2});
	api_watch_data(world.watch,
		       (struct api_bytes){view.data + view.n / 2, view.n - view.n / 2});
	bytes_done(&bytes);
}

static void answer(int status)
{
	api_watch_status(world.watch, status, 0);
}

static void send_event(const char *type, const char *name, const char *version)
{
	send(make_event_frame(type, "Service", make_object("default", name, version)));
}

static void send_mark(const char *version)
{
	send(make_event_frame("BOOKMARK", "Service", make_bookmark(version, true)));
}

static void send_error(int code, const char *message)
{
	send(make_event_frame("ERROR", "Status", make_status(code, message, 0)));
}

static void end(enum api_failure failure)
{
	world.target[0] = '\0';
	api_watch_end(world.watch, failure, "lost");
}

static void refuse(int status, const char *message)
{
	answer(status);
	send(make_envelope("Status", make_status(status, message, 0)));
	end(API_FAILURE_NONE);
}

static void pass(int64_t ms)
{
	world.now_ms += ms;
	api_watch_timer(world.watch);
}

static void clear_log(void)
{
	world.log[0] = '\0';
}

static void assert_asks(const char *part)
{
	if (!strstr(world.target, part))
		fail_msg("\"%s\" is not in \"%s\"", part, world.target);
}

static void assert_waits(int64_t ms)
{
	assert_string_equal(world.target, "");
	assert_int_equal(world.wait_ms, ms);
}

/* Started, a and b listed, watching from version 5. */
static void start_with_a_and_b(void)
{
	api_watch_start(world.watch);
	answer(200);
	send_event("ADDED", "a", "3");
	send_event("ADDED", "b", "4");
	send_mark("5");
	assert_string_equal(world.log, "+a+b");
	assert_int_equal(world.listed, 1);
	clear_log();
}

static void end_later(enum api_failure failure)
{
	world.now_ms += 60000;
	end(failure);
}

/* -- the streaming list -- */

static void the_first_request_asks_for_a_streaming_list(void **state attr_unused)
{
	api_watch_start(world.watch);
	assert_string_equal(world.target,
			    "/api/v1/services?labelSelector=x&watch=1&allowWatchBookmarks=true"
			    "&timeoutSeconds=300&sendInitialEvents=true"
			    "&resourceVersionMatch=NotOlderThan");
	assert_true(world.stream);
}

static void the_stream_goes_on_as_a_watch(void **state attr_unused)
{
	start_with_a_and_b();
	send_event("MODIFIED", "a", "6");
	send_event("DELETED", "b", "7");
	send_event("ADDED", "c", "8");
	assert_string_equal(world.log, "+a-b+c");
	assert_int_equal(world.listed, 1);
	assert_int_equal(world.requests, 1);
	assert_int_equal(api_watch_count(world.watch), 2);
}

static void nothing_is_listed_before_the_mark(void **state attr_unused)
{
	api_watch_start(world.watch);
	answer(200);
	send_event("ADDED", "a", "3");
	send(make_event_frame("BOOKMARK", "Service", make_bookmark("4", false)));
	assert_int_equal(world.listed, 0);
	assert_false(api_watch_is_listed(world.watch));
}

static void changes_between_list_and_mark_count(void **state attr_unused)
{
	api_watch_start(world.watch);
	answer(200);
	send_event("ADDED", "a", "3");
	send_event("ADDED", "b", "3");
	send_event("DELETED", "a", "4");
	send_event("MODIFIED", "b", "5");
	send_mark("5");
	assert_string_equal(world.log, "+a+b-a+b");
}

/* -- resuming -- */

static void a_stream_that_ends_is_resumed_at_once(void **state attr_unused)
{
	start_with_a_and_b();
	end_later(API_FAILURE_NONE);
	assert_waits(0);
	assert_int_equal(world.failures, 0);
	pass(0);
	assert_asks("&resourceVersion=5");
	assert_string_equal(world.log, "");
}

static void a_stream_that_is_cut_is_resumed_without_a_word(void **state attr_unused)
{
	start_with_a_and_b();
	world.random = 123;
	end_later(API_FAILURE_CONNECT);
	assert_waits(123);
	assert_int_equal(world.failures, 0);
	pass(123);
	assert_asks("&resourceVersion=5");
	assert_string_equal(world.log, "");
}

static void events_and_bookmarks_move_the_version(void **state attr_unused)
{
	start_with_a_and_b();
	send_event("MODIFIED", "a", "17");
	end_later(API_FAILURE_NONE);
	pass(0);
	assert_asks("&resourceVersion=17");
	answer(200);
	send(make_event_frame("BOOKMARK", "Service", make_bookmark("29", false)));
	end_later(API_FAILURE_NONE);
	pass(0);
	assert_asks("&resourceVersion=29");
}

static void a_stream_that_ends_at_once_is_a_failure(void **state attr_unused)
{
	start_with_a_and_b();
	end(API_FAILURE_NONE);
	assert_int_equal(world.failure, API_FAILURE_CONNECT);
	assert_waits(800);
}

static void an_initial_list_that_is_cut_starts_over(void **state attr_unused)
{
	api_watch_start(world.watch);
	answer(200);
	send_event("ADDED", "a", "3");
	end_later(API_FAILURE_CONNECT);
	assert_int_equal(world.failure, API_FAILURE_CONNECT);
	pass(800);
	assert_asks("sendInitialEvents=true");
	answer(200);
	send_event("ADDED", "b", "4");
	send_mark("5"); /* a has gone meanwhile */
	assert_string_equal(world.log, "+a+b-a");
	assert_int_equal(world.recovered, 1);
}

static void an_initial_list_that_is_always_cut_is_tried_in_pages(void **state attr_unused)
{
	api_watch_start(world.watch);
	for (int i = 0; i < 3; i++) {
		assert_asks("sendInitialEvents=true");
		answer(200);
		end_later(API_FAILURE_CONNECT);
		pass(world.wait_ms);
	}
	assert_asks("limit=500");
}

/* -- pages -- */

static const char *const first_page[] = {"default/a", "default/b", NULL};
static const char *const second_page[] = {"default/c", NULL};

static void send_page(const char *version, const char *token, const char *const *names)
{
	answer(200);
	send(make_list("Service", version, token, names));
	end(API_FAILURE_NONE);
}

static void a_status_that_refuses_leads_to_pages(void **state attr_unused)
{
	static const int refusals[] = {400, 405, 406, 415, 422, 500, 501};

	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (i > 0) {
			teardown(NULL);
			setup(NULL);
		}
		api_watch_start(world.watch);
		refuse(refusals[i], "sendInitialEvents is forbidden");
		assert_int_equal(world.failures, 0);
		assert_waits(0);
		pass(0);
		assert_string_equal(world.target, "/api/v1/services?labelSelector=x&limit=500");
		assert_false(world.stream);
	}
}

static void an_error_event_that_refuses_leads_to_pages(void **state attr_unused)
{
	api_watch_start(world.watch);
	answer(200);
	send_error(500, "the required storage feature RequestWatchProgress is disabled");
	assert_waits(0);
	pass(0);
	assert_asks("limit=500");
	assert_int_equal(world.failures, 0);
}

static void a_server_that_never_sends_the_mark_leads_to_pages_for_good(void **state attr_unused)
{
	api_watch_start(world.watch);
	answer(200);
	send_event("ADDED", "a", "3");
	assert_int_equal(world.wait_ms, 30000);
	pass(30000);
	assert_waits(0);
	pass(0);
	assert_asks("limit=500");
	send_page("5", "", first_page);
	pass(0);
	answer(200);
	send_error(410, "too old");
	pass(0);
	assert_asks("limit=500");
}

static void start_in_pages(void)
{
	api_watch_start(world.watch);
	refuse(422, "");
	pass(0);
}

static void pages_follow_each_other_then_comes_a_watch(void **state attr_unused)
{
	start_in_pages();
	send_page("40", "to/ken+1=", first_page);
	assert_int_equal(world.listed, 0);
	pass(0);
	assert_asks("limit=500&continue=to%2Fken%2B1%3D");
	send_page("40", "", second_page);
	assert_string_equal(world.log, "+a+b+c");
	assert_int_equal(world.listed, 1);
	pass(0);
	assert_asks("watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=40");
	assert_true(world.stream);
}

static void a_page_that_fails_is_asked_for_again(void **state attr_unused)
{
	start_in_pages();
	send_page("40", "token", first_page);
	pass(0);
	answer(200);
	end(API_FAILURE_CONNECT);
	assert_waits(800);
	pass(800);
	assert_asks("continue=token");
	send_page("40", "", second_page);
	assert_string_equal(world.log, "+a+b+c");
}

static void a_token_that_expired_leads_to_a_list_without_pages(void **state attr_unused)
{
	start_in_pages();
	send_page("40", "token", first_page);
	pass(0);
	refuse(410, "the provided continue parameter is too old");
	assert_int_equal(world.failures, 0);
	assert_waits(0);
	pass(0);
	assert_string_equal(world.target, "/api/v1/services?labelSelector=x");
	send_page("50", "", second_page); /* a and b went meanwhile */
	assert_non_null(strstr(world.log, "-a"));
	assert_non_null(strstr(world.log, "-b"));
	assert_int_equal(api_watch_count(world.watch), 1);
}

static void a_page_that_ends_too_early_removes_nothing(void **state attr_unused)
{
	struct bytes page = make_list("Service", "40", "", first_page);

	start_in_pages();
	answer(200);
	page.n -= 10;
	send(page);
	end(API_FAILURE_NONE);
	assert_int_equal(world.failure, API_FAILURE_GARBAGE);
	assert_int_equal(world.listed, 0);
	assert_waits(800);
}

static void a_list_without_a_version_is_no_list(void **state attr_unused)
{
	start_in_pages();
	send_page("", "", first_page);
	assert_int_equal(world.failure, API_FAILURE_GARBAGE);
	assert_int_equal(world.listed, 0);
}

static void a_page_that_stops_is_given_up(void **state attr_unused)
{
	start_in_pages();
	answer(200);
	pass(30000);
	assert_int_equal(world.failure, API_FAILURE_CONNECT);
	assert_waits(800);
}

/* -- 410 -- */

static void relist_without_b(void)
{
	assert_asks("sendInitialEvents=true");
	answer(200);
	send_event("ADDED", "a", "100");
	send_event("ADDED", "c", "101");
	assert_null(strstr(world.log, "-"));
	send_mark("102");
	assert_string_equal(world.log, "+a+c-b");
	assert_int_equal(world.failures, 0);
	assert_int_equal(world.listed, 2);
}

static void gone_as_an_event_leads_to_a_list_that_removes_at_its_end(void **state attr_unused)
{
	start_with_a_and_b();
	send_error(410, "too old resource version");
	assert_waits(0);
	pass(0);
	relist_without_b();
}

static void gone_as_a_status_leads_to_a_list_that_removes_at_its_end(void **state attr_unused)
{
	start_with_a_and_b();
	end_later(API_FAILURE_NONE);
	pass(0);
	refuse(410, "too old resource version");
	assert_waits(0);
	pass(0);
	relist_without_b();
}

static void gone_again_and_again_is_a_failure_with_waits(void **state attr_unused)
{
	start_with_a_and_b();
	send_error(410, "too old");
	pass(0);
	refuse(410, "too old");
	assert_int_equal(world.failure, API_FAILURE_SERVER);
	assert_waits(800);
	pass(800);
	refuse(410, "too old");
	assert_waits(1600);
	assert_string_equal(world.log, "");
}

static void a_list_after_gone_that_fails_removes_nothing(void **state attr_unused)
{
	start_with_a_and_b();
	send_error(410, "too old");
	pass(0);
	answer(200);
	send_event("ADDED", "c", "100");
	end_later(API_FAILURE_CONNECT);
	assert_string_equal(world.log, "+c");
	assert_int_equal(api_watch_count(world.watch), 3);
}

static void a_version_from_the_future_leads_to_a_list(void **state attr_unused)
{
	start_with_a_and_b();
	end_later(API_FAILURE_NONE);
	pass(0);
	refuse(504, "Too large resource version: 5, current: 2");
	assert_waits(800);
	pass(800);
	assert_asks("sendInitialEvents=true");
}

/* -- failures -- */

static void each_status_is_its_own_failure(void **state attr_unused)
{
	static const struct {
		int status;
		enum api_failure failure;
	} rows[] = {
		{401, API_FAILURE_UNAUTHORISED}, {403, API_FAILURE_FORBIDDEN},
		{404, API_FAILURE_ABSENT},       {429, API_FAILURE_THROTTLED},
		{500, API_FAILURE_SERVER},       {503, API_FAILURE_SERVER},
		{302, API_FAILURE_SERVER},
	};

	start_with_a_and_b();
	end_later(API_FAILURE_NONE);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		pass(world.wait_ms);
		assert_asks("resourceVersion=5");
		refuse(rows[i].status, "because");
		assert_int_equal(world.failure, rows[i].failure);
		assert_non_null(strstr(world.reason, ": because"));
	}
	assert_string_equal(world.log, "");
	assert_int_equal(world.failures, ARRAY_SIZE(rows));
}

static void a_body_that_is_no_status_is_no_problem(void **state attr_unused)
{
	api_watch_start(world.watch);
	answer(503);
	send(bytes_join((struct bytes){0}, "<html>Bad Gateway</html>", 24));
	end(API_FAILURE_NONE);
	assert_int_equal(world.failure, API_FAILURE_SERVER);
	assert_string_equal(world.reason, "HTTP status 503");
}

static void retry_after_is_kept_with_a_spread(void **state attr_unused)
{
	api_watch_start(world.watch);
	world.random = 401; /* takes nothing off the step */
	api_watch_status(world.watch, 429, 7);
	end(API_FAILURE_NONE);
	assert_waits(7401);
}

static void retry_after_of_a_status_counts_up_to_a_limit(void **state attr_unused)
{
	api_watch_start(world.watch);
	answer(429);
	send(make_envelope("Status", make_status(429, "", 86400)));
	end(API_FAILURE_NONE);
	assert_waits(300000);
}

static void transport_failures_keep_their_kind_and_back_off(void **state attr_unused)
{
	static const int64_t waits[] = {800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};

	api_watch_start(world.watch);
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		end(i % 2 ? API_FAILURE_TLS : API_FAILURE_CONNECT);
		assert_int_equal(world.failure, i % 2 ? API_FAILURE_TLS : API_FAILURE_CONNECT);
		assert_waits(waits[i]);
		pass(waits[i]);
	}
}

static void an_hour_without_a_server_changes_nothing(void **state attr_unused)
{
	start_with_a_and_b();
	end_later(API_FAILURE_CONNECT);
	while (world.now_ms < 3600 * 1000) {
		pass(world.wait_ms);
		end(API_FAILURE_CONNECT);
	}
	assert_in_range(world.requests, 100, 140);
	assert_string_equal(world.log, "");
	assert_int_equal(api_watch_count(world.watch), 2);
	pass(world.wait_ms);
	assert_asks("resourceVersion=5");
	answer(200);
	send_event("MODIFIED", "a", "9");
	assert_string_equal(world.log, "+a");
	assert_int_equal(world.recovered, 1);
}

static void a_quiet_watch_counts_as_recovered_after_a_while(void **state attr_unused)
{
	start_with_a_and_b();
	end(API_FAILURE_CONNECT);
	pass(800);
	answer(200);
	assert_int_equal(world.recovered, 0);
	assert_int_equal(world.wait_ms, 5000);
	pass(5000);
	assert_int_equal(world.recovered, 1);
	assert_int_equal(world.wait_ms, 325000); /* of 330 s */
}

static void garbage_in_a_stream_removes_nothing(void **state attr_unused)
{
	start_with_a_and_b();
	send(bytes_join((struct bytes){0}, "\0\0\0\3xyz", 7));
	assert_int_equal(world.failure, API_FAILURE_GARBAGE);
	assert_waits(800);
	pass(800);
	assert_asks("resourceVersion=5");
	assert_string_equal(world.log, "");
}

static void an_event_about_another_kind_is_garbage(void **state attr_unused)
{
	start_with_a_and_b();
	send(make_event_frame("DELETED", "Pod", make_object("default", "a", "9")));
	assert_int_equal(world.failure, API_FAILURE_GARBAGE);
	assert_string_equal(world.log, "");
}

static void nothing_is_read_after_an_error_event(void **state attr_unused)
{
	struct bytes both = make_event_frame("ERROR", "Status", make_status(500, "broken", 0));
	struct bytes more =
		make_event_frame("DELETED", "Service", make_object("default", "a", "9"));

	start_with_a_and_b();
	both = bytes_join(both, more.data, more.n);
	bytes_done(&more);
	api_watch_data(world.watch, bytes_view(both));
	bytes_done(&both);
	assert_int_equal(world.failure, API_FAILURE_SERVER);
	assert_string_equal(world.log, "");
	assert_waits(800);
}

static void a_server_that_does_not_answer_is_given_up(void **state attr_unused)
{
	api_watch_start(world.watch);
	assert_int_equal(world.wait_ms, 30000);
	pass(30000);
	assert_int_equal(world.failure, API_FAILURE_CONNECT);
	assert_string_equal(world.reason, "no answer");
	assert_waits(800);
}

static void a_watch_that_outlives_its_time_is_renewed(void **state attr_unused)
{
	start_with_a_and_b();
	assert_int_equal(world.wait_ms, 330000);
	pass(330000);
	assert_waits(0);
	assert_int_equal(world.failures, 0);
	pass(0);
	assert_asks("resourceVersion=5");
}

static void watches_ask_for_different_lengths(void **state attr_unused)
{
	world.random = 599;
	api_watch_start(world.watch);
	assert_asks("timeoutSeconds=599");
}

/* -- objects -- */

static void
an_object_that_cannot_be_served_is_named_once_and_counts_as_absent(void **state attr_unused)
{
	start_with_a_and_b();
	world.refuse = "a";
	send_event("MODIFIED", "a", "6");
	send_event("MODIFIED", "a", "7");
	assert_string_equal(world.log, "-a");
	assert_string_equal(world.reports, "Service default/a cannot be served: no good\n");
	world.refuse = NULL;
	send_event("MODIFIED", "a", "8");
	assert_string_equal(world.log, "-a+a");
	world.refuse = "a";
	send_event("MODIFIED", "a", "9"); /* again, after it was good */
	assert_string_equal(world.reports, "Service default/a cannot be served: no good\n"
					   "Service default/a cannot be served: no good\n");
}

static void an_object_that_is_not_ours_any_more_goes(void **state attr_unused)
{
	start_with_a_and_b();
	world.skip = "a";
	send_event("MODIFIED", "a", "6");
	send_event("ADDED", "c", "7");
	assert_string_equal(world.log, "-a+c");
	assert_string_equal(world.reports, "");
}

static void a_remark_is_made_once(void **state attr_unused)
{
	start_with_a_and_b();
	world.remark = "an external IP is dropped";
	send_event("MODIFIED", "a", "6");
	send_event("MODIFIED", "a", "7");
	assert_string_equal(world.reports, "Service default/a: an external IP is dropped\n");
	assert_string_equal(world.log, "+a+a");
}

static void names_that_are_none_are_refused(void **state attr_unused)
{
	start_with_a_and_b();
	send(make_event_frame("ADDED", "Service", make_object("", "x", "6")));
	send(make_event_frame("ADDED", "Service", make_object("default", "", "6")));
	send(make_event_frame("ADDED", "Service", make_object("de\nfault", "", "6")));
	assert_string_equal(world.log, "");
	assert_null(strstr(world.reports, "de\nfault"));
	assert_int_equal(world.failures, 0);
	assert_int_equal(api_watch_count(world.watch), 2);
}

static void a_deletion_of_something_unknown_is_ignored(void **state attr_unused)
{
	start_with_a_and_b();
	send_event("DELETED", "z", "6");
	assert_string_equal(world.log, "");
}

#define WATCH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WATCH_TEST(the_first_request_asks_for_a_streaming_list),
		WATCH_TEST(the_stream_goes_on_as_a_watch),
		WATCH_TEST(nothing_is_listed_before_the_mark),
		WATCH_TEST(changes_between_list_and_mark_count),
		WATCH_TEST(a_stream_that_ends_is_resumed_at_once),
		WATCH_TEST(a_stream_that_is_cut_is_resumed_without_a_word),
		WATCH_TEST(events_and_bookmarks_move_the_version),
		WATCH_TEST(a_stream_that_ends_at_once_is_a_failure),
		WATCH_TEST(an_initial_list_that_is_cut_starts_over),
		WATCH_TEST(an_initial_list_that_is_always_cut_is_tried_in_pages),
		WATCH_TEST(a_status_that_refuses_leads_to_pages),
		WATCH_TEST(an_error_event_that_refuses_leads_to_pages),
		WATCH_TEST(a_server_that_never_sends_the_mark_leads_to_pages_for_good),
		WATCH_TEST(pages_follow_each_other_then_comes_a_watch),
		WATCH_TEST(a_page_that_fails_is_asked_for_again),
		WATCH_TEST(a_token_that_expired_leads_to_a_list_without_pages),
		WATCH_TEST(a_page_that_ends_too_early_removes_nothing),
		WATCH_TEST(a_list_without_a_version_is_no_list),
		WATCH_TEST(a_page_that_stops_is_given_up),
		WATCH_TEST(gone_as_an_event_leads_to_a_list_that_removes_at_its_end),
		WATCH_TEST(gone_as_a_status_leads_to_a_list_that_removes_at_its_end),
		WATCH_TEST(gone_again_and_again_is_a_failure_with_waits),
		WATCH_TEST(a_list_after_gone_that_fails_removes_nothing),
		WATCH_TEST(a_version_from_the_future_leads_to_a_list),
		WATCH_TEST(each_status_is_its_own_failure),
		WATCH_TEST(a_body_that_is_no_status_is_no_problem),
		WATCH_TEST(retry_after_is_kept_with_a_spread),
		WATCH_TEST(retry_after_of_a_status_counts_up_to_a_limit),
		WATCH_TEST(transport_failures_keep_their_kind_and_back_off),
		WATCH_TEST(an_hour_without_a_server_changes_nothing),
		WATCH_TEST(a_quiet_watch_counts_as_recovered_after_a_while),
		WATCH_TEST(garbage_in_a_stream_removes_nothing),
		WATCH_TEST(an_event_about_another_kind_is_garbage),
		WATCH_TEST(nothing_is_read_after_an_error_event),
		WATCH_TEST(a_server_that_does_not_answer_is_given_up),
		WATCH_TEST(a_watch_that_outlives_its_time_is_renewed),
		WATCH_TEST(watches_ask_for_different_lengths),
		WATCH_TEST(an_object_that_cannot_be_served_is_named_once_and_counts_as_absent),
		WATCH_TEST(an_object_that_is_not_ours_any_more_goes),
		WATCH_TEST(a_remark_is_made_once),
		WATCH_TEST(names_that_are_none_are_refused),
		WATCH_TEST(a_deletion_of_something_unknown_is_ignored),
	};

	return cmocka_run_group_tests_name("api_watch", tests, NULL, NULL);
}
