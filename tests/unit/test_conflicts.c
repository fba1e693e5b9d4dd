/* SPDX-License-Identifier: Apache-2.0 */

/* Who is told that it asks for what is not its own, and when again. */

#include <stdio.h>

#include "count_visits.h"
#include "plan/conflicts.h"
#include "plan_world.h"

struct lab {
	struct world world;
	struct address_owners owners;
	struct conflicts conflicts;
	struct conflicts_view view;
	struct addr node[1];
	char heard[1024]; /* "kind service destination owner; ..." since the last assert */
};

static void hear(void *arg, const struct conflict *conflict)
{
	struct lab *lab = arg;
	size_t n = strlen(lab->heard);

	snprintf(lab->heard + n, sizeof(lab->heard) - n, "%s %s %s %s; ",
		 conflict_kind_name(conflict->kind), conflict->service, conflict->destination,
		 conflict->owner ? conflict->owner : "-");
}

static void lab_init(struct lab *lab)
{
	*lab = (struct lab){.world = world_new(), .node = {build_addr("192.0.2.11")}};
	lab->view = (struct conflicts_view){
		.owners = &lab->owners,
		.node_addresses = lab->node,
		.n_node_addresses = 1,
		.fn = hear,
		.arg = lab,
	};
}

static void lab_done(struct lab *lab)
{
	conflicts_done(&lab->conflicts);
	address_owners_done(&lab->owners);
	world_done(&lab->world);
}

/* In place of `old`, which is freed. NULL for either: it comes, or goes. */
static struct service_plan *change(struct lab *lab, struct service_plan *old,
				   struct service *service)
{
	struct model_changes changes;
	struct service_plan *plan = NULL;

	if (service) {
		model_set_service(lab->world.model, service);
		model_take_changes(lab->world.model, FAMILY_IPV4, &changes);
		model_changes_done(&changes);
		plan = plan_service(&lab->world.settings, lab->world.model, service->key);
		assert_non_null(plan);
	}
	if (old)
		address_owners_remove(&lab->owners, old);
	if (plan)
		address_owners_add(&lab->owners, plan);
	conflicts_look(&lab->conflicts, &lab->view, old, plan);
	conflicts_look_moved(&lab->conflicts, &lab->view);
	address_owners_settle(&lab->owners);
	service_plan_unref(old);
	return plan;
}

/* Ports 80 and 81; external_ip and vip may be NULL. */
static struct service *made(const char *key, const char *cluster_ip, const char *external_ip,
			    const char *vip, uint32_t created_s)
{
	struct service *service = build_service(key, cluster_ip);

	build_port(service, "a", PROTOCOL_TCP, 80, 0);
	build_port(service, "b", PROTOCOL_TCP, 81, 0);
	if (external_ip)
		build_external_ip(service, external_ip);
	if (vip)
		build_vip(service, vip);
	service->created_s = created_s;
	return service;
}

static void assert_heard(struct lab *lab, const char *expected)
{
	assert_string_equal(lab->heard, expected);
	lab->heard[0] = '\0';
}

static void assert_counts(const struct lab *lab, size_t destinations, size_t cluster_ips,
			  size_t node_addresses)
{
	assert_int_equal(lab->conflicts.counts[CONFLICT_DESTINATION], destinations);
	assert_int_equal(lab->conflicts.counts[CONFLICT_CLUSTER_IP], cluster_ips);
	assert_int_equal(lab->conflicts.counts[CONFLICT_NODE_ADDRESS], node_addresses);
}

#define TAKEN "cluster_ip aaa/evil 10.96.0.10 kube-system/dns; "

