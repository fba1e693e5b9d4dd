/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which rules a set of Services gets: whole texts, and numbers. test_ruleset_choices.c has single
 * rules, test_ruleset_sync.c what changes bring.
 */

#include <stdio.h>

#include "cluster.h"
#include "fixed_text.h"

static void an_empty_cluster_has_the_skeleton(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	cluster_sync(&c);
	assert_string_equal(c.text, FILTER_CHAINS CHAIN("KUBE-FIREWALL") LOOPBACK_GUARD DROP_INVALID
					    FORWARD_ACCEPT NAT_CHAINS MASQUERADE TO_NODE_PORTS(
						    " -m addrtype --dst-type LOCAL") "COMMIT\n");
	cluster_done(&c);
}

static void the_skeleton_of_ipv6_has_no_localhost(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV6);
	cluster_sync(&c);
	assert_string_equal(
		c.text,
		FILTER_CHAINS DROP_INVALID FORWARD_ACCEPT NAT_CHAINS MASQUERADE TO_NODE_PORTS(
			" -m addrtype --dst-type LOCAL ! -d ::1/128") "COMMIT\n");
	cluster_done(&c);
}

/* A shop: everything that one LoadBalancer Service can have, and one without endpoints. */

#define CART   "I5LIAMPLWKMBJ54B"
#define CART_A "KUBE-SEP-27VOFYQ7SVOL37XI"
#define CART_B "KUBE-SEP-BQDHVMWANCT6EYGM"

/* clang-format off */
static const char shop_text[] =
	FILTER_CHAINS CHAIN("KUBE-FIREWALL") LOOPBACK_GUARD
	"-A KUBE-SERVICES -m comment --comment \"shop/audit has no endpoints\" -m udp -p udp"
	" -d 10.96.10.21 --dport 514 -j REJECT\n"
	"-A KUBE-PROXY-FIREWALL -m comment"
	" --comment \"shop/cart:http traffic not accepted by KUBE-FW-" CART "\" -m tcp -p tcp"
	" -d 198.51.100.7 --dport 80 -j DROP\n"
	"-A KUBE-NODEPORTS -m comment --comment \"shop/cart:http health check node port\""
	" -m tcp -p tcp --dport 32000 -j ACCEPT\n"
	DROP_INVALID FORWARD_ACCEPT NAT_CHAINS
	CHAIN("KUBE-EXT-" CART)
	CHAIN("KUBE-FW-" CART)
	CHAIN("KUBE-SVC-" CART)
	CHAIN("KUBE-SVL-" CART)
	CHAIN(CART_A)
	CHAIN(CART_B)
	MASQUERADE
	"-A KUBE-SERVICES -m comment --comment \"shop/cart:http cluster IP\" -m tcp -p tcp"
	" -d 10.96.10.20 --dport 80 -j KUBE-SVC-" CART "\n"
	"-A KUBE-SERVICES -m comment --comment \"shop/cart:http loadbalancer IP\" -m tcp -p tcp"
	" -d 198.51.100.7 --dport 80 -j KUBE-FW-" CART "\n"
	"-A KUBE-NODEPORTS -m comment --comment shop/cart:http -m tcp -p tcp -d 127.0.0.0/8"
	" --dport 31080 -m nfacct --nfacct-name localhost_nps_accepted_pkts -j KUBE-EXT-" CART "\n"
	"-A KUBE-NODEPORTS -m comment --comment shop/cart:http -m tcp -p tcp --dport 31080"
	" -j KUBE-EXT-" CART "\n"
	"-A KUBE-SVC-" CART " -m comment --comment \"shop/cart:http cluster IP\" -m tcp -p tcp"
	" -d 10.96.10.20 --dport 80 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ\n"
	"-A KUBE-EXT-" CART " -m comment"
	" --comment \"pod traffic for shop/cart:http external destinations\" -s 10.244.0.0/16"
	" -j KUBE-SVC-" CART "\n"
	"-A KUBE-EXT-" CART " -m comment"
	" --comment \"masquerade LOCAL traffic for shop/cart:http external destinations\""
	" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ\n"
	"-A KUBE-EXT-" CART " -m comment"
	" --comment \"route LOCAL traffic for shop/cart:http external destinations\""
	" -m addrtype --src-type LOCAL -j KUBE-SVC-" CART "\n"
	"-A KUBE-EXT-" CART " -j KUBE-SVL-" CART "\n"
	"-A KUBE-FW-" CART " -m comment --comment \"shop/cart:http loadbalancer IP\""
	" -s 192.0.2.0/24 -j KUBE-EXT-" CART "\n"
	"-A KUBE-FW-" CART " -m comment --comment \"shop/cart:http loadbalancer IP\""
	" -s 198.51.100.7 -j KUBE-EXT-" CART "\n"
	"-A KUBE-FW-" CART " -m comment"
	" --comment \"other traffic to shop/cart:http will be dropped by KUBE-PROXY-FIREWALL\"\n"
	"-A KUBE-SVC-" CART " -m comment --comment \"shop/cart:http -> 10.244.1.5:8080\""
	" -m recent --name " CART_A " --rcheck --seconds 600 --reap -j " CART_A "\n"
	"-A KUBE-SVC-" CART " -m comment --comment \"shop/cart:http -> 10.244.2.9:8080\""
	" -m recent --name " CART_B " --rcheck --seconds 600 --reap -j " CART_B "\n"
	"-A KUBE-SVC-" CART " -m comment --comment \"shop/cart:http -> 10.244.1.5:8080\""
	" -m statistic --mode random --probability 0.5000000000 -j " CART_A "\n"
	"-A KUBE-SVC-" CART " -m comment --comment \"shop/cart:http -> 10.244.2.9:8080\""
	" -j " CART_B "\n"
	"-A KUBE-SVL-" CART " -m comment --comment \"shop/cart:http -> 10.244.1.5:8080\""
	" -m recent --name " CART_A " --rcheck --seconds 600 --reap -j " CART_A "\n"
	"-A KUBE-SVL-" CART " -m comment --comment \"shop/cart:http -> 10.244.1.5:8080\""
	" -j " CART_A "\n"
	"-A " CART_A " -m comment --comment shop/cart:http -s 10.244.1.5 -j KUBE-MARK-MASQ\n"
	"-A " CART_A " -m comment --comment shop/cart:http -m recent --name " CART_A " --set"
	" -m tcp -p tcp -j DNAT --to-destination 10.244.1.5:8080\n"
	"-A " CART_B " -m comment --comment shop/cart:http -s 10.244.2.9 -j KUBE-MARK-MASQ\n"
	"-A " CART_B " -m comment --comment shop/cart:http -m recent --name " CART_B " --set"
	" -m tcp -p tcp -j DNAT --to-destination 10.244.2.9:8080\n"
	TO_NODE_PORTS(" -m addrtype --dst-type LOCAL")
	"COMMIT\n";
