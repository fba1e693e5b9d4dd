/* SPDX-License-Identifier: Apache-2.0 */

/* Which flows are stale, by what a model says before and after a change. */

#include <linux/netfilter/nf_conntrack_common.h>
#include <netinet/in.h>

#include "build.h"
#include "conntrack/stale_flows.h"
#include "kernel/conntrack.h"
#include "kernel/nfnetlink.h"

#define KEY       "kube-system/dns"
#define CLUSTER   "10.96.0.10"
#define VIP       "1.2.3.4"
#define EXTERNAL  "5.6.7.8"
#define NODE      "192.168.0.2"
#define POD       "10.244.0.5"
#define OTHER_POD "10.244.1.6"
#define NODE_PORT 30053

struct lab {
	struct model *model;
	struct stale_flows *flows;
};

static struct lab lab_new(enum terminate terminate)
{
	return (struct lab){model_new("node-a", 0), stale_flows_new(FAMILY_IPV4, terminate)};
}

static void lab_done(struct lab *lab)
{
	stale_flows_free(lab->flows);
	model_free(lab->model);
}

static void set_asking_service(struct lab *lab, enum protocol protocol, enum terminate terminate)
{
	struct service *service = build_service(KEY, CLUSTER);

	build_port(service, "dns", protocol, 53, NODE_PORT);
	build_vip(service, VIP);
	build_external_ip(service, EXTERNAL);
	service->terminate = (uint8_t)terminate;
	model_set_service(lab->model, service);
}

static void set_service(struct lab *lab, enum protocol protocol)
{
	set_asking_service(lab, protocol, TERMINATE_UNSET);
}

/* One endpoint, or with addr NULL none. */
static void set_endpoint(struct lab *lab, enum protocol protocol, const char *addr, int flags)
{
	struct draft *slice = build_slice(KEY "-1", "dns", FAMILY_IPV4);

	build_slice_port(slice, "dns", protocol, 5353);
	if (addr)
		build_endpoint(slice, addr, "node-b", flags);
	build_set_slice(lab->model, slice);
}

/* A sync that was about the service; whether any flow can be stale. */
static bool synced(struct lab *lab)
{
	static const char *const keys[] = {KEY};
	struct model_changes changes;

	model_take_changes(lab->model, FAMILY_IPV4, &changes);
	model_changes_done(&changes);
	return stale_flows_prepare(lab->flows, lab->model, keys, 1);
}

/* A flow to dst:port that goes to `to` ("": it was never translated). */
static bool is_stale(const struct lab *lab, uint8_t protocol, const char *dst, uint16_t port,
		     const char *to)
{
	struct conntrack_flow flow = {.protocol = protocol};

	flow.original.dst = build_addr(dst);
	flow.original.dst_port = port;
	flow.reply.src = *to ? build_addr(to) : flow.original.dst;
	flow.reply.src_port = *to ? 5353 : port;
	flow.status = *to ? IPS_DST_NAT : 0;
	return stale_flows_judge(lab->flows, &flow);
}

#define UDP_STALE(dst, port, to) assert_true(is_stale(&lab, IPPROTO_UDP, dst, port, to))
#define UDP_STAYS(dst, port, to) assert_false(is_stale(&lab, IPPROTO_UDP, dst, port, to))

static void udp_to_an_endpoint_that_is_gone_is_stale(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	assert_true(synced(&lab));
	UDP_STAYS(CLUSTER, 53, POD);
	set_endpoint(&lab, PROTOCOL_UDP, OTHER_POD, BUILD_READY);
	assert_true(synced(&lab));
	UDP_STALE(CLUSTER, 53, POD);
	UDP_STALE(VIP, 53, POD);
	UDP_STALE(EXTERNAL, 53, POD);
	UDP_STALE(NODE, NODE_PORT, POD);
	UDP_STAYS(CLUSTER, 53, OTHER_POD);
	UDP_STAYS(NODE, NODE_PORT, OTHER_POD);
	UDP_STAYS(CLUSTER, 54, POD);
	UDP_STAYS("10.96.0.11", 53, POD);
	UDP_STAYS(NODE, 53, POD);
	lab_done(&lab);
}

