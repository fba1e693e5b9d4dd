/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Services and slices go into a real model; the plans of the service "ns1/svc1" are looked at.
 * Where a test speaks of traffic, it asks what a backend would be told: the endpoints, REJECT or
 * DROP.
 */
#include <stdio.h>

#include "plan_world.h"

#define REJECT "REJECT"
#define DROP   "DROP"

static void print_list(const struct port_plan *port, const struct index_list *list, char *out,
		       size_t size)
{
	char one[ADDR_PORT_TEXT_MAX];
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < list->n; i++) {
		const struct endpoint *endpoint = &port->endpoints->v[list->v[i]];

		addr_port_print(&endpoint->addr, endpoint->port, one);
		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "", one);
	}
}

static const char *fate(const struct port_plan *port, enum plan_refusal refusal, bool local)
{
	static char text[512];

	if (refusal != PLAN_SERVED)
		return refusal == PLAN_DROP ? DROP : REJECT;
	assert_true(local ? port->use_local_group : port->use_cluster_group);
	print_list(port, local ? &port->use.local : &port->use.cluster, text, sizeof(text));
	return text;
}

/* Where traffic to the cluster IP goes. */
static const char *internal(const struct port_plan *port)
{
	return fate(port, port->internal, port->service->internal_local);
}

/* Where traffic from outside to any external address goes. */
static const char *external(const struct port_plan *port)
{
	return fate(port, port->external, port->service->external_local);
}

/* Where pods and the node itself get to by an external address: the short circuit. */
static const char *inside_out(const struct port_plan *port)
{
	assert_true(port->use_external);
	return fate(port, PLAN_SERVED, false);
}

static void assert_traffic(struct world *world, const char *to_cluster_ip, const char *from_outside)
{
	struct service_plan *plan = make_plan(world);

	assert_int_equal(plan->n_ports, 1);
	assert_string_equal(internal(&plan->ports[0]), to_cluster_ip);
	assert_string_equal(external(&plan->ports[0]), from_outside);
	service_plan_free(plan);
}

/* --- Traffic policies --- */

static struct service *balanced_service(bool external_local)
{
	struct service *service = build_service(KEY, "172.30.0.41");

	build_port(service, "", PROTOCOL_TCP, 80, 3001);
	build_external_ip(service, "192.168.99.11");
	build_vip(service, "1.2.3.4");
	service->external_local = external_local;
	return service;
}

static struct service_plan *plan_with_two_endpoints(struct world *world, bool external_local)
{
	struct slice *slice = new_slice();

	build_endpoint(slice, "10.180.0.1", NULL, BUILD_READY);
	build_endpoint(slice, "10.180.2.1", NODE, BUILD_READY);
	model_set_service(world->model, balanced_service(external_local));
	model_set_slice(world->model, slice);
	return make_plan(world);
}

static void plan_external_traffic_policy_local(void **state attr_unused)
{
	struct world world = world_new();
	struct service_plan *plan = plan_with_two_endpoints(&world, true);
	const struct port_plan *port = &plan->ports[0];

	assert_string_equal(internal(port), "10.180.0.1:80 10.180.2.1:80");
	assert_string_equal(inside_out(port), "10.180.0.1:80 10.180.2.1:80");
	assert_string_equal(external(port), "10.180.2.1:80");
	assert_int_equal(port->n_external_ips, 1);
	assert_int_equal(port->n_vips, 1);
	service_plan_free(plan);
	world_done(&world);
}

static void plan_external_traffic_policy_cluster(void **state attr_unused)
{
	struct world world = world_new();
	struct service_plan *plan = plan_with_two_endpoints(&world, false);
	const struct port_plan *port = &plan->ports[0];

	assert_string_equal(internal(port), "10.180.0.1:80 10.180.2.1:80");
	assert_string_equal(inside_out(port), "10.180.0.1:80 10.180.2.1:80");
	assert_string_equal(external(port), "10.180.0.1:80 10.180.2.1:80");
	assert_false(port->use_local_group);
	service_plan_free(plan);
	world_done(&world);
}

