/* SPDX-License-Identifier: Apache-2.0 */

/* Rules that depend on settings, on the host, or on a policy: is the right one there? */

#include <stdio.h>

#include "cluster.h"
#include "fixed_text.h"

#define PLAIN     "XPGD46QRK7WJZT7O"          /* ns1/svc1:p80 */
#define PLAIN_SEP "KUBE-SEP-SXIVWICOYRO3J4NJ" /* 10.180.0.1:80 */

static void no_endpoints_reject_on_every_address(void **state attr_unused)
{
	struct service *service = build_service("ns1/svc1", "172.30.0.41");
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	build_external_ip(service, "192.168.99.11");
	build_vip(service, "1.2.3.4");
	build_source_range(service, "203.0.113.0/25");
	cluster_serve(&c, service, "p80", 80, 3001);
	cluster_sync(&c);
	assert_true(cluster_wrote(&c, "-A KUBE-SERVICES -m comment --comment"
				      " \"ns1/svc1:p80 has no endpoints\" -m tcp -p tcp"
				      " -d 172.30.0.41 --dport 80 -j REJECT"));
	assert_true(cluster_wrote(&c, "-A KUBE-EXTERNAL-SERVICES -m comment --comment"
				      " \"ns1/svc1:p80 has no endpoints\" -m tcp -p tcp"
				      " -d 192.168.99.11 --dport 80 -j REJECT"));
	assert_true(cluster_wrote(&c, "-A KUBE-EXTERNAL-SERVICES -m comment --comment"
				      " \"ns1/svc1:p80 has no endpoints\" -m tcp -p tcp"
				      " -d 1.2.3.4 --dport 80 -j REJECT"));
	assert_true(cluster_wrote(&c, "-A KUBE-EXTERNAL-SERVICES -m comment --comment"
				      " \"ns1/svc1:p80 has no endpoints\""
				      " -m addrtype --dst-type LOCAL -m tcp -p tcp --dport 3001"
				      " -j REJECT"));
	assert_int_equal(cluster_count_lines(&c, "", PLAIN), 0); /* no chain, no firewall */
	cluster_done(&c);
}