static void udp_that_came_before_any_endpoint_is_stale(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	synced(&lab);
	UDP_STALE(CLUSTER, 53, "");
	UDP_STALE(NODE, NODE_PORT, "");
	lab_done(&lab);
}

static void endpoints_that_serve_keep_their_flows(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_SERVING_TERMINATING);
	synced(&lab);
	UDP_STAYS(CLUSTER, 53, POD);
	lab_done(&lab);
}

static void udp_without_any_endpoint_left_is_stale(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	synced(&lab);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_TERMINATING);
	assert_true(synced(&lab));
	UDP_STALE(CLUSTER, 53, POD);
	UDP_STALE(NODE, NODE_PORT, POD);
	UDP_STALE(CLUSTER, 53, ""); /* its next packet is refused by a rule */
	lab_done(&lab);
}

/* TestServiceWithoutEndpoints of kube-proxy, where the Service never had one. */
static void service_without_endpoints(void **state attr_unused)
{
	static const char *const fronts[] = {CLUSTER, VIP, EXTERNAL};
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	assert_true(synced(&lab));
	for (size_t i = 0; i < ARRAY_SIZE(fronts); i++) {
		UDP_STALE(fronts[i], 53, POD);
		UDP_STALE(fronts[i], 53, OTHER_POD);
		UDP_STALE(fronts[i], 53, "");
		UDP_STAYS(fronts[i], 54, POD);
		assert_false(is_stale(&lab, IPPROTO_TCP, fronts[i], 53, POD));
	}
	UDP_STAYS(NODE, NODE_PORT, POD);
	lab_done(&lab);
}

/* The number of a NodePort is a port of other hosts, too, and of rules of other programs. */
static void node_port_without_endpoints_lets_go_only_of_its_own_flows(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	synced(&lab);
	set_endpoint(&lab, PROTOCOL_UDP, NULL, 0);
	assert_true(synced(&lab));
	UDP_STALE(NODE, NODE_PORT, POD);
	UDP_STAYS("203.0.113.9", NODE_PORT, "");        /* to another host */
	UDP_STAYS(NODE, NODE_PORT, "");                 /* nobody translated it */
	UDP_STAYS(NODE, NODE_PORT, OTHER_POD);          /* a rule of another program did */
	UDP_STAYS("203.0.113.9", NODE_PORT, OTHER_POD); /* likewise */
	model_remove_service(lab.model, KEY);
	stale_flows_defer(lab.flows);
	assert_true(synced(&lab));
	UDP_STALE(NODE, NODE_PORT, POD);
	UDP_STAYS(NODE, NODE_PORT, OTHER_POD);
	UDP_STAYS("203.0.113.9", NODE_PORT, "");
	lab_done(&lab);
}

static void endpoints_that_leave_one_after_the_other_before_flows_are_looked_for_all_count(
	void **state attr_unused)
{
	static const uint8_t numbers[] = {IPPROTO_UDP, IPPROTO_TCP};
	static const enum protocol protocols[] = {PROTOCOL_UDP, PROTOCOL_TCP};

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		struct lab lab = lab_new(TERMINATE_ENDPOINT_REMOVED);

		set_service(&lab, protocols[i]);
		set_endpoint(&lab, protocols[i], POD, BUILD_READY);
		synced(&lab); /* flows are looked for */
		set_endpoint(&lab, protocols[i], OTHER_POD, BUILD_READY);
		synced(&lab);
		stale_flows_defer(lab.flows);
		set_endpoint(&lab, protocols[i], NULL, 0);
		assert_true(synced(&lab));
		assert_true(is_stale(&lab, numbers[i], NODE, NODE_PORT, POD));
		assert_true(is_stale(&lab, numbers[i], NODE, NODE_PORT, OTHER_POD));
		assert_true(is_stale(&lab, numbers[i], CLUSTER, 53, POD));
		stale_flows_defer(lab.flows);
		set_endpoint(&lab, protocols[i], POD, BUILD_READY); /* it is back */
		assert_true(synced(&lab));
		assert_false(is_stale(&lab, numbers[i], NODE, NODE_PORT, POD));
		assert_true(is_stale(&lab, numbers[i], NODE, NODE_PORT, OTHER_POD));
		lab_done(&lab);
	}
}

