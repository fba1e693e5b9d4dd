/* SPDX-License-Identifier: Apache-2.0 */

/* Services and the Node in the model: what is kept, and what counts as a change. */

#include "model/model.h"
#include "slice_text.h"

#define IPV4 (1U << FAMILY_IPV4)
#define IPV6 (1U << FAMILY_IPV6)

static int set_up(void **state)
{
	*state = model_new("host1", 0);
	return 0;
}

static int tear_down(void **state)
{
	model_free(*state);
	return 0;
}

/* Takes the changes of a family and compares the keys, which are given with spaces between. */
static void assert_taken(struct model *model, enum family family, const char *keys)
{
	cleanup_free char *got = xstrdup("");
	struct model_changes changes;

	model_take_changes(model, family, &changes);
	for (size_t i = 0; i < changes.n_services; i++) {
		char *before = got;

		got = xasprintf("%s%s%s", before, i ? " " : "", changes.services[i]);
		free(before);
	}
	assert_string_equal(got, keys);
	assert_false(model_has_changes(model, family));
	model_changes_done(&changes);
}

static struct service *simple_service(const char *key, const char *cluster_ip)
{
	struct service *service = build_service(key, cluster_ip);

	build_port(service, "p", PROTOCOL_TCP, 80, 0);
	return service;
}

struct totals {
	size_t services, ports, health_ports;
};

/* What the Services of a family add up to. */
static struct totals count(const struct model *model, enum family family)
{
	struct totals totals = {0};
	const struct service *service;
	size_t at = 0;

	while ((service = model_next_service(model, &at))) {
		if (!service_in_family(service, family))
			continue;
		totals.services++;
		totals.ports += service->n_ports;
		totals.health_ports += service->health_check_node_port != 0;
	}
	return totals;
}

static struct service *load_balancer(const char *key, const char *cluster_ip, uint16_t health_port)
{
	struct service *service = build_service(key, cluster_ip);

	build_port(service, "a", PROTOCOL_UDP, 8675, 30061);
	build_port(service, "b", PROTOCOL_UDP, 8676, 30062);
	build_vip(service, "1.2.3.4");
	service->external_local = health_port != 0;
	service->health_check_node_port = health_port;
	return service;
}

static void build_service_map_add_remove(void **state)
{
	struct model *model = *state;
	struct service *service;

	service = build_service("ns/cluster-ip", "172.30.55.4");
	build_port(service, "p1", PROTOCOL_UDP, 1234, 0);
	build_port(service, "p2", PROTOCOL_UDP, 1235, 0);
	build_port(service, "p3", PROTOCOL_SCTP, 8675, 0);
	assert_int_equal(model_set_service(model, service), IPV4);
	service = build_service("ns/node-port", "172.30.55.10");
	build_port(service, "p1", PROTOCOL_UDP, 345, 30060);
	build_port(service, "p2", PROTOCOL_TCP, 344, 30061);
	build_port(service, "p3", PROTOCOL_SCTP, 343, 30062);
	model_set_service(model, service);
	model_set_service(model, load_balancer("ns/load-balancer", "172.30.55.11", 0));
	model_set_service(model, load_balancer("ns/only-local", "172.30.55.12", 345));
	assert_int_equal(model_pending_services(model, FAMILY_IPV4), 4);
	assert_int_equal(count(model, FAMILY_IPV4).ports, 10);
	assert_int_equal(count(model, FAMILY_IPV4).health_ports, 1);
	assert_taken(model, FAMILY_IPV4,
		     "ns/cluster-ip ns/load-balancer ns/node-port ns/only-local");
	assert_int_equal(model_pending_services(model, FAMILY_IPV4), 0);
	assert_false(model_has_changes(model, FAMILY_IPV6));

	/* one shrinks to a port, the others go */
	service = simple_service("ns/cluster-ip", "172.30.55.4");
	assert_int_equal(model_set_service(model, service), IPV4);
	assert_int_equal(model_remove_service(model, "ns/node-port"), IPV4);
	assert_int_equal(model_remove_service(model, "ns/load-balancer"), IPV4);
	assert_int_equal(model_remove_service(model, "ns/only-local"), IPV4);
	assert_int_equal(count(model, FAMILY_IPV4).ports, 1);
	assert_int_equal(count(model, FAMILY_IPV4).health_ports, 0);
	assert_taken(model, FAMILY_IPV4,
		     "ns/cluster-ip ns/load-balancer ns/node-port ns/only-local");
}

