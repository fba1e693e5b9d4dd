/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When the initial state counts as known, with a server in the same process: it refuses streaming
 * lists, lists no Service and one EndpointSlice that cannot be understood, leaves watches open, and does with requests for the
 * Node and for ServiceCIDRs what the test asks for.
 */

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "api_bytes.h"
#include "base/clock.h"
#include "sources/api_source.h"

#define TICK_MS 20 /* by which the event loop's clock, a coarse one, may be late */

enum answer {
	ANSWER_SILENCE = 0,
	ANSWER_FORBIDDEN,
	ANSWER_UNKNOWN, /* there is no such kind */
	ANSWER_EMPTY,   /* there is none of them */
	ANSWER_COUNT,
};

static struct {
	struct event_base *loop;
	enum answer node, cidrs;
	int asked_for_node, asked_for_cidrs;
	int synced, listed;
	bool hope, mute; /* mute: Services are never listed */
	bool late;
	char said[4096], said_of_objects[4096];
} world;

static void reply_list(struct evhttp_request *request, const char *kind)
{
	const char *const broken[] = {"homeless", NULL}; /* it has no namespace */
	const char *const none[] = {NULL};
	struct bytes list = make_list(kind, "5", "", streq(kind, "EndpointSlice") ? broken : none);
	struct evbuffer *body = evbuffer_new();

	evbuffer_add(body, list.data, list.n);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
			  "application/vnd.kubernetes.protobuf");
	evhttp_send_reply(request, 200, "OK", body);
	evbuffer_free(body);
	bytes_done(&list);
}

static void reply_as_asked(struct evhttp_request *request, enum answer answer)
{
	if (answer == ANSWER_FORBIDDEN)
		evhttp_send_error(request, 403, "Forbidden");
	else if (answer == ANSWER_UNKNOWN)
		evhttp_send_error(request, 404, "Not Found");
}

static void on_request(struct evhttp_request *request, void *arg attr_unused)
{
	const char *uri = evhttp_request_get_uri(request);
	bool is_node = strstr(uri, "/nodes") != NULL;
	bool is_cidrs = strstr(uri, "/servicecidrs") != NULL;
	enum answer answer = is_node ? world.node : is_cidrs ? world.cidrs : ANSWER_EMPTY;

	world.asked_for_node += is_node;
	world.asked_for_cidrs += is_cidrs;
	if (world.mute && strstr(uri, "/services?"))
		return;
	if (answer != ANSWER_EMPTY)
		reply_as_asked(request, answer);
	else if (strstr(uri, "sendInitialEvents"))
		evhttp_send_error(request, 400, "Bad Request");
	else if (strstr(uri, "watch="))
		return; /* nothing ever happens */
	else
		reply_list(request, is_node                         ? "Node"
				    : is_cidrs                      ? "ServiceCIDR"
				    : strstr(uri, "endpointslices") ? "EndpointSlice"
								    : "Service");
}

static void on_set(void *arg attr_unused, struct object object)
{
	object_unref(object);
}

static void on_remove(void *arg attr_unused, enum object_kind kind attr_unused,
		      const char *key attr_unused)
{
}

static void on_node_listed(void *arg attr_unused, bool hope)
{
	assert_int_equal(world.synced, 0);
	world.listed++;
	world.hope = hope;
	if (world.mute)
		event_base_loopbreak(world.loop);
}

static void on_synced(void *arg attr_unused)
{
	world.synced++;
	event_base_loopbreak(world.loop);
}

static void on_late(evutil_socket_t fd attr_unused, short what attr_unused, void *arg attr_unused)
{
	world.late = true;
	event_base_loopbreak(world.loop);
}

static void note(char *said, enum log_severity severity, const char *text)
{
	size_t n = strlen(said);

	snprintf(said + n, sizeof(world.said) - n, "%c %s\n", "IWE"[severity], text);
}

static void on_report(void *arg attr_unused, enum log_severity severity, const char *text)
{
	note(world.said, severity, text);
}