/* Only remote endpoints: outsiders are dropped, pods and the node still get there. */
static void plan_external_traffic_policy_local_only_remote(void **state attr_unused)
{
	struct world world = world_new();
	struct slice *slice = new_slice();
	struct service_plan *plan;

	build_endpoint(slice, "10.180.0.1", OTHER, BUILD_READY);
	model_set_service(world.model, balanced_service(true));
	model_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_string_equal(internal(&plan->ports[0]), "10.180.0.1:80");
	assert_string_equal(external(&plan->ports[0]), DROP);
	assert_string_equal(inside_out(&plan->ports[0]), "10.180.0.1:80");
	service_plan_free(plan);
	world_done(&world);
}

/* Three endpoints on the nodes named; then the slice goes. */
static void check_internal_policy(bool local, const char *const nodes[3], const char *expected)
{
	static const char *const ips[] = {"10.0.1.1", "10.0.1.2", "10.0.1.3"};
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct slice *slice = new_slice();
	struct service_plan *plan;

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	service->internal_local = local;
	for (size_t i = 0; i < 3; i++)
		build_endpoint(slice, ips[i], nodes[i], BUILD_READY);
	model_set_service(world.model, service);
	model_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_string_equal(internal(&plan->ports[0]), expected);
	assert_false(plan->ports[0].use_external);
	service_plan_free(plan);

	model_remove_slice(world.model, "ns1/svc1-1");
	plan = make_plan(&world);
	assert_string_equal(internal(&plan->ports[0]), REJECT);
	service_plan_free(plan);
	world_done(&world);
}

static void plan_internal_traffic_policy_cluster(void **state attr_unused)
{
	check_internal_policy(false, (const char *[]){NODE, "node1", "node2"},
			      "10.0.1.1:80 10.0.1.2:80 10.0.1.3:80");
}

static void plan_internal_traffic_policy_local_one_local(void **state attr_unused)
{
	check_internal_policy(true, (const char *[]){NODE, "node1", "node2"}, "10.0.1.1:80");
}

static void plan_internal_traffic_policy_local_several_local(void **state attr_unused)
{
	check_internal_policy(true, (const char *[]){NODE, NODE, "node2"},
			      "10.0.1.1:80 10.0.1.2:80");
}

static void plan_internal_traffic_policy_local_only_remote(void **state attr_unused)
{
	check_internal_policy(true, (const char *[]){"node0", "node1", "node2"}, DROP);
}

/* ITP Local with a node port and ETP Cluster needs both groups. */
static void plan_internal_local_external_cluster(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct slice *slice = new_slice();

	build_port(service, "", PROTOCOL_TCP, 80, 30080);
	service->internal_local = true;
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	build_endpoint(slice, "10.0.1.2", OTHER, BUILD_READY);
	model_set_service(world.model, service);
	model_set_slice(world.model, slice);
	assert_traffic(&world, "10.0.1.1:80", "10.0.1.1:80 10.0.1.2:80");
	world_done(&world);
}

/* ETP Local means nothing to a service that has no external address of the family. */
static void plan_external_local_without_external_address_is_cluster(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct slice *slice = new_slice();
	struct service_plan *plan;

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	service->external_local = true;
	build_external_ip(service, "2001:db8::7");
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	build_endpoint(slice, "10.0.1.2", OTHER, BUILD_READY);
	model_set_service(world.model, service);
	model_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_string_equal(internal(&plan->ports[0]), "10.0.1.1:80 10.0.1.2:80");
	assert_false(plan->ports[0].use_local_group);
	assert_false(plan->ports[0].use_external);
	service_plan_free(plan);
	world_done(&world);
}

/* --- Terminating endpoints --- */

struct terminating_case {
	struct {
		const char *ip, *node;
		unsigned int flags;
	} endpoints[5];
	const char *to_cluster_ip, *from_outside;
};

