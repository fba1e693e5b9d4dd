/* SPDX-License-Identifier: Apache-2.0 */

/* Which flows are stale, by what a model says before and after a change. */

#include <linux/netfilter/nf_conntrack_common.h>
#include <netinet/in.h>

#include "conntrack/stale_flows.h"
#include "kernel/conntrack.h"
#include "kernel/nfnetlink.h"
#include "plan/plan_store.h"
#include "plan_world.h"

#define DNS       "kube-system/dns"
#define TENANT    "aaa/evil"
#define CLUSTER   "10.96.0.10"
#define VIP       "1.2.3.4"
#define EXTERNAL  "5.6.7.8"
#define NODE_IP   "192.168.0.2"
#define POD       "10.244.0.5"
#define OTHER_POD "10.244.1.6"
#define NODE_PORT 30053

struct lab {
	struct world world;
	struct plan_store *store;   /* from the first sync on */
	struct plan_reader *reader; /* without one nothing is planned */
	struct stale_flows *flows;
};

static struct lab lab_new(enum terminate terminate)
{
	return (struct lab){.world = world_new(), .flows = stale_flows_new(FAMILY_IPV4, terminate)};
}

static void lab_done(struct lab *lab)
{
	stale_flows_free(lab->flows);
	plan_reader_free(lab->reader);
	plan_store_free(lab->store);
	world_done(&lab->world);
}

static void set_asking_service(struct lab *lab, enum protocol protocol, enum terminate terminate)
{
	struct service *service = build_service(DNS, CLUSTER);

	build_port(service, "dns", protocol, 53, NODE_PORT);
	build_vip(service, VIP);
	build_external_ip(service, EXTERNAL);
	service->terminate = (uint8_t)terminate;
	model_set_service(lab->world.model, service);
}

static void set_service(struct lab *lab, enum protocol protocol)
{
	set_asking_service(lab, protocol, TERMINATE_UNSET);
}

/* One endpoint, or with addr NULL none. */
static void set_endpoint(struct lab *lab, enum protocol protocol, const char *addr, int flags)
{
	struct draft *slice = build_slice(DNS "-1", "dns", FAMILY_IPV4);

	build_slice_port(slice, "dns", protocol, 5353);
	if (addr)
		build_endpoint(slice, addr, "node-b", flags);
	build_set_slice(lab->world.model, slice);
}

static const struct service *service_of(const void *store, const char *key)
{
	return plan_store_service(store, key);
}

static const struct service *owner_of(const void *store, enum protocol protocol,
				      const struct addr *addr, uint16_t port)
{
	struct destination destination = {.node_port = !addr, .protocol = protocol, .port = port};

	if (addr)
		destination.addr = *addr;
	return plan_store_owner(store, &destination);
}

/* A sync of all that changed; whether any flow can be stale. */
static bool synced(struct lab *lab)
{
	struct stale_flows_rules rules = {lab->world.model, service_of, owner_of, NULL};
	struct model_changes changes;
	bool any;

	if (!lab->store) {
		lab->store = plan_store_new(&lab->world.settings, lab->world.model, 1);
		lab->reader = plan_reader_new(lab->store);
	}
	rules.arg = lab->store;
	plan_store_update(lab->store, &changes);
	any = stale_flows_prepare(lab->flows, &rules, changes.services, changes.n_services);
	model_changes_done(&changes);
	return any;
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
	UDP_STALE(NODE_IP, NODE_PORT, POD);
	UDP_STAYS(CLUSTER, 53, OTHER_POD);
	UDP_STAYS(NODE_IP, NODE_PORT, OTHER_POD);
	UDP_STAYS(CLUSTER, 54, POD);
	UDP_STAYS("10.96.0.11", 53, POD);
	UDP_STAYS(NODE_IP, 53, POD);
	lab_done(&lab);
}