static void build_service_map_service_update(void **state)
{
	struct model *model = *state;

	model_set_service(model, simple_service("ns/svc", "172.30.55.4"));
	assert_taken(model, FAMILY_IPV4, "ns/svc");
	assert_int_equal(count(model, FAMILY_IPV4).health_ports, 0);
	/* to a load balancer with its health port */
	assert_int_equal(model_set_service(model, load_balancer("ns/svc", "172.30.55.4", 345)),
			 IPV4);
	assert_taken(model, FAMILY_IPV4, "ns/svc");
	assert_int_equal(count(model, FAMILY_IPV4).health_ports, 1);
	/* the same again changes nothing */
	assert_int_equal(model_set_service(model, load_balancer("ns/svc", "172.30.55.4", 345)), 0);
	assert_taken(model, FAMILY_IPV4, "");
	assert_int_equal(count(model, FAMILY_IPV4).ports, 2);
	/* and back */
	model_set_service(model, simple_service("ns/svc", "172.30.55.4"));
	assert_taken(model, FAMILY_IPV4, "ns/svc");
	assert_int_equal(count(model, FAMILY_IPV4).health_ports, 0);
	assert_int_equal(count(model, FAMILY_IPV4).ports, 1);
}

static void service_cache_leaks_add_then_delete_leaves_nothing(void **state)
{
	struct model *model = *state;

	assert_int_equal(model_set_service(model, simple_service("ns/svc", "10.0.0.1")), IPV4);
	assert_int_equal(model_remove_service(model, "ns/svc"), 0);
	assert_false(model_has_changes(model, FAMILY_IPV4));
	assert_int_equal(model_pending_services(model, FAMILY_IPV4), 0);
	assert_null(model_service(model, "ns/svc"));
	assert_taken(model, FAMILY_IPV4, "");
}

static void service_that_changes_back_is_no_change(void **state)
{
	struct model *model = *state;

	model_set_service(model, simple_service("ns/svc", "10.0.0.1"));
	assert_taken(model, FAMILY_IPV4, "ns/svc");
	assert_int_equal(model_set_service(model, simple_service("ns/svc", "10.0.0.2")), IPV4);
	assert_int_equal(model_set_service(model, simple_service("ns/svc", "10.0.0.3")), IPV4);
	assert_int_equal(model_pending_services(model, FAMILY_IPV4), 1);
	assert_int_equal(model_set_service(model, simple_service("ns/svc", "10.0.0.1")), 0);
	assert_false(model_has_changes(model, FAMILY_IPV4));
	/* so is one that is deleted and comes back */
	assert_int_equal(model_remove_service(model, "ns/svc"), IPV4);
	assert_int_equal(model_set_service(model, simple_service("ns/svc", "10.0.0.1")), 0);
	assert_false(model_has_changes(model, FAMILY_IPV4));
}

static void changes_taken_back_in_any_order_leave_the_others(void **state)
{
	struct model *model = *state;

	model_set_service(model, simple_service("ns/a", "10.0.0.1"));
	model_set_service(model, simple_service("ns/b", "10.0.0.2"));
	model_set_service(model, simple_service("ns/c", "10.0.0.3"));
	model_set_service(model, simple_service("ns/d", "10.0.0.4"));
	assert_int_equal(model_remove_service(model, "ns/a"), IPV4);
	assert_int_equal(model_remove_service(model, "ns/d"), IPV4);
	assert_int_equal(model_pending_services(model, FAMILY_IPV4), 2);
	assert_taken(model, FAMILY_IPV4, "ns/b ns/c");
}

