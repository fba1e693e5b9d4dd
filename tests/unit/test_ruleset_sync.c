/* SPDX-License-Identifier: Apache-2.0 */

/* What one sync after another writes: full, partial, failed, and in a large cluster. */

#include <stdio.h>

#include "cluster.h"
#include "count_visits.h"
#include "fixed_text.h"

#define SVC1  "KUBE-SVC-XPGD46QRK7WJZT7O" /* ns1/svc1:p80 */
#define SEP1  "KUBE-SEP-SNQ3ZNILQDEJNDQO" /* 10.0.1.1:80 */
#define SVC2  "KUBE-SVC-2VJB64SDSIJUP5T6" /* ns2/svc2:p8080 */
#define SEP2  "KUBE-SEP-UHEGFW77JX3KXTOV" /* 10.0.2.1:8080 */
#define SVC3  "KUBE-SVC-X27LE4BHSL4DOUIK" /* ns3/svc3:p80 */
#define SEP31 "KUBE-SEP-BSWRHOQ77KEXZLNL" /* 10.0.3.1:80 */
#define SEP32 "KUBE-SEP-DKCFIS26GWF2WLWC" /* 10.0.3.2:80 */
#define SEP33 "KUBE-SEP-JVVZVJ7BSEPPRNBS" /* 10.0.3.3:80 */
#define SVC4  "KUBE-SVC-4SW47YFZTEDKD3PK" /* ns4/svc4:p80 */
#define SEP4  "KUBE-SEP-AYCN5HPXMIRJNJXU" /* 10.0.4.1:80 */

/* Up to the nat chains of services; `rules` are those of the filter table. */
#define HEAD(rules)                          \
	FILTER_CHAINS CHAIN("KUBE-FIREWALL") \
		LOOPBACK_GUARD rules DROP_INVALID FORWARD_ACCEPT NAT_CHAINS
#define FIXED MASQUERADE
#define TAIL  TO_NODE_PORTS(" -m addrtype --dst-type LOCAL") "COMMIT\n"

/* A delta: chains and rules. The last rule of KUBE-SERVICES moves only when others go to the end. */
#define NAT(lines) "*nat\n" lines "COMMIT\n"
#define LAST       TO_NODE_PORTS(" -m addrtype --dst-type LOCAL")
#define MOVE_LAST  REMOVED(" -m addrtype --dst-type LOCAL") LAST

#define ENTRY(id, ip, port, svc)                                                        \
	"KUBE-SERVICES -m comment --comment \"" id " cluster IP\" -m tcp -p tcp -d " ip \
	" --dport " port " -j " svc "\n"
#define MASQ(id, ip, port, svc)                                                      \
	"-A " svc " -m comment --comment \"" id " cluster IP\" -m tcp -p tcp -d " ip \
	" --dport " port " ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ\n"
#define SHARE(id, svc, ip, port, share, sep) \
	"-A " svc " -m comment --comment \"" id " -> " ip ":" port "\"" share " -j " sep "\n"
#define ENDPOINT(id, sep, ip, port)                                                         \
	"-A " sep " -m comment --comment " id " -s " ip " -j KUBE-MARK-MASQ\n"              \
	"-A " sep " -m comment --comment " id " -m tcp -p tcp -j DNAT --to-destination " ip \
	":" port "\n"
#define HALF " -m statistic --mode random --probability 0.5000000000"

/* As it is taken away again. */
#define NO_ENTRY(id, ip, port, svc)                                                        \
	"-D KUBE-SERVICES -m comment --comment \"" id " cluster IP\" -m tcp -p tcp -d " ip \
	" --dport " port " -j " svc "\n"

#define ENTRY1 ENTRY("ns1/svc1:p80", "172.30.0.41", "80", SVC1)
#define OWN1                                                    \
	MASQ("ns1/svc1:p80", "172.30.0.41", "80", SVC1)         \
	SHARE("ns1/svc1:p80", SVC1, "10.0.1.1", "80", "", SEP1) \
	ENDPOINT("ns1/svc1:p80", SEP1, "10.0.1.1", "80")