static void tcp_of_a_fresh_service_is_cut_although_it_changes_before_flows_are_looked_for(
	void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_ENDPOINT_REMOVED);

	set_service(&lab, PROTOCOL_TCP);
	set_endpoint(&lab, PROTOCOL_TCP, POD, BUILD_READY);
	assert_true(synced(&lab));
	stale_flows_defer(lab.flows);
	set_endpoint(&lab, PROTOCOL_TCP, OTHER_POD, BUILD_READY);
	assert_true(synced(&lab));
	assert_true(
		is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, "10.244.3.3")); /* of an earlier life */
	assert_true(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, POD));
	assert_true(is_stale(&lab, IPPROTO_TCP, NODE, NODE_PORT, POD));
	assert_false(is_stale(&lab, IPPROTO_TCP, NODE, NODE_PORT, "10.244.3.3"));
	assert_false(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, OTHER_POD));
	lab_done(&lab);
}

static void udp_to_a_service_that_went_away_is_stale(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	synced(&lab);
	model_remove_service(lab.model, KEY);
	assert_true(synced(&lab));
	UDP_STALE(CLUSTER, 53, POD);
	UDP_STALE(VIP, 53, POD);
	UDP_STALE(NODE, NODE_PORT, POD);
	UDP_STAYS(CLUSTER, 53, "");
	assert_false(synced(&lab)); /* nothing is remembered */
	lab_done(&lab);
}

static void udp_to_an_address_that_moved_is_judged_by_the_new_owner(void **state attr_unused)
{
	static const char *const keys[] = {KEY, "kube-system/new"};
	struct service *service = build_service(keys[1], CLUSTER);
	struct draft *slice = build_slice("kube-system/new-1", "new", FAMILY_IPV4);
	struct lab lab = lab_new(TERMINATE_NONE);
	struct model_changes changes;

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	synced(&lab);
	model_remove_service(lab.model, KEY);
	build_port(service, "dns", PROTOCOL_UDP, 53, 0);
	model_set_service(lab.model, service);
	build_slice_port(slice, "dns", PROTOCOL_UDP, 5353);
	build_endpoint(slice, OTHER_POD, "node-b", BUILD_READY);
	build_set_slice(lab.model, slice);
	model_take_changes(lab.model, FAMILY_IPV4, &changes);
	model_changes_done(&changes);
	assert_true(stale_flows_prepare(lab.flows, lab.model, keys, 2));
	UDP_STALE(CLUSTER, 53, POD);
	UDP_STAYS(CLUSTER, 53, OTHER_POD);
	UDP_STALE(NODE, NODE_PORT, POD);
	lab_done(&lab);
}

static void tcp_and_sctp_are_left_alone(void **state attr_unused)
{
	static const enum protocol protocols[] = {PROTOCOL_TCP, PROTOCOL_SCTP};

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		struct lab lab = lab_new(TERMINATE_NONE);

		set_service(&lab, protocols[i]);
		set_endpoint(&lab, protocols[i], POD, BUILD_READY);
		assert_false(synced(&lab));
		set_endpoint(&lab, protocols[i], NULL, 0);
		assert_false(synced(&lab));
		assert_false(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, POD));
		lab_done(&lab);
	}
}

static void tcp_to_an_endpoint_that_left_is_cut_when_asked_for(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_ENDPOINT_REMOVED);

	set_service(&lab, PROTOCOL_TCP);
	set_endpoint(&lab, PROTOCOL_TCP, POD, BUILD_READY);
	synced(&lab);
	set_endpoint(&lab, PROTOCOL_TCP, POD, BUILD_TERMINATING);
	assert_false(synced(&lab)); /* it may still finish */
	set_endpoint(&lab, PROTOCOL_TCP, OTHER_POD, BUILD_READY);
	assert_true(synced(&lab));
	assert_true(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, POD));
	assert_true(is_stale(&lab, IPPROTO_TCP, NODE, NODE_PORT, POD));
	assert_false(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, OTHER_POD));
	assert_false(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, ""));
	assert_false(is_stale(&lab, IPPROTO_UDP, CLUSTER, 53, POD));
	assert_false(synced(&lab)); /* once */
	lab_done(&lab);
}

