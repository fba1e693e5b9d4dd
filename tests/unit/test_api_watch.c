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
#include "sources/convert.h"
#include "sources/sync_guard.h"

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
	char log[2048];     /* "+a" set, "~a" set and empty, "-a" removed */
	char reports[2048]; /* one a line */
	char reason[512];   /* of the last failure */
	const char *refuse; /* set() says so about objects of this name */
	const char *skip;
	bool empty;                         /* and all are */
	const char *remark;                 /* and notes this about all */
	char misread[256];                  /* the last, in short */
	char label[64];                     /* and its label "app" */
	size_t held;                        /* held back now */
	size_t held_known, held_lost;       /* as it was last weighed */
	char why[128];                      /* that is over */
	size_t weight_known, weight_lost;   /* what weigh() says */
	size_t weighed_lost, weighed_added; /* and was asked about */
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

static void on_misread(void *arg attr_unused, const struct api_misread *misread)
{
	snprintf(world.misread, sizeof(world.misread), "%s%s%s: %s", misread->key,
		 misread->refused ? " refused" : "", misread->served ? " served" : "",
		 misread->why);
	snprintf(world.label, sizeof(world.label), "%s",
		 convert_text(convert_label(misread->metadata, "app")));
}

static int on_set(void *arg attr_unused, const ProtobufCMessage *message, bool unless_empty,
		  void (*note)(void *, const char *), void *note_arg, struct err *err)
{
	const char *name = ((const K8s__Service *)message)->metadata->name;

	if (world.refuse && streq(world.refuse, name))
		return err_set(err, -EINVAL, "no good");
	if (world.skip && streq(world.skip, name))
		return API_SET_SKIPPED;
	if (world.empty && unless_empty)
		return API_SET_EMPTY;
	if (world.remark)
		note(note_arg, world.remark);
	say(world.log, sizeof(world.log), world.empty ? "~" : "+", name);
	return world.empty ? API_SET_EMPTY : API_SET_TAKEN;
}

static void on_remove(void *arg attr_unused, const char *key)
{
	say(world.log, sizeof(world.log), "-", strchr(key, '/') + 1);
}

static void on_listed(void *arg attr_unused)
{
	world.listed++;
}

static void on_held(void *arg attr_unused, const struct api_held *held)
{
	world.held = held->n;
	world.held_known = held->known;
	world.held_lost = held->lost;
	snprintf(world.why, sizeof(world.why), "%s", held->why ? held->why : "");
}

static void on_weigh(void *arg attr_unused, const struct api_list_change *change, size_t *ret_known,
		     size_t *ret_lost)
{
	world.weighed_lost = change->n_lost;
	world.weighed_added = change->n_added;
	*ret_known = world.weight_known;
	*ret_lost = world.weight_lost;
}

static struct api_watch_kind plain_kind(void)
{
	return (struct api_watch_kind){.kind = "Service",
				       .type = &k8s__service__descriptor,
				       .path = "/api/v1/services",
				       .selectors = "labelSelector=x",
				       .namespaced = true,
				       .set = on_set,
				       .remove = on_remove,
				       .listed = on_listed};
}

static void start_world(const struct api_watch_kind *kind)
{
	const struct api_watch_io io = {
		.get = on_get,
		.stop = on_stop,
		.wait = on_wait,
		.now_ms = on_now,
		.random = on_random,
		.failed = on_failed,
		.recovered = on_recovered,
		.report = on_report,
		.misread = on_misread,
		.held = on_held,
	};

	world = (struct world){0};
	world.watch = api_watch_new(kind, &io);
}

static int setup(void **state attr_unused)
{
	const struct api_watch_kind kind = plain_kind();

	start_world(&kind);
	return 0;
}

static int setup_small(void **state attr_unused)
{
	struct api_watch_kind kind = plain_kind();

	kind.max = 4;
	start_world(&kind);
	return 0;
}

static int setup_guarded(void **state attr_unused)
{
	struct api_watch_kind kind = plain_kind();

	kind.guard_percent = SYNC_GUARD_PERCENT;
	start_world(&kind);
	return 0;
}