#define ENTRY2 ENTRY("ns2/svc2:p8080", "172.30.0.42", "8080", SVC2)
#define OWN2                                                        \
	MASQ("ns2/svc2:p8080", "172.30.0.42", "8080", SVC2)         \
	SHARE("ns2/svc2:p8080", SVC2, "10.0.2.1", "8080", "", SEP2) \
	ENDPOINT("ns2/svc2:p8080", SEP2, "10.0.2.1", "8080")
#define ENTRY3 ENTRY("ns3/svc3:p80", "172.30.0.43", "80", SVC3)
#define MASQ3  MASQ("ns3/svc3:p80", "172.30.0.43", "80", SVC3)
#define OWN3(ip, sep) \
	MASQ3 SHARE("ns3/svc3:p80", SVC3, ip, "80", "", sep) ENDPOINT("ns3/svc3:p80", sep, ip, "80")
#define ENTRY4 ENTRY("ns4/svc4:p80", "172.30.0.44", "80", SVC4)

/* As a delta writes them: chains that rules lead to come first. */
#define ADDED3(ip, sep) \
	ENDPOINT("ns3/svc3:p80", sep, ip, "80") MASQ3 SHARE("ns3/svc3:p80", SVC3, ip, "80", "", sep)
#define ADDED4                                           \
	CHAIN(SEP4)                                      \
	CHAIN(SVC4)                                      \
	ENDPOINT("ns4/svc4:p80", SEP4, "10.0.4.1", "80") \
	MASQ("ns4/svc4:p80", "172.30.0.44", "80", SVC4)  \
	SHARE("ns4/svc4:p80", SVC4, "10.0.4.1", "80", "", SEP4) "-I " ENTRY4

#define REJECT4                                                                \
	"KUBE-SERVICES -m comment --comment \"ns4/svc4:p80 has no endpoints\"" \
	" -m tcp -p tcp -d 172.30.0.44 --dport 80 -j REJECT\n"

/* The whole text, the number of rules in it, and the number that all services own together. */
static void check_sync(struct cluster *c, const char *text, size_t nat_total)
{
	cluster_sync(c);
	assert_string_equal(c->text, text);
	assert_int_equal(c->stats.rules_written[TABLE_NAT], cluster_count_rules(c, TABLE_NAT));
	assert_int_equal(c->stats.rules_written[TABLE_FILTER],
			 cluster_count_rules(c, TABLE_FILTER));
	assert_int_equal(c->stats.rules_total[TABLE_NAT], nat_total);
	assert_int_equal(c->stats.chains_deleted, cluster_count_lines(c, "-X ", ""));
}

static void sync_first(struct cluster *c)
{
	cluster_init(c, FAMILY_IPV4);
	cluster_serve(c, build_service("ns1/svc1", "172.30.0.41"), "p80", 80, 0);
	cluster_serve(c, build_service("ns2/svc2", "172.30.0.42"), "p8080", 8080, 0);
	cluster_slice(c, "ns1/svc1", "p80", 80, "10.0.1.1");
	cluster_slice(c, "ns2/svc2", "p8080", 8080, "10.0.2.1");
	check_sync(c,
		   HEAD("") CHAIN(SVC1) CHAIN(SEP1) CHAIN(SVC2) CHAIN(SEP2) FIXED
		   "-A " ENTRY1 "-A " ENTRY2 OWN1 OWN2 TAIL,
		   15);
	assert_true(c->begun.full);
	assert_true(c->stats.full);
}

static void add_third(struct cluster *c)
{
	cluster_serve(c, build_service("ns3/svc3", "172.30.0.43"), "p80", 80, 0);
	cluster_slice(c, "ns3/svc3", "p80", 80, "10.0.3.1");
}

static void repeated_initial_sync_is_full(void **state attr_unused)
{
	struct cluster c;

	sync_first(&c);
	cluster_done(&c);
}

