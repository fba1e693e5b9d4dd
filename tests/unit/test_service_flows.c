/* SPDX-License-Identifier: Apache-2.0 */

/* Flows of a Service by backend: what counts, whose it is, and what is printed of it. */

#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <netinet/in.h>

#include "base/doc.h"
#include "build.h"
#include "commands/flows_print.h"
#include "conntrack/service_flows.h"

struct lab {
	struct model *model;
	struct service *service;
	struct service_flows *flows;
};

/* default/web: TCP 80 with node port 30080, UDP 53; an endpoint for each, one more that is not ready. */
static int setup(void **state)
{
	struct lab *lab = xcalloc(1, sizeof(*lab));
	struct draft *slice = build_slice("default/web-1", "web", FAMILY_IPV4);
	struct model_changes changes;

	lab->model = model_new("node-a", 0);
	lab->service = build_service("default/web", "10.96.0.1");
	build_port(lab->service, "http", PROTOCOL_TCP, 80, 30080);
	build_port(lab->service, "dns", PROTOCOL_UDP, 53, 0);
	build_external_ip(lab->service, "198.51.100.1");
	model_set_service(lab->model, lab->service);
	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
	build_slice_port(slice, "dns", PROTOCOL_UDP, 5353);
	build_endpoint(slice, "10.244.0.1", "node-a", BUILD_READY);
	build_endpoint(slice, "10.244.0.2", "node-b", 0);
	build_set_slice(lab->model, slice);
	model_take_changes(lab->model, FAMILY_IPV4, &changes);
	model_changes_done(&changes);
	*state = lab;
	return 0;
}

static int teardown(void **state)
{
	struct lab *lab = *state;

	service_flows_free(lab->flows);
	model_free(lab->model);
	free(lab);
	return 0;
}

static struct conntrack_flow flow_of(uint8_t protocol, const char *to, uint16_t port,
				     const char *backend, uint16_t number)
{
	struct conntrack_flow flow = {
		.protocol = protocol,
		.status = IPS_DST_NAT | IPS_CONFIRMED | IPS_SEEN_REPLY,
		.state = protocol == IPPROTO_TCP ? TCP_CONNTRACK_ESTABLISHED : 0,
		.timeout_s = 60,
		.counted = true,
		.packets = {2, 3},
		.bytes = {200, 300},
	};

	flow.original.src = build_addr("10.244.0.9");
	flow.original.src_port = 4000;
	flow.original.dst = build_addr(to);
	flow.original.dst_port = port;
	flow.reply.src = build_addr(backend);
	flow.reply.src_port = number;
	return flow;
}

/* A table with these flows, asked for each filter as the kernel would. */
static void see_all(struct lab *lab, const struct conntrack_flow *v, size_t n, bool keep)
{
	lab->flows = service_flows_new(lab->model, lab->service, NULL, keep);
	for (size_t i = 0; i < lab->flows->n_fronts; i++) {
		const struct conntrack_filter *filter = service_flows_filter(lab->flows, i);

		for (size_t j = 0; j < n; j++)
			if (v[j].original.dst.family == filter->family &&
			    (!filter->dst || addr_equal(filter->dst, &v[j].original.dst)))
				service_flows_see(lab->flows, &v[j]);
	}
	service_flows_finish(lab->flows);
}

static char *printed(struct lab *lab, bool each)
{
	cleanup_text struct text text = {0};

	flows_print_human(lab->flows, each, &text);
	return text_dup(&text);
}

static void flows_are_counted_by_backend_and_state(void **state)
{
	struct lab *lab = *state;
	struct conntrack_flow v[] = {
		flow_of(IPPROTO_TCP, "10.96.0.1", 80, "10.244.0.1", 8080),
		flow_of(IPPROTO_TCP, "198.51.100.1", 80, "10.244.0.1", 8080),
		flow_of(IPPROTO_TCP, "192.0.2.11", 30080, "10.244.0.2", 8080),
		flow_of(IPPROTO_UDP, "10.96.0.1", 53, "10.244.0.1", 5353),
		flow_of(IPPROTO_TCP, "10.96.0.2", 80, "10.244.0.1", 8080), /* of another */
		flow_of(IPPROTO_TCP, "192.0.2.11", 30080, "10.244.0.1", 8080),
	};
	cleanup_free char *text = NULL;

	v[1].state = TCP_CONNTRACK_TIME_WAIT;
	v[5].status = IPS_CONFIRMED; /* not translated */
	see_all(lab, v, ARRAY_SIZE(v), false);
	text = printed(lab, false);
	assert_string_equal(text, "PORT      BACKEND          FLOWS  ESTABLISHED  TIME_WAIT  "
				  "REPLIED  PACKETS  BYTES  NOTE\n"
				  "http/tcp  10.244.0.1:8080  2      1            1          0     "
				  "   10       1000   \n"
				  "http/tcp  10.244.0.2:8080  1      1            0          0     "
				  "   5        500    not ready\n"
				  "dns/udp   10.244.0.1:5353  1      0            0          1     "
				  "   5        500    \n"
				  "dns/udp   10.244.0.2:5353  0      0            0          0     "
				  "   -        -      not ready\n"
				  "total                      4      2            1          1     "
				  "   20       2000   \n");
	assert_int_equal(flows_print_strays(lab->flows), 0);
	assert_int_equal(lab->flows->n_kept, 0);
}