/* clang-format on */

static void add_shop(struct cluster *c)
{
	struct service *cart = build_service("shop/cart", "10.96.10.20");
	struct service *audit = build_service("shop/audit", "10.96.10.21");

	c->settings.node_ip = build_addr("192.0.2.11");
	c->settings.detector.cidr = build_prefix("10.244.0.0/16");
	build_vip(cart, "198.51.100.7");
	build_source_range(cart, "192.0.2.0/24");
	cart->external_local = true;
	cart->health_check_node_port = 32000;
	cart->sticky_seconds = 600;
	cluster_serve(c, cart, "http", 80, 31080);
	cluster_slice(c, "shop/cart", "http", 8080,
		      "10.244.1.5@" CLUSTER_NODE " 10.244.2.9@node-b");
	build_port(audit, "", PROTOCOL_UDP, 514, 0);
	model_set_service(c->model, audit);
}

static void worked_example_of_a_shop(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	add_shop(&c);
	cluster_sync(&c);
	assert_string_equal(c.text, shop_text);
	cluster_done(&c);
}

/*
 * Six kinds of Services at once: a plain cluster IP; a load balancer with policy Local whose only
 * endpoint is elsewhere; a node port; an external IP with two endpoints; a load balancer with
 * source ranges and affinity; one without endpoints.
 */