static void repeated_adding_a_service_writes_only_its_chains(void **state attr_unused)
{
	struct cluster c;

	sync_first(&c);
	add_third(&c);
	check_sync(&c, NAT(CHAIN(SEP31) CHAIN(SVC3) ADDED3("10.0.3.1", SEP31) "-I " ENTRY3),
		   15 + 5);
	assert_false(c.begun.full);
	cluster_done(&c);
}

/* What is outside goes to the end, and the way to node ports behind it; a cluster IP to the head. */
static void cluster_ips_go_before_external_ones_whoever_comes_first(void **state attr_unused)
{
	struct service *outside = build_service("ns3/svc3", "172.30.0.43");
	struct cluster c;

	sync_first(&c);
	build_external_ip(outside, "198.51.100.3");
	cluster_serve(&c, outside, "p80", 80, 0);
	cluster_slice(&c, "ns3/svc3", "p80", 80, "10.0.3.1");
	cluster_sync(&c);
	assert_int_equal(cluster_count_lines(&c, "-I KUBE-SERVICES", "svc3:p80 cluster IP"), 1);
	assert_int_equal(cluster_count_lines(&c, "-A KUBE-SERVICES", "svc3:p80 external IP"), 1);
	assert_non_null(strstr(c.text, MOVE_LAST));
	cluster_serve(&c, build_service("ns4/svc4", "172.30.0.44"), "p80", 80, 0);
	cluster_slice(&c, "ns4/svc4", "p80", 80, "10.0.4.1");
	cluster_sync(&c);
	assert_string_equal(c.text, NAT(ADDED4));
	cluster_done(&c);
}

static void serve_at(struct cluster *c, const char *key, const char *ip, const char *external_ip,
		     uint32_t created_s)
{
	struct service *service = build_service(key, ip);

	build_external_ip(service, external_ip);
	service->created_s = created_s;
	cluster_serve(c, service, "p80", 80, 0);
	cluster_slice(c, key, "p80", 80, "10.0.9.1");
	cluster_sync(c);
}

static size_t count_entries(const struct cluster *c, const char *start, const char *id)
{
	char word[64];

	snprintf(word, sizeof(word), "%s external IP", id);
	return cluster_count_lines(c, start, word);
}

/* The one that loses it, or gets it, has not changed itself. */
static void what_two_ask_for_goes_from_one_to_the_other(void **state attr_unused)
{
	struct cluster c;

	sync_first(&c);
	serve_at(&c, "a/young", "172.30.0.51", "198.51.100.3", 300);
	assert_int_equal(count_entries(&c, "-A KUBE-SERVICES", "a/young:p80"), 1);
	serve_at(&c, "z/old", "172.30.0.52", "198.51.100.3", 100);
	assert_false(c.begun.full);
	assert_int_equal(count_entries(&c, "-D KUBE-SERVICES", "a/young:p80"), 1);
	assert_int_equal(count_entries(&c, "-A KUBE-SERVICES", "a/young:p80"), 0);
	assert_int_equal(count_entries(&c, "-A KUBE-SERVICES", "z/old:p80"), 1);
	serve_at(&c, "z/younger", "172.30.0.53", "198.51.100.3", 400);
	assert_int_equal(count_entries(&c, "-", "p80"), 0); /* nobody's entry changes */
	ruleset_need_full_sync(c.ruleset);
	cluster_sync(&c);
	assert_int_equal(cluster_count_lines(&c, "-A KUBE-SERVICES", " external IP"), 1);
	model_remove_service(c.model, "z/old");
	cluster_sync(&c);
	assert_int_equal(count_entries(&c, "-A KUBE-SERVICES", "a/young:p80"), 1);
	serve_at(&c, "b/new", "198.51.100.3", "198.51.100.9", 900); /* its cluster IP */
	assert_int_equal(count_entries(&c, "-D KUBE-SERVICES", "a/young:p80"), 1);
	cluster_sync(&c);
	assert_string_equal(c.text, "");
	cluster_done(&c);
}