/* A call says that something is pending, whichever call it came from. */
static void set_service_reports_earlier_changes_too(void **state)
{
	struct model *model = *state;

	model_set_service(model, simple_service("ns/a", "10.0.0.1"));
	assert_taken(model, FAMILY_IPV4, "ns/a");
	assert_int_equal(model_set_service(model, simple_service("ns/b", "10.0.0.2")), IPV4);
	assert_int_equal(model_set_service(model, simple_service("ns/a", "10.0.0.1")), IPV4);
	assert_taken(model, FAMILY_IPV4, "ns/b");
}

static void removing_an_unknown_service_is_no_change(void **state)
{
	struct model *model = *state;

	assert_int_equal(model_remove_service(model, "ns/none"), 0);
	build_set_slice(model, slice_from_text("ns/s svc p=80/tcp 10.1.0.1"));
	assert_int_equal(model_remove_service(model, "ns/svc"), 0);
}

static void families_track_apart(void **state)
{
	struct model *model = *state;
	struct service *service = simple_service("ns/dual", "10.0.0.1");

	build_cluster_ip(service, "fd00::1");
	assert_int_equal(model_set_service(model, service), IPV4 | IPV6);
	assert_int_equal(model_set_service(model, simple_service("ns/six", "fd00::2")), IPV6);
	assert_taken(model, FAMILY_IPV4, "ns/dual");
	assert_true(model_has_changes(model, FAMILY_IPV6));
	assert_taken(model, FAMILY_IPV6, "ns/dual ns/six");
	/* a change of one family's address is of no interest to the other */
	service = simple_service("ns/dual", "10.0.0.1");
	build_cluster_ip(service, "fd00::9");
	assert_int_equal(model_set_service(model, service), IPV6);
	assert_taken(model, FAMILY_IPV4, "");
	assert_taken(model, FAMILY_IPV6, "ns/dual");
}

/* Each family compares with what it took itself, however often the other one looked in between. */
static void change_back_is_seen_by_the_family_that_took_the_change(void **state)
{
	struct model *model = *state;
	struct service *service;

	for (int i = 0; i < 3; i++) {
		service = simple_service("ns/dual", "10.0.0.1");
		build_cluster_ip(service, "fd00::1");
		service->internal_local = i == 1;
		model_set_service(model, service);
		assert_taken(model, FAMILY_IPV4, "ns/dual");
		if (i == 0)
			assert_taken(model, FAMILY_IPV6, "ns/dual");
	}
	assert_taken(model, FAMILY_IPV6, "");
}

/* Nobody takes its changes: whatever was kept for it would be kept for ever. */
static void ignored_family_keeps_nothing(void **state)
{
	struct model *model = *state;
	struct service *service = simple_service("ns/dual", "10.0.0.1");

	build_cluster_ip(service, "fd00::1");
	model_set_service(model, service);
	build_set_slice(model, slice_from_text("ns/four dual p=80/tcp 10.1.0.1"));
	build_set_slice(model, slice_from_text("ns/six dual p=80/tcp fd00::2"));
	build_set_slice(model, slice_from_text("ns/other gone p=80/tcp fd00::3"));
	model_ignore_family(model, FAMILY_IPV6);
	assert_false(model_has_changes(model, FAMILY_IPV6));
	assert_int_equal(model_pending_services(model, FAMILY_IPV6), 0);
	assert_int_equal(model_pending_slices(model, FAMILY_IPV6), 0);
	assert_int_equal(model_set_service(model, simple_service("ns/six", "fd00::4")), 0);
	assert_int_equal(build_set_slice(model, slice_from_text("ns/six dual p=81/tcp fd00::2")),
			 0);
	assert_int_equal(model_remove_slice(model, "ns/six"), 0);
	assert_int_equal(model_remove_service(model, "ns/six"), 0);
	assert_taken(model, FAMILY_IPV6, "");
	assert_taken(model, FAMILY_IPV4, "ns/dual");
	assert_non_null(model_endpoints(model, FAMILY_IPV4, "ns/dual", "p", PROTOCOL_TCP));
}