static void drop_invalid_plain_counted_or_absent(void **state attr_unused)
{
	static const struct {
		bool liberal, nfacct;
		const char *rule;
	} cases[] = {
		{false, false, "-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\n"},
		{false, true, DROP_INVALID},
		{true, true, ""},
		{true, false, ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cluster c;
		char expected[1024];

		cluster_init(&c, FAMILY_IPV4);
		c.host.be_liberal = cases[i].liberal;
		c.host.nfacct_invalid = cases[i].nfacct;
		cluster_sync(&c);
		snprintf(expected, sizeof(expected), "%s%s%s", LOOPBACK_GUARD, cases[i].rule,
			 FORWARD_ACCEPT "COMMIT\n");
		assert_non_null(strstr(c.text, expected));
		cluster_done(&c);
	}
}

static void masquerade_is_random_fully(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	cluster_sync(&c);
	assert_non_null(strstr(c.text, MASQUERADE));
	cluster_done(&c);
}

static void health_check_node_port_is_accepted_without_endpoints(void **state attr_unused)
{
#define HEALTH_CHECK                                                                  \
	"KUBE-NODEPORTS -m comment --comment \"ns1/svc1:p80 health check node port\"" \
	" -m tcp -p tcp --dport 30000 -j ACCEPT"
	struct service *service = build_service("ns1/svc1", "172.30.0.42");
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	cluster_node_ports(&c, (const char *const[]){"127.0.0.0/8", NULL});
	service->external_local = true;
	service->health_check_node_port = 30000;
	cluster_serve(&c, service, "p80", 80, 3001);
	cluster_sync(&c);
	assert_true(cluster_wrote(&c, "-A " HEALTH_CHECK));
	model_remove_service(c.model, "ns1/svc1");
	cluster_sync(&c);
	assert_true(cluster_wrote(&c, "-D " HEALTH_CHECK));
	cluster_done(&c);
}

static void bad_ips_are_written_canonically(void **state attr_unused)
{
	struct service *service = build_service("ns1/svc1", "172.30.0.041");
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	build_vip(service, "1.2.3.004");
	build_external_ip(service, "192.168.099.022");
	build_source_range(service, "203.0.113.000/025");
	cluster_serve(&c, service, "p80", 80, 3001);
	cluster_slice(&c, "ns1/svc1", "p80", 80, "10.180.00.001");
	cluster_sync(&c);
	assert_true(cluster_wrote(&c, "-A KUBE-SERVICES -m comment --comment"
				      " \"ns1/svc1:p80 cluster IP\" -m tcp -p tcp"
				      " -d 172.30.0.41 --dport 80 -j KUBE-SVC-" PLAIN));
	assert_true(cluster_wrote(&c, "-A KUBE-SERVICES -m comment --comment"
				      " \"ns1/svc1:p80 external IP\" -m tcp -p tcp"
				      " -d 192.168.99.22 --dport 80 -j KUBE-EXT-" PLAIN));
	assert_true(cluster_wrote(&c, "-A KUBE-SERVICES -m comment --comment"
				      " \"ns1/svc1:p80 loadbalancer IP\" -m tcp -p tcp"
				      " -d 1.2.3.4 --dport 80 -j KUBE-FW-" PLAIN));
	assert_true(cluster_wrote(&c, "-A KUBE-FW-" PLAIN " -m comment --comment"
				      " \"ns1/svc1:p80 loadbalancer IP\" -s 203.0.113.0/25"
				      " -j KUBE-EXT-" PLAIN));
	assert_true(cluster_wrote(&c, "-A " PLAIN_SEP " -m comment --comment ns1/svc1:p80"
				      " -m tcp -p tcp -j DNAT --to-destination 10.180.0.1:80"));
	cluster_done(&c);
}

/* Detectors */

static void set_interface(struct cluster *c, enum detector_kind kind, const char *name)
{
	c->settings.detector = (struct detector){.kind = kind};
	strcpy(c->settings.detector.interface, name);
}

/* The not-local and the local match as they stand in rules; NULL: the rule is absent. */
static void check_detector(struct cluster *c, const char *not_local, const char *local)
{
	struct service *service = build_service("ns1/svc1", "172.30.0.41");
	char rule[512];

	service->external_local = true;
	cluster_serve(c, service, "p80", 80, 3001);
	cluster_slice(c, "ns1/svc1", "p80", 80, "10.180.0.1@" CLUSTER_NODE);
	cluster_sync(c);
	snprintf(rule, sizeof(rule),
		 "-A KUBE-SVC-" PLAIN " -m comment --comment \"ns1/svc1:p80 cluster IP\" -m tcp"
		 " -p tcp -d 172.30.0.41 --dport 80%s -j KUBE-MARK-MASQ",
		 not_local ? not_local : "");
	assert_int_equal(cluster_wrote(c, rule), not_local != NULL);
	assert_int_equal(cluster_count_lines(c, "-A KUBE-SVC-" PLAIN, "cluster IP"),
			 not_local != NULL);
	snprintf(rule, sizeof(rule),
		 "-A KUBE-EXT-" PLAIN " -m comment --comment"
		 " \"pod traffic for ns1/svc1:p80 external destinations\"%s -j KUBE-SVC-" PLAIN,
		 local ? local : "");
	assert_int_equal(cluster_wrote(c, rule), local != NULL);
	assert_int_equal(cluster_count_lines(c, "-A KUBE-EXT-" PLAIN, "pod traffic"),
			 local != NULL);
	cluster_done(c);
}

static void detector_by_cidr(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	check_detector(&c, " ! -s 10.0.0.0/8", " -s 10.0.0.0/8");
	cluster_init(&c, FAMILY_IPV4);
	c.settings.detector.cidr = build_prefix("10.1.2.3/32");
	check_detector(&c, " ! -s 10.1.2.3/32", " -s 10.1.2.3/32");
}

static void detector_by_bridge_interface(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	set_interface(&c, DETECTOR_BRIDGE, "cni0");
	check_detector(&c, " ! -i cni0", " -i cni0");
}

static void detector_by_interface_name_prefix(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	set_interface(&c, DETECTOR_INTERFACE, "veth");
	check_detector(&c, " ! -i veth+", " -i veth+");
}

static void without_a_detector_nobody_is_local(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	c.settings.detector.kind = DETECTOR_NONE;
	check_detector(&c, NULL, NULL);
}

static void a_cidr_of_length_zero_leaves_out_the_rule_that_no_kernel_takes(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	c.settings.detector.cidr = build_prefix("0.0.0.0/0");
	check_detector(&c, NULL, " -s 0.0.0.0/0");
}

static void masquerade_all_needs_no_detector(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	c.settings.masquerade_all = true;
	check_detector(&c, "", " -s 10.0.0.0/8");
	cluster_init(&c, FAMILY_IPV4);
	c.settings.masquerade_all = true;
	c.settings.detector.kind = DETECTOR_NONE;
	check_detector(&c, "", NULL);
}

/* The last rule of KUBE-SERVICES */

static void node_ports_on_all_addresses_without_localhost(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	c.settings.localhost_node_ports = false;
	cluster_serve(&c, build_service("ns1/svc1", "172.30.0.41"), "p80", 80, 3001);
	cluster_slice(&c, "ns1/svc1", "p80", 80, "10.180.0.1");
	cluster_sync(&c);
	assert_non_null(strstr(
		c.text, TO_NODE_PORTS(" -m addrtype --dst-type LOCAL ! -d 127.0.0.0/8") "COMMIT"));
	assert_int_equal(cluster_count_lines(&c, "", "KUBE-FIREWALL"), 0);
	assert_int_equal(cluster_count_lines(&c, "-A KUBE-NODEPORTS", "127.0.0.0/8"), 0);
	cluster_done(&c);
}

static void node_ports_on_chosen_addresses_sorted(void **state attr_unused)
{
	struct addr addresses[] = {
		build_addr("192.168.1.3"), build_addr("127.0.0.1"),   build_addr("192.168.0.2"),
		build_addr("172.16.0.1"),  build_addr("192.168.0.2"), build_addr("fe80::1"),
	};
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	cluster_node_ports(
		&c, (const char *const[]){"192.168.0.0/16", "127.0.0.0/8", "fe80::/10", NULL});
	cluster_sync_on(&c, addresses, ARRAY_SIZE(addresses));
	assert_true(c.begun.wants_addresses);
	assert_non_null(strstr(c.text, "0x00004000\n" TO_NODE_PORTS(" -d 127.0.0.1")
					       TO_NODE_PORTS(" -d 192.168.0.2")
						       TO_NODE_PORTS(" -d 192.168.1.3") "COMMIT"));
	cluster_sync_on(&c, addresses, 1);
	assert_string_equal(c.text, "*nat\n" REMOVED(" -d 127.0.0.1") REMOVED(" -d 192.168.0.2")
					    REMOVED(" -d 192.168.1.3")
						    TO_NODE_PORTS(" -d 192.168.1.3") "COMMIT\n");
	c.settings.localhost_node_ports = false;
	ruleset_need_full_sync(c.ruleset);
	cluster_sync_on(&c, addresses, ARRAY_SIZE(addresses));
	assert_non_null(strstr(c.text, "0x00004000\n" TO_NODE_PORTS(" -d 192.168.0.2")
					       TO_NODE_PORTS(" -d 192.168.1.3") "COMMIT"));
	cluster_sync(&c); /* addresses could not be read */
	assert_string_equal(c.text, "*nat\n" REMOVED(" -d 192.168.0.2")
					    REMOVED(" -d 192.168.1.3") "COMMIT\n");
	cluster_done(&c);
}

static void node_ports_on_chosen_addresses_of_ipv6_skip_loopback(void **state attr_unused)
{
	struct addr addresses[] = {build_addr("::1"), build_addr("2001:db8::2")};
	struct cluster c;

	cluster_init(&c, FAMILY_IPV6);
	cluster_node_ports(&c, (const char *const[]){"2001:db8::/32", "::1/128", NULL});
	cluster_sync_on(&c, addresses, ARRAY_SIZE(addresses));
	assert_non_null(strstr(c.text, "0x00004000\n" TO_NODE_PORTS(" -d 2001:db8::2") "COMMIT"));
	cluster_done(&c);
}

/* Shapes that the examples above do not show */

static void policy_local_for_internal_traffic_has_its_own_chain(void **state attr_unused)
{
	struct service *service = build_service("ns1/svc1", "172.30.0.41");
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	service->internal_local = true;
	cluster_serve(&c, service, "p80", 80, 3001);
	cluster_slice(&c, "ns1/svc1", "p80", 80, "10.180.0.1@" CLUSTER_NODE " 10.180.0.2");
	cluster_sync(&c);
	assert_true(cluster_wrote(&c, "-A KUBE-SERVICES -m comment --comment"
				      " \"ns1/svc1:p80 cluster IP\" -m tcp -p tcp"
				      " -d 172.30.0.41 --dport 80 -j KUBE-SVL-" PLAIN));
	assert_non_null(strstr(c.text, "-A KUBE-SVL-" PLAIN " -m comment --comment"
				       " \"ns1/svc1:p80 cluster IP\" -m tcp -p tcp"
				       " -d 172.30.0.41 --dport 80 ! -s 10.0.0.0/8"
				       " -j KUBE-MARK-MASQ\n"));
	assert_int_equal(cluster_count_lines(&c, "-A KUBE-SVL-" PLAIN, ""), 2);
	assert_int_equal(cluster_count_lines(&c, "-A KUBE-SVC-" PLAIN, "-> "), 2);
	assert_int_equal(cluster_count_lines(&c, "-A KUBE-SVC-" PLAIN, "cluster IP"), 0);
	assert_int_equal(cluster_count_lines(&c, ":KUBE-SEP-", ""), 2);
	cluster_done(&c);
}

static void policy_local_for_internal_traffic_drops_without_local_endpoint(void **state attr_unused)
{
	struct service *service = build_service("ns1/svc1", "172.30.0.41");
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	service->internal_local = true;
	cluster_serve(&c, service, "p80", 80, 0);
	cluster_slice(&c, "ns1/svc1", "p80", 80, "10.180.0.2");
	cluster_sync(&c);
	assert_true(cluster_wrote(&c, "-A KUBE-SERVICES -m comment --comment"
				      " \"ns1/svc1:p80 has no local endpoints\" -m tcp -p tcp"
				      " -d 172.30.0.41 --dport 80 -j DROP"));
	assert_int_equal(cluster_count_lines(&c, "", PLAIN), 0);
	cluster_done(&c);
}

static void protocols_on_one_port_are_apart(void **state attr_unused)
{
	static const enum protocol protocols[] = {PROTOCOL_SCTP, PROTOCOL_TCP, PROTOCOL_UDP};
	struct service *service = build_service("ns1/svc1", "fd00:172:30::41");
	struct draft *slice = build_slice("ns1/svc1-a", "svc1", FAMILY_IPV6);
	struct cluster c;

	cluster_init(&c, FAMILY_IPV6);
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		build_port(service, "p80", protocols[i], 80, 0);
		build_slice_port(slice, "p80", protocols[i], 8080);
	}
	build_endpoint(slice, "fd00:10:180::1", NULL, BUILD_READY);
	model_set_service(c.model, service);
	build_set_slice(c.model, slice);
	cluster_sync(&c);
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		const char *name = protocol_name(protocols[i]);
		char words[128];

		snprintf(words, sizeof(words), "-m %s -p %s -d fd00:172:30::41 --dport 80 -j ",
			 name, name);
		assert_int_equal(cluster_count_lines(&c, "-A KUBE-SERVICES", words), 1);
		snprintf(words, sizeof(words),
			 "-m %s -p %s -j DNAT --to-destination [fd00:10:180::1]:8080", name, name);
		assert_int_equal(cluster_count_lines(&c, "-A KUBE-SEP-", words), 1);
	}
	assert_int_equal(cluster_count_lines(&c, ":KUBE-SVC-", ""), 3);
	assert_int_equal(cluster_count_lines(&c, ":KUBE-SEP-", ""), 3);
	cluster_done(&c);
}