/* Deleted and made again between two syncs, the same but for its age. */
static void what_an_owner_had_goes_when_it_is_made_again(void **state attr_unused)
{
	struct cluster c;

	sync_first(&c);
	serve_at(&c, "z/old", "172.30.0.52", "198.51.100.3", 100);
	serve_at(&c, "a/young", "172.30.0.51", "198.51.100.3", 300);
	model_remove_service(c.model, "z/old");
	serve_at(&c, "z/old", "172.30.0.52", "198.51.100.3", 500);
	assert_int_equal(count_entries(&c, "-D KUBE-SERVICES", "z/old:p80"), 1);
	assert_int_equal(count_entries(&c, "-A KUBE-SERVICES", "a/young:p80"), 1);
	cluster_done(&c);
}

static void repeated_deleting_a_service_deletes_its_chains(void **state attr_unused)
{
	struct cluster c;

	sync_first(&c);
	model_remove_service(c.model, "ns2/svc2");
	check_sync(&c,
		   NAT(CHAIN(SVC2) CHAIN(SEP2) NO_ENTRY("ns2/svc2:p8080", "172.30.0.42", "8080",
							SVC2) "-X " SVC2 "\n-X " SEP2 "\n"),
		   15 - 5);
	assert_int_equal(c.stats.chains_deleted, 2);
	check_sync(&c, "", 15 - 5);
	cluster_done(&c);
}

static void repeated_service_without_endpoints_gets_a_reject_then_chains(void **state attr_unused)
{
	struct cluster c;

	sync_first(&c);
	cluster_serve(&c, build_service("ns4/svc4", "172.30.0.44"), "p80", 80, 0);
	check_sync(&c, "*filter\n-I " REJECT4 "COMMIT\n", 15);
	cluster_slice(&c, "ns4/svc4", "p80", 80, "10.0.4.1");
	check_sync(&c, "*filter\n-D " REJECT4 "COMMIT\n" NAT(ADDED4), 15 + 5);
	cluster_done(&c);
}

static void repeated_endpoint_replaced_then_added_then_nothing(void **state attr_unused)
{
	struct cluster c;

	sync_first(&c);
	add_third(&c);
	cluster_sync(&c);
	cluster_slice(&c, "ns3/svc3", "p80", 80, "10.0.3.2");
	check_sync(&c,
		   NAT(CHAIN(SEP32) CHAIN(SVC3) CHAIN(SEP31) ADDED3("10.0.3.2", SEP32) "-X " SEP31
										       "\n"),
		   15 + 5);
	cluster_slice(&c, "ns3/svc3", "p80", 80, "10.0.3.2 10.0.3.3");
	check_sync(&c,
		   NAT(CHAIN(SEP33) CHAIN(SVC3) ENDPOINT("ns3/svc3:p80", SEP33, "10.0.3.3", "80")
			       MASQ3 SHARE("ns3/svc3:p80", SVC3, "10.0.3.2", "80", HALF, SEP32)
				       SHARE("ns3/svc3:p80", SVC3, "10.0.3.3", "80", "", SEP33)),
		   15 + 5 + 3);
	check_sync(&c, "", 15 + 5 + 3);
	cluster_done(&c);
}

static void repeated_failed_partial_sync_is_followed_by_a_full_one(void **state attr_unused)
{
	struct cluster c;

	sync_first(&c);
	add_third(&c);
	cluster_sync(&c);
	model_remove_service(c.model, "ns2/svc2");
	c.fail = true;
	cluster_sync(&c);
	assert_false(c.stats.full);
	assert_int_equal(c.stats.chains_deleted, 2);
	assert_true(cluster_has_chain(&c, SVC2)); /* nothing reached the kernel */
	c.fail = false;
	check_sync(&c,
		   HEAD("") CHAIN(SVC1) CHAIN(SEP1) CHAIN(SVC3) CHAIN(SEP31) CHAIN(SVC2) CHAIN(SEP2)
			   FIXED "-A " ENTRY1 "-A " ENTRY3 OWN1 OWN3("10.0.3.1", SEP31) "-X " SVC2
											"\n-X " SEP2
											"\n" TAIL,
		   15);
	assert_true(c.stats.full);
	assert_false(cluster_has_chain(&c, SVC2));
	cluster_sync(&c);
	assert_false(c.stats.full);
	cluster_done(&c);
}

