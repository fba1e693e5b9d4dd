/* SPDX-License-Identifier: Apache-2.0 */

/* Which service port a flow belongs to, by its original destination. */

#include <netinet/in.h>
#include <stdio.h>

#include "build.h"
#include "conntrack/service_fronts.h"
#include "kernel/conntrack.h"

static const char *owner_of(const struct service_fronts *fronts, uint8_t protocol, const char *dst,
			    uint16_t port)
{
	static char name[256];
	struct conntrack_flow flow = {.protocol = protocol};
	const struct front_owner *owner;
	char *text;

	flow.original.dst = build_addr(dst);
	flow.original.dst_port = port;
	owner = service_fronts_find(fronts, &flow);
	text = owner ? front_owner_name(owner) : xstrdup("");
	snprintf(name, sizeof(name), "%s", text);
	free(text);
	return name;
}

#define OWNER(protocol, dst, port, name) \
	assert_string_equal(owner_of(fronts, IPPROTO_##protocol, dst, port), name)

static void every_way_to_a_service_is_known(void **state attr_unused)
{
	struct model *model = model_new("node-a", 0);
	struct service *service = build_service("default/web", "10.96.0.10");
	struct service_fronts *fronts;

	build_cluster_ip(service, "fd00::10");
	build_port(service, "http", PROTOCOL_TCP, 80, 30080);
	build_port(service, "", PROTOCOL_UDP, 53, 0);
	build_vip(service, "1.2.3.4");
	build_external_ip(service, "5.6.7.8");
	model_set_service(model, service);
	fronts = service_fronts_new(model);
	OWNER(TCP, "10.96.0.10", 80, "default/web:http/tcp");
	OWNER(TCP, "fd00::10", 80, "default/web:http/tcp");
	OWNER(TCP, "1.2.3.4", 80, "default/web:http/tcp");
	OWNER(TCP, "5.6.7.8", 80, "default/web:http/tcp");
	OWNER(TCP, "192.168.0.2", 30080, "default/web:http/tcp");
	OWNER(TCP, "fe80::1", 30080, "default/web:http/tcp");
	OWNER(UDP, "10.96.0.10", 53, "default/web:53/udp");
	OWNER(UDP, "10.96.0.10", 80, "");
	OWNER(TCP, "10.96.0.11", 80, "");
	OWNER(UDP, "192.168.0.2", 30080, "");
	OWNER(SCTP, "10.96.0.10", 80, "");
	service_fronts_free(fronts);
	model_free(model);
}

static void the_older_of_two_has_the_address(void **state attr_unused)
{
	struct model *model = model_new("node-a", 0);
	struct service_fronts *fronts;

	for (uint32_t i = 0; i < 3; i++) {
		static const char *const keys[] = {"a/young", "b/old", "c/old"};
		struct service *service = build_service(keys[i], "10.96.0.10");

		build_port(service, "p", PROTOCOL_TCP, 80, 0);
		service->created_s = i == 0 ? 2000 : 1000;
		model_set_service(model, service);
	}
	fronts = service_fronts_new(model);
	OWNER(TCP, "10.96.0.10", 80, "b/old:p/tcp");
	assert_int_equal(service_fronts_count(fronts), 3);
	service_fronts_free(fronts);
	model_free(model);
}

static void thousands_are_found(void **state attr_unused)
{
	struct model *model = model_new("node-a", 0);
	struct service_fronts *fronts;
	char key[32], addr[32], name[64];

	for (unsigned int i = 0; i < 5000; i++) {
		struct service *service;

		snprintf(key, sizeof(key), "default/s%u", i);
		snprintf(addr, sizeof(addr), "10.%u.%u.1", i / 250, i % 250);
		service = build_service(key, addr);
		build_port(service, "p", PROTOCOL_TCP, 80, (uint16_t)(30000 + i));
		model_set_service(model, service);
	}
	fronts = service_fronts_new(model);
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(addr, sizeof(addr), "10.%u.%u.1", i / 250, i % 250);
		snprintf(name, sizeof(name), "default/s%u:p/tcp", i);
		OWNER(TCP, addr, 80, name);
		OWNER(TCP, "192.168.0.2", (uint16_t)(30000 + i), name);
	}
	service_fronts_free(fronts);
	model_free(model);
}

static void without_services_nothing_is_found(void **state attr_unused)
{
	struct model *model = model_new("node-a", 0);
	struct service_fronts *fronts = service_fronts_new(model);
	const struct conntrack_flow nothing = {0};

	OWNER(TCP, "10.96.0.10", 80, "");
	assert_null(service_fronts_find(fronts, &nothing));
	assert_null(service_fronts_free(fronts));
	assert_null(service_fronts_free(NULL));
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way_to_a_service_is_known),
		cmocka_unit_test(the_older_of_two_has_the_address),
		cmocka_unit_test(thousands_are_found),
		cmocka_unit_test(without_services_nothing_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