static void on_object_report(void *arg attr_unused, enum log_severity severity, const char *text)
{
	note(world.said_of_objects, severity, text);
}

static const char *no_environment(const char *name attr_unused)
{
	return NULL;
}

static int64_t epoch(void)
{
	return 0;
}

/*
 * Runs a source until it is synced, or for so long. Returns how long that took. cidrs: NULL, nobody
 * asks for ServiceCIDRs.
 */
static int64_t run_with(enum answer node, const enum answer *cidrs, int64_t grace_ms,
			int64_t limit_ms)
{
	const struct source_sink sink = {
		.set = on_set,
		.remove = on_remove,
		.node_listed = on_node_listed,
		.synced = on_synced,
		.service_cidrs = cidrs,
	};
	struct evhttp *server;
	struct evhttp_bound_socket *bound;
	struct event *late;
	struct api_source *source;
	struct timeval limit;
	int64_t start = clock_now_ns();
	struct err err;
	char *url cleanup_free = NULL;
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	world = (typeof(world)){.mute = world.mute};
	world.loop = event_base_new();
	world.node = node;
	world.cidrs = cidrs ? *cidrs : ANSWER_SILENCE;
	server = evhttp_new(world.loop);
	evhttp_set_gencb(server, on_request, NULL);
	bound = evhttp_bind_socket_with_handle(server, "127.0.0.1", 0);
	assert_non_null(bound);
	assert_int_equal(
		getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &size),
		0);
	url = xasprintf("http://127.0.0.1:%u", ntohs(address.sin_port));
	late = evtimer_new(world.loop, on_late, NULL);
	clock_to_timeval(limit_ms * CLOCK_NS_PER_MS, &limit);
	evtimer_add(late, &limit);
	assert_int_equal(api_source_start(world.loop,
					  &(struct api_source_config){
						  .credentials = {.master = url,
								  .getenv = no_environment,
								  .now_s = epoch},
						  .node_name = "node-a",
						  .report = on_report,
						  .report_object = on_object_report,
						  .node_grace_ms = grace_ms,
					  },
					  &sink, &source, &err),
			 0);
	event_base_dispatch(world.loop);
	api_source_free(source);
	event_free(late);
	evhttp_free(server);
	event_base_free(world.loop);
	return clock_now_ns() - start;
}

static int64_t run(enum answer node, int64_t grace_ms, int64_t limit_ms)
{
	return run_with(node, NULL, grace_ms, limit_ms);
}

static void a_node_that_cannot_be_read_holds_up_the_rest_for_its_grace(void **state attr_unused)
{
	int64_t took = run(ANSWER_SILENCE, 500, 30000);

	assert_int_equal(world.synced, 1);
	assert_true(world.asked_for_node >= 1);
	assert_true(took >= (500 - TICK_MS) * CLOCK_NS_PER_MS);
	assert_true(world.hope);
}

static void before_that_nothing_is_synced(void **state attr_unused)
{
	run(ANSWER_SILENCE, 0, 1000); /* the limit of real life */
	assert_true(world.late);
	assert_int_equal(world.synced, 0);
	assert_int_equal(API_SOURCE_NODE_GRACE_MS, 30000); /* kube-proxy's */
}

/* It may be allowed in a moment, so that whoever asked may wait for it. */
static void a_node_that_may_not_be_read_does_not_hold_up_lists(void **state attr_unused)
{
	run(ANSWER_FORBIDDEN, 60000, 30000);
	assert_int_equal(world.synced, 1);
	assert_int_equal(world.listed, 1);
	assert_true(world.hope);
}

/* A flood of the one must not keep the other out of the log. */
static void what_is_wrong_with_objects_is_reported_apart_from_the_server(void **state attr_unused)
{
	run(ANSWER_FORBIDDEN, 60000, 30000);
	assert_non_null(strstr(world.said_of_objects, "E EndpointSlice homeless cannot be served"));
	assert_null(strstr(world.said, "homeless"));
	assert_non_null(strstr(world.said, "about the Node"));
	assert_null(strstr(world.said_of_objects, "the Node"));
}