static void udp_that_came_before_any_endpoint_is_stale(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	synced(&lab);
	UDP_STALE(CLUSTER, 53, "");
	UDP_STALE(NODE_IP, NODE_PORT, "");
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
	UDP_STALE(NODE_IP, NODE_PORT, POD);
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
	UDP_STAYS(NODE_IP, NODE_PORT, POD);
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
	UDP_STALE(NODE_IP, NODE_PORT, POD);
	UDP_STAYS("203.0.113.9", NODE_PORT, "");        /* to another host */
	UDP_STAYS(NODE_IP, NODE_PORT, "");              /* nobody translated it */
	UDP_STAYS(NODE_IP, NODE_PORT, OTHER_POD);       /* a rule of another program did */
	UDP_STAYS("203.0.113.9", NODE_PORT, OTHER_POD); /* likewise */
	model_remove_service(lab.world.model, DNS);
	stale_flows_defer(lab.flows);
	assert_true(synced(&lab));
	UDP_STALE(NODE_IP, NODE_PORT, POD);
	UDP_STAYS(NODE_IP, NODE_PORT, OTHER_POD);
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
		assert_true(is_stale(&lab, numbers[i], NODE_IP, NODE_PORT, POD));
		assert_true(is_stale(&lab, numbers[i], NODE_IP, NODE_PORT, OTHER_POD));
		assert_true(is_stale(&lab, numbers[i], CLUSTER, 53, POD));
		stale_flows_defer(lab.flows);
		set_endpoint(&lab, protocols[i], POD, BUILD_READY); /* it is back */
		assert_true(synced(&lab));
		assert_false(is_stale(&lab, numbers[i], NODE_IP, NODE_PORT, POD));
		assert_true(is_stale(&lab, numbers[i], NODE_IP, NODE_PORT, OTHER_POD));
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
	assert_true(is_stale(&lab, IPPROTO_TCP, NODE_IP, NODE_PORT, POD));
	assert_false(is_stale(&lab, IPPROTO_TCP, NODE_IP, NODE_PORT, "10.244.3.3"));
	assert_false(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, OTHER_POD));
	lab_done(&lab);
}

static void udp_to_a_service_that_went_away_is_stale(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	synced(&lab);
	model_remove_service(lab.world.model, DNS);
	assert_true(synced(&lab));
	UDP_STALE(CLUSTER, 53, POD);
	UDP_STALE(VIP, 53, POD);
	UDP_STALE(NODE_IP, NODE_PORT, POD);
	UDP_STAYS(CLUSTER, 53, "");
	assert_false(synced(&lab)); /* nothing is remembered */
	lab_done(&lab);
}

static void udp_to_an_address_that_moved_is_judged_by_the_new_owner(void **state attr_unused)
{
	struct service *service = build_service("kube-system/new", CLUSTER);
	struct draft *slice = build_slice("kube-system/new-1", "new", FAMILY_IPV4);
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	synced(&lab);
	model_remove_service(lab.world.model, DNS);
	build_port(service, "dns", PROTOCOL_UDP, 53, 0);
	model_set_service(lab.world.model, service);
	build_slice_port(slice, "dns", PROTOCOL_UDP, 5353);
	build_endpoint(slice, OTHER_POD, "node-b", BUILD_READY);
	build_set_slice(lab.world.model, slice);
	assert_true(synced(&lab));
	UDP_STALE(CLUSTER, 53, POD);
	UDP_STAYS(CLUSTER, 53, OTHER_POD);
	UDP_STALE(NODE_IP, NODE_PORT, POD);
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
	assert_true(is_stale(&lab, IPPROTO_TCP, NODE_IP, NODE_PORT, POD));
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
	assert_false(is_stale(&lab, IPPROTO_TCP, NODE_IP, NODE_PORT, OTHER_POD)); /* whose? */
	assert_false(is_stale(&lab, IPPROTO_TCP, NODE_IP, 53, OTHER_POD));
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
	model_remove_service(lab.world.model, DNS);
	assert_true(synced(&lab));
	assert_true(stale_flows_delete(lab.flows, &line, &err) < 0);
	assert_true(synced(&lab)); /* of nothing */
	UDP_STALE(CLUSTER, 53, POD);
	UDP_STALE(NODE_IP, NODE_PORT, POD);
	/* it is back: what was decided about its addresses counts no longer */
	set_service(&lab, PROTOCOL_UDP);
	assert_true(synced(&lab));
	UDP_STAYS(CLUSTER, 53, POD);
	UDP_STALE(CLUSTER, 53, OTHER_POD);
	nfnetlink_conn_done(&line);
	lab_done(&lab);
}

/* -- a tenant who asks for what is another one's */

/* DNS' addresses, port and NodePort; an older Service, which wants connections cut. */
static void set_tenant(struct lab *lab, enum protocol protocol)
{
	struct service *service = build_service(TENANT, "10.96.0.66");

	build_port(service, "dns", protocol, 53, NODE_PORT);
	build_external_ip(service, CLUSTER);
	build_external_ip(service, EXTERNAL);
	build_vip(service, CLUSTER);
	build_vip(service, VIP);
	service->created_s = 2;
	service->terminate = TERMINATE_ENDPOINT_REMOVED;
	model_set_service(lab->world.model, service);
}