static void services_stand_in_order_of_namespace_and_name(void **state attr_unused)
{
	static const char *const keys[] = {"a-b/a", "a/c", "a.b/a", "b/a", "a/b", "a/b-1"};
	static const char order[] = "a/b a/b-1 a/c a-b/a a.b/a b/a ";
	struct cluster c;
	char found[128] = "", ip[32];

	cluster_init(&c, FAMILY_IPV4);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		snprintf(ip, sizeof(ip), "172.30.0.%zu", i + 1);
		cluster_serve(&c, build_service(keys[i], ip), "", 80, 0);
		if (i % 2 == 1) /* some at once, the others one by one */
			cluster_sync(&c);
	}
	ruleset_need_full_sync(c.ruleset);
	cluster_sync(&c);
	for (char *at = c.text; (at = strstr(at, "--comment \"a")) || (at = NULL);) {
		at += strlen("--comment \"");
		strncat(found, at, strcspn(at, " ") + 1);
	}
	strcat(found, strstr(c.text, "\"b/a has") ? "b/a " : "");
	assert_string_equal(found, order);
	cluster_done(&c);
}

static void hidden_external_ips_leave_a_chain_that_nothing_reaches(void **state attr_unused)
{
	struct service *service = build_service("ns1/svc1", "172.30.0.41");
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	c.settings.allow_external_ips = false;
	build_external_ip(service, "192.168.99.11");
	cluster_serve(&c, service, "p80", 80, 0);
	cluster_slice(&c, "ns1/svc1", "p80", 80, "10.180.0.1");
	cluster_sync(&c);
	assert_int_equal(cluster_count_lines(&c, "", "192.168.99.11"), 0);
	assert_int_equal(cluster_count_lines(&c, ":KUBE-EXT-" PLAIN, ""), 1);
	assert_int_equal(cluster_count_lines(&c, "-A KUBE-EXT-" PLAIN, ""), 2);
	cluster_done(&c);
}