static void slice_that_moves_to_an_ignored_family_leaves_the_other(void **state)
{
	struct model *model = *state;

	model_ignore_family(model, FAMILY_IPV6);
	model_set_service(model, simple_service("ns/svc", "10.0.0.1"));
	build_set_slice(model, slice_from_text("ns/s svc p=80/tcp 10.1.0.1"));
	assert_taken(model, FAMILY_IPV4, "ns/svc");
	assert_int_equal(build_set_slice(model, slice_from_text("ns/s svc p=80/tcp fd00::2")),
			 IPV4);
	assert_taken(model, FAMILY_IPV4, "ns/svc");
	assert_null(model_endpoints(model, FAMILY_IPV4, "ns/svc", "p", PROTOCOL_TCP));
}

static void service_without_cluster_ip_or_ports_is_no_change(void **state)
{
	struct model *model = *state;
	struct service *service = build_service("ns/none", NULL);

	build_port(service, "p", PROTOCOL_TCP, 80, 0);
	assert_int_equal(model_set_service(model, service), 0);
	assert_int_equal(model_set_service(model, build_service("ns/portless", "10.0.0.1")), 0);
	assert_false(model_has_changes(model, FAMILY_IPV4));
	assert_int_equal(count(model, FAMILY_IPV4).services, 0);
}

static void turning_headless_removes_the_service(void **state)
{
	struct model *model = *state;

	model_set_service(model, simple_service("ns/svc", "10.0.0.1"));
	assert_taken(model, FAMILY_IPV4, "ns/svc");
	assert_int_equal(model_set_service(model, simple_service("ns/svc", NULL)), IPV4);
	assert_taken(model, FAMILY_IPV4, "ns/svc");
}

static void newest_service_is_read(void **state)
{
	struct model *model = *state;

	assert_null(model_service(model, "ns/svc"));
	model_set_service(model, simple_service("ns/svc", "10.0.0.1"));
	model_set_service(model, simple_service("ns/svc", "10.0.0.2"));
	assert_int_equal(model_service(model, "ns/svc")->cluster_ip[FAMILY_IPV4].bytes[3], 2);
	assert_string_equal(model_node_name(model), "host1");
}

static void walk_skips_keys_without_a_service(void **state)
{
	struct model *model = *state;

	build_set_slice(model, slice_from_text("ns/s orphan p=80/tcp 10.1.0.1"));
	model_set_service(model, simple_service("ns/svc", "10.0.0.1"));
	assert_int_equal(count(model, FAMILY_IPV4).services, 1);
}

static void count_follows_services_and_slices(void **state)
{
	struct model *model = *state;
	struct service *service;

	/* not counted before they are taken, nor without a Service */
	build_set_slice(model, slice_from_text("ns/s1 svc p=80/tcp,q=81/tcp 10.1.0.1,10.1.0.2!u"));
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV4), 0);
	assert_taken(model, FAMILY_IPV4, "ns/svc");
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV4), 0);
	/* only the ports that the Service has */
	model_set_service(model, simple_service("ns/svc", "10.0.0.1"));
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV4), 2);
	service = simple_service("ns/svc", "10.0.0.1");
	build_port(service, "q", PROTOCOL_TCP, 81, 0);
	model_set_service(model, service);
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV4), 4);
	/* by protocol too */
	service = build_service("ns/svc", "10.0.0.1");
	build_port(service, "p", PROTOCOL_UDP, 80, 0);
	model_set_service(model, service);
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV4), 0);
	model_set_service(model, simple_service("ns/svc", "10.0.0.1"));
	/* a slice more, then none */
	build_set_slice(model, slice_from_text("ns/s2 svc p=80/tcp 10.1.0.2,10.1.0.3,10.1.0.4"));
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV4), 2);
	assert_taken(model, FAMILY_IPV4, "ns/svc");
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV4), 4);
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV6), 0);
	model_remove_slice(model, "ns/s1");
	model_remove_slice(model, "ns/s2");
	assert_taken(model, FAMILY_IPV4, "ns/svc");
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV4), 0);
}

