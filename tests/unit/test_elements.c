/* SPDX-License-Identifier: Apache-2.0 */

/* Elements of one Service in nftables mode, as nft would write them; and slots, when endpoints change. */

#include <time.h>

#include "backends/nftables/affinity_ids.h"
#include "backends/nftables/elements.h"
#include "backends/nftables/slots.h"
#include "backends/nftables/statement_text.h"
#include "plan_world.h"

#define ID 7

static void print_element(void *arg, const struct element *element)
{
	text_printf(arg, "%s ", container_types[element->container].name);
	statement_text_element(arg, FAMILY_IPV4, element);
	text_str(arg, "\n");
}

/* Of all destinations, then of the port, then shared ones; lists must be in their order. */
static char *print_plan(const struct service_plan *plan)
{
	struct affinity_ids ids;
	cleanup_text struct text text;

	text_init(&text);
	affinity_ids_init(&ids);
	ids.next = ID;
	for (size_t i = 0; i < plan->n_ports; i++) {
		const struct port_plan *port = &plan->ports[i];
		const struct slotted_port slotted = {port, port->use.cluster, port->use.local};
		size_t n;
		cleanup_free struct destination *v = elements_destinations(port, &n);

		for (size_t j = 0; j < n; j++) {
			cleanup_element_list struct element_list list = {0};

			elements_of_destination(&slotted, &v[j], ID, true, element_list_add, &list);
			for (size_t k = 0; k + 1 < list.n; k++)
				assert_true(element_compare(&list.v[k], &list.v[k + 1]) < 0);
			elements_of_destination(&slotted, &v[j], ID, true, print_element, &text);
		}
		elements_of_port(port, &ids, print_element, &text);
		elements_shared(port, print_element, &text);
	}
	affinity_ids_done(&ids);
	return text_dup(&text);
}

static void expect(struct world *world, const char *expected)
{
	struct service_plan *plan = make_plan(world);
	cleanup_free char *text = NULL;

	assert_non_null(plan);
	text = print_plan(plan);
	assert_string_equal(text, expected);
	service_plan_unref(plan);
}

static struct service *web(void)
{
	struct service *service = build_service(KEY, "10.96.0.1");

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	return service;
}

static void add_endpoints(struct world *world, const char *local, const char *remote)
{
	struct draft *slice = new_slice();

	if (local)
		build_endpoint(slice, local, NODE, BUILD_READY);
	if (remote)
		build_endpoint(slice, remote, OTHER, BUILD_READY);
	build_set_slice(world->model, slice);
}

static void a_cluster_ip_has_a_verdict_and_slots(void **state attr_unused)
{
	struct world world = world_new();

	model_set_service(world.model, web());
	add_endpoints(&world, "10.1.0.1", "10.1.1.1");
	expect(&world, "service-ips 10.96.0.1 . tcp . 80 comment \"ns1/svc1\" : goto pick-2\n"
		       "endpoints 10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 80\n"
		       "endpoints 10.96.0.1 . tcp . 80 . 1 : 10.1.1.1 . 80\n"
		       "cluster-ips 10.96.0.1\n"
		       "hairpin-connections 10.1.0.1 . 10.1.0.1 . tcp . 80\n");
	world_done(&world);
}

static void without_endpoints_all_is_refused(void **state attr_unused)
{
	struct world world = world_new();
	struct service *service = build_service(KEY, "10.96.0.1");

	build_port(service, "", PROTOCOL_UDP, 53, 30053);
	build_external_ip(service, "192.0.2.9");
	model_set_service(world.model, service);
	expect(&world,
	       "no-endpoint-services 10.96.0.1 . udp . 53 comment \"ns1/svc1\" : goto "
	       "reject-chain\n"
	       "no-endpoint-services 192.0.2.9 . udp . 53 comment \"ns1/svc1\" : goto "
	       "reject-chain\n"
	       "no-endpoint-nodeports udp . 30053 comment \"ns1/svc1\" : goto reject-chain\n"
	       "cluster-ips 10.96.0.1\n");
	world_done(&world);
}

