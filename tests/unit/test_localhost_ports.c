/* SPDX-License-Identifier: Apache-2.0 */

/* NodePorts on localhost: which sockets there are, where their connections go, and what clients may not take. */

#include <signal.h>

#include "backends/nftables/localhost/localhost_ports.h"
#include "backends/nftables/localhost/relay.h"
#include "own_ports.h"
#include "plan_world.h"
#include "relay_lab.h"

#define NODE_PORT 30080
#define BACKEND   8080
#define ENDPOINTS 3 /* 127.0.1.1 and so on; the last is on another node */

struct lab {
	struct world world;
	struct localhost_ports *ports;
	struct service_plan *plan;
	int endpoints[ENDPOINTS];
	int64_t later_ns; /* than it is */
	uint32_t dice[8];
	size_t n_dice, at_dice;
};

static int64_t now_ns(void *arg)
{
	return clock_now_ns() + ((struct lab *)arg)->later_ns;
}

static uint32_t throw(void *arg, uint32_t n)
{
	struct lab *lab = arg;

	assert_true(lab->at_dice < lab->n_dice);
	assert_true(lab->dice[lab->at_dice] < n);
	return lab->dice[lab->at_dice++];
}

#define DICE(lab, ...)                                     \
	do {                                               \
		const uint32_t dice_[] = {__VA_ARGS__};    \
		memcpy((lab)->dice, dice_, sizeof(dice_)); \
		(lab)->n_dice = ARRAY_SIZE(dice_);         \
		(lab)->at_dice = 0;                        \
	} while (0)

static struct addr endpoint_address(size_t i)
{
	struct addr addr = lab_address(FAMILY_IPV4, (uint8_t)(1 + i));

	addr.bytes[2] = 1;
	return addr;
}

static void open_ports(struct lab *lab, size_t descriptors)
{
	localhost_ports_free(lab->ports);
	lab->ports = localhost_ports_new(&(struct localhost_ports_config){
		.loop = lab_loop,
		.family = FAMILY_IPV4,
		.descriptors = descriptors,
		.dial_ns = LOCALHOST_DIAL_NS,
		.half_closed_ns = LOCALHOST_HALF_CLOSED_NS,
		.now_ns = now_ns,
		.random = throw,
		.arg = lab,
	});
}

static int set_up(void **state)
{
	struct lab *lab = xcalloc(1, sizeof(*lab));

	lab_loop = event_base_new();
	lab->world = world_new();
	for (size_t i = 0; i < ENDPOINTS; i++) {
		struct addr addr = endpoint_address(i);

		lab->endpoints[i] = lab_listen(&addr, BACKEND, 4096);
	}
	open_ports(lab, 10000);
	*state = lab;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *lab = *state;

	localhost_ports_free(lab->ports);
	service_plan_unref(lab->plan);
	for (size_t i = 0; i < ENDPOINTS; i++)
		close(lab->endpoints[i]);
	world_done(&lab->world);
	event_base_free(lab_loop);
	free(lab);
	return 0;
}

/* -- Services */

static struct service *new_service(void)
{
	struct service *service = build_service(KEY, "10.96.0.1");

	build_port(service, "", PROTOCOL_TCP, 80, NODE_PORT);
	return service;
}

static void set_endpoints(struct lab *lab, size_t first, size_t n)
{
	struct draft *slice = build_slice("ns1/svc1-1", "svc1", FAMILY_IPV4);

	build_slice_port(slice, "", PROTOCOL_TCP, BACKEND);
	for (size_t i = first; i < n; i++) {
		char text[ADDR_TEXT_MAX];
		struct addr addr = endpoint_address(i);

		addr_print(&addr, text);
		build_endpoint(slice, text, i + 1 < ENDPOINTS ? NODE : OTHER, BUILD_READY);
	}
	build_set_slice(lab->world.model, slice);
}