static void count_falls_when_the_service_goes(void **state)
{
	struct model *model = *state;

	model_set_service(model, simple_service("ns/svc", "10.0.0.1"));
	build_set_slice(model, slice_from_text("ns/s1 svc p=80/tcp 10.1.0.1,10.1.0.2"));
	assert_taken(model, FAMILY_IPV4, "ns/svc");
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV4), 2);
	model_remove_service(model, "ns/svc");
	assert_int_equal(model_count_endpoints(model, FAMILY_IPV4), 0);
	assert_non_null(model_endpoints(model, FAMILY_IPV4, "ns/svc", "p", PROTOCOL_TCP));
}

static struct node *node_in_zone(const char *zone)
{
	struct node *node = node_new("host1");

	node->zone = arena_strdup(node->arena, zone);
	return node;
}

static void node_zone_change_asks_for_a_full_sync(void **state)
{
	struct model *model = *state;

	assert_string_equal(model_zone(model), "");
	assert_false(model_set_node(model, node_in_zone("")));
	assert_true(model_set_node(model, node_in_zone("zone-a")));
	assert_string_equal(model_zone(model), "zone-a");
	assert_false(model_set_node(model, node_in_zone("zone-a")));
	assert_true(model_set_node(model, node_in_zone("zone-b")));
	assert_true(model_set_node(model, node_in_zone("")));
}

static void node_newest_object_is_returned(void **state)
{
	struct model *model = *state;
	struct node *node = node_in_zone("zone-a");

	assert_null(model_node(model));
	model_set_node(model, node_in_zone("zone-a"));
	node->being_deleted = true;
	assert_false(model_set_node(model, node));
	assert_true(model_node(model)->being_deleted);
}

static void node_deletion_leaves_no_node_and_no_zone(void **state)
{
	struct model *model = *state;

	assert_false(model_set_node(model, NULL));
	model_set_node(model, node_in_zone("zone-a"));
	assert_true(model_set_node(model, NULL));
	assert_string_equal(model_zone(model), "");
	assert_null(model_node(model));
}

static void model_may_be_freed_with_changes_pending(void **state attr_unused)
{
	struct model *model = model_new("host1", 0);

	model_set_service(model, simple_service("ns/svc", "10.0.0.1"));
	build_set_slice(model, slice_from_text("ns/s1 svc p=80/tcp 10.1.0.1"));
	assert_null(model_free(model));
	assert_null(model_free(NULL));
}

#define MODEL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MODEL_TEST(build_service_map_add_remove),
		MODEL_TEST(build_service_map_service_update),
		MODEL_TEST(service_cache_leaks_add_then_delete_leaves_nothing),
		MODEL_TEST(service_that_changes_back_is_no_change),
		MODEL_TEST(changes_taken_back_in_any_order_leave_the_others),
		MODEL_TEST(set_service_reports_earlier_changes_too),
		MODEL_TEST(removing_an_unknown_service_is_no_change),
		MODEL_TEST(families_track_apart),
		MODEL_TEST(change_back_is_seen_by_the_family_that_took_the_change),
		MODEL_TEST(ignored_family_keeps_nothing),
		MODEL_TEST(slice_that_moves_to_an_ignored_family_leaves_the_other),
		MODEL_TEST(service_without_cluster_ip_or_ports_is_no_change),
		MODEL_TEST(turning_headless_removes_the_service),
		MODEL_TEST(newest_service_is_read),
		MODEL_TEST(walk_skips_keys_without_a_service),
		MODEL_TEST(count_follows_services_and_slices),
		MODEL_TEST(count_falls_when_the_service_goes),
		MODEL_TEST(node_zone_change_asks_for_a_full_sync),
		MODEL_TEST(node_newest_object_is_returned),
		MODEL_TEST(node_deletion_leaves_no_node_and_no_zone),
		cmocka_unit_test(model_may_be_freed_with_changes_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