static void failures_in_a_row_stay_full(void **state attr_unused)
{
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	c.fail = true;
	for (int i = 0; i < 3; i++) {
		cluster_sync(&c);
		assert_true(c.stats.full);
	}
	c.fail = false;
	cluster_sync(&c);
	assert_true(c.stats.full);
	cluster_sync(&c);
	assert_false(c.stats.full);
	cluster_done(&c);
}

/* A wish that comes while a sync runs is not forgotten when that sync succeeds. */
static void a_full_sync_asked_for_during_a_sync_is_the_next(void **state attr_unused)
{
	struct ruleset_begun begun;
	struct cluster c;

	sync_first(&c);
	ruleset_begin(c.ruleset, plan_feed_next(&c.feed), c.now_ns, &begun);
	assert_false(begun.full);
	ruleset_need_full_sync(c.ruleset);
	ruleset_end(c.ruleset, true, c.now_ns);
	plan_feed_end(&c.feed, true);
	cluster_sync(&c);
	assert_true(c.stats.full);
	cluster_done(&c);
}

/* A sync that stops before its transaction (a jump rule that cannot be written) loses nothing. */
static void a_sync_that_ends_before_writing_is_made_up_for(void **state attr_unused)
{
	struct ruleset_begun begun;
	struct cluster c;

	sync_first(&c);
	add_third(&c);
	ruleset_begin(c.ruleset, plan_feed_next(&c.feed), c.now_ns, &begun);
	ruleset_end(c.ruleset, false, c.now_ns);
	plan_feed_end(&c.feed, false);
	cluster_sync(&c);
	assert_true(c.stats.full);
	assert_true(cluster_has_chain(&c, SVC3));
	cluster_done(&c);
}

static void a_full_sync_is_due_after_an_hour(void **state attr_unused)
{
	struct cluster c;

	sync_first(&c);
	c.now_ns += RULESET_FULL_SYNC_PERIOD_NS;
	cluster_sync(&c);
	assert_false(c.stats.full);
	c.now_ns += 1;
	cluster_sync(&c);
	assert_true(c.stats.full);
	cluster_sync(&c);
	assert_false(c.stats.full);
	cluster_done(&c);
}

static void stale_chains_are_found_by_name_and_others_left_alone(void **state attr_unused)
{
	static char *const foreign[] = {
		(char *)"PREROUTING", (char *)"KUBE-KUBELET-CANARY",       (char *)"KUBE-SVC-SHORT",
		(char *)"CALI-SVC",   (char *)"KUBE-SVL-XPGD46QRK7WJZT7O",
	};
	struct cluster c;

	sync_first(&c);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
		array_grow(&c.nat, &c.nat_capacity, c.n_nat, sizeof(char *));
		c.nat[c.n_nat++] = xstrdup(foreign[i]);
	}
	check_sync(&c, "", 15); /* a delta does not look for them */
	assert_false(c.begun.wants_nat_chains);
	ruleset_need_full_sync(c.ruleset);
	check_sync(&c,
		   HEAD("") CHAIN(SVC1) CHAIN(SEP1) CHAIN(SVC2) CHAIN(SEP2) CHAIN("KUBE-SVC-SHORT")
			   CHAIN("KUBE-SVL-XPGD46QRK7WJZT7O") FIXED
		   "-A " ENTRY1 "-A " ENTRY2 OWN1 OWN2
		   "-X KUBE-SVC-SHORT\n-X KUBE-SVL-XPGD46QRK7WJZT7O\n" TAIL,
		   15);
	cluster_done(&c);
}