static void tcp_of_a_service_seen_for_the_first_time_is_cut_where_its_rules_lead_elsewhere(
	void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_ENDPOINT_REMOVED);

	set_service(&lab, PROTOCOL_TCP);
	set_endpoint(&lab, PROTOCOL_TCP, POD, BUILD_TERMINATING);
	assert_true(synced(&lab));
	assert_true(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, OTHER_POD));
	assert_true(is_stale(&lab, IPPROTO_TCP, VIP, 53, OTHER_POD));
	assert_false(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, POD));
	assert_false(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, ""));
	assert_false(is_stale(&lab, IPPROTO_TCP, NODE, NODE_PORT, OTHER_POD)); /* whose? */
	assert_false(is_stale(&lab, IPPROTO_TCP, NODE, 53, OTHER_POD));
	lab_done(&lab);
}

static void a_service_says_itself_whether_tcp_is_cut(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);
	struct lab other = lab_new(TERMINATE_ENDPOINT_REMOVED);

	set_asking_service(&lab, PROTOCOL_TCP, TERMINATE_ENDPOINT_REMOVED);
	set_endpoint(&lab, PROTOCOL_TCP, POD, BUILD_READY);
	synced(&lab);
	set_endpoint(&lab, PROTOCOL_TCP, NULL, 0);
	assert_true(synced(&lab));
	assert_true(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, POD));
	set_asking_service(&other, PROTOCOL_TCP, TERMINATE_NONE);
	set_endpoint(&other, PROTOCOL_TCP, POD, BUILD_READY);
	assert_false(synced(&other));
	set_endpoint(&other, PROTOCOL_TCP, NULL, 0);
	assert_false(synced(&other));
	lab_done(&lab);
	lab_done(&other);
}

static void what_cannot_be_deleted_is_tried_again(void **state attr_unused)
{
	/* a part of the kernel that knows nothing of flows */
	struct nfnetlink_conn line = {.socket = mnl_socket_open(NETLINK_ROUTE)};
	struct lab lab = lab_new(TERMINATE_NONE);
	struct err err;

	assert_int_equal(mnl_socket_bind(line.socket, 0, MNL_SOCKET_AUTOPID), 0);
	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	assert_true(synced(&lab));
	assert_true(stale_flows_delete(lab.flows, &line, &err) < 0);
	model_remove_service(lab.model, KEY);
	assert_true(synced(&lab));
	assert_true(stale_flows_delete(lab.flows, &line, &err) < 0);
	assert_true(stale_flows_prepare(lab.flows, lab.model, NULL, 0));
	UDP_STALE(CLUSTER, 53, POD);
	UDP_STALE(NODE, NODE_PORT, POD);
	/* it is back: what was decided about its addresses counts no longer */
	set_service(&lab, PROTOCOL_UDP);
	assert_true(synced(&lab));
	UDP_STAYS(CLUSTER, 53, POD);
	UDP_STALE(CLUSTER, 53, OTHER_POD);
	nfnetlink_conn_done(&line);
	lab_done(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(udp_to_an_endpoint_that_is_gone_is_stale),
		cmocka_unit_test(udp_that_came_before_any_endpoint_is_stale),
		cmocka_unit_test(endpoints_that_serve_keep_their_flows),
		cmocka_unit_test(udp_without_any_endpoint_left_is_stale),
		cmocka_unit_test(service_without_endpoints),
		cmocka_unit_test(node_port_without_endpoints_lets_go_only_of_its_own_flows),
		cmocka_unit_test(
			endpoints_that_leave_one_after_the_other_before_flows_are_looked_for_all_count),
		cmocka_unit_test(
			tcp_of_a_fresh_service_is_cut_although_it_changes_before_flows_are_looked_for),
		cmocka_unit_test(udp_to_a_service_that_went_away_is_stale),
		cmocka_unit_test(udp_to_an_address_that_moved_is_judged_by_the_new_owner),
		cmocka_unit_test(tcp_and_sctp_are_left_alone),
		cmocka_unit_test(tcp_to_an_endpoint_that_left_is_cut_when_asked_for),
		cmocka_unit_test(
			tcp_of_a_service_seen_for_the_first_time_is_cut_where_its_rules_lead_elsewhere),
		cmocka_unit_test(a_service_says_itself_whether_tcp_is_cut),
		cmocka_unit_test(what_cannot_be_deleted_is_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
