/* SPDX-License-Identifier: Apache-2.0 */

/* The way of a packet, asked of a running model: the same as with all rules, and nothing is taken from the model. */

#include <errno.h>

#include "page/status_way.h"
#include "status_world.h"

static int iptables_setup(void **state)
{
	*state = status_world_new(EXPLAIN_IPTABLES);
	return 0;
}

static int nftables_setup(void **state)
{
	*state = status_world_new(EXPLAIN_NFTABLES);
	return 0;
}

static int teardown(void **state)
{
	status_world_free(*state);
	return 0;
}

static char *ask(struct status_world *world, const char *destination, const char *from,
		 const char *protocol)
{
	const struct status_way_question question = {destination, from, protocol};
	cleanup_text struct text text = {0};
	struct err err;

	if (status_way_print(&world->source, &question, &text, &err) < 0)
		return xstrdup(err.text);
	return text_dup(&text);
}

static void assert_says(struct status_world *world, const char *destination, const char *from,
			const char *words)
{
	cleanup_free char *answer = ask(world, destination, from, NULL);

	if (!strstr(answer, words))
		fail_msg("%s does not say %s", answer, words);
}

static void shares_senders_and_entries_are_told(void **state)
{
	struct status_world *world = *state;
	struct service *service = build_service("default/web", "10.96.0.1");

	for (int i = 2; i < 50; i++) {
		cleanup_free char *key = xasprintf("ns/other-%d", i);
		cleanup_free char *ip = xasprintf("10.96.0.%d", i);

		status_add(world, key, ip, 2);
	}
	status_add(world, "default/web", "10.96.0.1", 3);
	build_port(service, "http", PROTOCOL_TCP, 80, 30080);
	build_vip(service, "198.51.100.1");
	model_set_service(world->model, service);
	status_settle(world);
	assert_says(world, "10.96.0.1:80", "pod", "\"share\":\"1/3\"");
	assert_says(world, "10.96.0.1:80", "pod", "keep the client's address");
	assert_says(world, "service/default/web", NULL, "\"destination\":\"10.96.0.1:80\"");
	assert_says(world, "10.96.0.1:80", "node", "\"from\":\"node\"");
	assert_says(world, "10.96.0.1:80", "10.244.9.9", "\"source\":\"10.244.9.9\"");
	assert_says(world, ":30080", "outside", "with this node's address as their source");
	assert_says(world, "198.51.100.1:80", "outside", "one of 3 backends");
	assert_says(world, "10.96.0.9:80", "pod", "one of 2 backends");
	assert_says(world, "203.0.113.1:80", "pod", "\"address\":\"passed\"");
}

static void who_is_left_out_and_why_is_told(void **state)
{
	struct status_world *world = *state;
	struct slice *slice = build_slice("default/web-2", "web", FAMILY_IPV4);

	status_add(world, "default/web", "10.96.0.1", 1);
	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
	build_endpoint(slice, "10.244.9.1", "node-b", BUILD_UNREADY);
	model_set_slice(world->model, slice);
	status_settle(world);
	assert_says(world, "10.96.0.1:80", "pod",
		    "\"left_out\":[{\"address\":\"10.244.9.1:8080\",\"reason\":\"not ready\"}]");
}

/* Whether an endpoint is on this node is known in the model only. */
static void local_endpoints_are_still_local(void **state)
{
	struct status_world *world = *state;
	struct service *service = build_service("default/web", "10.96.0.1");

	status_add(world, "default/web", "10.96.0.1", 3);
	build_port(service, "http", PROTOCOL_TCP, 80, 0);
	service->internal_local = true;
	model_set_service(world->model, service);
	status_settle(world);
	assert_says(world, "10.96.0.1:80", "pod",
		    "\"address\":\"10.244.1.1:8080\",\"share\":\"1/1\"");
	assert_says(world, "10.96.0.1:80", "pod", "\"reason\":\"not on this node\"");
}

static void nothing_is_taken_from_the_model(void **state)
{
	struct status_world *world = *state;
	struct model_changes changes;

	status_add(world, "default/web", "10.96.0.1", 3);
	assert_says(world, "10.96.0.1:80", "pod", "one of 3 backends");
	changes = status_take(world);
	assert_int_equal(changes.n_services, 1);
	assert_string_equal(changes.services[0], "default/web");
	model_changes_done(&changes);
}

static int refusal(struct status_world *world, const char *destination, const char *from,
		   const char *protocol)
{
	const struct status_way_question question = {destination, from, protocol};
	cleanup_text struct text text = {0};
	struct err err = {0};
	int r = status_way_print(&world->source, &question, &text, &err);

	assert_true(r < 0 && *err.text && text.size == 0);
	return r;
}

static void what_is_no_question_is_refused_in_words(void **state)
{
	struct status_world *world = *state;

	status_add(world, "default/web", "10.96.0.1", 3);
	status_add(world, "default/huge", "10.96.0.2", STATUS_WAY_ENDPOINTS + 1);
	status_settle(world);
	assert_int_equal(refusal(world, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(refusal(world, "", NULL, NULL), -EINVAL);
	assert_int_equal(refusal(world, "nonsense", NULL, NULL), -EINVAL);
	assert_int_equal(refusal(world, "10.96.0.1:80", "somewhere", NULL), -EINVAL);
	assert_int_equal(refusal(world, "10.96.0.1:80", "fd00::1", NULL), -EINVAL);
	assert_int_equal(refusal(world, "10.96.0.1:80", "pod", "icmp"), -EINVAL);
	assert_int_equal(refusal(world, "service/default/none", NULL, NULL), -ENOENT);
	assert_int_equal(refusal(world, "[fd00::1]:80", NULL, NULL), -ENOENT);
	assert_int_equal(refusal(world, "10.96.0.2:80", NULL, NULL), -E2BIG);
}

int main(void)
{
#define BOTH(test)                                                       \
	cmocka_unit_test_setup_teardown(test, iptables_setup, teardown), \
		cmocka_unit_test_setup_teardown(test, nftables_setup, teardown)
	const struct CMUnitTest tests[] = {
		BOTH(shares_senders_and_entries_are_told),
		BOTH(who_is_left_out_and_why_is_told),
		BOTH(local_endpoints_are_still_local),
		BOTH(nothing_is_taken_from_the_model),
		BOTH(what_is_no_question_is_refused_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