static void set_tenant_endpoint(struct lab *lab, enum protocol protocol, const char *addr)
{
	struct draft *slice = build_slice(TENANT "-1", "evil", FAMILY_IPV4);

	build_slice_port(slice, "dns", protocol, 5353);
	if (addr)
		build_endpoint(slice, addr, "node-b", BUILD_READY);
	build_set_slice(lab->world.model, slice);
}

static const struct {
	enum protocol protocol;
	uint8_t number;
} watched[] = {{PROTOCOL_UDP, IPPROTO_UDP}, {PROTOCOL_TCP, IPPROTO_TCP}};

/* Of DNS, at all its fronts. */
static size_t count_stale(const struct lab *lab, uint8_t protocol, const char *to)
{
	static const char *const addresses[] = {CLUSTER, VIP, EXTERNAL};
	size_t n = is_stale(lab, protocol, NODE_IP, NODE_PORT, to);

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		n += is_stale(lab, protocol, addresses[i], 53, to);
	return n;
}

static void a_tenant_has_no_flow_of_others_forgotten(void **state attr_unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++) {
		struct lab lab = lab_new(TERMINATE_NONE);
		enum protocol protocol = watched[i].protocol;

		set_service(&lab, protocol); /* which counts as the oldest */
		set_endpoint(&lab, protocol, POD, BUILD_READY);
		synced(&lab);
		for (size_t step = 0; step < 5; step++) {
			if (step == 0)
				set_tenant(&lab, protocol);
			if (step < 4)
				set_tenant_endpoint(
					&lab, protocol,
					(const char *[]){NULL, OTHER_POD, POD, NULL}[step]);
			else
				model_remove_service(lab.world.model, TENANT);
			synced(&lab);
			assert_int_equal(count_stale(&lab, watched[i].number, POD), 0);
			assert_false(is_stale(&lab, watched[i].number, NODE_IP, NODE_PORT, ""));
			if (step == 1)
				assert_true(
					is_stale(&lab, watched[i].number, "10.96.0.66", 53, POD));
			stale_flows_defer(lab.flows);
		}
		lab_done(&lab);
	}
}

static void external_ips_that_a_gate_hides_do_not_count(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_ENDPOINT_REMOVED);

	lab.world.settings.allow_external_ips = false;
	set_service(&lab, PROTOCOL_TCP);
	set_endpoint(&lab, PROTOCOL_TCP, POD, BUILD_READY);
	assert_true(synced(&lab));
	assert_true(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, OTHER_POD));
	assert_false(is_stale(&lab, IPPROTO_TCP, EXTERNAL, 53, OTHER_POD));
	lab_done(&lab);
}

/* The one that waited has them now, although nothing of it changed, and loses them again. */
static void fronts_that_move_are_judged_by_whose_they_are(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	set_tenant(&lab, PROTOCOL_UDP);
	set_tenant_endpoint(&lab, PROTOCOL_UDP, OTHER_POD);
	synced(&lab);
	assert_int_equal(count_stale(&lab, IPPROTO_UDP, OTHER_POD), 4);
	model_remove_service(lab.world.model, DNS);
	synced(&lab);
	assert_int_equal(count_stale(&lab, IPPROTO_UDP, POD), 4);
	assert_int_equal(count_stale(&lab, IPPROTO_UDP, OTHER_POD), 0);
	set_service(&lab, PROTOCOL_UDP);
	synced(&lab);
	assert_int_equal(count_stale(&lab, IPPROTO_UDP, OTHER_POD), 4);
	assert_int_equal(count_stale(&lab, IPPROTO_UDP, POD), 0);
	model_remove_service(lab.world.model, TENANT);
	synced(&lab);
	assert_int_equal(count_stale(&lab, IPPROTO_UDP, POD), 0);
	lab_done(&lab);
}