static int setup_weighed(void **state attr_unused)
{
	struct api_watch_kind kind = plain_kind();

	kind.guard_percent = SYNC_GUARD_PERCENT;
	kind.weigh = on_weigh;
	start_world(&kind);
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

/* -- versions that go back -- */

/* A streaming list of a alone. */
static void list_a(const char *version)
{
	assert_asks("sendInitialEvents=true");
	answer(200);
	send_event("ADDED", "a", "1");
	send_mark(version);
}

static void an_event_from_the_past_leads_to_a_list(void **state attr_unused)
{
	start_with_a_and_b();
	send_event("MODIFIED", "a", "50");
	clear_log();
	send_event("DELETED", "b", "20");
	assert_string_equal(world.log, ""); /* it does not count */
	assert_int_equal(world.failures, 0);
	assert_waits(0);
	assert_string_equal(world.reports,
			    "The API server goes back from resourceVersion 50 to 20 with a watch "
			    "of Service objects, listing them anew\n");
	pass(0);
	list_a("60");
	assert_string_equal(world.log, "+a-b");
}

static void a_bookmark_from_the_past_leads_to_a_list(void **state attr_unused)
{
	start_with_a_and_b();
	send(make_event_frame("BOOKMARK", "Service", make_bookmark("100", false)));
	send(make_event_frame("BOOKMARK", "Service", make_bookmark("99", false)));
	assert_waits(0);
	pass(0);
	assert_asks("sendInitialEvents=true");
}

static void versions_that_are_no_numbers_are_not_compared(void **state attr_unused)
{
	start_with_a_and_b();
	send_event("MODIFIED", "a", "z");
	send_event("MODIFIED", "a", "b7");
	send_event("MODIFIED", "a", "3");
	assert_string_equal(world.log, "+a+a+a");
	assert_int_equal(world.requests, 1);
}

static void a_list_from_the_past_has_to_be_said_twice(void **state attr_unused)
{
	start_with_a_and_b();
	send_error(410, "too old");
	pass(0);
	list_a("4");
	assert_string_equal(world.log, "+a");
	assert_int_equal(world.listed, 1);
	assert_waits(0);
	pass(0);
	list_a("4");
	assert_string_equal(world.log, "+a+a-b");
	assert_int_equal(world.listed, 2);
	assert_int_equal(world.failures, 0);
	send_event("ADDED", "c", "5"); /* from here on it counts on from there */
	assert_string_equal(world.log, "+a+a-b+c");
}

static void a_list_from_the_past_in_pages_has_to_be_said_twice(void **state attr_unused)
{
	static const char *const names[] = {"default/a", NULL};

	start_with_a_and_b();
	send_error(410, "too old");
	for (int i = 0; i < 2; i++) {
		assert_null(strstr(world.log, "-"));
		pass(0);
		refuse(422, "");
		pass(0);
		send_page("4", "", names);
	}
	assert_string_equal(world.log, "+a+a-b");
	pass(0);
	assert_asks("resourceVersion=4");
}

static void a_list_from_the_past_that_is_corrected_removes_nothing(void **state attr_unused)
{
	start_with_a_and_b();
	send_error(410, "too old");
	pass(0);
	list_a("4");
	pass(0);
	answer(200);
	send_event("ADDED", "a", "1");
	send_event("ADDED", "b", "2");
	send_mark("6");
	assert_null(strstr(world.log, "-"));
}

static void a_server_that_always_goes_back_is_asked_slowly(void **state attr_unused)
{
	start_with_a_and_b();
	for (int i = 0; i < 20; i++) {
		send(make_event_frame("BOOKMARK", "Service", make_bookmark("900", false)));
		send(make_event_frame("BOOKMARK", "Service", make_bookmark("1", false)));
		assert_true(i == 0 || world.wait_ms >= 5000);
		pass(world.wait_ms);
		list_a("5"); /* older than 900 */
		pass(0);
		list_a("5");
	}
	assert_int_equal(world.failure, API_FAILURE_NONE); /* over each time */
	assert_int_equal(world.failures, 19);
	assert_true(world.now_ms >= 19 * 5000);
}

/* -- lists without end -- */

static void a_token_that_comes_again_is_a_failure(void **state attr_unused)
{
	start_in_pages();
	send_page("40", "token", first_page);
	pass(0);
	send_page("40", "token", first_page);
	assert_int_equal(world.failure, API_FAILURE_GARBAGE);
	assert_string_equal(world.reason, "the same continue token again");
	assert_waits(800);
	pass(800);
	assert_asks("sendInitialEvents=true"); /* from the beginning */
	assert_null(strstr(world.log, "-"));
}

static void a_token_that_is_too_large_is_a_failure(void **state attr_unused)
{
	char *token cleanup_free = xmalloc((16u << 10) + 2);

	memset(token, 'x', (16u << 10) + 1);
	token[(16u << 10) + 1] = '\0';
	start_in_pages();
	send_page("40", token, first_page);
	assert_int_equal(world.failure, API_FAILURE_GARBAGE);
	assert_string_equal(world.reason, "a continue token of 16385 bytes");
	assert_waits(800);
}

static void a_list_without_end_is_given_up_and_removes_nothing(void **state attr_unused)
{
	static const char *const none[] = {NULL};

	start_with_a_and_b();
	send_error(410, "too old");
	for (int i = 0; i < 10000; i++) {
		char token[16];

		pass(world.wait_ms);
		if (!strstr(world.target, "limit=")) {
			refuse(422, "");
			continue;
		}
		snprintf(token, sizeof(token), "t%d", i);
		send_page("40", token, none);
	}
	assert_string_equal(world.reason, "a list of more than 2098 pages");
	assert_int_equal(world.failures, 4); /* in 10,000 answers */
	assert_string_equal(world.log, "");
	assert_int_equal(api_watch_count(world.watch), 2);
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

static void an_object_that_is_not_understood_keeps_its_last_version(void **state attr_unused)
{
	start_with_a_and_b();
	world.refuse = "a";
	send_event("MODIFIED", "a", "6");
	send_event("MODIFIED", "a", "7");
	assert_string_equal(world.log, "");
	assert_int_equal(api_watch_count(world.watch), 2);
	assert_string_equal(world.reports,
			    "Service default/a cannot be understood, its last good version stays "
			    "in force: no good\n");
	assert_string_equal(world.misread, "default/a refused served: no good");
	world.reports[0] = '\0';
	world.refuse = NULL;
	send_event("MODIFIED", "a", "8");
	send_event("MODIFIED", "a", "9");
	assert_string_equal(world.log, "+a+a");
	assert_string_equal(world.reports, "Service default/a is understood again\n");
	world.refuse = "a";
	send_event("MODIFIED", "a", "10"); /* again, after it was good */
	assert_non_null(strstr(world.reports, "cannot be understood"));
}

static void an_object_that_was_never_understood_is_named(void **state attr_unused)
{
	start_with_a_and_b();
	world.refuse = "c";
	send_event("ADDED", "c", "6");
	assert_string_equal(world.reports, "Service default/c cannot be served: no good\n");
	assert_string_equal(world.misread, "default/c refused: no good");
	assert_string_equal(world.log, "");
	assert_int_equal(api_watch_count(world.watch), 2);
}

static void an_object_that_is_listed_but_not_understood_is_not_removed(void **state attr_unused)
{
	start_with_a_and_b();
	world.refuse = "a";
	send_error(410, "too old");
	pass(0);
	answer(200);
	send_event("ADDED", "a", "100");
	send_mark("102");
	assert_string_equal(world.log, "-b");
	assert_int_equal(api_watch_count(world.watch), 1);
	send_event("DELETED", "a", "103"); /* its deletion is understood well enough */
	assert_string_equal(world.log, "-b-a");
}

/* Metadata with a label, and a spec that is none. */
static struct bytes half_readable(const char *name, const char *version)
{
	struct bytes label = put_text(put_text((struct bytes){0}, 1, "app"), 2, "shop");
	struct bytes meta = put_text((struct bytes){0}, 1, name);

	meta = put_text(put_text(meta, 3, "default"), 6, version);
	meta = put_message(meta, 11, label);
	return put_text(put_message((struct bytes){0}, 1, meta), 2, "\x0a\x7f");
}

static void an_object_whose_content_cannot_be_read_is_named(void **state attr_unused)
{
	start_with_a_and_b();
	send(make_event_frame("MODIFIED", "Service", half_readable("a", "6")));
	assert_string_equal(world.misread, "default/a refused served: it is not readable protobuf");
	assert_string_equal(world.label, "shop");
	assert_string_equal(world.log, "");
	assert_int_equal(world.failures, 0);
	end_later(API_FAILURE_NONE);
	pass(0);
	assert_asks("&resourceVersion=6"); /* its version counts */
	answer(200);
	send(make_event_frame("DELETED", "Service", half_readable("a", "7")));
	assert_string_equal(world.log, "-a");
}

static void a_list_keeps_an_object_whose_content_cannot_be_read(void **state attr_unused)
{
	start_with_a_and_b();
	send_error(410, "too old");
	pass(0);
	answer(200);
	send(make_event_frame("ADDED", "Service", half_readable("a", "100")));
	send_mark("102");
	assert_string_equal(world.log, "-b");
	assert_int_equal(api_watch_count(world.watch), 1);
}

static void a_page_names_an_object_whose_content_cannot_be_read(void **state attr_unused)
{
	struct bytes list = put_message((struct bytes){0}, 1, put_text((struct bytes){0}, 2, "9"));

	list = put_message(list, 2, half_readable("a", "5"));
	list = put_message(list, 2, make_object("default", "b", "6"));
	api_watch_start(world.watch);
	refuse(400, "no streaming lists");
	pass(0);
	answer(200);
	send(make_envelope("ServiceList", list));
	end(API_FAILURE_NONE);
	assert_string_equal(world.misread, "default/a refused: it is not readable protobuf");
	assert_string_equal(world.log, "+b");
	assert_int_equal(world.listed, 1);
}

static void a_name_with_a_nul_is_refused(void **state attr_unused)
{
	struct bytes meta = put_data((struct bytes){0}, 1, "a\0x", 3);

	start_with_a_and_b();
	meta = put_text(put_text(meta, 3, "default"), 6, "6");
	send(make_event_frame("MODIFIED", "Service", put_message((struct bytes){0}, 1, meta)));
	assert_string_equal(world.misread, "? refused: its name or namespace is missing or wrong");
	meta = put_data((struct bytes){0}, 1, "a\0x", 3);
	meta = put_text(put_text(meta, 3, "default"), 6, "7");
	send(make_event_frame("DELETED", "Service", put_message((struct bytes){0}, 1, meta)));
	assert_string_equal(world.log, ""); /* it is not a */
	assert_int_equal(api_watch_count(world.watch), 2);
}

/* A MODIFIED event whose object has no readable metadata. */
static void send_unreadable(void)
{
	send(make_event_frame("ADDED", "Service", put_data((struct bytes){0}, 1, "\x0a\x7f", 2)));
}

static void a_list_with_an_unreadable_object_removes_nothing(void **state attr_unused)
{
	start_with_a_and_b();
	send_error(410, "too old");
	pass(0);
	answer(200);
	send_event("ADDED", "a", "100");
	send_unreadable();
	send_unreadable();
	send_event("ADDED", "c", "101");
	send_mark("102");
	assert_string_equal(world.log, "+a+c");
	assert_int_equal(world.failures, 0);
	assert_int_equal(api_watch_count(world.watch), 3);
	assert_string_equal(world.reports,
			    "A Service has a name that cannot be read (an object that cannot be "
			    "read), lists remove nothing while it is there\n");
	world.reports[0] = '\0';
	clear_log();
	world.now_ms += 60000;
	send_error(410, "too old");
	pass(0);
	answer(200);
	send_event("ADDED", "a", "200");
	send_mark("201");
	assert_int_equal(api_watch_count(world.watch), 1);
	assert_string_equal(world.reports, "Every Service of a list can be read again\n");
}

static void an_unreadable_event_does_not_stop_the_others(void **state attr_unused)
{
	start_with_a_and_b();
	send_unreadable();
	send_event("MODIFIED", "a", "7");
	assert_string_equal(world.log, "+a");
	assert_int_equal(world.failures, 0);
}

static void more_objects_than_there_may_be_are_left_out(void **state attr_unused)
{
	start_with_a_and_b();
	send_event("ADDED", "c", "6");
	send_event("ADDED", "d", "7");
	send_event("ADDED", "e", "8"); /* one too many: this test allows four */
	send_event("ADDED", "f", "9");
	send_event("MODIFIED", "a", "10");
	assert_string_equal(world.log, "+c+d+a");
	assert_string_equal(world.reports, "The API server has more than 4 Service objects, the "
					   "others are left out\n");
	send_event("DELETED", "b", "11");
	send_event("ADDED", "f", "12");
	assert_string_equal(world.log, "+c+d+a-b+f");
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
	assert_null(strstr(world.misread, "?"));
	send(make_event_frame("ADDED", "Service", make_object("", "", "6")));
	assert_string_equal(world.misread, "? refused: its name or namespace is missing or wrong");
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

/* -- lists that would remove too much -- */

#define MANY 30

/* Events about those from first to last. */
static void send_events(const char *type, char letter, int first, int last, const char *version)
{
	for (int i = first; i < last; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%c%d", letter, i);
		send_event(type, name, version);
	}
}

/* The events of those from first to last, and the mark. */
static void send_many(int first, int last, const char *version)
{
	answer(200);
	send_events("ADDED", 's', first, last, "1");
	send_mark(version);
}

static void start_with_many(void)
{
	api_watch_start(world.watch);
	send_many(0, MANY, "5");
	assert_int_equal(api_watch_count(world.watch), MANY);
	clear_log();
}

/* A 410, and a new list is asked for. */
static void ask_anew(void)
{
	world.now_ms += 10000;
	send_error(410, "too old");
	pass(0);
	assert_asks("sendInitialEvents=true");
}

/* A 410, and a list of these. */
static void list_anew(int first, int last)
{
	ask_anew();
	send_many(first, last, "100");
}

/* A list of so many of those that were there, and so many others. */
static void send_mixed(int olds, int news)
{
	answer(200);
	send_events("ADDED", 's', 0, olds, "1");
	send_events("ADDED", 't', 0, news, "1");
	send_mark("100");
}

static void an_empty_list_is_held_back(void **state attr_unused)
{
	start_with_many();
	list_anew(0, 0);
	assert_string_equal(world.log, "");
	assert_int_equal(api_watch_count(world.watch), MANY);
	assert_int_equal(world.held, MANY);
	assert_int_equal(world.listed, 2);
	assert_int_equal(world.failures, 0);
	assert_int_equal(world.wait_ms, 60000); /* then it lists by itself */
	send_event("ADDED", "new", "101");      /* meanwhile all goes on */
	send_event("MODIFIED", "new", "102");
	assert_string_equal(world.log, "+new+new");
}

static void a_second_empty_list_counts(void **state attr_unused)
{
	start_with_many();
	list_anew(0, 0);
	pass(60000);
	assert_waits(0);
	assert_int_equal(world.failures, 0);
	pass(0);
	assert_asks("sendInitialEvents=true");
	send_many(0, 0, "100");
	assert_int_equal(api_watch_count(world.watch), 0);
	assert_int_equal(world.held, 0);
	assert_string_equal(world.why, "another list says the same");
	assert_int_equal(world.wait_ms, 330000); /* as any watch */
}

static void a_second_empty_list_in_pages_counts(void **state attr_unused)
{
	static const char *const none[] = {NULL};

	start_with_many();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(api_watch_count(world.watch), MANY);
		world.now_ms += 10000;
		if (i == 0)
			send_error(410, "too old");
		pass(0);
		refuse(422, "");
		pass(0);
		send_page("100", "", none);
		pass(0);
		answer(200);
		if (i == 0) {
			pass(world.wait_ms); /* it has settled */
			pass(world.wait_ms); /* and a minute is over */
		}
	}
	assert_int_equal(api_watch_count(world.watch), 0);
	assert_true(world.now_ms < 120000);
}

static void a_second_list_too_soon_does_not_count(void **state attr_unused)
{
	start_with_many();
	list_anew(0, 0);
	list_anew(0, 0);
	assert_int_equal(api_watch_count(world.watch), MANY);
	assert_int_equal(world.wait_ms, 50000); /* of the first one's minute */
}

static void objects_that_are_listed_again_were_never_gone(void **state attr_unused)
{
	start_with_many();
	list_anew(0, 0);
	pass(60000);
	pass(0);
	send_many(0, MANY - 2, "100");
	assert_int_equal(api_watch_count(world.watch), MANY - 2);
	assert_int_equal(world.held, 0);
	assert_string_equal(world.why, "the list has them again");
}

static void half_a_list_is_held_back_and_less_is_not(void **state attr_unused)
{
	start_with_many();
	list_anew(0, MANY / 2 - 1);
	assert_int_equal(world.held, MANY / 2 + 1);
	assert_int_equal(api_watch_count(world.watch), MANY);
	list_anew(0, MANY / 2);
	assert_int_equal(world.held, 0);
	assert_int_equal(api_watch_count(world.watch), MANY / 2);
}

static void what_a_list_adds_does_not_make_its_loss_small(void **state attr_unused)
{
	start_with_many();
	ask_anew();
	send_mixed(0, MANY); /* as many others */
	assert_int_equal(world.held, MANY);
	assert_int_equal(world.held_known, MANY);
	assert_int_equal(world.held_lost, MANY);
	assert_int_equal(api_watch_count(world.watch), 2 * MANY);
	ask_anew();
	send_mixed(0, MANY); /* nor the one after it, before its time */
	assert_int_equal(world.held, MANY);
	pass(world.wait_ms);
	pass(0);
	send_mixed(0, MANY);
	assert_int_equal(world.held, 0);
	assert_string_equal(world.why, "another list says the same");
	assert_int_equal(api_watch_count(world.watch), MANY);
	list_anew(0, 0); /* and the others are known by now */
	assert_int_equal(world.held, MANY);
}

static void a_few_new_objects_do_not_make_a_large_loss_small(void **state attr_unused)
{
	start_with_many();
	send_events("ADDED", 's', MANY, 50, "6");
	ask_anew();
	send_mixed(20, 10);
	assert_int_equal(world.held, 30);
	assert_int_equal(world.held_known, 50);
	assert_int_equal(api_watch_count(world.watch), 60);
}

static void what_a_list_adds_before_it_is_cut_is_not_known_either(void **state attr_unused)
{
	start_with_many();
	ask_anew();
	answer(200);
	send_events("ADDED", 't', 0, MANY, "1");
	end_later(API_FAILURE_CONNECT);
	pass(world.wait_ms);
	send_mixed(0, MANY);
	assert_int_equal(world.held, MANY);
	assert_int_equal(world.held_known, MANY);
}

/* It was there only by a list that was doubted, and another one denies it. */
static void what_a_doubted_list_added_is_no_loss(void **state attr_unused)
{
	start_with_many();
	ask_anew();
	send_mixed(0, MANY);
	assert_int_equal(world.held, MANY);
	list_anew(0, MANY);
	assert_int_equal(world.held, 0);
	assert_int_equal(api_watch_count(world.watch), MANY);
}

static void what_a_watch_adds_while_a_list_is_held_back_is_known(void **state attr_unused)
{
	start_with_many();
	list_anew(0, 0);
	send_events("ADDED", 't', 0, 2 * MANY, "100");
	list_anew(0, MANY); /* those that were held back are there, and these are not */
	assert_int_equal(world.held, 2 * MANY);
	assert_int_equal(world.held_known, 3 * MANY);
}

static void what_a_doubted_list_added_is_known_when_it_is_let_through(void **state attr_unused)
{
	start_with_many();
	ask_anew();
	send_mixed(0, MANY);
	assert_true(api_watch_release(world.watch));
	list_anew(0, 0);
	assert_int_equal(world.held, MANY);
	teardown(NULL);
	setup_guarded(NULL);
	start_with_many();
	ask_anew();
	send_mixed(0, MANY);
	send_events("DELETED", 's', 0, MANY, "100"); /* or confirmed one by one */
	assert_int_equal(world.held, 0);
	list_anew(0, 0);
	assert_int_equal(world.held, MANY);
}

/* A first list, too, is something to compare with, however it ended. */
static void what_was_there_before_the_first_list_counted_is_known(void **state attr_unused)
{
	api_watch_start(world.watch);
	answer(200);
	send_events("ADDED", 's', 0, MANY, "1");
	end_later(API_FAILURE_CONNECT);
	pass(world.wait_ms);
	send_many(0, 0, "5");
	assert_int_equal(world.held, MANY);
	assert_int_equal(api_watch_count(world.watch), MANY);
}

static void a_large_loss_beside_a_confirmed_one_has_its_own_minute(void **state attr_unused)
{
	start_with_many();
	send_events("ADDED", 's', MANY, 60, "6");
	list_anew(0, 25); /* 35 of 60 are lacking */
	pass(60000);
	pass(0);
	send_many(0, 5, "100"); /* these are gone, and 20 of the other 25 are doubtful */
	assert_int_equal(api_watch_count(world.watch), 25);
	assert_int_equal(world.held, 20);
	assert_int_equal(world.wait_ms, 60000);
	pass(60000);
	pass(0);
	send_many(0, 5, "100");
	assert_int_equal(api_watch_count(world.watch), 5);
	assert_int_equal(world.held, 0);
}

/* Where watches do not work and lists are all there is. */
static void losses_without_end_do_not_put_off_the_others(void **state attr_unused)
{
	start_with_many();
	list_anew(0, 14); /* s14 to s29 are held back after 10 s */
	for (int last = 13; last > 7; last--) {
		list_anew(0, last);
		assert_int_equal(api_watch_count(world.watch), last == 8 ? 8 : MANY);
	}
	assert_int_equal(world.held, 0);
	assert_string_equal(world.why, "another list says the same");
}

static void an_unreadable_object_does_not_make_us_list_without_end(void **state attr_unused)
{
	start_with_many();
	list_anew(0, 0);
	pass(60000);
	pass(0);
	answer(200);
	send_unreadable();
	send_mark("100");
	assert_int_equal(api_watch_count(world.watch), MANY);
	assert_int_equal(world.wait_ms, 60000);
	pass(60000);
	pass(0);
	send_many(0, 0, "100");
	assert_int_equal(api_watch_count(world.watch), 0);
}

static void watch_events_confirm_or_deny_one_by_one(void **state attr_unused)
{
	start_with_many();
	list_anew(0, 0);
	send_event("DELETED", "s0", "101");
	send_event("ADDED", "s1", "102");
	assert_string_equal(world.log, "-s0+s1");
	assert_int_equal(world.held, MANY - 2);
	send_events("DELETED", 's', 2, MANY, "103");
	assert_int_equal(world.held, 0);
	assert_int_equal(api_watch_count(world.watch), 1);
	assert_string_equal(world.why, "each of them is there again, or was deleted one by one");
	pass(world.wait_ms); /* nothing is listed for it any more */
	assert_int_equal(world.listed, 2);
}

static void what_is_held_back_goes_when_asked_for(void **state attr_unused)
{
	start_with_many();
	assert_false(api_watch_release(world.watch));
	list_anew(0, 0);
	send_event("ADDED", "new", "101");
	assert_true(api_watch_release(world.watch));
	assert_int_equal(api_watch_count(world.watch), 1);
	assert_int_equal(world.held, 0);
	assert_string_equal(world.why, "it was asked for");
	assert_false(api_watch_release(world.watch));
}

static void an_object_that_is_not_understood_is_no_loss(void **state attr_unused)
{
	start_with_many();
	world.refuse = "s0";
	list_anew(0, 15);
	assert_int_equal(world.held, 0);
	assert_int_equal(api_watch_count(world.watch), 15);
}

static void few_objects_may_go_at_once(void **state attr_unused)
{
	api_watch_start(world.watch);
	send_many(0, SYNC_GUARD_MIN - 1, "5");
	list_anew(0, 0);
	assert_int_equal(api_watch_count(world.watch), 0);
}

static void a_server_that_stays_away_removes_nothing_for_ever(void **state attr_unused)
{
	start_with_many();
	list_anew(0, 0);
	end_later(API_FAILURE_CONNECT);
	while (world.now_ms < 3600 * 1000) {
		pass(world.wait_ms);
		end(API_FAILURE_CONNECT);
	}
	assert_int_equal(api_watch_count(world.watch), MANY);
	pass(world.wait_ms);
	assert_asks("resourceVersion=100");
	answer(200);
	assert_int_equal(world.wait_ms, 0); /* the confirmation is long due */
	pass(0);
	pass(0);
	assert_asks("sendInitialEvents=true");
}

static void what_counts_may_be_something_else_than_objects(void **state attr_unused)
{
	start_with_many();
	world.weight_known = 100;
	world.weight_lost = 50; /* all of the objects, and no more than half of what they mean */
	list_anew(0, 0);
	assert_int_equal(api_watch_count(world.watch), 0);
	teardown(NULL);
	setup_weighed(NULL);
	start_with_many();
	world.weight_known = 100;
	world.weight_lost = 51;
	list_anew(1, MANY); /* one of them, and it means much */
	assert_int_equal(world.held, 1);
	assert_int_equal(api_watch_count(world.watch), MANY);
	assert_int_equal(world.weighed_lost, 1);
	assert_int_equal(world.weighed_added, 0);
	ask_anew();
	send_mixed(MANY - 2, 3);
	assert_int_equal(world.weighed_lost, 2);
	assert_int_equal(world.weighed_added, 3);
}

/* -- objects that are there, and have nothing in them any more -- */

static void list_emptied(int first, int last)
{
	world.empty = true;
	list_anew(first, last);
	world.empty = false;
}

static void a_list_of_emptied_objects_is_held_back(void **state attr_unused)
{
	start_with_many();
	list_emptied(0, MANY);
	assert_string_equal(world.log, "");
	assert_int_equal(world.held, MANY);
	assert_int_equal(world.wait_ms, 60000);
	pass(60000);
	pass(0);
	world.empty = true;
	send_many(0, MANY, "100");
	assert_int_equal(world.held, 0);
	assert_string_equal(world.why, "another list says the same");
	assert_int_equal(api_watch_count(world.watch), 0);
}

static void emptied_objects_and_lacking_ones_are_one_loss(void **state attr_unused)
{
	start_with_many();
	ask_anew();
	answer(200);
	send_events("ADDED", 's', 16, MANY, "1"); /* without the first eight, */
	world.empty = true;
	send_events("ADDED", 's', 8, 16, "1"); /* and with the next emptied */
	send_mark("100");
	world.empty = false;
	assert_int_equal(world.held, 16);
	list_anew(0, MANY);
	assert_int_equal(world.held, 0);
	assert_int_equal(api_watch_count(world.watch), MANY);
}

static void a_watch_empties_an_object_that_is_held_back(void **state attr_unused)
{
	start_with_many();
	list_emptied(0, MANY);
	world.empty = true;
	send_event("MODIFIED", "s0", "100");
	assert_string_equal(world.log, "~s0");
	assert_int_equal(world.held, MANY - 1);
	world.empty = false;
	send_event("MODIFIED", "s1", "100");
	assert_string_equal(world.log, "~s0+s1");
	assert_int_equal(world.held, MANY - 2);
	assert_true(api_watch_release(world.watch));
	assert_int_equal(api_watch_count(world.watch), 2);
}

static void a_few_emptied_objects_are_emptied_with_the_list(void **state attr_unused)
{
	start_with_many();
	ask_anew();
	answer(200);
	send_events("ADDED", 's', 1, MANY, "1");
	world.empty = true;
	send_event("ADDED", "s0", "1");
	assert_null(strstr(world.log, "s0"));
	send_mark("100");
	assert_non_null(strstr(world.log, "-s0"));
	assert_int_equal(world.held, 0);
	assert_int_equal(api_watch_count(world.watch), MANY - 1);
	clear_log();
	list_emptied(0, 1); /* it has nothing to lose any more */
	assert_memory_equal(world.log, "~s0", 3);
}

static void an_object_that_is_emptied_while_it_is_listed_is_emptied(void **state attr_unused)
{
	start_with_many();
	ask_anew();
	answer(200);
	send_events("ADDED", 's', 0, MANY, "1");
	world.empty = true;
	send_event("MODIFIED", "s0", "1");
	send_mark("100");
	assert_non_null(strstr(world.log, "-s0"));
}

static void an_object_that_was_empty_is_no_loss(void **state attr_unused)
{
	start_with_many();
	world.empty = true;
	send_events("MODIFIED", 's', 0, MANY, "6");
	clear_log();
	list_emptied(0, MANY);
	assert_memory_equal(world.log, "~s0~s1", 6);
	assert_null(strstr(world.log, "-"));
	assert_int_equal(world.held, 0);
}

static void what_a_list_fills_was_not_there_before(void **state attr_unused)
{
	world.empty = true;
	start_with_many();
	world.empty = false;
	send_event("MODIFIED", "s0", "6");
	list_anew(0, MANY);
	assert_int_equal(world.weighed_added, MANY - 1);
	list_anew(0, MANY);
	assert_int_equal(world.weighed_added, 0);
}

static void without_a_guard_objects_are_emptied_at_once(void **state attr_unused)
{
	start_with_many();
	ask_anew();
	answer(200);
	world.empty = true;
	send_event("ADDED", "s0", "1");
	assert_string_equal(world.log, "~s0");
}

static void a_first_list_of_nothing_is_doubted(void **state attr_unused)
{
	api_watch_start(world.watch);
	send_many(0, 0, "5");
	assert_int_equal(world.listed, 0);
	assert_false(api_watch_is_listed(world.watch));
	assert_int_equal(world.held, 1);
	assert_int_equal(world.wait_ms, 60000);
	pass(60000);
	pass(0);
	send_many(0, 0, "6");
	assert_int_equal(world.listed, 1);
	assert_int_equal(world.held, 0);
	assert_string_equal(world.why, "another list says the same");
}

static void something_after_a_first_list_of_nothing_is_listed_at_once(void **state attr_unused)
{
	api_watch_start(world.watch);
	send_many(0, 0, "5");
	send_event("ADDED", "a", "6");
	assert_int_equal(world.listed, 0); /* there may be others */
	assert_waits(0);
	pass(0);
	assert_asks("sendInitialEvents=true");
	send_many(0, 3, "7");
	assert_int_equal(world.listed, 1);
	assert_int_equal(world.held, 0);
	assert_int_equal(api_watch_count(world.watch), 3);
}

static void a_first_list_of_nothing_counts_when_asked_for(void **state attr_unused)
{
	api_watch_start(world.watch);
	send_many(0, 0, "5");
	assert_true(api_watch_release(world.watch));
	assert_int_equal(world.listed, 1);
	assert_true(api_watch_is_listed(world.watch));
	send_event("ADDED", "a", "6");
	assert_int_equal(world.requests, 1); /* and then all is as ever */
}

static void without_a_guard_every_list_counts(void **state attr_unused)
{
	start_with_many();
	list_anew(0, 0);
	assert_int_equal(api_watch_count(world.watch), 0);
	assert_int_equal(world.held, 0);
}

#define GUARD_TEST(name) cmocka_unit_test_setup_teardown(name, setup_guarded, teardown)
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
		WATCH_TEST(an_event_from_the_past_leads_to_a_list),
		WATCH_TEST(a_bookmark_from_the_past_leads_to_a_list),
		WATCH_TEST(versions_that_are_no_numbers_are_not_compared),
		WATCH_TEST(a_list_from_the_past_has_to_be_said_twice),
		WATCH_TEST(a_list_from_the_past_in_pages_has_to_be_said_twice),
		WATCH_TEST(a_list_from_the_past_that_is_corrected_removes_nothing),
		WATCH_TEST(a_server_that_always_goes_back_is_asked_slowly),
		WATCH_TEST(a_token_that_comes_again_is_a_failure),
		WATCH_TEST(a_token_that_is_too_large_is_a_failure),
		WATCH_TEST(a_list_without_end_is_given_up_and_removes_nothing),
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
		WATCH_TEST(an_object_that_is_not_understood_keeps_its_last_version),
		WATCH_TEST(an_object_that_was_never_understood_is_named),
		WATCH_TEST(an_object_that_is_listed_but_not_understood_is_not_removed),
		WATCH_TEST(an_object_whose_content_cannot_be_read_is_named),
		WATCH_TEST(a_list_keeps_an_object_whose_content_cannot_be_read),
		WATCH_TEST(a_page_names_an_object_whose_content_cannot_be_read),
		WATCH_TEST(a_name_with_a_nul_is_refused),
		WATCH_TEST(a_list_with_an_unreadable_object_removes_nothing),
		WATCH_TEST(an_unreadable_event_does_not_stop_the_others),
		cmocka_unit_test_setup_teardown(more_objects_than_there_may_be_are_left_out,
						setup_small, teardown),
		GUARD_TEST(an_empty_list_is_held_back),
		GUARD_TEST(a_second_empty_list_counts),
		GUARD_TEST(a_second_empty_list_in_pages_counts),
		GUARD_TEST(a_second_list_too_soon_does_not_count),
		GUARD_TEST(objects_that_are_listed_again_were_never_gone),
		GUARD_TEST(half_a_list_is_held_back_and_less_is_not),
		GUARD_TEST(what_a_list_adds_does_not_make_its_loss_small),
		GUARD_TEST(a_few_new_objects_do_not_make_a_large_loss_small),
		GUARD_TEST(what_a_list_adds_before_it_is_cut_is_not_known_either),
		GUARD_TEST(what_a_doubted_list_added_is_no_loss),
		GUARD_TEST(what_a_doubted_list_added_is_known_when_it_is_let_through),
		GUARD_TEST(what_a_watch_adds_while_a_list_is_held_back_is_known),
		GUARD_TEST(what_was_there_before_the_first_list_counted_is_known),
		GUARD_TEST(a_large_loss_beside_a_confirmed_one_has_its_own_minute),
		GUARD_TEST(losses_without_end_do_not_put_off_the_others),
		GUARD_TEST(an_unreadable_object_does_not_make_us_list_without_end),
		GUARD_TEST(watch_events_confirm_or_deny_one_by_one),
		GUARD_TEST(what_is_held_back_goes_when_asked_for),
		GUARD_TEST(an_object_that_is_not_understood_is_no_loss),
		GUARD_TEST(few_objects_may_go_at_once),
		GUARD_TEST(a_server_that_stays_away_removes_nothing_for_ever),
		cmocka_unit_test_setup_teardown(what_counts_may_be_something_else_than_objects,
						setup_weighed, teardown),
		GUARD_TEST(a_list_of_emptied_objects_is_held_back),
		GUARD_TEST(emptied_objects_and_lacking_ones_are_one_loss),
		GUARD_TEST(a_watch_empties_an_object_that_is_held_back),
		GUARD_TEST(a_few_emptied_objects_are_emptied_with_the_list),
		GUARD_TEST(an_object_that_is_emptied_while_it_is_listed_is_emptied),
		GUARD_TEST(an_object_that_was_empty_is_no_loss),
		cmocka_unit_test_setup_teardown(what_a_list_fills_was_not_there_before,
						setup_weighed, teardown),
		WATCH_TEST(without_a_guard_objects_are_emptied_at_once),
		GUARD_TEST(a_first_list_of_nothing_is_doubted),
		GUARD_TEST(something_after_a_first_list_of_nothing_is_listed_at_once),
		GUARD_TEST(a_first_list_of_nothing_counts_when_asked_for),
		WATCH_TEST(without_a_guard_every_list_counts),
		WATCH_TEST(an_object_that_is_not_ours_any_more_goes),
		WATCH_TEST(a_remark_is_made_once),
		WATCH_TEST(names_that_are_none_are_refused),
		WATCH_TEST(a_deletion_of_something_unknown_is_ignored),
	};

	return cmocka_run_group_tests_name("api_watch", tests, NULL, NULL);
}