static void a_foreign_cluster_ip_is_told_once_and_not_for_each_port(void **state attr_unused)
{
	struct lab lab;
	struct service_plan *evil, *dns;

	lab_init(&lab);
	evil = change(&lab, NULL, made("aaa/evil", "10.96.0.66", "10.96.0.10", "10.96.0.10", 1));
	assert_heard(&lab, "");
	dns = change(&lab, NULL, made("kube-system/dns", "10.96.0.10", NULL, NULL, 9));
	assert_heard(&lab, TAKEN); /* although it came first */
	assert_counts(&lab, 0, 1, 0);
	evil = change(&lab, evil, made("aaa/evil", "10.96.0.66", "10.96.0.10", NULL, 1));
	assert_heard(&lab, ""); /* it asks as before */
	evil = change(&lab, evil, made("aaa/evil", "10.96.0.66", NULL, NULL, 1));
	assert_counts(&lab, 0, 0, 0);
	evil = change(&lab, evil, made("aaa/evil", "10.96.0.66", NULL, "10.96.0.10", 1));
	assert_heard(&lab, TAKEN);
	dns = change(&lab, dns, NULL);
	assert_heard(&lab, "");
	assert_counts(&lab, 0, 0, 0);
	change(&lab, evil, NULL);
	lab_done(&lab);
}

static void who_waits_for_a_destination_is_told_and_again_after_it_had_it(void **state attr_unused)
{
	static const char waits[] = "destination ns/young 198.51.100.1:80/tcp ns/old; "
				    "destination ns/young 198.51.100.1:81/tcp ns/old; ";
	struct lab lab;
	struct service_plan *young, *old;

	lab_init(&lab);
	young = change(&lab, NULL, made("ns/young", "10.96.0.1", "198.51.100.1", NULL, 9));
	old = change(&lab, NULL, made("ns/old", "10.96.0.2", "198.51.100.1", NULL, 1));
	assert_heard(&lab, waits);
	assert_counts(&lab, 2, 0, 0);
	old = change(&lab, old, NULL);
	assert_counts(&lab, 0, 0, 0);
	old = change(&lab, old, made("ns/old", "10.96.0.2", "198.51.100.1", NULL, 1));
	assert_heard(&lab, waits);
	change(&lab, young, NULL);
	assert_counts(&lab, 0, 0, 0);
	change(&lab, old, NULL);
	assert_heard(&lab, "");
	lab_done(&lab);
}

static void an_address_of_the_node_is_told_as_external_ip_alone(void **state attr_unused)
{
	struct lab lab;
	struct service_plan *plan, *balancer;

	lab_init(&lab);
	balancer = change(&lab, NULL, made("ns/lb", "10.96.0.1", NULL, "192.0.2.11", 1));
	assert_heard(&lab, "");
	plan = change(&lab, NULL, made("ns/own", "10.96.0.2", "192.0.2.11", NULL, 9));
	assert_heard(&lab, "destination ns/own 192.0.2.11:80/tcp ns/lb; "
			   "destination ns/own 192.0.2.11:81/tcp ns/lb; "
			   "node_address ns/own 192.0.2.11 -; ");
	balancer = change(&lab, balancer, NULL);
	assert_counts(&lab, 0, 0, 1);
	change(&lab, plan, NULL);
	assert_counts(&lab, 0, 0, 0);
	lab_done(&lab);
}

/* The load balancer's status may name it too, which is no conflict, and takes none back. */
static void
an_address_of_the_node_is_told_once_though_a_balancer_has_it_too(void **state attr_unused)
{
	struct lab lab;
	struct service_plan *plan;

	lab_init(&lab);
	plan = change(&lab, NULL, made("ns/own", "10.96.0.2", "192.0.2.11", "192.0.2.11", 9));
	assert_heard(&lab, "node_address ns/own 192.0.2.11 -; ");
	assert_counts(&lab, 0, 0, 1);
	plan = change(&lab, plan, made("ns/own", "10.96.0.2", "192.0.2.11", "192.0.2.11", 9));
	assert_heard(&lab, "");
	assert_counts(&lab, 0, 0, 1);
	plan = change(&lab, plan, made("ns/own", "10.96.0.2", NULL, "192.0.2.11", 9));
	assert_counts(&lab, 0, 0, 0);
	change(&lab, plan, NULL);
	lab_done(&lab);
}