#define PLAIN      "XPGD46QRK7WJZT7O"
#define PLAIN_SEP  "KUBE-SEP-SXIVWICOYRO3J4NJ"
#define LOCAL      "GNZBNJ2PO5MGZ6GT"
#define LOCAL_SEP  "KUBE-SEP-RS4RBKLTHTF2IUXJ"
#define NODEPORT   "X27LE4BHSL4DOUIK"
#define NODE_SEP   "KUBE-SEP-OYPFS5VJICHGATKP"
#define EXTERNAL   "4SW47YFZTEDKD3PK"
#define EXT_SEP_1  "KUBE-SEP-UKSFD7AGPMPPLUHC"
#define EXT_SEP_2  "KUBE-SEP-C6EBXVWJJZMIWKLZ"
#define RANGES     "NUKIZ6OKUXPJNT4C"
#define RANGES_SEP "KUBE-SEP-I77PXRDZVX7PMWMN"

/* clang-format off */
static const char overall_text[] =
	FILTER_CHAINS CHAIN("KUBE-FIREWALL") LOOPBACK_GUARD
	"-A KUBE-SERVICES -m comment --comment \"ns6/svc6:p80 has no endpoints\" -m tcp -p tcp"
	" -d 172.30.0.46 --dport 80 -j REJECT\n"
	"-A KUBE-EXTERNAL-SERVICES -m comment --comment \"ns2/svc2:p80 has no local endpoints\""
	" -m tcp -p tcp -d 192.168.99.22 --dport 80 -j DROP\n"
	"-A KUBE-EXTERNAL-SERVICES -m comment --comment \"ns2/svc2:p80 has no local endpoints\""
	" -m tcp -p tcp -d 1.2.3.4 --dport 80 -j DROP\n"
	"-A KUBE-EXTERNAL-SERVICES -m comment --comment \"ns2/svc2:p80 has no local endpoints\""
	" -m addrtype --dst-type LOCAL -m tcp -p tcp --dport 3001 -j DROP\n"
	"-A KUBE-NODEPORTS -m comment --comment \"ns2/svc2:p80 health check node port\" -m tcp"
	" -p tcp --dport 30000 -j ACCEPT\n"
	"-A KUBE-PROXY-FIREWALL -m comment"
	" --comment \"ns5/svc5:p80 traffic not accepted by KUBE-FW-" RANGES "\" -m tcp -p tcp"
	" -d 5.6.7.8 --dport 80 -j DROP\n"
	DROP_INVALID FORWARD_ACCEPT NAT_CHAINS
	CHAIN("KUBE-SVC-" PLAIN)
	CHAIN(PLAIN_SEP)
	CHAIN("KUBE-EXT-" LOCAL)
	CHAIN("KUBE-SVC-" LOCAL)
	CHAIN(LOCAL_SEP)
	CHAIN("KUBE-EXT-" NODEPORT)
	CHAIN("KUBE-SVC-" NODEPORT)
	CHAIN(NODE_SEP)
	CHAIN("KUBE-EXT-" EXTERNAL)
	CHAIN("KUBE-SVC-" EXTERNAL)
	CHAIN(EXT_SEP_1)
	CHAIN(EXT_SEP_2)
	CHAIN("KUBE-EXT-" RANGES)
	CHAIN("KUBE-FW-" RANGES)
	CHAIN("KUBE-SVC-" RANGES)
	CHAIN(RANGES_SEP)
	MASQUERADE
	/* cluster IPs come first */
	"-A KUBE-SERVICES -m comment --comment \"ns1/svc1:p80 cluster IP\" -m tcp -p tcp"
	" -d 172.30.0.41 --dport 80 -j KUBE-SVC-" PLAIN "\n"
	"-A KUBE-SERVICES -m comment --comment \"ns2/svc2:p80 cluster IP\" -m tcp -p tcp"
	" -d 172.30.0.42 --dport 80 -j KUBE-SVC-" LOCAL "\n"
	"-A KUBE-SERVICES -m comment --comment \"ns3/svc3:p80 cluster IP\" -m tcp -p tcp"
	" -d 172.30.0.43 --dport 80 -j KUBE-SVC-" NODEPORT "\n"
	"-A KUBE-SERVICES -m comment --comment \"ns4/svc4:p80 cluster IP\" -m tcp -p tcp"
	" -d 172.30.0.44 --dport 80 -j KUBE-SVC-" EXTERNAL "\n"
	"-A KUBE-SERVICES -m comment --comment \"ns5/svc5:p80 cluster IP\" -m tcp -p tcp"
	" -d 172.30.0.45 --dport 80 -j KUBE-SVC-" RANGES "\n"
	/* plain cluster IP */
	"-A KUBE-SVC-" PLAIN " -m comment --comment \"ns1/svc1:p80 cluster IP\" -m tcp -p tcp"
	" -d 172.30.0.41 --dport 80 ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ\n"
	"-A KUBE-SVC-" PLAIN " -m comment --comment \"ns1/svc1:p80 -> 10.180.0.1:80\""
	" -j " PLAIN_SEP "\n"
	"-A " PLAIN_SEP " -m comment --comment ns1/svc1:p80 -s 10.180.0.1 -j KUBE-MARK-MASQ\n"
	"-A " PLAIN_SEP " -m comment --comment ns1/svc1:p80 -m tcp -p tcp -j DNAT"
	" --to-destination 10.180.0.1:80\n"
	/* policy Local, endpoint elsewhere: no way from EXT to SVL */
	"-A KUBE-SERVICES -m comment --comment \"ns2/svc2:p80 external IP\" -m tcp -p tcp"
	" -d 192.168.99.22 --dport 80 -j KUBE-EXT-" LOCAL "\n"
	"-A KUBE-SERVICES -m comment --comment \"ns2/svc2:p80 loadbalancer IP\" -m tcp -p tcp"
	" -d 1.2.3.4 --dport 80 -j KUBE-EXT-" LOCAL "\n"
	"-A KUBE-NODEPORTS -m comment --comment ns2/svc2:p80 -m tcp -p tcp -d 127.0.0.0/8"
	" --dport 3001 -m nfacct --nfacct-name localhost_nps_accepted_pkts -j KUBE-EXT-" LOCAL "\n"
	"-A KUBE-NODEPORTS -m comment --comment ns2/svc2:p80 -m tcp -p tcp --dport 3001"
	" -j KUBE-EXT-" LOCAL "\n"
	"-A KUBE-SVC-" LOCAL " -m comment --comment \"ns2/svc2:p80 cluster IP\" -m tcp -p tcp"
	" -d 172.30.0.42 --dport 80 ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ\n"
	"-A KUBE-EXT-" LOCAL " -m comment"
	" --comment \"pod traffic for ns2/svc2:p80 external destinations\" -s 10.0.0.0/8"
	" -j KUBE-SVC-" LOCAL "\n"
	"-A KUBE-EXT-" LOCAL " -m comment"
	" --comment \"masquerade LOCAL traffic for ns2/svc2:p80 external destinations\""
	" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ\n"
	"-A KUBE-EXT-" LOCAL " -m comment"
	" --comment \"route LOCAL traffic for ns2/svc2:p80 external destinations\" -m addrtype"
	" --src-type LOCAL -j KUBE-SVC-" LOCAL "\n"
	"-A KUBE-SVC-" LOCAL " -m comment --comment \"ns2/svc2:p80 -> 10.180.0.2:80\""
	" -j " LOCAL_SEP "\n"
	"-A " LOCAL_SEP " -m comment --comment ns2/svc2:p80 -s 10.180.0.2 -j KUBE-MARK-MASQ\n"
	"-A " LOCAL_SEP " -m comment --comment ns2/svc2:p80 -m tcp -p tcp -j DNAT"
	" --to-destination 10.180.0.2:80\n"
	/* node port */
	"-A KUBE-NODEPORTS -m comment --comment ns3/svc3:p80 -m tcp -p tcp -d 127.0.0.0/8"
	" --dport 3003 -m nfacct --nfacct-name localhost_nps_accepted_pkts"
	" -j KUBE-EXT-" NODEPORT "\n"
	"-A KUBE-NODEPORTS -m comment --comment ns3/svc3:p80 -m tcp -p tcp --dport 3003"
	" -j KUBE-EXT-" NODEPORT "\n"
	"-A KUBE-SVC-" NODEPORT " -m comment --comment \"ns3/svc3:p80 cluster IP\" -m tcp"
	" -p tcp -d 172.30.0.43 --dport 80 ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ\n"
	"-A KUBE-EXT-" NODEPORT " -m comment"
	" --comment \"masquerade traffic for ns3/svc3:p80 external destinations\""
	" -j KUBE-MARK-MASQ\n"
	"-A KUBE-EXT-" NODEPORT " -j KUBE-SVC-" NODEPORT "\n"
	"-A KUBE-SVC-" NODEPORT " -m comment --comment \"ns3/svc3:p80 -> 10.180.0.3:80\""
	" -j " NODE_SEP "\n"
	"-A " NODE_SEP " -m comment --comment ns3/svc3:p80 -s 10.180.0.3 -j KUBE-MARK-MASQ\n"
	"-A " NODE_SEP " -m comment --comment ns3/svc3:p80 -m tcp -p tcp -j DNAT"
	" --to-destination 10.180.0.3:80\n"
	/* external IP, two endpoints */
	"-A KUBE-SERVICES -m comment --comment \"ns4/svc4:p80 external IP\" -m tcp -p tcp"
	" -d 192.168.99.33 --dport 80 -j KUBE-EXT-" EXTERNAL "\n"
	"-A KUBE-SVC-" EXTERNAL " -m comment --comment \"ns4/svc4:p80 cluster IP\" -m tcp"
	" -p tcp -d 172.30.0.44 --dport 80 ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ\n"
	"-A KUBE-EXT-" EXTERNAL " -m comment"
	" --comment \"masquerade traffic for ns4/svc4:p80 external destinations\""
	" -j KUBE-MARK-MASQ\n"
	"-A KUBE-EXT-" EXTERNAL " -j KUBE-SVC-" EXTERNAL "\n"
	"-A KUBE-SVC-" EXTERNAL " -m comment --comment \"ns4/svc4:p80 -> 10.180.0.4:80\""
	" -m statistic --mode random --probability 0.5000000000 -j " EXT_SEP_1 "\n"
	"-A KUBE-SVC-" EXTERNAL " -m comment --comment \"ns4/svc4:p80 -> 10.180.0.5:80\""
	" -j " EXT_SEP_2 "\n"
	"-A " EXT_SEP_1 " -m comment --comment ns4/svc4:p80 -s 10.180.0.4 -j KUBE-MARK-MASQ\n"
	"-A " EXT_SEP_1 " -m comment --comment ns4/svc4:p80 -m tcp -p tcp -j DNAT"
	" --to-destination 10.180.0.4:80\n"
	"-A " EXT_SEP_2 " -m comment --comment ns4/svc4:p80 -s 10.180.0.5 -j KUBE-MARK-MASQ\n"
	"-A " EXT_SEP_2 " -m comment --comment ns4/svc4:p80 -m tcp -p tcp -j DNAT"
	" --to-destination 10.180.0.5:80\n"
	/* source ranges without this node, affinity */
	"-A KUBE-SERVICES -m comment --comment \"ns5/svc5:p80 loadbalancer IP\" -m tcp -p tcp"
	" -d 5.6.7.8 --dport 80 -j KUBE-FW-" RANGES "\n"
	"-A KUBE-NODEPORTS -m comment --comment ns5/svc5:p80 -m tcp -p tcp -d 127.0.0.0/8"
	" --dport 3002 -m nfacct --nfacct-name localhost_nps_accepted_pkts -j KUBE-EXT-" RANGES "\n"
	"-A KUBE-NODEPORTS -m comment --comment ns5/svc5:p80 -m tcp -p tcp --dport 3002"
	" -j KUBE-EXT-" RANGES "\n"
	"-A KUBE-SVC-" RANGES " -m comment --comment \"ns5/svc5:p80 cluster IP\" -m tcp -p tcp"
	" -d 172.30.0.45 --dport 80 ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ\n"
	"-A KUBE-EXT-" RANGES " -m comment"
	" --comment \"masquerade traffic for ns5/svc5:p80 external destinations\""
	" -j KUBE-MARK-MASQ\n"
	"-A KUBE-EXT-" RANGES " -j KUBE-SVC-" RANGES "\n"
	"-A KUBE-FW-" RANGES " -m comment --comment \"ns5/svc5:p80 loadbalancer IP\""
	" -s 203.0.113.0/25 -j KUBE-EXT-" RANGES "\n"
	"-A KUBE-FW-" RANGES " -m comment"
	" --comment \"other traffic to ns5/svc5:p80 will be dropped by KUBE-PROXY-FIREWALL\"\n"
	"-A KUBE-SVC-" RANGES " -m comment --comment \"ns5/svc5:p80 -> 10.180.0.3:80\""
	" -m recent --name " RANGES_SEP " --rcheck --seconds 10800 --reap -j " RANGES_SEP "\n"
	"-A KUBE-SVC-" RANGES " -m comment --comment \"ns5/svc5:p80 -> 10.180.0.3:80\""
	" -j " RANGES_SEP "\n"
	"-A " RANGES_SEP " -m comment --comment ns5/svc5:p80 -s 10.180.0.3 -j KUBE-MARK-MASQ\n"
	"-A " RANGES_SEP " -m comment --comment ns5/svc5:p80 -m recent --name " RANGES_SEP
	" --set -m tcp -p tcp -j DNAT --to-destination 10.180.0.3:80\n"
	TO_NODE_PORTS(" -m addrtype --dst-type LOCAL")
	"COMMIT\n";