static void check_terminating(bool external_local, const struct terminating_case *c)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct slice *slice = new_slice();

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	build_vip(service, "1.2.3.4");
	service->external_local = external_local;
	for (size_t i = 0; i < ARRAY_SIZE(c->endpoints) && c->endpoints[i].ip; i++)
		build_endpoint(slice, c->endpoints[i].ip, c->endpoints[i].node,
			       c->endpoints[i].flags);
	model_set_service(world.model, service);
	model_set_slice(world.model, slice);
	assert_traffic(&world, c->to_cluster_ip, c->from_outside);
	model_remove_slice(world.model, "ns1/svc1-1");
	assert_traffic(&world, REJECT, REJECT);
	world_done(&world);
}

static void plan_terminating_policy_local_ready_exist(void **state attr_unused)
{
	static const struct terminating_case c = {
		{{"10.0.1.1", NODE, BUILD_READY},
		 {"10.0.1.2", NODE, BUILD_READY},
		 {"10.0.1.3", NODE, BUILD_SERVING_TERMINATING},
		 {"10.0.1.4", NODE, BUILD_TERMINATING},
		 {"10.0.1.5", OTHER, BUILD_READY}},
		"10.0.1.1:80 10.0.1.2:80 10.0.1.5:80",
		"10.0.1.1:80 10.0.1.2:80",
	};

	check_terminating(true, &c);
}

static void plan_terminating_policy_local_only_terminating(void **state attr_unused)
{
	static const struct terminating_case c = {
		{{"10.0.1.2", NODE, BUILD_SERVING_TERMINATING},
		 {"10.0.1.3", NODE, BUILD_SERVING_TERMINATING},
		 {"10.0.1.4", NODE, BUILD_TERMINATING},
		 {"10.0.1.5", OTHER, BUILD_READY}},
		"10.0.1.5:80",
		"10.0.1.2:80 10.0.1.3:80",
	};

	check_terminating(true, &c);
}

static void plan_terminating_policy_local_only_remote_terminating(void **state attr_unused)
{
	static const struct terminating_case c = {
		{{"10.0.1.5", OTHER, BUILD_SERVING_TERMINATING}},
		"10.0.1.5:80",
		DROP,
	};

	check_terminating(true, &c);
}

static void plan_terminating_policy_local_nothing_usable(void **state attr_unused)
{
	static const struct terminating_case c = {
		{{"10.0.1.5", NODE, BUILD_TERMINATING}, {"10.0.1.6", OTHER, BUILD_TERMINATING}},
		REJECT,
		REJECT,
	};

	check_terminating(true, &c);
}

static void plan_terminating_policy_cluster_ready_exist(void **state attr_unused)
{
	static const struct terminating_case c = {
		{{"10.0.1.1", NODE, BUILD_READY},
		 {"10.0.1.2", NODE, BUILD_READY},
		 {"10.0.1.3", OTHER, BUILD_SERVING_TERMINATING},
		 {"10.0.1.4", OTHER, BUILD_TERMINATING},
		 {"10.0.1.5", OTHER, BUILD_READY}},
		"10.0.1.1:80 10.0.1.2:80 10.0.1.5:80",
		"10.0.1.1:80 10.0.1.2:80 10.0.1.5:80",
	};

	check_terminating(false, &c);
}

static void plan_terminating_policy_cluster_only_terminating(void **state attr_unused)
{
	static const struct terminating_case c = {
		{{"10.0.1.2", NODE, BUILD_SERVING_TERMINATING},
		 {"10.0.1.3", NODE, BUILD_SERVING_TERMINATING},
		 {"10.0.1.4", OTHER, BUILD_TERMINATING},
		 {"10.0.1.5", OTHER, BUILD_SERVING_TERMINATING}},
		"10.0.1.2:80 10.0.1.3:80 10.0.1.5:80",
		"10.0.1.2:80 10.0.1.3:80 10.0.1.5:80",
	};

	check_terminating(false, &c);
}

static void plan_terminating_policy_cluster_only_remote_terminating(void **state attr_unused)
{
	static const struct terminating_case c = {
		{{"10.0.1.5", OTHER, BUILD_SERVING_TERMINATING}},
		"10.0.1.5:80",
		"10.0.1.5:80",
	};

	check_terminating(false, &c);
}

