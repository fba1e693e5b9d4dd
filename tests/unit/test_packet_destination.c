/* SPDX-License-Identifier: Apache-2.0 */

/* Where somebody wants to connect to: what is understood, what is not, and which port is meant. */

#include <errno.h>

#include "build.h"
#include "inspect/packet_destination.h"

struct fixture {
	struct model *model;
	struct settings settings;
	struct packet packet;
	struct err err;
};

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct service *web = build_service("default/web", "10.96.0.10");
	struct service *dns = build_service("kube-system/dns", "10.96.0.53");
	struct service *six = build_service("default/six", "fd00::6");

	f->model = model_new("node-a", 0);
	f->settings.node_ip = build_addr("192.168.0.2");
	build_port(web, "", PROTOCOL_TCP, 80, 30080);
	build_port(dns, "dns", PROTOCOL_UDP, 53, 0);
	build_port(dns, "dns-tcp", PROTOCOL_TCP, 53, 0);
	build_port(dns, "metrics", PROTOCOL_TCP, 9153, 0);
	build_port(six, "only", PROTOCOL_UDP, 5000, 0);
	model_set_service(f->model, web);
	model_set_service(f->model, dns);
	model_set_service(f->model, six);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	model_free(f->model);
	free(f);
	return 0;
}

/* 0 and the packet, or the error of whichever step fails. */
static int resolve(struct fixture *f, const char *text, enum protocol protocol)
{
	cleanup_packet_destination struct packet_destination destination = {0};
	int r = packet_destination_parse(text, &destination, &f->err);

	f->packet = (struct packet){0};
	if (r == 0)
		r = packet_destination_family(&destination, f->model, FAMILY_IPV4,
					      &f->packet.family, &f->err);
	return r < 0 ? r
		     : packet_destination_resolve(&destination, f->model, &f->settings, protocol,
						  &f->packet, &f->err);
}

static void assert_resolves(struct fixture *f, const char *text, const char *addr, uint16_t port,
			    enum protocol protocol)
{
	struct addr expected = build_addr(addr);

	assert_int_equal(resolve(f, text, PROTOCOL_COUNT), 0);
	assert_true(addr_equal(&f->packet.destination, &expected));
	assert_int_equal(f->packet.port, port);
	assert_int_equal(f->packet.protocol, protocol);
	assert_int_equal(f->packet.family, expected.family);
}

static void addresses_are_taken_as_they_are(void **state)
{
	assert_resolves(*state, "10.96.0.10:80", "10.96.0.10", 80, PROTOCOL_TCP);
	assert_resolves(*state, "[fd00::6]:80", "fd00::6", 80, PROTOCOL_TCP);
	assert_resolves(*state, "10.9.9.9:65535", "10.9.9.9", 65535, PROTOCOL_TCP);
}

static void the_protocol_is_that_of_the_service_there(void **state)
{
	assert_resolves(*state, "[fd00::6]:5000", "fd00::6", 5000, PROTOCOL_UDP);
	/* of both, tcp */
	assert_resolves(*state, "10.96.0.53:53", "10.96.0.53", 53, PROTOCOL_TCP);
}

static void services_are_found_by_name_and_number(void **state)
{
	assert_resolves(*state, "service/default/web", "10.96.0.10", 80, PROTOCOL_TCP);
	assert_resolves(*state, "svc/default/web:80", "10.96.0.10", 80, PROTOCOL_TCP);
	assert_resolves(*state, "svc/kube-system/dns:dns", "10.96.0.53", 53, PROTOCOL_UDP);
	assert_resolves(*state, "svc/kube-system/dns:53", "10.96.0.53", 53, PROTOCOL_TCP);
	assert_resolves(*state, "svc/default/six", "fd00::6", 5000, PROTOCOL_UDP);
}

static void a_node_port_is_on_the_nodes_address(void **state)
{
	assert_resolves(*state, ":30080", "192.168.0.2", 30080, PROTOCOL_TCP);
}

static void what_cannot_be_is_refused_with_a_reason(void **state)
{
	static const char *const wrong[] = {
		"",
		"nonsense",
		"10.96.0.10",
		"10.96.0.10:",
		"10.96.0.10:0",
		"10.96.0.10:http",
		"10.96.0.10:65536",
		"fd00::6:80",
		"[10.96.0.10]:80",
		"[fd00::6]",
		":",
		":http",
		"service/web",
		"service//web",
		"service/a/b/c",
		"service/default/",
		"service/default/web:",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		f->err.text[0] = '\0';
		assert_int_equal(resolve(f, wrong[i], PROTOCOL_COUNT), -EINVAL);
		assert_true(f->err.text[0]);
	}
}

static void ports_that_a_service_lacks_are_named_with_those_it_has(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(resolve(f, "svc/kube-system/dns:http", PROTOCOL_COUNT), -ENOENT);
	assert_string_equal(f->err.text, "service kube-system/dns has no such port; it has 53/udp "
					 "(dns), 53/tcp (dns-tcp), 9153/tcp (metrics)");
	assert_int_equal(resolve(f, "svc/kube-system/dns", PROTOCOL_COUNT), -EINVAL);
	assert_non_null(strstr(f->err.text, "several ports"));
	assert_int_equal(resolve(f, "svc/default/web", PROTOCOL_UDP), -ENOENT);
	assert_int_equal(resolve(f, "svc/default/nobody", PROTOCOL_COUNT), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(addresses_are_taken_as_they_are, setup, teardown),
		cmocka_unit_test_setup_teardown(the_protocol_is_that_of_the_service_there, setup,
						teardown),
		cmocka_unit_test_setup_teardown(services_are_found_by_name_and_number, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_node_port_is_on_the_nodes_address, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_is_refused_with_a_reason, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			ports_that_a_service_lacks_are_named_with_those_it_has, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