/* clang-format on */

static void add_overall(struct cluster *c)
{
	struct service *service;

	cluster_serve(c, build_service("ns1/svc1", "172.30.0.41"), "p80", 80, 0);
	service = build_service("ns2/svc2", "172.30.0.42");
	build_vip(service, "1.2.3.4");
	build_external_ip(service, "192.168.99.22");
	service->external_local = true;
	service->health_check_node_port = 30000;
	cluster_serve(c, service, "p80", 80, 3001);
	cluster_serve(c, build_service("ns3/svc3", "172.30.0.43"), "p80", 80, 3003);
	service = build_service("ns4/svc4", "172.30.0.44");
	build_external_ip(service, "192.168.99.33");
	cluster_serve(c, service, "p80", 80, 0);
	service = build_service("ns5/svc5", "172.30.0.45");
	build_vip(service, "5.6.7.8");
	build_source_range(service, "203.0.113.0/25");
	service->sticky_seconds = 10800;
	cluster_serve(c, service, "p80", 80, 3002);
	cluster_serve(c, build_service("ns6/svc6", "172.30.0.46"), "p80", 80, 0);
	cluster_slice(c, "ns1/svc1", "p80", 80, "10.180.0.1");
	cluster_slice(c, "ns2/svc2", "p80", 80, "10.180.0.2");
	cluster_slice(c, "ns3/svc3", "p80", 80, "10.180.0.3");
	cluster_slice(c, "ns4/svc4", "p80", 80, "10.180.0.4 10.180.0.5@" CLUSTER_NODE);
	cluster_slice(c, "ns5/svc5", "p80", 80, "10.180.0.3");
}