static void look_at_all(struct lab *lab, const struct service_plan *a, const struct service_plan *b)
{
	conflicts_begin_all(&lab->conflicts);
	conflicts_look_own(&lab->conflicts, &lab->view, a);
	conflicts_look_own(&lab->conflicts, &lab->view, b);
	conflicts_end_all(&lab->conflicts);
}

static void a_look_at_all_finds_the_same_and_tells_only_what_is_new(void **state attr_unused)
{
	struct lab lab;
	struct service_plan *evil, *dns;

	lab_init(&lab);
	evil = change(&lab, NULL, made("aaa/evil", "10.96.0.66", "10.96.0.10", NULL, 1));
	dns = change(&lab, NULL, made("kube-system/dns", "10.96.0.10", NULL, NULL, 9));
	assert_heard(&lab, TAKEN);
	look_at_all(&lab, evil, dns);
	assert_heard(&lab, "");
	assert_counts(&lab, 0, 1, 0);
	conflicts_done(&lab.conflicts); /* as after a start */
	look_at_all(&lab, evil, dns);
	assert_heard(&lab, TAKEN);
	address_owners_remove(&lab.owners, evil); /* gone between two of them */
	conflicts_begin_all(&lab.conflicts);
	conflicts_look_own(&lab.conflicts, &lab.view, dns);
	conflicts_end_all(&lab.conflicts);
	assert_counts(&lab, 0, 0, 0);
	service_plan_unref(evil);
	service_plan_unref(dns);
	lab_done(&lab);
}

#define CROWD 40

static struct service *made_one_of_many(unsigned int i, uint32_t created_s)
{
	char key[32], ip[32];

	snprintf(key, sizeof(key), "ns/s%02u", i);
	snprintf(ip, sizeof(ip), "10.96.1.%u", i);
	return made(key, ip, "198.51.100.1", NULL, created_s);
}

/* A Service that is written again and asks for the same makes no difference to the others. */
static void others_are_looked_at_only_when_a_destination_moves(void **state attr_unused)
{
	struct lab lab;
	struct service_plan *plans[CROWD];

	n_visits = 0;
	lab_init(&lab);
	for (unsigned int i = 0; i < CROWD; i++)
		plans[i] = change(&lab, NULL, made_one_of_many(i, 100 + i));
	assert_counts(&lab, (size_t)2 * (CROWD - 1), 0, 0);
	assert_int_equal(n_visits, 0); /* each waits behind the first, which stays */
	lab.heard[0] = '\0';
	for (unsigned int i = 0; i < CROWD; i++)
		plans[i] = change(&lab, plans[i], made_one_of_many(i, 100 + i));
	assert_heard(&lab, "");
	assert_counts(&lab, (size_t)2 * (CROWD - 1), 0, 0);
	assert_int_equal(n_visits, 0);
	plans[7] = change(&lab, plans[7], made_one_of_many(7, 1)); /* now the oldest */
	assert_heard(&lab, "destination ns/s00 198.51.100.1:80/tcp ns/s07; "
			   "destination ns/s00 198.51.100.1:81/tcp ns/s07; ");
	assert_counts(&lab, (size_t)2 * (CROWD - 1), 0, 0);
	assert_int_equal(n_visits, 3 * 2 * CROWD); /* two ports and the address, twice each */
	for (unsigned int i = 0; i < CROWD; i++)
		service_plan_unref(plans[i]);
	lab_done(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_foreign_cluster_ip_is_told_once_and_not_for_each_port),
		cmocka_unit_test(who_waits_for_a_destination_is_told_and_again_after_it_had_it),
		cmocka_unit_test(an_address_of_the_node_is_told_as_external_ip_alone),
		cmocka_unit_test(an_address_of_the_node_is_told_once_though_a_balancer_has_it_too),
		cmocka_unit_test(others_are_looked_at_only_when_a_destination_moves),
		cmocka_unit_test(a_look_at_all_finds_the_same_and_tells_only_what_is_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