static void take_plan(struct lab *lab)
{
	service_plan_unref(lab->plan);
	lab->plan = make_plan(&lab->world);
}

/* As a sync would: the plan of what the model holds now. */
static void tell(struct lab *lab, bool full)
{
	take_plan(lab);
	localhost_ports_begin(lab->ports, full);
	localhost_ports_tell(lab->ports, NODE_PORT, lab->plan ? &lab->plan->ports[0] : NULL);
	localhost_ports_end(lab->ports);
}

static void serve(struct lab *lab, struct service *service, size_t n_endpoints)
{
	model_set_service(lab->world.model, service);
	set_endpoints(lab, 0, n_endpoints);
	tell(lab, false);
}

static struct localhost_stats stats_of(const struct lab *lab)
{
	struct localhost_stats stats;

	localhost_ports_stats(lab->ports, &stats);
	return stats;
}

static int come_in(void)
{
	const struct addr localhost = lab_address(FAMILY_IPV4, 1);

	return lab_connect(&localhost, NODE_PORT);
}

static void expect_refused(void)
{
	const struct addr localhost = lab_address(FAMILY_IPV4, 1);
	int fd;

	assert_int_equal(lab_try_connect(&localhost, NODE_PORT, &fd), ECONNREFUSED);
}

/* Is a connection carried to that endpoint? */
static void expect_to(struct lab *lab, int client, size_t endpoint)
{
	int fd = lab_accept(lab->endpoints[endpoint]);

	lab_write(client, "to you");
	lab_expect(fd, "to you");
	close(client);
	close(fd);
}

/* -- the life of a socket */

static void a_port_is_bound_while_it_has_endpoints(void **state)
{
	const struct addr other = lab_address(FAMILY_IPV4, 2);
	struct lab *lab = *state;
	int fd;

	serve(lab, new_service(), 0);
	expect_refused();
	assert_int_equal(stats_of(lab).listeners, 0);
	serve(lab, new_service(), 1);
	assert_int_equal(stats_of(lab).listeners, 1);
	DICE(lab, 0);
	expect_to(lab, come_in(), 0);
	assert_int_equal(lab_try_connect(&other, NODE_PORT, &fd), ECONNREFUSED);
	serve(lab, new_service(), 0);
	expect_refused();
	assert_int_equal(stats_of(lab).listeners, 0);
}

static void endpoints_that_change_leave_connections_alone(void **state)
{
	struct lab *lab = *state;
	int client, endpoint;

	serve(lab, new_service(), 2);
	DICE(lab, 1, 0);
	client = come_in();
	endpoint = lab_accept(lab->endpoints[1]);
	serve(lab, new_service(), 1);
	lab_write(client, "one");
	lab_expect(endpoint, "one");
	serve(lab, new_service(), 0);
	lab_write(endpoint, "two");
	lab_expect(client, "two");
	serve(lab, new_service(), 3);
	lab_write(client, "three");
	lab_expect(endpoint, "three");
	assert_int_equal(stats_of(lab).connections, 1);
	close(client);
	close(endpoint);
	WAIT_UNTIL(stats_of(lab).connections == 0);
}

static void a_service_that_goes_takes_its_connections_along(void **state)
{
	struct lab *lab = *state;
	int client, endpoint;

	serve(lab, new_service(), 1);
	DICE(lab, 0);
	client = come_in();
	endpoint = lab_accept(lab->endpoints[0]);
	lab_write(client, "hello");
	lab_expect(endpoint, "hello");
	model_remove_service(lab->world.model, KEY);
	tell(lab, false);
	lab_expect_reset(client);
	lab_expect_reset(endpoint);
	expect_refused();
	assert_int_equal(stats_of(lab).connections, 0);
	close(client);
	close(endpoint);
}