static void plan_terminating_policy_cluster_nothing_usable(void **state attr_unused)
{
	static const struct terminating_case c = {
		{{"10.0.1.5", NODE, BUILD_TERMINATING}, {"10.0.1.6", OTHER, BUILD_TERMINATING}},
		REJECT,
		REJECT,
	};

	check_terminating(false, &c);
}

/* --- What the gauges of services without local endpoints count: internal and external DROP --- */

enum { NO_ENDPOINTS, LOCAL_ENDPOINTS, REMOTE_ENDPOINTS };

static void check_metric(bool internal_local, bool external_local, int endpoints,
			 enum plan_refusal to_cluster_ip, enum plan_refusal from_outside)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct slice *slice = new_slice();
	struct service_plan *plan;

	build_port(service, "", PROTOCOL_TCP, 80, 123);
	service->internal_local = internal_local;
	service->external_local = external_local;
	if (endpoints != NO_ENDPOINTS) {
		build_endpoint(slice, "10.0.1.1", endpoints == LOCAL_ENDPOINTS ? NODE : "node0",
			       BUILD_READY);
		build_endpoint(slice, "10.0.1.2", "node1", BUILD_READY);
		build_endpoint(slice, "10.0.1.3", "node2", BUILD_READY);
	}
	model_set_service(world.model, service);
	model_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_int_equal(plan->ports[0].internal, to_cluster_ip);
	assert_int_equal(plan->ports[0].external, from_outside);
	service_plan_free(plan);
	world_done(&world);
}

static void plan_no_endpoints_metric_internal_with_local(void **state attr_unused)
{
	check_metric(true, false, LOCAL_ENDPOINTS, PLAN_SERVED, PLAN_SERVED);
}

static void plan_no_endpoints_metric_external_with_local(void **state attr_unused)
{
	check_metric(false, true, LOCAL_ENDPOINTS, PLAN_SERVED, PLAN_SERVED);
}

static void plan_no_endpoints_metric_both_with_local(void **state attr_unused)
{
	check_metric(true, true, LOCAL_ENDPOINTS, PLAN_SERVED, PLAN_SERVED);
}

static void plan_no_endpoints_metric_internal_only_remote(void **state attr_unused)
{
	check_metric(true, false, REMOTE_ENDPOINTS, PLAN_DROP, PLAN_SERVED);
}

static void plan_no_endpoints_metric_external_only_remote(void **state attr_unused)
{
	check_metric(false, true, REMOTE_ENDPOINTS, PLAN_SERVED, PLAN_DROP);
}

static void plan_no_endpoints_metric_both_only_remote(void **state attr_unused)
{
	check_metric(true, true, REMOTE_ENDPOINTS, PLAN_DROP, PLAN_DROP);
}

static void plan_no_endpoints_metric_both_without_any(void **state attr_unused)
{
	check_metric(true, true, NO_ENDPOINTS, PLAN_REJECT, PLAN_REJECT);
}

/* --- Addresses, ranges, ports --- */

static void plan_no_endpoints_reject(void **state attr_unused)
{
	struct world world = world_new();
	struct service *service = balanced_service(false);
	struct service_plan *plan;

	build_source_range(service, "203.0.113.0/25");
	model_set_service(world.model, service);
	plan = make_plan(&world);
	assert_string_equal(internal(&plan->ports[0]), REJECT);
	assert_string_equal(external(&plan->ports[0]), REJECT);
	assert_null(plan->ports[0].endpoints);
	assert_true(plan->ports[0].externally_accessible);
	assert_false(plan->ports[0].use_external);
	assert_false(plan->ports[0].use_firewall); /* ranges guard nothing that is refused anyway */
	service_plan_free(plan);
	world_done(&world);
}

/* Hidden by the gate, an external IP still makes the service externally accessible. */
static void plan_external_ips_hidden_by_the_gate(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct slice *slice = new_slice();
	struct service_plan *plan;

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	build_external_ip(service, "192.168.99.11");
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	model_set_service(world.model, service);
	model_set_slice(world.model, slice);
	world.settings.allow_external_ips = false;
	plan = make_plan(&world);
	assert_int_equal(plan->ports[0].n_external_ips, 0);
	assert_true(plan->ports[0].externally_accessible);
	assert_true(plan->ports[0].use_external);
	service_plan_free(plan);
	world_done(&world);
}

