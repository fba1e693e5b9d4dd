/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_world.h"

static void default_slice(struct draft *slice)
{
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	build_endpoint(slice, "10.0.1.2", OTHER, BUILD_READY);
	build_endpoint(slice, "10.0.1.3", OTHER, BUILD_UNREADY);
}

static void default_service(struct service *service)
{
	build_port(service, "", PROTOCOL_TCP, 80, 30080);
	build_external_ip(service, "192.168.99.11");
	build_vip(service, "1.2.3.4");
	build_source_range(service, "203.0.113.0/25");
	service->sticky_seconds = 10800;
	service->external_local = true;
	service->health_check_node_port = 32000;
}

static struct service_plan *plan_of(const char *cluster_ip, void (*fill_service)(struct service *),
				    void (*fill_slice)(struct draft *))
{
	struct service *service = build_service(KEY, cluster_ip);
	struct world world = world_new();
	struct draft *slice = new_slice();
	struct service_plan *plan;

	fill_service(service);
	fill_slice(slice);
	model_set_service(world.model, service);
	build_set_slice(world.model, slice);
	plan = make_plan(&world);
	world_done(&world);
	return plan;
}

static bool equal_to_default(struct service_plan *other)
{
	struct service_plan *plan = plan_of("172.30.1.1", default_service, default_slice);
	bool equal = service_plan_equal(plan, other);

	assert_int_equal(service_plan_equal(other, plan), equal);
	service_plan_unref(plan);
	service_plan_unref(other);
	return equal;
}

static void other_port(struct service *service)
{
	default_service(service);
	service->ports[0].port = 81;
}

static void other_node_port(struct service *service)
{
	default_service(service);
	service->ports[0].node_port = 30081;
}

static void other_protocol(struct service *service)
{
	default_service(service);
	service->ports[0].protocol = PROTOCOL_UDP;
}

static void other_port_name(struct service *service)
{
	default_service(service);
	service->ports[0].name = "http";
}

static void one_more_port(struct service *service)
{
	default_service(service);
	build_port(service, "more", PROTOCOL_TCP, 81, 0);
}

static void other_external_ip(struct service *service)
{
	default_service(service);
	service->external_ips[0] = build_addr("192.168.99.12");
}

static void one_more_vip(struct service *service)
{
	default_service(service);
	build_vip(service, "1.2.3.5");
}

static void other_source_range(struct service *service)
{
	default_service(service);
	service->source_ranges[0].length = 26;
}

static void other_affinity(struct service *service)
{
	default_service(service);
	service->sticky_seconds = 0;
}

static void other_health_check_port(struct service *service)
{
	default_service(service);
	service->health_check_node_port = 32001;
}

static void other_external_policy(struct service *service)
{
	default_service(service);
	service->external_local = false;
}

static void other_internal_policy(struct service *service)
{
	default_service(service);
	service->internal_local = true;
}

static void plan_equal_sees_each_field(void **state attr_unused)
{
	static void (*const changed[])(struct service *) = {
		other_port,
		other_node_port,
		other_protocol,
		other_port_name,
		one_more_port,
		other_external_ip,
		one_more_vip,
		other_source_range,
		other_affinity,
		other_health_check_port,
		other_external_policy,
		other_internal_policy,
	};

	assert_true(equal_to_default(plan_of("172.30.1.1", default_service, default_slice)));
	assert_false(equal_to_default(plan_of("172.30.1.2", default_service, default_slice)));
	for (size_t i = 0; i < ARRAY_SIZE(changed); i++) {
		print_message("# change %zu\n", i);
		assert_false(equal_to_default(plan_of("172.30.1.1", changed[i], default_slice)));
	}
}

static void unused_endpoint_gone(struct draft *slice)
{
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	build_endpoint(slice, "10.0.1.2", OTHER, BUILD_READY);
}

static void unused_endpoint_first(struct draft *slice)
{
	build_endpoint(slice, "10.0.1.0", OTHER, BUILD_UNREADY);
	unused_endpoint_gone(slice);
}

static void endpoint_added(struct draft *slice)
{
	default_slice(slice);
	build_endpoint(slice, "10.0.1.4", OTHER, BUILD_READY);
}

static void endpoint_replaced(struct draft *slice)
{
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	build_endpoint(slice, "10.0.1.9", OTHER, BUILD_READY);
}

static void endpoint_moved(struct draft *slice)
{
	build_endpoint(slice, "10.0.1.1", OTHER, BUILD_READY);
	build_endpoint(slice, "10.0.1.2", NODE, BUILD_READY);
}

static void no_endpoint(struct draft *slice attr_unused)
{
}

static void plan_equal_ignores_unused_endpoints(void **state attr_unused)
{
	assert_true(equal_to_default(plan_of("172.30.1.1", default_service, unused_endpoint_gone)));
	assert_true(
		equal_to_default(plan_of("172.30.1.1", default_service, unused_endpoint_first)));
	assert_false(equal_to_default(plan_of("172.30.1.1", default_service, endpoint_added)));
	assert_false(equal_to_default(plan_of("172.30.1.1", default_service, endpoint_replaced)));
	assert_false(equal_to_default(plan_of("172.30.1.1", default_service, endpoint_moved)));
	assert_false(equal_to_default(plan_of("172.30.1.1", default_service, no_endpoint)));
}

/* No list changes, but a backend may treat endpoints of this node in its own way. */
static void plan_equal_sees_endpoints_move_with_policy_cluster(void **state attr_unused)
{
	struct service_plan *a = plan_of("172.30.1.1", other_external_policy, default_slice);
	struct service_plan *b = plan_of("172.30.1.1", other_external_policy, endpoint_moved);

	assert_int_equal(a->ports[0].use.cluster.n, b->ports[0].use.cluster.n);
	assert_false(service_plan_equal(a, b));
	service_plan_unref(a);
	service_plan_unref(b);
}

static void plan_equal_accepts_null(void **state attr_unused)
{
	struct service_plan *plan = plan_of("172.30.1.1", default_service, default_slice);

	assert_true(service_plan_equal(NULL, NULL));
	assert_true(service_plan_equal(plan, plan));
	assert_false(service_plan_equal(plan, NULL));
	assert_false(service_plan_equal(NULL, plan));
	assert_null(service_plan_unref(plan));
	assert_null(service_plan_unref(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan_equal_sees_each_field),
		cmocka_unit_test(plan_equal_ignores_unused_endpoints),
		cmocka_unit_test(plan_equal_sees_endpoints_move_with_policy_cluster),
		cmocka_unit_test(plan_equal_accepts_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