static void overall_rules_of_six_services(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	add_overall(&c);
	cluster_sync(&c);
	assert_string_equal(c.text, overall_text);
	assert_int_equal(c.stats.rules_total[TABLE_NAT], cluster_count_rules(&c, TABLE_NAT));
	assert_int_equal(c.stats.rules_total[TABLE_FILTER], cluster_count_rules(&c, TABLE_FILTER));
	cluster_done(&c);
}

/* Numbers of rules */

static void gauges_equal_the_rules_written(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	cluster_serve(&c, build_service("ns1/svc1", "172.30.0.41"), "p80", 80, 31201);
	for (int i = 0; i < 2; i++) {
		ruleset_need_full_sync(c.ruleset);
		cluster_sync(&c);
		assert_int_equal(c.stats.rules_total[TABLE_FILTER],
				 cluster_count_rules(&c, TABLE_FILTER));
		assert_int_equal(c.stats.rules_total[TABLE_NAT],
				 cluster_count_rules(&c, TABLE_NAT));
		cluster_slice(&c, "ns1/svc1", "p80", 80, "10.0.0.2 10.0.0.5");
	}
	cluster_done(&c);
}

static void add_numbered_service(struct cluster *c, size_t i, size_t n_endpoints, bool balancer)
{
	char key[32], ip[64], endpoints[512] = "";
	struct service *service;

	snprintf(key, sizeof(key), "many/svc%zu", i);
	snprintf(ip, sizeof(ip), "172.30.0.%zu", i + 1);
	service = build_service(key, ip);
	if (balancer) {
		snprintf(ip, sizeof(ip), "1.2.3.%zu", i + 1);
		build_external_ip(service, ip);
		snprintf(ip, sizeof(ip), "5.6.7.%zu", i + 1);
		build_vip(service, ip);
		build_source_range(service, "203.0.113.0/25");
	}
	cluster_serve(c, service, "http", 80, balancer ? (uint16_t)(30000 + i) : 0);
	for (size_t j = 0; j < n_endpoints; j++) {
		snprintf(ip, sizeof(ip), " 10.180.%zu.%zu", i, j + 1);
		strcat(endpoints, ip);
	}
	cluster_slice(c, key, "http", 8080, endpoints);
}