static void plan_source_ranges_need_a_vip(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct slice *slice = new_slice();
	struct service_plan *plan;

	build_port(service, "", PROTOCOL_TCP, 80, 30080);
	build_source_range(service, "10.0.0.0/8");
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	model_set_service(world.model, service);
	model_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_true(plan->ports[0].use_external);
	assert_false(plan->ports[0].use_firewall);
	service_plan_free(plan);
	world_done(&world);
}

static bool node_is_in(const char *range_a, const char *range_b)
{
	struct world world = world_new();
	struct service *service = balanced_service(false);
	struct slice *slice = new_slice();
	struct service_plan *plan;
	bool in;

	build_source_range(service, range_a);
	build_source_range(service, range_b);
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	model_set_service(world.model, service);
	model_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_true(plan->ports[0].use_firewall);
	in = plan->ports[0].node_in_ranges;
	service_plan_free(plan);
	world_done(&world);
	return in;
}

static void plan_node_in_source_ranges(void **state attr_unused)
{
	assert_true(node_is_in("203.0.113.0/25", "192.168.0.0/24"));
	assert_true(node_is_in("192.168.0.2/32", "2001:db8::/32"));
	assert_false(node_is_in("203.0.113.0/25", "192.168.1.0/24"));
	assert_false(node_is_in("203.0.113.0/25", "::/1"));
}

static void assert_addresses(const struct addr *v, size_t n, const char *expected)
{
	char text[512] = "", one[ADDR_TEXT_MAX];
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		addr_print(&v[i], one);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
					 one);
	}
	assert_string_equal(text, expected);
}

/* Whether they stand together (borrowed) or apart (copied), in the object's order. */
static void plan_keeps_its_family_only(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct service_plan *plan;

	build_cluster_ip(service, "fd00::1");
	build_port(service, "", PROTOCOL_TCP, 80, 0);
	build_external_ip(service, "192.168.99.12");
	build_external_ip(service, "2001:db8::7");
	build_external_ip(service, "192.168.99.11");
	build_vip(service, "1.2.3.4");
	build_vip(service, "1.2.3.3");
	build_vip(service, "2001:db8::8");
	build_source_range(service, "2001:db8::/32");
	model_set_service(world.model, service_ref(service));

	plan = make_plan(&world);
	assert_addresses(plan->ports[0].cluster_ip, 1, "172.30.1.1");
	assert_addresses(plan->ports[0].external_ips, plan->ports[0].n_external_ips,
			 "192.168.99.12 192.168.99.11");
	assert_addresses(plan->ports[0].vips, plan->ports[0].n_vips, "1.2.3.4 1.2.3.3");
	assert_ptr_equal(plan->ports[0].vips, service->vips);
	assert_int_equal(plan->ports[0].n_source_ranges, 0);
	service_plan_free(plan);

	world.settings.family = FAMILY_IPV6;
	plan = make_plan(&world);
	assert_addresses(plan->ports[0].cluster_ip, 1, "fd00::1");
	assert_addresses(plan->ports[0].external_ips, plan->ports[0].n_external_ips, "2001:db8::7");
	assert_addresses(plan->ports[0].vips, plan->ports[0].n_vips, "2001:db8::8");
	assert_int_equal(plan->ports[0].n_source_ranges, 1);
	service_plan_free(plan);
	service_unref(service);
	world_done(&world);
}

static void plan_externally_accessible_per_port(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct service_plan *plan;

	build_port(service, "a", PROTOCOL_TCP, 80, 0);
	build_port(service, "b", PROTOCOL_TCP, 81, 30081);
	model_set_service(world.model, service);
	plan = make_plan(&world);
	assert_false(plan->ports[0].externally_accessible);
	assert_true(plan->ports[1].externally_accessible);
	service_plan_free(plan);
	world_done(&world);
}