static void external_destinations_are_masqueraded(void **state attr_unused)
{
	struct world world = world_new();
	struct service *service = build_service(KEY, "10.96.0.1");

	build_port(service, "", PROTOCOL_TCP, 80, 30080);
	build_external_ip(service, "192.0.2.9");
	build_vip(service, "198.51.100.1");
	build_vip(service, "192.0.2.9"); /* the same once more */
	model_set_service(world.model, service);
	add_endpoints(&world, NULL, "10.1.1.1");
	expect(&world,
	       "service-ips 10.96.0.1 . tcp . 80 comment \"ns1/svc1\" : goto pick-1\n"
	       "endpoints 10.96.0.1 . tcp . 80 . 0 : 10.1.1.1 . 80\n"
	       "service-ips 192.0.2.9 . tcp . 80 comment \"ns1/svc1\" : goto masq-pick-1\n"
	       "endpoints 192.0.2.9 . tcp . 80 . 0 : 10.1.1.1 . 80\n"
	       "service-ips 198.51.100.1 . tcp . 80 comment \"ns1/svc1\" : goto masq-pick-1\n"
	       "endpoints 198.51.100.1 . tcp . 80 . 0 : 10.1.1.1 . 80\n"
	       "service-nodeports tcp . 30080 comment \"ns1/svc1\" : goto nodeport-masq-pick-1\n"
	       "nodeport-endpoints tcp . 30080 . 0 : 10.1.1.1 . 80\n"
	       "cluster-ips 10.96.0.1\n");
	world_done(&world);
}

static void local_policies_have_groups_of_their_own(void **state attr_unused)
{
	struct world world = world_new();
	struct service *service = build_service(KEY, "10.96.0.1");

	build_port(service, "", PROTOCOL_TCP, 80, 30080);
	service->external_local = true;
	service->internal_local = true;
	model_set_service(world.model, service);
	add_endpoints(&world, "10.1.0.1", "10.1.1.1");
	expect(&world,
	       "service-ips 10.96.0.1 . tcp . 80 comment \"ns1/svc1\" : goto local-pick-1\n"
	       "local-endpoints 10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 80\n"
	       "service-nodeports tcp . 30080 comment \"ns1/svc1\" : goto nodeport-external-local\n"
	       "nodeport-endpoints tcp . 30080 . 0 : 10.1.0.1 . 80\n"
	       "nodeport-endpoints tcp . 30080 . 1 : 10.1.1.1 . 80\n"
	       "nodeport-local-endpoints tcp . 30080 . 0 : 10.1.0.1 . 80\n"
	       "nodeport-cluster-picks tcp . 30080 : goto nodeport-pick-2\n"
	       "nodeport-local-picks tcp . 30080 : goto nodeport-local-pick-1\n"
	       "cluster-ips 10.96.0.1\n"
	       "hairpin-connections 10.1.0.1 . 10.1.0.1 . tcp . 80\n");
	world_done(&world);
}

static void without_local_endpoints_others_are_dropped_and_pods_served(void **state attr_unused)
{
	struct world world = world_new();
	struct service *service = build_service(KEY, "10.96.0.1");

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	build_vip(service, "198.51.100.1");
	service->external_local = true;
	service->internal_local = true;
	model_set_service(world.model, service);
	add_endpoints(&world, NULL, "10.1.1.1");
	expect(&world,
	       "no-endpoint-services 10.96.0.1 . tcp . 80 comment \"ns1/svc1\" : drop\n"
	       "service-ips 198.51.100.1 . tcp . 80 comment \"ns1/svc1\" : goto external-local\n"
	       "endpoints 198.51.100.1 . tcp . 80 . 0 : 10.1.1.1 . 80\n"
	       "cluster-picks 198.51.100.1 . tcp . 80 : goto pick-1\n"
	       "no-endpoint-services 198.51.100.1 . tcp . 80 comment \"ns1/svc1\" : drop\n"
	       "cluster-ips 10.96.0.1\n");
	world_done(&world);
}

static void affinity_leads_through_an_id(void **state attr_unused)
{
	struct world world = world_new();
	struct service *service = build_service(KEY, "10.96.0.1");

	build_port(service, "", PROTOCOL_TCP, 80, 30080);
	service->sticky_seconds = 60;
	model_set_service(world.model, service);
	add_endpoints(&world, "10.1.0.1", NULL);
	expect(&world,
	       "service-ips 10.96.0.1 . tcp . 80 comment \"ns1/svc1\" : goto sticky\n"
	       "endpoints 10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 80\n"
	       "cluster-picks 10.96.0.1 . tcp . 80 : goto pick-1\n"
	       "affinity-ids 10.96.0.1 . tcp . 80 : 1000:7\n"
	       "service-nodeports tcp . 30080 comment \"ns1/svc1\" : goto nodeport-masq-sticky\n"
	       "nodeport-endpoints tcp . 30080 . 0 : 10.1.0.1 . 80\n"
	       "nodeport-cluster-picks tcp . 30080 : goto nodeport-pick-1\n"
	       "nodeport-affinity-ids tcp . 30080 : 1000:7\n"
	       "recalls 1000:7 : jump recall-7\n"
	       "remembers 1000:7 : goto remember-7\n"
	       "members 1000:7 . 10.1.0.1 . 80 : 1000:8\n"
	       "member-endpoints 1000:8 : 10.1.0.1 . 80\n"
	       "cluster-ips 10.96.0.1\n"
	       "hairpin-connections 10.1.0.1 . 10.1.0.1 . tcp . 80\n");
	world_done(&world);
}

