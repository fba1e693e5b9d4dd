/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When the initial state counts as known, with a server in the same process: it refuses streaming
 * lists, lists no Service and no EndpointSlice, leaves watches open, and does with requests for the
 * Node what the test asks for.
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
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "api_bytes.h"
#include "base/clock.h"
#include "sources/api_source.h"

enum node_answer {
	NODE_SILENCE = 0,
	NODE_FORBIDDEN,
	NODE_ABSENT,
	NODE_COUNT,
};

static struct {
	struct event_base *loop;
	enum node_answer node;
	int asked_for_node;
	int synced;
	bool late;
} world;

static void reply_list(struct evhttp_request *request, const char *kind)
{
	const char *const none[] = {NULL};
	struct bytes list = make_list(kind, "5", "", none);
	struct evbuffer *body = evbuffer_new();

	evbuffer_add(body, list.data, list.n);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
			  "application/vnd.kubernetes.protobuf");
	evhttp_send_reply(request, 200, "OK", body);
	evbuffer_free(body);
	bytes_done(&list);
}

static void on_request(struct evhttp_request *request, void *arg attr_unused)
{
	const char *uri = evhttp_request_get_uri(request);
	bool is_node = strstr(uri, "/nodes") != NULL;

	world.asked_for_node += is_node;
	if (is_node && world.node == NODE_SILENCE)
		return;
	if (is_node && world.node == NODE_FORBIDDEN)
		evhttp_send_error(request, 403, "Forbidden");
	else if (strstr(uri, "sendInitialEvents"))
		evhttp_send_error(request, 400, "Bad Request");
	else if (strstr(uri, "watch="))
		return; /* nothing ever happens */
	else
		reply_list(request, is_node                         ? "Node"
				    : strstr(uri, "endpointslices") ? "EndpointSlice"
								    : "Service");
}

static void on_set_node(void *arg attr_unused, struct node *node)
{
	node_unref(node);
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

static void on_report(void *arg attr_unused, enum log_severity severity attr_unused,
		      const char *text attr_unused)
{
}

static const char *no_environment(const char *name attr_unused)
{
	return NULL;
}

static int64_t epoch(void)
{
	return 0;
}

/* Runs a source until it is synced, or for so long. Returns how long that took. */
static int64_t run(enum node_answer node, int64_t grace_ms, int64_t limit_ms)
{
	const struct source_sink sink = {.set_node = on_set_node, .synced = on_synced};
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

	memset(&world, 0, sizeof(world));
	world.loop = event_base_new();
	world.node = node;
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

static void a_node_that_cannot_be_read_holds_up_the_rest_for_its_grace(void **state attr_unused)
{
	int64_t took = run(NODE_SILENCE, 500, 30000);

	assert_int_equal(world.synced, 1);
	assert_true(world.asked_for_node >= 1);
	assert_true(took >= 500 * CLOCK_NS_PER_MS);
}

static void before_that_nothing_is_synced(void **state attr_unused)
{
	run(NODE_SILENCE, 0, 1000); /* the limit of real life */
	assert_true(world.late);
	assert_int_equal(world.synced, 0);
	assert_int_equal(API_SOURCE_NODE_GRACE_MS, 30000); /* kube-proxy's */
}

static void a_node_that_may_not_be_read_holds_up_nothing(void **state attr_unused)
{
	run(NODE_FORBIDDEN, 60000, 30000);
	assert_int_equal(world.synced, 1);
}

static void a_node_that_is_not_there_holds_up_nothing(void **state attr_unused)
{
	run(NODE_ABSENT, 60000, 30000);
	assert_int_equal(world.synced, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_cannot_be_read_holds_up_the_rest_for_its_grace),
		cmocka_unit_test(before_that_nothing_is_synced),
		cmocka_unit_test(a_node_that_may_not_be_read_holds_up_nothing),
		cmocka_unit_test(a_node_that_is_not_there_holds_up_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