static void what_a_full_sync_does_not_tell_is_gone(void **state)
{
	struct lab *lab = *state;

	serve(lab, new_service(), 1);
	tell(lab, true);
	assert_int_equal(stats_of(lab).listeners, 1);
	localhost_ports_begin(lab->ports, false);
	localhost_ports_end(lab->ports);
	assert_int_equal(stats_of(lab).listeners, 1);
	localhost_ports_begin(lab->ports, true);
	localhost_ports_end(lab->ports);
	assert_int_equal(stats_of(lab).listeners, 0);
	expect_refused();
}

static void a_port_that_becomes_anothers_begins_anew(void **state)
{
	struct service *other = build_service("ns1/svc2", "10.96.0.2");
	struct lab *lab = *state;
	struct service_plan *plan;
	int client, endpoint;

	serve(lab, new_service(), 1);
	DICE(lab, 0);
	client = come_in();
	endpoint = lab_accept(lab->endpoints[0]);
	build_port(other, "", PROTOCOL_TCP, 80, NODE_PORT);
	model_set_service(lab->world.model, other);
	take_plan(lab);
	plan = plan_service(&lab->world.settings, lab->world.model, "ns1/svc2");
	localhost_ports_begin(lab->ports, false);
	localhost_ports_tell(lab->ports, NODE_PORT, &plan->ports[0]);
	localhost_ports_end(lab->ports);
	lab_expect_reset(client);
	lab_expect_reset(endpoint);
	close(client);
	close(endpoint);
	service_plan_unref(plan);
}

static void a_port_that_is_taken_is_tried_again_with_each_sync(void **state)
{
	const struct addr localhost = lab_address(FAMILY_IPV4, 1);
	int taken = lab_listen(&localhost, NODE_PORT, 1);
	struct lab *lab = *state;

	serve(lab, new_service(), 1);
	assert_int_equal(stats_of(lab).listeners, 0);
	assert_int_equal(stats_of(lab).failures, 1);
	localhost_ports_begin(lab->ports, false);
	localhost_ports_end(lab->ports);
	assert_int_equal(stats_of(lab).failures, 2);
	close(taken);
	localhost_ports_begin(lab->ports, false);
	localhost_ports_end(lab->ports);
	assert_int_equal(stats_of(lab).listeners, 1);
	assert_int_equal(stats_of(lab).failures, 2);
	DICE(lab, 0);
	expect_to(lab, come_in(), 0);
}

/* -- which endpoint */

static void chance_picks_an_endpoint(void **state)
{
	struct lab *lab = *state;

	serve(lab, new_service(), 3);
	for (uint32_t i = 0; i < 3; i++) {
		DICE(lab, i, 0);
		expect_to(lab, come_in(), i);
	}
}

static void a_dead_endpoint_is_made_up_for_by_another(void **state)
{
	struct lab *lab = *state;

	serve(lab, new_service(), 3);
	close(lab->endpoints[1]);
	lab->endpoints[1] = -1;
	DICE(lab, 1, 0); /* and the one behind it */
	expect_to(lab, come_in(), 2);
	DICE(lab, 1, 1);
	expect_to(lab, come_in(), 0);
}

static void policy_local_has_endpoints_of_this_node_only(void **state)
{
	struct service *service = new_service();
	struct lab *lab = *state;

	service->external_local = true;
	serve(lab, service, 3);
	DICE(lab, 1, 0);
	expect_to(lab, come_in(), 1);
	set_endpoints(lab, ENDPOINTS - 1, ENDPOINTS); /* that of the other node */
	tell(lab, false);
	expect_refused();
}

static struct service *sticky_service(uint32_t seconds)
{
	struct service *service = new_service();

	service->sticky_seconds = seconds;
	return service;
}