/* An endpoint has one id, whichever way clients come to it. */
static void endpoints_of_this_node_have_a_memory_of_their_own(void **state attr_unused)
{
	struct world world = world_new();
	struct service *service = build_service(KEY, "10.96.0.1");

	build_port(service, "", PROTOCOL_TCP, 80, 30080);
	service->sticky_seconds = 60;
	service->internal_local = true;
	model_set_service(world.model, service);
	add_endpoints(&world, "10.1.0.1", "10.1.1.1");
	expect(&world, "service-ips 10.96.0.1 . tcp . 80 comment \"ns1/svc1\" : goto sticky-local\n"
		       "local-endpoints 10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 80\n"
		       "local-picks 10.96.0.1 . tcp . 80 : goto local-pick-1\n"
		       "affinity-ids 10.96.0.1 . tcp . 80 : 1000:7\n"
		       "service-nodeports tcp . 30080 comment \"ns1/svc1\" : goto "
		       "nodeport-masq-sticky\n"
		       "nodeport-endpoints tcp . 30080 . 0 : 10.1.0.1 . 80\n"
		       "nodeport-endpoints tcp . 30080 . 1 : 10.1.1.1 . 80\n"
		       "nodeport-cluster-picks tcp . 30080 : goto nodeport-pick-2\n"
		       "nodeport-affinity-ids tcp . 30080 : 1000:7\n"
		       "recalls 1000:7 : jump recall-7\n"
		       "local-recalls 1000:7 : jump local-recall-7\n"
		       "remembers 1000:7 : goto remember-7\n"
		       "members 1000:7 . 10.1.0.1 . 80 : 1000:8\n"
		       "members 1000:7 . 10.1.1.1 . 80 : 1000:9\n"
		       "member-endpoints 1000:8 : 10.1.0.1 . 80\n"
		       "member-endpoints 1000:9 : 10.1.1.1 . 80\n"
		       "local-member-endpoints 1000:8 : 10.1.0.1 . 80\n"
		       "cluster-ips 10.96.0.1\n"
		       "hairpin-connections 10.1.0.1 . 10.1.0.1 . tcp . 80\n");
	world_done(&world);
}

static void source_ranges_hold_without_endpoints_and_without_overlap(void **state attr_unused)
{
	struct world world = world_new();
	struct service *service = web();

	build_vip(service, "198.51.100.1");
	build_source_range(service, "203.0.113.128/25"); /* inside the next but one */
	build_source_range(service, "192.168.0.0/24");   /* holds this node: the VIP is let in */
	build_source_range(service, "203.0.113.0/24");
	model_set_service(world.model, service);
	expect(&world, "no-endpoint-services 10.96.0.1 . tcp . 80 comment \"ns1/svc1\" : goto "
		       "reject-chain\n"
		       "no-endpoint-services 198.51.100.1 . tcp . 80 comment \"ns1/svc1\" : goto "
		       "reject-chain\n"
		       "firewalled 198.51.100.1 . tcp . 80\n"
		       "source-ranges 198.51.100.1 . tcp . 80 . 192.168.0.0/24\n"
		       "source-ranges 198.51.100.1 . tcp . 80 . 198.51.100.1\n"
		       "source-ranges 198.51.100.1 . tcp . 80 . 203.0.113.0/24\n"
		       "cluster-ips 10.96.0.1\n");
	world_done(&world);
}

/* -- slots */

/* Endpoints of the letters: 'a' is 10.1.1.1. */
static struct slotted_plan plan_of(struct world *world, const char *letters,
				   const struct slotted_plan *applied)
{
	struct draft *slice = new_slice();
	struct slotted_plan slotted;

	for (; *letters; letters++) {
		cleanup_free char *ip = xasprintf("10.1.1.%d", *letters - 'a' + 1);

		build_endpoint(slice, ip, OTHER, BUILD_READY);
	}
	build_set_slice(world->model, slice);
	slotted.plan = make_plan(world);
	slotted.slots = slots_arrange(slotted.plan, applied);
	return slotted;
}

static void drop(struct slotted_plan *slotted)
{
	slots_free(slotted->slots);
	service_plan_unref(slotted->plan);
}

