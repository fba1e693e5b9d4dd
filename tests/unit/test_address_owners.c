/* SPDX-License-Identifier: Apache-2.0 */

/* Whose a destination is that several Services ask for, as they come and go. */

#include <stdio.h>
#include <time.h>

#include "plan/address_owners.h"
#include "plan_world.h"

#define MANY 500

/* A Service with that cluster IP and external IP, TCP port 80 and perhaps a node port; the caller frees. */
static struct service_plan *add(struct world *world, struct address_owners *owners, const char *key,
				const char *cluster_ip, const char *external_ip, uint32_t created_s)
{
	struct service *service = build_service(key, cluster_ip);
	struct model_changes changes;
	struct service_plan *plan;

	build_port(service, "", PROTOCOL_TCP, 80, created_s == 7 ? 30007 : 0);
	build_external_ip(service, external_ip);
	service->created_s = created_s;
	model_set_service(world->model, service);
	model_take_changes(world->model, FAMILY_IPV4, &changes);
	model_changes_done(&changes);
	plan = plan_service(&world->settings, world->model, key);
	assert_non_null(plan);
	address_owners_add(owners, plan);
	return plan;
}

static struct service_plan *drop(struct address_owners *owners, struct service_plan *plan)
{
	address_owners_remove(owners, plan);
	return service_plan_unref(plan);
}

static struct destination tcp80(const char *ip)
{
	return (struct destination){.protocol = PROTOCOL_TCP, .port = 80, .addr = build_addr(ip)};
}

static void assert_owner(const struct address_owners *owners, struct destination destination,
			 const char *expected)
{
	bool external;
	const struct service *owner = address_owners_of(owners, &destination, &external);

	assert_string_equal(owner ? owner->key : "nobody", expected);
}

static void the_older_one_has_it_and_the_next_when_that_goes(void **state attr_unused)
{
	struct world world = world_new();
	struct address_owners owners = {0};
	struct service_plan *young =
		add(&world, &owners, "a/young", "10.96.0.1", "198.51.100.1", 300);
	struct service_plan *old = add(&world, &owners, "z/old", "10.96.0.2", "198.51.100.1", 100);
	struct service_plan *same = add(&world, &owners, "b/old", "10.96.0.3", "198.51.100.1", 100);

	assert_owner(&owners, tcp80("198.51.100.1"), "b/old"); /* as old, and first by name */
	same = drop(&owners, same);
	assert_owner(&owners, tcp80("198.51.100.1"), "z/old");
	old = drop(&owners, old);
	assert_owner(&owners, tcp80("198.51.100.1"), "a/young");
	young = drop(&owners, young);
	assert_owner(&owners, tcp80("198.51.100.1"), "nobody");
	assert_int_equal(owners.count, 0);
	address_owners_done(&owners);
	world_done(&world);
}

static void a_cluster_ip_goes_before_everything_else(void **state attr_unused)
{
	struct world world = world_new();
	struct address_owners owners = {0};
	struct service_plan *evil = add(&world, &owners, "aaa/evil", "10.96.0.66", "10.96.0.10", 1);
	struct service_plan *dns =
		add(&world, &owners, "kube-system/dns", "10.96.0.10", "198.51.100.1", 900);
	struct destination other = tcp80("10.96.0.10");

	assert_owner(&owners, tcp80("10.96.0.10"), "kube-system/dns");
	assert_owner(&owners, tcp80("198.51.100.1"), "kube-system/dns");
	assert_owner(&owners, tcp80("10.96.0.66"), "aaa/evil");
	other.port = 81;
	assert_owner(&owners, other, "nobody");
	other.whole = true; /* whatever the port */
	other.port = 0;
	assert_owner(&owners, other, "kube-system/dns");
	service_plan_unref(evil);
	service_plan_unref(dns);
	address_owners_done(&owners);
	world_done(&world);
}

static void a_node_port_is_nobodys_address(void **state attr_unused)
{
	struct world world = world_new();
	struct address_owners owners = {0};
	struct service_plan *plan = add(&world, &owners, "ns/a", "10.96.0.1", "198.51.100.1", 7);
	struct destination port = {.node_port = true, .protocol = PROTOCOL_TCP, .port = 30007};

	assert_owner(&owners, port, "ns/a");
	port.protocol = PROTOCOL_UDP;
	assert_owner(&owners, port, "nobody");
	service_plan_unref(plan);
	address_owners_done(&owners);
	world_done(&world);
}

static void count(void *arg, const struct service *service attr_unused, bool external attr_unused,
		  bool balancer attr_unused)
{
	++*(size_t *)arg;
}

