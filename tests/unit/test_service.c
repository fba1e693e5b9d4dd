/* SPDX-License-Identifier: Apache-2.0 */
#include "build.h"

/* A Service of both families with something in every field. */
static struct service *rich_service(void)
{
	struct service *service = build_service("ns/svc", "10.96.0.1");

	build_cluster_ip(service, "fd00::1");
	build_port(service, "http", PROTOCOL_TCP, 80, 30080);
	build_port(service, "dns", PROTOCOL_UDP, 53, 0);
	build_external_ip(service, "1.1.1.1");
	build_external_ip(service, "2001:db8::1");
	build_vip(service, "2.2.2.2");
	build_vip(service, "2001:db8::2");
	build_source_range(service, "10.0.0.0/8");
	build_source_range(service, "2001:db8::/32");
	service->sticky_seconds = 10800;
	service->health_check_node_port = 345;
	service->external_local = true;
	return service;
}

static void names_are_set_at_birth(void **state attr_unused)
{
	struct service *service = service_new("kube-system", "kube-dns", 48);

	assert_string_equal(service->key, "kube-system/kube-dns");
	assert_string_equal(service->ns, "kube-system");
	assert_string_equal(service->name, "kube-dns");
	assert_ptr_equal(service_ref(service), service);
	assert_null(service_unref(service));
	assert_string_equal(service->name, "kube-dns");
	assert_null(service_unref(service));
	assert_null(service_unref(NULL));
}

static void protocols_have_api_and_rule_names(void **state attr_unused)
{
	enum protocol protocol = PROTOCOL_COUNT;

	assert_int_equal(protocol_parse("SCTP", &protocol), 0);
	assert_int_equal(protocol, PROTOCOL_SCTP);
	assert_string_equal(protocol_name(PROTOCOL_TCP), "tcp");
	assert_string_equal(protocol_name(PROTOCOL_UDP), "udp");
	assert_string_equal(protocol_name(PROTOCOL_SCTP), "sctp");
	assert_true(protocol_parse("tcp", &protocol) < 0);
	assert_true(protocol_parse("", &protocol) < 0);
	assert_int_equal(protocol, PROTOCOL_SCTP);
}

static void service_belongs_to_families_of_its_cluster_ips(void **state attr_unused)
{
	struct service *service = build_service("ns/svc", "fd00::1");

	assert_false(service_in_family(service, FAMILY_IPV6)); /* no port yet */
	build_port(service, "", PROTOCOL_TCP, 80, 0);
	assert_true(service_in_family(service, FAMILY_IPV6));
	assert_false(service_in_family(service, FAMILY_IPV4));
	assert_false(service_in_family(NULL, FAMILY_IPV4));
	service_unref(service);
}

static void ports_are_found_by_name_and_protocol(void **state attr_unused)
{
	struct service *service = build_service("ns/svc", "10.96.0.1");

	build_port(service, "dns", PROTOCOL_TCP, 53, 0);
	build_port(service, "dns", PROTOCOL_UDP, 54, 0);
	assert_int_equal(service_find_port(service, "dns", PROTOCOL_UDP)->port, 54);
	assert_int_equal(service_find_port(service, "dns", PROTOCOL_TCP)->port, 53);
	assert_null(service_find_port(service, "dns", PROTOCOL_SCTP));
	assert_null(service_find_port(service, "", PROTOCOL_TCP));
	service_unref(service);
}

static void same_content_is_equal(void **state attr_unused)
{
	struct service *a = rich_service(), *b = rich_service();

	for (size_t family = 0; family < FAMILY_COUNT; family++) {
		assert_true(service_equal(a, b, family));
		assert_true(service_equal(a, a, family));
		assert_false(service_equal(a, NULL, family));
		assert_false(service_equal(NULL, b, family));
		assert_true(service_equal(NULL, NULL, family));
	}
	service_unref(a);
	service_unref(b);
}

static void order_of_ports_does_not_count(void **state attr_unused)
{
	struct service *a = rich_service(), *b = rich_service();
	struct service_port swapped = b->ports[0];

	b->ports[0] = b->ports[1];
	b->ports[1] = swapped;
	assert_true(service_equal(a, b, FAMILY_IPV4));
	service_unref(a);
	service_unref(b);
}

static void service_not_in_family_equals_none(void **state attr_unused)
{
	struct service *a = build_service("ns/svc", "10.96.0.1");

	build_port(a, "", PROTOCOL_TCP, 80, 0);
	assert_true(service_equal(a, NULL, FAMILY_IPV6));
	assert_false(service_equal(a, NULL, FAMILY_IPV4));
	service_unref(a);
}

static void change_port_number(struct service *service)
{
	service->ports[1].port++;
}

static void change_node_port(struct service *service)
{
	service->ports[0].node_port++;
}

static void change_port_name(struct service *service)
{
	service->ports[0].name = "other";
}

static void change_protocol(struct service *service)
{
	service->ports[0].protocol = PROTOCOL_SCTP;
}

static void add_port(struct service *service)
{
	build_port(service, "more", PROTOCOL_TCP, 1, 0);
}

static void change_affinity(struct service *service)
{
	service->sticky_seconds = 0;
}

static void change_health_port(struct service *service)
{
	service->health_check_node_port = 0;
}

static void change_external_policy(struct service *service)
{
	service->external_local = false;
}

static void change_internal_policy(struct service *service)
{
	service->internal_local = true;
}

static void change_terminate(struct service *service)
{
	service->terminate = TERMINATE_ENDPOINT_REMOVED;
}

static void every_common_field_counts_in_both_families(void **state attr_unused)
{
	static void (*const changes[])(struct service *) = {
		change_port_number,
		change_node_port,
		change_port_name,
		change_protocol,
		add_port,
		change_affinity,
		change_health_port,
		change_external_policy,
		change_internal_policy,
		change_terminate,
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct service *a = rich_service(), *b = rich_service();

		changes[i](b);
		assert_false(service_equal(a, b, FAMILY_IPV4));
		assert_false(service_equal(b, a, FAMILY_IPV6));
		service_unref(a);
		service_unref(b);
	}
}

static void change_cluster_ip(struct service *service)
{
	build_cluster_ip(service, "fd00::2");
}

static void add_external_ip(struct service *service)
{
	build_external_ip(service, "2001:db8::9");
}

static void change_vip(struct service *service)
{
	service->vips[1] = build_addr("2001:db8::9");
}

static void change_range(struct service *service)
{
	service->source_ranges[1] = build_prefix("2001:db8::/33");
}

static void add_range(struct service *service)
{
	build_source_range(service, "fd00::/8");
}

static void fields_of_the_other_family_do_not_count(void **state attr_unused)
{
	static void (*const changes[])(struct service *) = {
		change_cluster_ip, add_external_ip, change_vip, change_range, add_range,
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct service *a = rich_service(), *b = rich_service();

		changes[i](b);
		assert_true(service_equal(a, b, FAMILY_IPV4));
		assert_false(service_equal(a, b, FAMILY_IPV6));
		assert_false(service_equal(b, a, FAMILY_IPV6));
		service_unref(a);
		service_unref(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_set_at_birth),
		cmocka_unit_test(protocols_have_api_and_rule_names),
		cmocka_unit_test(service_belongs_to_families_of_its_cluster_ips),
		cmocka_unit_test(ports_are_found_by_name_and_protocol),
		cmocka_unit_test(same_content_is_equal),
		cmocka_unit_test(order_of_ports_does_not_count),
		cmocka_unit_test(service_not_in_family_equals_none),
		cmocka_unit_test(every_common_field_counts_in_both_families),
		cmocka_unit_test(fields_of_the_other_family_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