static void many_services_come_and_go_at_once(void **state attr_unused)
{
	enum { MANY = 40 };
	struct cluster c;
	char key[32], id[64], ip[32];

	sync_first(&c);
	for (int i = 0; i < MANY; i++) {
		snprintf(key, sizeof(key), "ns%d/many-%d", i % 4, i);
		snprintf(ip, sizeof(ip), "172.30.1.%d", i + 1);
		cluster_serve(&c, build_service(key, ip), "", 80, 0);
		cluster_slice(&c, key, "", 80, "10.0.9.1");
	}
	cluster_sync(&c);
	assert_int_equal(c.stats.rules_total[TABLE_NAT], 15 + MANY * 5);
	assert_int_equal(c.stats.rules_written[TABLE_NAT], MANY * 5);
	for (int i = 0; i < MANY; i += 2) {
		snprintf(key, sizeof(key), "ns%d/many-%d", i % 4, i);
		model_remove_service(c.model, key);
		snprintf(key, sizeof(key), "ns%d/later-%d", i % 4, i);
		snprintf(ip, sizeof(ip), "172.30.2.%d", i + 1);
		cluster_serve(&c, build_service(key, ip), "", 80, 0);
	}
	cluster_sync(&c);
	assert_false(c.stats.full);
	assert_int_equal(c.stats.chains_deleted, MANY);
	assert_int_equal(c.stats.rules_total[TABLE_NAT], 15 + MANY / 2 * 5);
	for (int i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "\"ns%d/many-%d cluster IP\"", i % 4, i);
		assert_int_equal(cluster_count_lines(&c, "-D KUBE-SERVICES", id), (i + 1) % 2);
	}
	assert_int_equal(cluster_count_lines(&c, "-I KUBE-SERVICES", "has no endpoints"), MANY / 2);
	cluster_done(&c);
}

/* Large clusters */

static void add_big_slice(struct cluster *c, const char *service, const char *port, int second,
			  int n)
{
	struct draft *slice = build_slice(service, strchr(service, '/') + 1, FAMILY_IPV4);
	char ip[64];

	build_slice_port(slice, port, PROTOCOL_TCP, 80);
	for (int i = 0; i < n; i++) {
		snprintf(ip, sizeof(ip), "10.%d.%d.%d", second, i % 256, i / 256);
		build_endpoint(slice, ip, NULL, BUILD_READY);
	}
	build_set_slice(c->model, slice);
}

/* Two services with 998 endpoints between them, and one that has none yet. */
static void sync_large(struct cluster *c)
{
	cluster_init(c, FAMILY_IPV4);
	c->settings.masquerade_all = true;
	cluster_serve(c, build_service("ns1/svc1", "172.30.0.41"), "p80", 80, 0);
	cluster_serve(c, build_service("ns2/svc2", "172.30.0.42"), "p80", 80, 0);
	cluster_serve(c, build_service("ns3/svc3", "172.30.0.43"), "p8081", 8081, 0);
	add_big_slice(c, "ns1/svc1", "p80", 0, 499);
	add_big_slice(c, "ns2/svc2", "p80", 1, 499);
	cluster_sync(c);
}

static size_t count_dnat(const struct cluster *c)
{
	return cluster_count_lines(c, "-A KUBE-SEP-", " -j DNAT ");
}

/* Comments on rules that belong to endpoints. */
static size_t count_comments(const struct cluster *c)
{
	return cluster_count_lines(c, "-A KUBE-SEP-", "--comment") +
	       cluster_count_lines(c, "-A KUBE-SVC-", " -> ");
}

/* 1001 endpoints */
static void cross_the_limit(struct cluster *c)
{
	cluster_slice(c, "ns3/svc3", "p8081", 8081, "203.0.113.4 203.0.113.8 203.0.113.12");
	cluster_sync(c);
}