static void affinity_pins_all_clients_to_one_endpoint(void **state)
{
	struct lab *lab = *state;

	serve(lab, sticky_service(100), 3);
	DICE(lab, 1);
	expect_to(lab, come_in(), 1);
	lab->later_ns = 90 * CLOCK_NS_PER_SECOND;
	expect_to(lab, come_in(), 1);
	lab->later_ns = 180 * CLOCK_NS_PER_SECOND; /* renewed by the second */
	expect_to(lab, come_in(), 1);
	lab->later_ns = 281 * CLOCK_NS_PER_SECOND;
	DICE(lab, 2);
	expect_to(lab, come_in(), 2);
}

static void a_pin_whose_endpoint_has_gone_is_replaced(void **state)
{
	struct lab *lab = *state;

	serve(lab, sticky_service(100), 3);
	DICE(lab, 2);
	expect_to(lab, come_in(), 2);
	serve(lab, sticky_service(100), 2);
	DICE(lab, 0);
	expect_to(lab, come_in(), 0);
	serve(lab, sticky_service(100), 3);
	expect_to(lab, come_in(), 0);
	serve(lab, sticky_service(200), 3); /* another time-out: the pin is dropped */
	DICE(lab, 1);
	expect_to(lab, come_in(), 1);
}

static void a_pinned_client_is_not_taken_elsewhere(void **state)
{
	struct lab *lab = *state;
	int client;

	serve(lab, sticky_service(100), 3);
	close(lab->endpoints[1]);
	lab->endpoints[1] = -1;
	DICE(lab, 1);
	client = come_in();
	lab_expect_reset(client);
	close(client);
}

/* -- limits */

static void clients_beyond_the_bound_are_reset_at_once(void **state)
{
	enum { MOST = 4 }; /* half of what three quarters of the descriptors allow */
	struct lab *lab = *state;
	int clients[MOST], endpoints[MOST], extra;

	open_ports(lab, (size_t)2 * MOST * RELAY_DESCRIPTORS * 4 / 3);
	serve(lab, new_service(), 1);
	for (size_t i = 0; i < MOST; i++) {
		DICE(lab, 0);
		clients[i] = come_in();
		endpoints[i] = lab_accept(lab->endpoints[0]);
	}
	extra = come_in();
	lab_expect_reset(extra);
	close(extra);
	assert_int_equal(stats_of(lab).refused, 1);
	assert_int_equal(stats_of(lab).connections, MOST);
	close(clients[0]);
	close(endpoints[0]);
	WAIT_UNTIL(stats_of(lab).connections == MOST - 1);
	DICE(lab, 0);
	expect_to(lab, come_in(), 0);
	for (size_t i = 1; i < MOST; i++) {
		lab_write(clients[i], "still here");
		lab_expect(endpoints[i], "still here");
		close(clients[i]);
		close(endpoints[i]);
	}
}

static void a_share_leaves_most_descriptors_to_others(void **state attr_unused)
{
	assert_int_equal(localhost_ports_share(1024), 256);
	assert_int_equal(localhost_ports_share(1u << 30),
			 localhost_ports_share(1u << 20)); /* there is an end */
	assert_true(localhost_ports_share(1u << 20) < 1u << 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(a_port_is_bound_while_it_has_endpoints),
		TEST(endpoints_that_change_leave_connections_alone),
		TEST(a_service_that_goes_takes_its_connections_along),
		TEST(what_a_full_sync_does_not_tell_is_gone),
		TEST(a_port_that_becomes_anothers_begins_anew),
		TEST(a_port_that_is_taken_is_tried_again_with_each_sync),
		TEST(chance_picks_an_endpoint),
		TEST(a_dead_endpoint_is_made_up_for_by_another),
		TEST(policy_local_has_endpoints_of_this_node_only),
		TEST(affinity_pins_all_clients_to_one_endpoint),
		TEST(a_pin_whose_endpoint_has_gone_is_replaced),
		TEST(a_pinned_client_is_not_taken_elsewhere),
		TEST(clients_beyond_the_bound_are_reset_at_once),
		cmocka_unit_test(a_share_leaves_most_descriptors_to_others),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, own_ports, NULL);
}