static void numbers_of_generated_rules(void **state attr_unused)
{
	static const struct {
		bool balancer;
		size_t services, endpoints, filter, nat;
	} cases[] = {
		{false, 0, 0, 4, 5},    {false, 1, 0, 5, 5},    {false, 1, 1, 4, 10},
		{false, 1, 2, 4, 13},   {false, 1, 10, 4, 37},  {false, 10, 0, 14, 5},
		{false, 10, 1, 4, 55},  {false, 10, 2, 4, 85},  {false, 10, 10, 4, 325},
		{true, 0, 0, 4, 5},     {true, 1, 0, 8, 5},     {true, 1, 1, 5, 18},
		{true, 1, 2, 5, 21},    {true, 1, 10, 5, 45},   {true, 10, 0, 44, 5},
		{true, 10, 1, 14, 135}, {true, 10, 2, 14, 165}, {true, 10, 10, 14, 405},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cluster c;

		cluster_init(&c, FAMILY_IPV4);
		for (size_t j = 0; j < cases[i].services; j++)
			add_numbered_service(&c, j, cases[i].endpoints, cases[i].balancer);
		cluster_sync(&c);
		assert_int_equal(cluster_count_rules(&c, TABLE_FILTER), cases[i].filter);
		assert_int_equal(cluster_count_rules(&c, TABLE_NAT), cases[i].nat);
		assert_int_equal(c.stats.rules_total[TABLE_FILTER], cases[i].filter);
		assert_int_equal(c.stats.rules_written[TABLE_NAT], cases[i].nat);
		cluster_done(&c);
	}
}

