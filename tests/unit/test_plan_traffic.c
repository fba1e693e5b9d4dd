/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets traffic, by policies and by the states of endpoints: services and slices go into a real
 * model, and the plans of the service "ns1/svc1" are asked.
 */
#include "plan_traffic.h"

/* --- Traffic policies --- */

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
	service_plan_unref(plan);
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
	service_plan_unref(plan);
	world_done(&world);
}

/* Only remote endpoints: outsiders are dropped, pods and the node still get there. */
static void plan_external_traffic_policy_local_only_remote(void **state attr_unused)
{
	struct world world = world_new();
	struct draft *slice = new_slice();
	struct service_plan *plan;

	build_endpoint(slice, "10.180.0.1", OTHER, BUILD_READY);
	model_set_service(world.model, balanced_service(true));
	build_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_string_equal(internal(&plan->ports[0]), "10.180.0.1:80");
	assert_string_equal(external(&plan->ports[0]), DROP);
	assert_string_equal(inside_out(&plan->ports[0]), "10.180.0.1:80");
	service_plan_unref(plan);
	world_done(&world);
}

/* Three endpoints on the nodes named; then the slice goes. */
static void check_internal_policy(bool local, const char *const nodes[3], const char *expected)
{
	static const char *const ips[] = {"10.0.1.1", "10.0.1.2", "10.0.1.3"};
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct draft *slice = new_slice();
	struct service_plan *plan;

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	service->internal_local = local;
	for (size_t i = 0; i < 3; i++)
		build_endpoint(slice, ips[i], nodes[i], BUILD_READY);
	model_set_service(world.model, service);
	build_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_string_equal(internal(&plan->ports[0]), expected);
	assert_false(plan->ports[0].use_external);
	service_plan_unref(plan);

	model_remove_slice(world.model, "ns1/svc1-1");
	plan = make_plan(&world);
	assert_string_equal(internal(&plan->ports[0]), REJECT);
	service_plan_unref(plan);
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
	struct draft *slice = new_slice();

	build_port(service, "", PROTOCOL_TCP, 80, 30080);
	service->internal_local = true;
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	build_endpoint(slice, "10.0.1.2", OTHER, BUILD_READY);
	model_set_service(world.model, service);
	build_set_slice(world.model, slice);
	assert_traffic(&world, "10.0.1.1:80", "10.0.1.1:80 10.0.1.2:80");
	world_done(&world);
}

/* ETP Local means nothing to a service that has no external address of the family. */
static void plan_external_local_without_external_address_is_cluster(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct draft *slice = new_slice();
	struct service_plan *plan;

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	service->external_local = true;
	build_external_ip(service, "2001:db8::7");
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	build_endpoint(slice, "10.0.1.2", OTHER, BUILD_READY);
	model_set_service(world.model, service);
	build_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_string_equal(internal(&plan->ports[0]), "10.0.1.1:80 10.0.1.2:80");
	assert_false(plan->ports[0].use_local_group);
	assert_false(plan->ports[0].use_external);
	service_plan_unref(plan);
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
	struct draft *slice = new_slice();

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	build_vip(service, "1.2.3.4");
	service->external_local = external_local;
	for (size_t i = 0; i < ARRAY_SIZE(c->endpoints) && c->endpoints[i].ip; i++)
		build_endpoint(slice, c->endpoints[i].ip, c->endpoints[i].node,
			       c->endpoints[i].flags);
	model_set_service(world.model, service);
	build_set_slice(world.model, slice);
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
	struct draft *slice = new_slice();
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
	build_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_int_equal(plan->ports[0].internal, to_cluster_ip);
	assert_int_equal(plan->ports[0].external, from_outside);
	service_plan_unref(plan);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