/* What was to be cut while it was the tenant's. */
static void what_waits_does_not_concern_the_next_owner(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	set_tenant(&lab, PROTOCOL_TCP);
	set_tenant_endpoint(&lab, PROTOCOL_TCP, POD);
	synced(&lab);
	assert_int_equal(count_stale(&lab, IPPROTO_TCP, OTHER_POD), 3);
	stale_flows_defer(lab.flows);
	set_tenant_endpoint(&lab, PROTOCOL_TCP, NULL);
	synced(&lab);
	assert_int_equal(count_stale(&lab, IPPROTO_TCP, POD), 4);
	stale_flows_defer(lab.flows);
	set_service(&lab, PROTOCOL_TCP);
	set_endpoint(&lab, PROTOCOL_TCP, POD, BUILD_READY);
	synced(&lab);
	assert_int_equal(count_stale(&lab, IPPROTO_TCP, OTHER_POD), 0);
	assert_int_equal(count_stale(&lab, IPPROTO_TCP, POD), 0);
	assert_true(is_stale(&lab, IPPROTO_TCP, "10.96.0.66", 53, POD));
	lab_done(&lab);
}

/* -- while flows cannot be deleted */

static void endpoints_that_left_are_remembered_up_to_a_bound(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_ENDPOINT_REMOVED);
	char addr[ADDR_TEXT_MAX];

	set_service(&lab, PROTOCOL_TCP);
	for (int i = 0; i < 1200; i++) {
		snprintf(addr, sizeof(addr), "10.245.%d.%d", i / 250, i % 250);
		set_endpoint(&lab, PROTOCOL_TCP, addr, BUILD_READY);
		synced(&lab);
		stale_flows_defer(lab.flows);
		if (i == 1000) /* as many are no problem */
			assert_true(is_stale(&lab, IPPROTO_TCP, NODE_IP, NODE_PORT, "10.245.0.0"));
	}
	assert_false(is_stale(&lab, IPPROTO_TCP, NODE_IP, NODE_PORT, "10.245.0.0"));
	assert_true(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, "10.245.0.0")); /* as of a fresh one */
	assert_false(is_stale(&lab, IPPROTO_TCP, CLUSTER, 53, addr));
	lab_done(&lab);
}

static void set_external_ips(struct lab *lab, int number, int n)
{
	struct service *service = build_service(DNS, CLUSTER);
	char addr[ADDR_TEXT_MAX];

	build_port(service, "dns", PROTOCOL_UDP, 53, 0);
	service->external_ips = arena_array(service->arena, (size_t)n, sizeof(struct addr));
	for (int i = 0; i < n; i++) {
		snprintf(addr, sizeof(addr), "198.%d.%d.%d", number, i / 250, i % 250);
		service->external_ips[service->n_external_ips++] = build_addr(addr);
	}
	model_set_service(lab->world.model, service);
}

static void addresses_that_are_gone_are_remembered_up_to_a_bound(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	for (int i = 0; i < 13; i++) {
		set_external_ips(&lab, i, 10000);
		synced(&lab);
		stale_flows_defer(lab.flows);
		if (i == 9)
			UDP_STALE("198.0.0.1", 53, POD);
	}
	UDP_STAYS("198.0.0.1", 53, POD);
	UDP_STALE("198.11.0.1", 53, POD);
	UDP_STALE("198.12.0.1", 53, POD);
	lab_done(&lab);
}

static void node_port_of_an_earlier_life_lets_go_of_its_flows(void **state attr_unused)
{
	struct lab lab = lab_new(TERMINATE_NONE);

	set_service(&lab, PROTOCOL_UDP);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	synced(&lab);
	stale_flows_defer(lab.flows);
	model_remove_service(lab.world.model, DNS);
	set_endpoint(&lab, PROTOCOL_UDP, NULL, 0);
	synced(&lab);
	UDP_STALE(NODE_IP, NODE_PORT, POD);
	stale_flows_defer(lab.flows);
	set_service(&lab, PROTOCOL_UDP);
	synced(&lab);
	UDP_STALE(NODE_IP, NODE_PORT, POD);
	UDP_STAYS(NODE_IP, NODE_PORT, OTHER_POD);
	stale_flows_defer(lab.flows);
	set_endpoint(&lab, PROTOCOL_UDP, POD, BUILD_READY);
	synced(&lab);
	UDP_STAYS(NODE_IP, NODE_PORT, POD);
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
		cmocka_unit_test(a_tenant_has_no_flow_of_others_forgotten),
		cmocka_unit_test(external_ips_that_a_gate_hides_do_not_count),
		cmocka_unit_test(fronts_that_move_are_judged_by_whose_they_are),
		cmocka_unit_test(what_waits_does_not_concern_the_next_owner),
		cmocka_unit_test(endpoints_that_left_are_remembered_up_to_a_bound),
		cmocka_unit_test(addresses_that_are_gone_are_remembered_up_to_a_bound),
		cmocka_unit_test(node_port_of_an_earlier_life_lets_go_of_its_flows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