static void large_cluster_comments_up_to_a_thousand_endpoints(void **state attr_unused)
{
	struct cluster c;

	sync_large(&c);
	assert_int_equal(count_dnat(&c), 998);
	assert_int_equal(count_comments(&c), 3 * 998);
	assert_false(c.stats.large_cluster);
	cluster_slice(&c, "ns3/svc3", "p8081", 8081, "203.0.113.4 203.0.113.8");
	cluster_sync(&c);
	assert_false(c.stats.large_cluster); /* exactly 1000 */
	assert_int_equal(count_comments(&c), 3 * 2);
	cluster_done(&c);
}

static void large_cluster_new_rules_have_no_comments_old_ones_stay(void **state attr_unused)
{
	struct cluster c;

	sync_large(&c);
	cross_the_limit(&c);
	assert_true(c.stats.large_cluster);
	assert_false(c.stats.full);
	assert_int_equal(count_dnat(&c), 3);
	assert_int_equal(count_comments(&c), 0);
	assert_true(cluster_wrote(&c, "-A KUBE-SEP-RUVVH7YV3PHQBDOS -m tcp -p tcp -j DNAT"
				      " --to-destination 203.0.113.4:8081"));
	/* all other comments stay */
	assert_int_equal(cluster_count_lines(&c, "-I KUBE-SERVICES", "cluster IP\""), 1);
	assert_int_equal(cluster_count_lines(&c, "-A KUBE-SVC-", "cluster IP\""), 1);
	cluster_done(&c);
}

static void large_cluster_suppresses_the_hourly_full_sync(void **state attr_unused)
{
	struct cluster c;

	sync_large(&c);
	cross_the_limit(&c);
	c.now_ns += RULESET_FULL_SYNC_PERIOD_NS + SECOND;
	cluster_sync(&c);
	assert_false(c.stats.full);
	ruleset_need_full_sync(c.ruleset);
	cluster_sync(&c);
	assert_true(c.stats.full);
	assert_int_equal(count_dnat(&c), 1001);
	assert_int_equal(count_comments(&c), 0);
	cluster_done(&c);
}

/* Whether a full sync is due is judged by the size that the cluster had at the last sync. */
static void large_cluster_is_judged_by_the_sync_before(void **state attr_unused)
{
	struct cluster c;

	sync_large(&c);
	c.now_ns += RULESET_FULL_SYNC_PERIOD_NS + SECOND;
	cross_the_limit(&c);
	assert_true(c.stats.full);
	assert_true(c.stats.large_cluster);
	assert_int_equal(count_comments(&c), 0);
	cluster_done(&c);
}

static void large_cluster_deletes_chains_with_their_service(void **state attr_unused)
{
	struct cluster c;

	sync_large(&c);
	cross_the_limit(&c);
	cluster_serve(&c, build_service("ns4/svc4", "172.30.0.44"), "p8082", 8082, 0);
	cluster_slice(&c, "ns4/svc4", "p8082", 8082, "10.4.0.1");
	cluster_sync(&c);
	assert_int_equal(count_dnat(&c), 1);
	model_remove_service(c.model, "ns4/svc4");
	cluster_sync(&c);
	assert_false(c.begun.wants_nat_chains);
	assert_int_equal(c.stats.chains_deleted, 2);
	assert_true(cluster_wrote(&c, "-X KUBE-SVC-EBDQOQU5SJFXRIL3"));
	assert_true(cluster_wrote(&c, "-X KUBE-SEP-SU5STNODRYEWJAUF"));
	ruleset_need_full_sync(c.ruleset);
	cluster_sync(&c);
	assert_true(c.begun.wants_nat_chains);
	assert_int_equal(count_dnat(&c), 1001);
	cluster_done(&c);
}

/* Comments are as they were when a Service changed: what stands is removed as it was written. */
static void large_cluster_rewrites_a_service_that_changes_without_comments(void **state attr_unused)
{
	struct cluster c;

	sync_large(&c);
	cross_the_limit(&c);
	add_big_slice(&c, "ns1/svc1", "p80", 0, 500);
	cluster_sync(&c);
	assert_int_equal(count_dnat(&c), 500);
	assert_int_equal(count_comments(&c), 0);
	assert_int_equal(cluster_count_lines(&c, "-D ", ""), 0); /* its entry is the same */
	cluster_done(&c);
}

