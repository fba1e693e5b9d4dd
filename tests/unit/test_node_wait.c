/* SPDX-License-Identifier: Apache-2.0 */

/* What the start waits for, and for how long. */

#include <event2/event.h>
#include <string.h>

#include "base/clock.h"
#include "build.h"
#include "config/config.h"
#include "daemon/node_wait.h"

#define SHORT_MS 50
#define NEVER_MS 60000

struct fixture {
	struct event_base *loop;
	struct model *model;
	struct node_wait *wait;
	struct config config;
	int n_over;
	const char *failed;
};

static void on_over(void *arg)
{
	struct fixture *f = arg;

	f->n_over++;
}

static void on_failed(void *arg, const char *reason)
{
	struct fixture *f = arg;

	f->failed = reason;
}

static void begin(struct fixture *f, enum detect_mode mode, int64_t addresses_ms,
		  int64_t pod_cidrs_ms, bool hope)
{
	f->config.detect_mode = mode;
	f->wait = node_wait_new(&(struct node_wait_config){
		.loop = f->loop,
		.model = f->model,
		.addresses_ms = addresses_ms,
		.pod_cidrs_ms = pod_cidrs_ms,
		.over = on_over,
		.failed = on_failed,
		.arg = f,
	});
	node_wait_begin(f->wait, &f->config, hope);
}

static void set_node(struct fixture *f, bool address, bool pod_cidr)
{
	struct node *node = node_new("node-a");

	node->n_addresses = address;
	node->addresses = arena_alloc(node->arena, sizeof(*node->addresses));
	*node->addresses = build_addr("192.168.0.2");
	node->n_pod_cidrs = pod_cidr;
	node->pod_cidrs = arena_alloc(node->arena, sizeof(*node->pod_cidrs));
	*node->pod_cidrs = build_prefix("10.244.1.0/24");
	model_set_node(f->model, node);
	if (f->wait)
		node_wait_look(f->wait, &f->config);
}

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->loop = event_base_new();
	f->model = model_new("node-a", 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	node_wait_free(f->wait);
	model_free(f->model);
	event_base_free(f->loop);
	free(f);
	return 0;
}

static void nobody_waits_for_a_node_with_addresses(void **state)
{
	struct fixture *f = *state;

	set_node(f, true, false);
	begin(f, DETECT_CLUSTER_CIDR, NEVER_MS, NEVER_MS, true);
	assert_int_equal(f->n_over, 1);
}

static void a_node_that_comes_later_is_waited_for(void **state)
{
	struct fixture *f = *state;

	begin(f, DETECT_CLUSTER_CIDR, NEVER_MS, NEVER_MS, true);
	assert_int_equal(f->n_over, 0);
	set_node(f, false, false);
	assert_int_equal(f->n_over, 0);
	set_node(f, true, false);
	set_node(f, true, true);
	assert_int_equal(f->n_over, 1);
	assert_int_equal(event_base_loop(f->loop, EVLOOP_NONBLOCK), 1); /* no timer is left */
}

static void after_a_while_it_goes_on_without(void **state)
{
	struct fixture *f = *state;
	int64_t start = clock_now_ns();

	begin(f, DETECT_CLUSTER_CIDR, SHORT_MS, NEVER_MS, true);
	event_base_dispatch(f->loop);
	assert_true(clock_now_ns() - start >= SHORT_MS * CLOCK_NS_PER_MS);
	assert_int_equal(f->n_over, 1);
	assert_null(f->failed);
}

static void nobody_waits_without_hope(void **state)
{
	struct fixture *f = *state;

	begin(f, DETECT_CLUSTER_CIDR, NEVER_MS, NEVER_MS, false);
	assert_int_equal(f->n_over, 1);
}

static void pod_cidrs_are_waited_for_after_addresses(void **state)
{
	struct fixture *f = *state;

	begin(f, DETECT_NODE_CIDR, SHORT_MS, NEVER_MS, true);
	event_base_loop(f->loop, EVLOOP_ONCE);
	set_node(f, true, false);
	assert_int_equal(f->n_over, 0);
	set_node(f, true, true);
	assert_int_equal(f->n_over, 1);
}

static void without_pod_cidrs_it_cannot_go_on(void **state)
{
	struct fixture *f = *state;

	set_node(f, true, false);
	begin(f, DETECT_NODE_CIDR, NEVER_MS, SHORT_MS, true);
	event_base_dispatch(f->loop);
	assert_int_equal(f->n_over, 0);
	assert_string_equal(f->failed, "the Node was given no podCIDRs in time");
}

static void another_configuration_may_do_without_them(void **state)
{
	struct fixture *f = *state;

	set_node(f, true, false);
	begin(f, DETECT_NODE_CIDR, NEVER_MS, NEVER_MS, true);
	assert_int_equal(f->n_over, 0);
	f->config.detect_mode = DETECT_CLUSTER_CIDR;
	node_wait_look(f->wait, &f->config);
	assert_int_equal(f->n_over, 1);
}

static void limits_are_kube_proxys(void **state attr_unused)
{
	assert_int_equal(NODE_WAIT_ADDRESSES_MS, 30000);
	assert_int_equal(NODE_WAIT_POD_CIDRS_MS, 300000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(nobody_waits_for_a_node_with_addresses),
		TEST(a_node_that_comes_later_is_waited_for),
		TEST(after_a_while_it_goes_on_without),
		TEST(nobody_waits_without_hope),
		TEST(pod_cidrs_are_waited_for_after_addresses),
		TEST(without_pod_cidrs_it_cannot_go_on),
		TEST(another_configuration_may_do_without_them),
		cmocka_unit_test(limits_are_kube_proxys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