static void plan_ports_sorted_by_name_then_protocol(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct service_plan *plan;

	build_port(service, "http", PROTOCOL_SCTP, 80, 0);
	build_port(service, "dns", PROTOCOL_UDP, 53, 0);
	build_port(service, "http", PROTOCOL_TCP, 80, 0);
	build_port(service, "dns", PROTOCOL_TCP, 53, 0);
	model_set_service(world.model, service);
	plan = make_plan(&world);
	assert_int_equal(plan->n_ports, 4);
	assert_string_equal(plan->ports[0].id, "ns1/svc1:dns");
	assert_int_equal(plan->ports[0].port->protocol, PROTOCOL_TCP);
	assert_int_equal(plan->ports[1].port->protocol, PROTOCOL_UDP);
	assert_string_equal(plan->ports[2].id, "ns1/svc1:http");
	assert_int_equal(plan->ports[2].port->protocol, PROTOCOL_TCP);
	assert_int_equal(plan->ports[3].port->protocol, PROTOCOL_SCTP);
	service_plan_free(plan);
	world_done(&world);
}

/* Two ports with one name and protocol would share chains; the later one counts. */
static void plan_ports_with_the_same_key_become_one(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct service_plan *plan;

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	build_port(service, "", PROTOCOL_TCP, 81, 0);
	build_port(service, "", PROTOCOL_UDP, 82, 0);
	model_set_service(world.model, service);
	plan = make_plan(&world);
	assert_int_equal(plan->n_ports, 2);
	assert_int_equal(plan->ports[0].port->port, 81);
	assert_int_equal(plan->ports[1].port->port, 82);
	assert_string_equal(plan->ports[0].id, KEY); /* no name, no colon */
	service_plan_free(plan);
	world_done(&world);
}

/* Each port takes the list of its own name and protocol. */
static void plan_endpoints_by_port_name_and_protocol(void **state attr_unused)
{
	struct slice *slice = build_slice("ns1/svc1-1", "svc1", FAMILY_IPV4);
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct service_plan *plan;

	build_port(service, "dns", PROTOCOL_UDP, 53, 0);
	build_port(service, "dns", PROTOCOL_TCP, 53, 0);
	build_port(service, "http", PROTOCOL_TCP, 80, 0);
	build_slice_port(slice, "dns", PROTOCOL_UDP, 1053);
	build_slice_port(slice, "http", PROTOCOL_TCP, 8080);
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	model_set_service(world.model, service);
	model_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_string_equal(internal(&plan->ports[0]), REJECT);
	assert_string_equal(internal(&plan->ports[1]), "10.0.1.1:1053");
	assert_string_equal(internal(&plan->ports[2]), "10.0.1.1:8080");
	service_plan_free(plan);
	world_done(&world);
}

static void plan_nothing_to_do(void **state attr_unused)
{
	struct world world = world_new();

	assert_null(make_plan(&world)); /* no such Service */
	model_set_service(world.model, build_service(KEY, "172.30.1.1"));
	assert_null(make_plan(&world)); /* no ports */
	world.settings.family = FAMILY_IPV6;
	model_set_service(world.model, balanced_service(false));
	assert_null(make_plan(&world)); /* no cluster IP of the family */
	world_done(&world);
}

/* Node and zone reach the selection. */
static void plan_obeys_zone_hints(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct node *node = node_new(NODE);
	struct world world = world_new();
	struct slice *slice = new_slice();

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	build_hints(slice, build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY), "zone-a", NULL);
	build_hints(slice, build_endpoint(slice, "10.0.1.2", OTHER, BUILD_READY), "zone-b", NULL);
	node->zone = arena_strdup(node->arena, "zone-b");
	model_set_service(world.model, service);
	model_set_slice(world.model, slice);
	assert_traffic(&world, "10.0.1.1:80 10.0.1.2:80", "10.0.1.1:80 10.0.1.2:80");
	assert_true(model_set_node(world.model, node));
	assert_traffic(&world, "10.0.1.2:80", "10.0.1.2:80");
	world_done(&world);
}

/* --- Life --- */