#define CROWD 40

/* One of many that ask for the same; `written` tells two versions apart that ask for the same. */
static void serve_one_of_many(struct cluster *c, unsigned int i, uint32_t created_s,
			      uint32_t written)
{
	char key[32], ip[32];
	struct service *service;

	snprintf(key, sizeof(key), "ns/s%02u", i);
	snprintf(ip, sizeof(ip), "172.30.1.%u", i);
	service = build_service(key, ip);
	build_external_ip(service, "198.51.100.1");
	service->created_s = created_s;
	service->sticky_seconds = written;
	cluster_serve(c, service, "p80", 80, 0);
	cluster_slice(c, key, "p80", 80, "10.0.1.1");
}

/* A Service that is written again costs the same however many ask for what it asks for. */
static void others_are_judged_only_when_a_destination_moves(void **state attr_unused)
{
	struct cluster c;

	n_visits = 0;
	cluster_init(&c, FAMILY_IPV4);
	for (unsigned int i = 0; i < CROWD; i++)
		serve_one_of_many(&c, i, 100 + i, 1);
	cluster_sync(&c);
	assert_int_equal(cluster_count_lines(&c, "-A KUBE-SERVICES", "s00:p80 external IP"), 1);
	for (unsigned int i = 0; i < CROWD; i++)
		serve_one_of_many(&c, i, 100 + i, 2);
	cluster_sync(&c);
	assert_false(c.begun.full);
	assert_int_equal(cluster_count_lines(&c, "-", "external IP"), 0);
	assert_int_equal(n_visits, 0);
	serve_one_of_many(&c, 7, 1, 3); /* now the oldest */
	cluster_sync(&c);
	assert_int_equal(cluster_count_lines(&c, "-D KUBE-SERVICES", "s00:p80 external IP"), 1);
	assert_int_equal(cluster_count_lines(&c, "-A KUBE-SERVICES", "s07:p80 external IP"), 1);
	/* the rules of its port once, the conflicts of its port and of the address twice */
	assert_int_equal(n_visits, 5 * CROWD);
	cluster_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeated_initial_sync_is_full),
		cmocka_unit_test(repeated_adding_a_service_writes_only_its_chains),
		cmocka_unit_test(cluster_ips_go_before_external_ones_whoever_comes_first),
		cmocka_unit_test(what_two_ask_for_goes_from_one_to_the_other),
		cmocka_unit_test(what_an_owner_had_goes_when_it_is_made_again),
		cmocka_unit_test(repeated_deleting_a_service_deletes_its_chains),
		cmocka_unit_test(repeated_service_without_endpoints_gets_a_reject_then_chains),
		cmocka_unit_test(repeated_endpoint_replaced_then_added_then_nothing),
		cmocka_unit_test(repeated_failed_partial_sync_is_followed_by_a_full_one),
		cmocka_unit_test(failures_in_a_row_stay_full),
		cmocka_unit_test(a_full_sync_asked_for_during_a_sync_is_the_next),
		cmocka_unit_test(a_sync_that_ends_before_writing_is_made_up_for),
		cmocka_unit_test(a_full_sync_is_due_after_an_hour),
		cmocka_unit_test(stale_chains_are_found_by_name_and_others_left_alone),
		cmocka_unit_test(many_services_come_and_go_at_once),
		cmocka_unit_test(large_cluster_comments_up_to_a_thousand_endpoints),
		cmocka_unit_test(large_cluster_new_rules_have_no_comments_old_ones_stay),
		cmocka_unit_test(large_cluster_suppresses_the_hourly_full_sync),
		cmocka_unit_test(large_cluster_is_judged_by_the_sync_before),
		cmocka_unit_test(large_cluster_deletes_chains_with_their_service),
		cmocka_unit_test(large_cluster_rewrites_a_service_that_changes_without_comments),
		cmocka_unit_test(others_are_judged_only_when_a_destination_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