static void a_comment_is_cut_before_it_is_too_long_for_the_kernel(void **state attr_unused)
{
	struct cluster c;
	char key[600];
	const char *comment;

	cluster_init(&c, FAMILY_IPV4);
	memset(key, 'n', sizeof(key));
	key[63] = '/';
	key[sizeof(key) - 1] = '\0';
	cluster_serve(&c, build_service(key, "172.30.0.41"), "p80", 80, 0);
	cluster_sync(&c);
	comment = strstr(c.text, "--comment nn");
	assert_non_null(comment);
	assert_int_equal(strcspn(comment + strlen("--comment "), " "), RULE_COMMENT_MAX);
	cluster_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_endpoints_reject_on_every_address),
		cmocka_unit_test(drop_invalid_plain_counted_or_absent),
		cmocka_unit_test(masquerade_is_random_fully),
		cmocka_unit_test(health_check_node_port_is_accepted_without_endpoints),
		cmocka_unit_test(bad_ips_are_written_canonically),
		cmocka_unit_test(detector_by_cidr),
		cmocka_unit_test(detector_by_bridge_interface),
		cmocka_unit_test(detector_by_interface_name_prefix),
		cmocka_unit_test(without_a_detector_nobody_is_local),
		cmocka_unit_test(a_cidr_of_length_zero_leaves_out_the_rule_that_no_kernel_takes),
		cmocka_unit_test(masquerade_all_needs_no_detector),
		cmocka_unit_test(node_ports_on_all_addresses_without_localhost),
		cmocka_unit_test(node_ports_on_chosen_addresses_sorted),
		cmocka_unit_test(node_ports_on_chosen_addresses_of_ipv6_skip_loopback),
		cmocka_unit_test(policy_local_for_internal_traffic_has_its_own_chain),
		cmocka_unit_test(policy_local_for_internal_traffic_drops_without_local_endpoint),
		cmocka_unit_test(protocols_on_one_port_are_apart),
		cmocka_unit_test(services_stand_in_order_of_namespace_and_name),
		cmocka_unit_test(hidden_external_ips_leave_a_chain_that_nothing_reaches),
		cmocka_unit_test(a_comment_is_cut_before_it_is_too_long_for_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