/* The table grows, and entries that leave from the middle of a run take none with them. */
static void many_come_and_every_other_one_goes(void **state attr_unused)
{
	struct world world = world_new();
	struct address_owners owners = {0};
	struct service_plan *plans[MANY];
	const struct destination shared = tcp80("198.51.100.1");
	char key[32], ip[32];
	size_t n = 0;

	for (unsigned int i = 0; i < MANY; i++) {
		snprintf(key, sizeof(key), "ns/s%03u", i);
		snprintf(ip, sizeof(ip), "10.96.%u.%u", i / 250, i % 250 + 1);
		plans[i] = add(&world, &owners, key, ip, "198.51.100.1", 1);
	}
	for (unsigned int i = 0; i < MANY; i += 2)
		plans[i] = drop(&owners, plans[i]);
	address_owners_each(&owners, &shared, count, &n);
	assert_int_equal(n, MANY / 2);
	assert_owner(&owners, shared, "ns/s001");
	for (unsigned int i = 0; i < MANY; i++) {
		snprintf(key, sizeof(key), "ns/s%03u", i);
		snprintf(ip, sizeof(ip), "10.96.%u.%u", i / 250, i % 250 + 1);
		assert_owner(&owners, tcp80(ip), i % 2 ? key : "nobody");
		service_plan_unref(plans[i]);
	}
	address_owners_done(&owners);
	world_done(&world);
}

#define CROWD 5000

/* Each of them asks, in a full sync: who has it must not depend on how many want it. */
static void who_has_it_is_found_at_once_in_a_crowd(void **state attr_unused)
{
	struct world world = world_new();
	struct address_owners owners = {0};
	static struct service_plan *plans[CROWD];
	const struct destination shared = tcp80("198.51.100.1");
	char key[32], ip[32];
	bool external;
	clock_t start;

	for (unsigned int i = 0; i < CROWD; i++) {
		snprintf(key, sizeof(key), "ns/s%04u", i);
		snprintf(ip, sizeof(ip), "10.96.%u.%u", i / 250, i % 250 + 1);
		plans[i] = add(&world, &owners, key, ip, "198.51.100.1", 9000 - i);
	}
	start = clock();
	for (unsigned int i = 0; i < CROWD; i++)
		assert_ptr_equal(address_owners_of(&owners, &shared, &external),
				 plans[CROWD - 1]->service);
	assert_true(clock() - start < CLOCKS_PER_SEC / 20);
	for (unsigned int i = 0; i < CROWD; i++)
		service_plan_unref(plans[i]);
	address_owners_done(&owners);
	world_done(&world);
}

static void print_moved(void *arg, const struct destination *destination)
{
	char *text = arg;

	destination_print(destination, text + strlen(text));
	strcat(text, " ");
}

static void assert_moved(struct address_owners *owners, const char *expected)
{
	char text[256] = "", again[256] = "";

	address_owners_each_moved(owners, print_moved, text);
	assert_string_equal(text, expected);
	address_owners_each_moved(owners, print_moved, again);
	assert_string_equal(again, expected);
	address_owners_settle(owners);
	again[0] = '\0';
	address_owners_each_moved(owners, print_moved, again);
	assert_string_equal(again, "");
}

#define MOVED "198.51.100.1:80/tcp 198.51.100.1 "

static void what_moves_is_told_and_what_comes_back_to_the_same_one_is_not(void **state attr_unused)
{
	struct world world = world_new();
	struct address_owners owners = {0};
	struct service_plan *a = add(&world, &owners, "ns/a", "10.96.0.1", "198.51.100.1", 100);
	struct service_plan *b = add(&world, &owners, "ns/b", "10.96.0.2", "198.51.100.1", 200);

	assert_moved(&owners, ""); /* the one that waits came behind */
	a = drop(&owners, a);
	a = add(&world, &owners, "ns/a", "10.96.0.1", "198.51.100.1", 150);
	assert_moved(&owners, ""); /* another object, the same Service */
	a = drop(&owners, a);
	a = add(&world, &owners, "ns/a", "10.96.0.1", "198.51.100.1", 300);
	assert_moved(&owners, MOVED);
	a = drop(&owners, a);
	assert_moved(&owners, "");
	a = add(&world, &owners, "ns/a", "10.96.0.1", "198.51.100.1", 50);
	assert_moved(&owners, MOVED);
	service_plan_unref(a);
	service_plan_unref(b);
	address_owners_done(&owners);
	world_done(&world);
}

/* The same Service has it, but now by its cluster IP: who named it was an equal, and is a thief now. */
static void what_becomes_a_cluster_ip_has_moved(void **state attr_unused)
{
	struct world world = world_new();
	struct address_owners owners = {0};
	struct service_plan *a = add(&world, &owners, "ns/a", "10.96.0.1", "198.51.100.1", 100);
	struct service_plan *b = add(&world, &owners, "ns/b", "10.96.0.2", "198.51.100.1", 200);

	assert_moved(&owners, "");
	a = drop(&owners, a);
	a = add(&world, &owners, "ns/a", "198.51.100.1", "198.51.100.9", 100);
	assert_moved(&owners, MOVED);
	service_plan_unref(a);
	service_plan_unref(b);
	address_owners_done(&owners);
	world_done(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_older_one_has_it_and_the_next_when_that_goes),
		cmocka_unit_test(a_cluster_ip_goes_before_everything_else),
		cmocka_unit_test(a_node_port_is_nobodys_address),
		cmocka_unit_test(many_come_and_every_other_one_goes),
		cmocka_unit_test(what_moves_is_told_and_what_comes_back_to_the_same_one_is_not),
		cmocka_unit_test(what_becomes_a_cluster_ip_has_moved),
		cmocka_unit_test(who_has_it_is_found_at_once_in_a_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
