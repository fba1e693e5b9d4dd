/* SPDX-License-Identifier: Apache-2.0 */

/* The path of a packet, asked of a running model: the same as with all rules, and nothing is taken from the model. */

#include <errno.h>

#include "page/status_way.h"
#include "random_cluster.h"
#include "status_world.h"

static int iptables_setup(void **state)
{
	*state = status_world_new(&backend_iptables);
	return 0;
}

static int nftables_setup(void **state)
{
	*state = status_world_new(&backend_nftables);
	return 0;
}

static int teardown(void **state)
{
	status_world_free(*state);
	return 0;
}

/* Without the white space between the values. */
static char *compact(const char *json)
{
	cleanup_text struct text text = {0};
	bool quoted = false;

	for (char before = '\0'; *json; before = *json++) {
		quoted ^= *json == '"' && before != '\\';
		if (quoted || (*json != ' ' && *json != '\n'))
			text_add(&text, json, 1);
	}
	return text_dup(&text);
}

static char *ask(struct status_world *world, const char *destination, const char *from,
		 const char *protocol)
{
	const struct status_way_question question = {destination, from, protocol};
	cleanup_text struct text text = {0};
	cleanup_free char *plain = NULL;
	struct err err;

	if (status_way_print(&world->source, &question, &text, &err) < 0)
		return xstrdup(err.text);
	plain = text_dup(&text);
	return compact(plain);
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
	struct draft *slice = build_slice("default/web-2", "web", FAMILY_IPV4);

	status_add(world, "default/web", "10.96.0.1", 1);
	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
	build_endpoint(slice, "10.244.9.1", "node-b", BUILD_UNREADY);
	build_set_slice(world->model, slice);
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

/* What becomes of a packet by the rules of all Services, as `portolan explain` would say it. */
static char *summary_of_all(struct status_world *world, const struct packet *packet)
{
	cleanup_free struct addr *addresses = NULL;
	const char *keys[RANDOM_SERVICES];
	struct explain_input input = {.backend = world->source.backend,
				      .settings = &world->settings};
	const struct service *service;
	struct explanation *found;
	struct explain *explain;
	char *summary;
	size_t n = 0, at = 0;

	while ((service = model_next_service(world->model, &at)))
		keys[n++] = service->key;
	input.model = model_excerpt(world->model, keys, n);
	status_addresses(world, FAMILY_IPV4, &addresses, &input.host.n_addresses, NULL);
	input.host.addresses = addresses;
	explain = explain_new(&input);
	found = explain_packet(explain, packet);
	summary = xasprintf("%s %zu", found->summary, found->path->n_outcomes);
	explanation_free(found);
	explain_free(explain);
	model_free(input.model);
	return summary;
}

static char *summary_of_question(struct status_world *world, const struct packet *packet)
{
	char destination[ADDR_PORT_TEXT_MAX];
	cleanup_free char *answer = NULL;
	size_t outcomes = 0;

	addr_port_print(&packet->destination, packet->port, destination);
	answer = ask(world, destination, origin_name(packet->origin),
		     protocol_name(packet->protocol));
	for (const char *at = answer; (at = strstr(at, "\"share\":")); at++)
		outcomes++;
	assert_true(has_prefix(answer, "{\"summary\":\""));
	return xasprintf("%.*s %zu", (int)strcspn(answer + 12, "\""), answer + 12, outcomes);
}

static void compare(struct status_world *world, const struct addr *destination, uint16_t port,
		    enum protocol protocol)
{
	const struct sender_input sender = {&world->settings, NULL, &(struct host){0}};

	for (enum origin origin = 0; origin < ORIGIN_COUNT; origin++) {
		struct packet packet = {
			.destination = *destination, .port = port, .protocol = protocol};
		cleanup_free char *all = NULL, *excerpt = NULL;

		packet_from(&packet, &sender, origin);
		all = summary_of_all(world, &packet);
		excerpt = summary_of_question(world, &packet);
		assert_string_equal(excerpt, all);
	}
}

/* Services that want the same addresses and node ports, policies, ranges: what is planned alone ends as with all. */
static void the_way_is_that_of_all_rules(void **state)
{
	struct status_world *world = *state;
	struct random_cluster random = {.state = 7, .model = world->model};

	for (int round = 0; round < 15; round++) {
		const struct service *service;
		size_t at = 0;

		for (int i = 0; i < 10; i++)
			random_change(&random);
		status_settle(world);
		while ((service = model_next_service(world->model, &at))) {
			const struct service_port *port;

			if (service->n_ports == 0 || !service->has_cluster_ip[FAMILY_IPV4])
				continue;
			port = &service->ports[random_below(&random, service->n_ports)];
			compare(world, &service->cluster_ip[FAMILY_IPV4], port->port,
				port->protocol);
			if (service->n_external_ips > 0)
				compare(world, &service->external_ips[0], port->port,
					port->protocol);
			if (service->n_vips > 0)
				compare(world, &service->vips[0], port->port, port->protocol);
			if (port->node_port)
				compare(world, &world->settings.node_ip, port->node_port,
					port->protocol);
		}
	}
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
		BOTH(the_way_is_that_of_all_rules),
		BOTH(what_is_no_question_is_refused_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
