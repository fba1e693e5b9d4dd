/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Services and slices go into a real model; the plans of the service "ns1/svc1" are looked at.
 * test_plan_traffic.c has the policies.
 */
#include "plan_traffic.h"

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
	service_plan_unref(plan);
	world_done(&world);
}

/* Hidden by the gate, an external IP still makes the service externally accessible. */
static void plan_external_ips_hidden_by_the_gate(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct draft *slice = new_slice();
	struct service_plan *plan;

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	build_external_ip(service, "192.168.99.11");
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	model_set_service(world.model, service);
	build_set_slice(world.model, slice);
	world.settings.allow_external_ips = false;
	plan = make_plan(&world);
	assert_int_equal(plan->ports[0].n_external_ips, 0);
	assert_true(plan->ports[0].externally_accessible);
	assert_true(plan->ports[0].use_external);
	service_plan_unref(plan);
	world_done(&world);
}

static void plan_source_ranges_need_a_vip(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct draft *slice = new_slice();
	struct service_plan *plan;

	build_port(service, "", PROTOCOL_TCP, 80, 30080);
	build_source_range(service, "10.0.0.0/8");
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	model_set_service(world.model, service);
	build_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_true(plan->ports[0].use_external);
	assert_false(plan->ports[0].use_firewall);
	service_plan_unref(plan);
	world_done(&world);
}

static bool node_is_in(const char *range_a, const char *range_b)
{
	struct world world = world_new();
	struct service *service = balanced_service(false);
	struct draft *slice = new_slice();
	struct service_plan *plan;
	bool in;

	build_source_range(service, range_a);
	build_source_range(service, range_b);
	build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY);
	model_set_service(world.model, service);
	build_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_true(plan->ports[0].use_firewall);
	in = plan->ports[0].node_in_ranges;
	service_plan_unref(plan);
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
	service_plan_unref(plan);

	world.settings.family = FAMILY_IPV6;
	plan = make_plan(&world);
	assert_addresses(plan->ports[0].cluster_ip, 1, "fd00::1");
	assert_addresses(plan->ports[0].external_ips, plan->ports[0].n_external_ips, "2001:db8::7");
	assert_addresses(plan->ports[0].vips, plan->ports[0].n_vips, "2001:db8::8");
	assert_int_equal(plan->ports[0].n_source_ranges, 1);
	service_plan_unref(plan);
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
	service_plan_unref(plan);
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
	service_plan_unref(plan);
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
	service_plan_unref(plan);
	world_done(&world);
}

/* Each port takes the list of its own name and protocol. */
static void plan_endpoints_by_port_name_and_protocol(void **state attr_unused)
{
	struct draft *slice = build_slice("ns1/svc1-1", "svc1", FAMILY_IPV4);
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
	build_set_slice(world.model, slice);
	plan = make_plan(&world);
	assert_string_equal(internal(&plan->ports[0]), REJECT);
	assert_string_equal(internal(&plan->ports[1]), "10.0.1.1:1053");
	assert_string_equal(internal(&plan->ports[2]), "10.0.1.1:8080");
	service_plan_unref(plan);
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
	struct draft *slice = new_slice();

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	build_hints(slice, build_endpoint(slice, "10.0.1.1", NODE, BUILD_READY), "zone-a", NULL);
	build_hints(slice, build_endpoint(slice, "10.0.1.2", OTHER, BUILD_READY), "zone-b", NULL);
	node->zone = arena_strdup(node->arena, "zone-b");
	model_set_service(world.model, service);
	build_set_slice(world.model, slice);
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
	service_plan_unref(plan);
}

/* A plain service with five endpoints: one block, with next to nothing left over. */
static void plan_is_compact(void **state attr_unused)
{
	struct service *service = build_service(KEY, "172.30.1.1");
	struct world world = world_new();
	struct draft *slice = build_slice("ns1/svc1-1", "svc1", FAMILY_IPV4);
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
	build_set_slice(world.model, slice);
	plan = make_plan(&world);
	needed = sizeof(*plan) + sizeof(*plan->ports) + sizeof("ns1/svc1:http") +
		 5 * sizeof(uint32_t);
	assert_in_range(arena_size(arena_of(plan)), needed, needed + 64);
	service_plan_unref(plan);
	world_done(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