static void expect_slots(const struct slotted_plan *slotted, const char *letters)
{
	const struct slotted_port port = slots_port(slotted, 0);
	char found[32] = "";

	assert_true(port.cluster.n < sizeof(found));
	for (size_t i = 0; i < port.cluster.n; i++)
		found[i] =
			(char)('a' + port.plan->endpoints->v[port.cluster.v[i]].addr.bytes[3] - 1);
	assert_string_equal(found, letters);
}

static void who_has_a_slot_keeps_it(void **state attr_unused)
{
	static const struct {
		const char *endpoints, *slots;
	} steps[] = {
		{"bcd", "bcd"}, {"abcd", "bcda"}, /* a new one comes behind */
		{"acd", "acd"},                   /* the last one moves into the gap */
		{"acf", "acf"},                   /* a new one takes the place of one that left */
		{"f", "f"},     {"", ""},         {"gh", "gh"},
	};
	struct world world = world_new();
	struct slotted_plan applied = {0};

	model_set_service(world.model, web());
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct slotted_plan next = plan_of(&world, steps[i].endpoints, &applied);

		expect_slots(&next, steps[i].slots);
		drop(&applied);
		applied = next;
	}
	drop(&applied);
	world_done(&world);
}

static void equal_endpoints_in_other_slots_are_no_change(void **state attr_unused)
{
	struct world world = world_new();
	struct slotted_plan none = {0}, first, second, third;

	model_set_service(world.model, web());
	first = plan_of(&world, "bc", &none);
	second = plan_of(&world, "abc", &first);
	third = plan_of(&world, "abc", &second);
	assert_true(service_plan_equal(second.plan, third.plan));
	expect_slots(&second, "bca");
	expect_slots(&third, "bca");
	drop(&first);
	drop(&second);
	drop(&third);
	world_done(&world);
}

static void an_endpoint_has_as_many_slots_as_it_weighs(void **state attr_unused)
{
	static const uint8_t weights[] = {3, 1, 0};
	struct world world = world_new();
	struct slotted_plan none = {0}, slotted;

	model_set_service(world.model, web());
	slotted = plan_of(&world, "abc", &none);
	slotted.plan->ports[0].weights = weights;
	slotted.slots = slots_arrange(slotted.plan, &none);
	expect_slots(&slotted, "aaab");
	drop(&slotted);
	world_done(&world);
}

#define MANY 60000

/* 2001:db8::NUMBER */
static struct addr numbered(uint32_t number)
{
	struct addr addr = build_addr("2001:db8::");

	addr.bytes[13] = (uint8_t)(number >> 16);
	addr.bytes[14] = (uint8_t)(number >> 8);
	addr.bytes[15] = (uint8_t)number;
	return addr;
}

/* Each is named twice, and listed once, where it came first. To compare each with each takes seconds. */
static void many_addresses_are_listed_at_once(void **state attr_unused)
{
	static struct addr addresses[2 * MANY];
	const struct service_port service_port = {.port = 80};
	const struct port_plan port = {
		.port = &service_port,
		.cluster_ip = &(struct addr){.family = FAMILY_IPV6},
		.external_ips = addresses,
		.n_external_ips = ARRAY_SIZE(addresses),
	};
	cleanup_free struct destination *v = NULL;
	clock_t start;
	size_t n;

	for (uint32_t i = 0; i < MANY; i++)
		addresses[i] = addresses[2 * MANY - 1 - i] = numbered(MANY - i);
	start = clock();
	v = elements_destinations(&port, &n);
#ifdef __SANITIZE_THREAD__ /* each access costs ten of others */
	assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
#else
	assert_true(clock() - start < CLOCKS_PER_SEC / 4);
#endif
	assert_int_equal(n, 1 + MANY);
	assert_false(v[0].external);
	for (size_t i = 0; i < MANY; i++) {
		assert_true(addr_equal(&v[1 + i].addr, &addresses[i]));
		assert_true(v[1 + i].external);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cluster_ip_has_a_verdict_and_slots),
		cmocka_unit_test(without_endpoints_all_is_refused),
		cmocka_unit_test(external_destinations_are_masqueraded),
		cmocka_unit_test(local_policies_have_groups_of_their_own),
		cmocka_unit_test(without_local_endpoints_others_are_dropped_and_pods_served),
		cmocka_unit_test(affinity_leads_through_an_id),
		cmocka_unit_test(endpoints_of_this_node_have_a_memory_of_their_own),
		cmocka_unit_test(source_ranges_hold_without_endpoints_and_without_overlap),
		cmocka_unit_test(who_has_a_slot_keeps_it),
		cmocka_unit_test(equal_endpoints_in_other_slots_are_no_change),
		cmocka_unit_test(an_endpoint_has_as_many_slots_as_it_weighs),
		cmocka_unit_test(many_addresses_are_listed_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