static void a_node_that_is_not_there_holds_up_nothing(void **state attr_unused)
{
	run(ANSWER_EMPTY, 60000, 30000);
	assert_int_equal(world.synced, 1);
	assert_int_equal(world.listed, 1);
	assert_true(world.hope);
}

static void a_node_is_told_of_while_services_are_not_listed(void **state attr_unused)
{
	world.mute = true;
	run(ANSWER_EMPTY, 60000, 30000);
	assert_int_equal(world.listed, 1);
	assert_int_equal(world.synced, 0);
	world.mute = false;
}

static void service_cidrs_are_asked_for_only_if_somebody_takes_them(void **state attr_unused)
{
	const enum answer answer = ANSWER_EMPTY;

	run(ANSWER_EMPTY, 60000, 30000);
	assert_int_equal(world.synced, 1);
	assert_int_equal(world.asked_for_cidrs, 0);
	run_with(ANSWER_EMPTY, &answer, 60000, 30000);
	assert_int_equal(world.synced, 1);
	assert_true(world.asked_for_cidrs >= 1);
	assert_string_equal(world.said, "");
}

static void service_cidrs_that_a_server_does_not_have_hold_up_nothing(void **state attr_unused)
{
	const enum answer answer = ANSWER_UNKNOWN;

	run_with(ANSWER_EMPTY, &answer, 60000, 30000);
	assert_int_equal(world.synced, 1);
	assert_non_null(strstr(world.said, "W The API server http://127.0.0.1:"));
	assert_non_null(strstr(world.said, " knows nothing about ServiceCIDRs: HTTP status 404\n"));
}

static void service_cidrs_that_may_not_be_read_hold_up_nothing(void **state attr_unused)
{
	const enum answer answer = ANSWER_FORBIDDEN;

	run_with(ANSWER_EMPTY, &answer, 60000, 30000);
	assert_int_equal(world.synced, 1);
	assert_non_null(strstr(world.said, " does not let us read about ServiceCIDRs: "));
}

static void service_cidrs_without_an_answer_hold_up_the_rest_for_the_grace(void **state attr_unused)
{
	const enum answer answer = ANSWER_SILENCE;

	assert_true(run_with(ANSWER_EMPTY, &answer, 300, 30000) >=
		    (300 - TICK_MS) * CLOCK_NS_PER_MS);
	assert_int_equal(world.synced, 1);
}

/* Each failure of theirs would begin it anew: then it is 6.4 s at least. A busy machine may try again. */
static void service_cidrs_that_fail_do_not_put_off_the_grace(void **state attr_unused)
{
	const enum answer answer = ANSWER_UNKNOWN;
	int64_t took = INT64_MAX;

	for (int i = 0; i < 3 && took >= 6200 * CLOCK_NS_PER_MS; i++) {
		took = run_with(ANSWER_SILENCE, &answer, 4000, 30000);
		assert_true(world.asked_for_cidrs >= 2);
		assert_int_equal(world.synced, 1);
	}
	assert_true(took < 6200 * CLOCK_NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_cannot_be_read_holds_up_the_rest_for_its_grace),
		cmocka_unit_test(before_that_nothing_is_synced),
		cmocka_unit_test(a_node_that_may_not_be_read_does_not_hold_up_lists),
		cmocka_unit_test(what_is_wrong_with_objects_is_reported_apart_from_the_server),
		cmocka_unit_test(a_node_that_is_not_there_holds_up_nothing),
		cmocka_unit_test(a_node_is_told_of_while_services_are_not_listed),
		cmocka_unit_test(service_cidrs_are_asked_for_only_if_somebody_takes_them),
		cmocka_unit_test(service_cidrs_that_a_server_does_not_have_hold_up_nothing),
		cmocka_unit_test(service_cidrs_that_may_not_be_read_hold_up_nothing),
		cmocka_unit_test(service_cidrs_without_an_answer_hold_up_the_rest_for_the_grace),
		cmocka_unit_test(service_cidrs_that_fail_do_not_put_off_the_grace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