static void who_is_no_endpoint_any_more_is_marked(void **state)
{
	struct lab *lab = *state;
	struct conntrack_flow v[] = {
		flow_of(IPPROTO_TCP, "10.96.0.1", 80, "10.244.0.7", 8080),
		flow_of(IPPROTO_TCP, "10.96.0.1", 80, "10.244.0.1", 9090), /* another port */
	};
	cleanup_free char *text = NULL;

	v[0].counted = v[1].counted = false;
	see_all(lab, v, ARRAY_SIZE(v), true);
	assert_int_equal(flows_print_strays(lab->flows), 2);
	text = printed(lab, true);
	assert_non_null(strstr(text, "http/tcp  10.244.0.7:8080  1      1            -        -"
				     "      not an endpoint any more\n"));
	assert_non_null(strstr(text, "\n\n"
				     "PORT      CLIENT           FRONT         BACKEND          "
				     "STATE        TIMEOUT  PACKETS  BYTES  NOTE\n"
				     "http/tcp  10.244.0.9:4000  10.96.0.1:80  10.244.0.1:9090  "
				     "ESTABLISHED  60s      -        -      "
				     "not an endpoint any more\n"));
}

static void a_port_that_is_its_own_node_port_counts_once(void **state)
{
	struct lab *lab = *state;
	const struct conntrack_flow v[] = {
		flow_of(IPPROTO_TCP, "10.96.0.1", 30080, "10.244.0.1", 8080),
		flow_of(IPPROTO_TCP, "192.0.2.11", 30080, "10.244.0.1", 8080),
	};

	lab->service->ports[0].port = 30080;
	see_all(lab, v, ARRAY_SIZE(v), false);
	assert_int_equal(lab->flows->backends[0]->flows, 2);
}

static void a_number_may_be_a_node_port_and_a_port_of_another(void **state)
{
	struct lab *lab = *state;
	struct service *other = build_service("default/other", "10.96.0.9");
	const struct conntrack_flow v[] = {
		flow_of(IPPROTO_TCP, "10.96.0.9", 30080, "10.244.0.8", 9090),
		flow_of(IPPROTO_TCP, "203.0.113.9", 30080, "10.244.0.8", 9090),
		flow_of(IPPROTO_TCP, "10.96.0.1", 30080, "10.244.0.1", 9091),
		flow_of(IPPROTO_TCP, "192.0.2.11", 30080, "10.244.0.1", 8080),
	};

	build_port(other, "http", PROTOCOL_TCP, 30080, 0);
	build_port(lab->service, "admin", PROTOCOL_TCP, 30080, 0);
	build_external_ip(other, "203.0.113.9");
	model_set_service(lab->model, other);
	see_all(lab, v, ARRAY_SIZE(v), false);
	assert_int_equal(flows_print_strays(lab->flows), 1); /* of "admin", which has no endpoint */
	assert_string_equal(lab->flows->backends[0]->port->name, "http");
	assert_int_equal(lab->flows->backends[0]->flows, 1);
}

static void only_the_ports_asked_for_are_looked_at(void **state)
{
	struct lab *lab = *state;
	const bool dns[] = {false, true};

	lab->flows = service_flows_new(lab->model, lab->service, dns, false);
	assert_int_equal(lab->flows->n_fronts, 2); /* cluster IP, external IP */
	assert_int_equal(service_flows_filter(lab->flows, 0)->protocol, IPPROTO_UDP);
	assert_int_equal(service_flows_filter(lab->flows, 0)->dst_port, 53);
	assert_int_equal(lab->flows->n_backends, 2);
}

static void states_have_names(void **state attr_unused)
{
	struct conntrack_flow flow = {.protocol = IPPROTO_TCP, .state = TCP_CONNTRACK_SYN_SENT};

	assert_string_equal(conntrack_state_name(conntrack_state_of(&flow)), "SYN_SENT");
	flow.state = 200;
	assert_string_equal(conntrack_state_name(conntrack_state_of(&flow)), "NONE");
	flow.protocol = IPPROTO_SCTP;
	assert_string_equal(conntrack_state_name(conntrack_state_of(&flow)), "NONE");
	flow.state = 4;
	assert_string_equal(conntrack_state_name(conntrack_state_of(&flow)), "ESTABLISHED");
	flow.protocol = IPPROTO_UDP;
	assert_string_equal(conntrack_state_name(conntrack_state_of(&flow)), "UNREPLIED");
	flow.status = IPS_SEEN_REPLY | IPS_ASSURED;
	assert_string_equal(conntrack_state_name(conntrack_state_of(&flow)), "ASSURED");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(flows_are_counted_by_backend_and_state, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_is_no_endpoint_any_more_is_marked, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_port_that_is_its_own_node_port_counts_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_number_may_be_a_node_port_and_a_port_of_another,
						setup, teardown),
		cmocka_unit_test_setup_teardown(only_the_ports_asked_for_are_looked_at, setup,
						teardown),
		cmocka_unit_test(states_have_names),
	};

	return cmocka_run_group_tests_name("service_flows", tests, NULL, NULL);
}