/* A plan outlives the Service and the slices that it was made from. */
static void plan_keeps_what_it_was_made_from(void **state attr_unused)
{
	struct world world = world_new();
	struct service_plan *plan = plan_with_two_endpoints(&world, false);

	model_remove_service(world.model, KEY);
	model_remove_slice(world.model, "ns1/svc1-1");
	assert_null(make_plan(&world));
	world_done(&world);
	assert_string_equal(plan->key, KEY);
	assert_string_equal(internal(&plan->ports[0]), "10.180.0.1:80 10.180.2.1:80");
	service_plan_free(plan);
}

/* A plain service with five endpoints: one block, with next to nothing left over. */
static void plan_is_compact(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct slice *slice = build_slice("ns1/svc1-1", "svc1", FAMILY_IPV4);
	struct service_plan *plan;
	size_t needed;

	build_port(service, "http", PROTOCOL_TCP, 80, 0);
	build_slice_port(slice, "http", PROTOCOL_TCP, 80);
	for (int i = 1; i <= 5; i++) {
		char ip[16];

		snprintf(ip, sizeof(ip), "10.0.1.%d", i);
		build_endpoint(slice, ip, OTHER, BUILD_READY);
	}
	model_set_service(world.model, service);
	model_set_slice(world.model, slice);
	plan = make_plan(&world);
	needed = sizeof(*plan) + sizeof(*plan->ports) + sizeof("ns1/svc1:http") +
		 5 * sizeof(uint32_t);
	assert_in_range(arena_size(plan->arena), needed, needed + 64);
	service_plan_free(plan);
	world_done(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan_external_traffic_policy_local),
		cmocka_unit_test(plan_external_traffic_policy_cluster),
		cmocka_unit_test(plan_external_traffic_policy_local_only_remote),
		cmocka_unit_test(plan_internal_traffic_policy_cluster),
		cmocka_unit_test(plan_internal_traffic_policy_local_one_local),
		cmocka_unit_test(plan_internal_traffic_policy_local_several_local),
		cmocka_unit_test(plan_internal_traffic_policy_local_only_remote),
		cmocka_unit_test(plan_internal_local_external_cluster),
		cmocka_unit_test(plan_external_local_without_external_address_is_cluster),
		cmocka_unit_test(plan_terminating_policy_local_ready_exist),
		cmocka_unit_test(plan_terminating_policy_local_only_terminating),
		cmocka_unit_test(plan_terminating_policy_local_only_remote_terminating),
		cmocka_unit_test(plan_terminating_policy_local_nothing_usable),
		cmocka_unit_test(plan_terminating_policy_cluster_ready_exist),
		cmocka_unit_test(plan_terminating_policy_cluster_only_terminating),
		cmocka_unit_test(plan_terminating_policy_cluster_only_remote_terminating),
		cmocka_unit_test(plan_terminating_policy_cluster_nothing_usable),
		cmocka_unit_test(plan_no_endpoints_metric_internal_with_local),
		cmocka_unit_test(plan_no_endpoints_metric_external_with_local),
		cmocka_unit_test(plan_no_endpoints_metric_both_with_local),
		cmocka_unit_test(plan_no_endpoints_metric_internal_only_remote),
		cmocka_unit_test(plan_no_endpoints_metric_external_only_remote),
		cmocka_unit_test(plan_no_endpoints_metric_both_only_remote),
		cmocka_unit_test(plan_no_endpoints_metric_both_without_any),
		cmocka_unit_test(plan_no_endpoints_reject),
		cmocka_unit_test(plan_external_ips_hidden_by_the_gate),
		cmocka_unit_test(plan_source_ranges_need_a_vip),
		cmocka_unit_test(plan_node_in_source_ranges),
		cmocka_unit_test(plan_keeps_its_family_only),
		cmocka_unit_test(plan_externally_accessible_per_port),
		cmocka_unit_test(plan_ports_sorted_by_name_then_protocol),
		cmocka_unit_test(plan_ports_with_the_same_key_become_one),
		cmocka_unit_test(plan_endpoints_by_port_name_and_protocol),
		cmocka_unit_test(plan_nothing_to_do),
		cmocka_unit_test(plan_obeys_zone_hints),
		cmocka_unit_test(plan_keeps_what_it_was_made_from),
		cmocka_unit_test(plan_is_compact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