static void gauges_of_local_policies_without_local_endpoints(void **state attr_unused)
{
	static const char near[] = "10.0.1.1@" CLUSTER_NODE " 10.0.1.2@node1 10.0.1.3@node2";
	static const char far[] = "10.0.1.1@node0 10.0.1.2@node1 10.0.1.3@node2";
	static const struct {
		bool internal, external;
		const char *endpoints;
		size_t no_internal, no_external;
	} cases[] = {
		{true, false, near, 0, 0}, {false, true, near, 0, 0}, {true, true, near, 0, 0},
		{true, false, far, 1, 0},  {false, true, far, 0, 1},  {true, true, far, 1, 1},
		{true, true, "", 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct service *service = build_service("ns1/svc1", "172.30.1.1");
		size_t internal, external;
		struct cluster c;

		cluster_init(&c, FAMILY_IPV4);
		service->internal_local = cases[i].internal;
		service->external_local = cases[i].external;
		cluster_serve(&c, service, "", 80, 123);
		cluster_slice(&c, "ns1/svc1", "", 80, cases[i].endpoints);
		cluster_sync(&c);
		plan_store_count_no_local(c.feed.store, &internal, &external);
		assert_int_equal(internal, cases[i].no_internal);
		assert_int_equal(external, cases[i].no_external);
		cluster_done(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_cluster_has_the_skeleton),
		cmocka_unit_test(the_skeleton_of_ipv6_has_no_localhost),
		cmocka_unit_test(worked_example_of_a_shop),
		cmocka_unit_test(overall_rules_of_six_services),
		cmocka_unit_test(gauges_equal_the_rules_written),
		cmocka_unit_test(numbers_of_generated_rules),
		cmocka_unit_test(gauges_of_local_policies_without_local_endpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
