/* SPDX-License-Identifier: Apache-2.0 */

/* What the page is told, byte by byte. */

#include "page/status_json.h"
#include "status_world.h"

static char *print_service(struct status_world *world, const char *key, int64_t changed_s)
{
	cleanup_text struct text text = {0};
	struct service_log *log = service_log_new();
	uint64_t cursor = 0;

	service_log_touch(log, key, false, changed_s);
	status_json_service(&world->source, service_log_next(log, &cursor), &text);
	service_log_free(log);
	return text_dup(&text);
}

static void a_service_has_ports_with_entries_and_endpoints(void **state attr_unused)
{
	struct status_world *world = status_world_new(&backend_iptables);
	struct service *service = build_service("default/web", "10.96.0.1");
	struct draft *slice = build_slice("default/web-1", "web", FAMILY_IPV4);
	cleanup_free char *json = NULL;

	build_port(service, "", PROTOCOL_UDP, 53, 30053);
	build_external_ip(service, "198.51.100.1");
	build_vip(service, "198.51.100.2");
	model_set_service(world->model, service);
	build_slice_port(slice, "", PROTOCOL_UDP, 53);
	build_endpoint(slice, "10.244.1.1", "node-b", BUILD_READY);
	build_endpoint(slice, "10.244.1.2", "node-b", BUILD_UNREADY);
	build_set_slice(world->model, slice);
	status_settle(world);
	json = print_service(world, "default/web", 7);
	assert_string_equal(
		json,
		"{\"service\":\"default/web\",\"changed\":7,\"type\":\"LoadBalancer\",\"ports\":["
		"{\"id\":\"default/web:53\",\"protocol\":\"udp\",\"used\":1,\"endpoints\":2,"
		"\"entries\":[[\"10.96.0.1:53\",\"cluster IP\",\"10.96.0.1:53\"],"
		"[\"198.51.100.1:53\",\"external IP\",\"198.51.100.1:53\"],"
		"[\"198.51.100.2:53\",\"load balancer IP\",\"198.51.100.2:53\"],"
		"[\":30053\",\"node port\",\"192.168.0.2:30053\"]]}]}");
	status_world_free(world);
}

static void a_service_that_is_gone_has_no_ports(void **state attr_unused)
{
	struct status_world *world = status_world_new(&backend_iptables);
	cleanup_free char *json = print_service(world, "default/web", 0);

	assert_string_equal(json, "{\"service\":\"default/web\",\"changed\":0,\"type\":\"\","
				  "\"ports\":[]}");
	status_world_free(world);
}

static void a_family_that_is_not_proxied_has_no_entries(void **state attr_unused)
{
	struct status_world *world = status_world_new(&backend_iptables);
	cleanup_free char *json = NULL;

	status_add(world, "default/web", "10.96.0.1", 2);
	status_settle(world);
	world->proxied = false;
	json = print_service(world, "default/web", 0);
	assert_non_null(strstr(json, "\"used\":0,\"endpoints\":0,\"entries\":[]"));
	status_world_free(world);
}

/* An object's name may be anything that a manifest says: it stays inside its string, in one line. */
static void names_cannot_leave_their_string(void **state attr_unused)
{
	struct status_world *world = status_world_new(&backend_iptables);
	cleanup_free char *json = NULL;

	status_add(world, "default/\"]}<script>\n\xff", "10.96.0.1", 0);
	status_settle(world);
	json = print_service(world, "default/\"]}<script>\n\xff", 0);
	assert_non_null(strstr(json, "\"service\":\"default/\\\"]}<script>\\n\\ufffd\""));
	assert_null(strchr(json, '\n'));
	status_world_free(world);
}

static void a_service_with_thousands_of_addresses_stays_small(void **state attr_unused)
{
	struct status_world *world = status_world_new(&backend_iptables);
	struct service *service = build_service("default/web", "10.96.0.1");
	cleanup_free char *json = NULL;

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	for (int i = 0; i < 3000; i++) {
		cleanup_free char *ip = xasprintf("198.18.%d.%d", i / 250, i % 250);

		build_external_ip(service, ip);
	}
	model_set_service(world->model, service);
	status_settle(world);
	json = print_service(world, "default/web", 0);
	assert_true(strlen(json) < 2000);
	assert_non_null(strstr(json, "\"more\":2985"));
	status_world_free(world);
}

static void gauges_have_health_counts_and_the_table(void **state attr_unused)
{
	struct status_world *world = status_world_new(&backend_iptables);
	cleanup_text struct text text = {0};
	cleanup_free char *json = NULL;

	status_add(world, "default/web", "10.96.0.1", 3);
	status_settle(world);
	world->gauges = (struct status_gauges){.conntrack = 5, .conntrack_max = 10};
	world->gauges.reason = (char[]){"a \"reason\""};
	world->gauges.degraded = (char[]){"held"};
	status_json_gauges(&world->source, 1, 2, &text);
	json = text_dup(&text);
	assert_string_equal(json, "{\"services\":1,\"endpoints\":3,\"repairs\":2,\"conntrack\":5,"
				  "\"conntrack_max\":10,\"healthy\":false,"
				  "\"reason\":\"a \\\"reason\\\"\",\"degraded\":\"held\"}");
	status_world_free(world);
}

static void traffic_is_told_by_the_ids_of_rows(void **state attr_unused)
{
	struct status_world *world = status_world_new(&backend_nftables);
	cleanup_text struct text text = {0};
	cleanup_free char *json = NULL;

	status_json_hello(&world->source, &text);
	status_json_traffic(&world->source, 1500, &text);
	json = text_dup(&text);
	assert_string_equal(json, "{\"node\":\"node-a\",\"mode\":\"nftables\",\"version\":"
				  "\"1.2.3\",\"kubernetes\":\"v1.37\",\"rates\":false}"
				  "{\"ms\":1500,\"connections\":{\"default/web:http\":12,"
				  "\"default/web:80\":3}}");
	status_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_service_has_ports_with_entries_and_endpoints),
		cmocka_unit_test(a_service_that_is_gone_has_no_ports),
		cmocka_unit_test(a_family_that_is_not_proxied_has_no_entries),
		cmocka_unit_test(names_cannot_leave_their_string),
		cmocka_unit_test(a_service_with_thousands_of_addresses_stays_small),
		cmocka_unit_test(gauges_have_health_counts_and_the_table),
		cmocka_unit_test(traffic_is_told_by_the_ids_of_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
