/* SPDX-License-Identifier: Apache-2.0 */

/* What is refused on localhost: the rules in nft's words, and in the kernel through syncs, repairs and other settings. */

#include <arpa/inet.h>
#include <sys/socket.h>

#include "backends/nftables/script.h"
#include "backends/nftables/table.h"
#include "kernel/nft_socket.h"
#include "nftables_host.h"

/* -- words */

static void add_service(struct model *model)
{
	struct service *service = build_service(KEY, "10.96.0.1");

	build_cluster_ip(service, "fd00:96::1");
	build_port(service, "t", PROTOCOL_TCP, 80, 30080);
	build_port(service, "u", PROTOCOL_UDP, 53, 30053);
	build_port(service, "s", PROTOCOL_SCTP, 99, 30099);
	build_port(service, "none", PROTOCOL_UDP, 54, 0);
	model_set_service(model, service);
}

/* The lines of a first sync that are about localhost, without what all have in common. */
static char *words(enum family family, bool gate, const char *cidrs[])
{
	struct world world = world_new();
	cleanup_text struct text all = {0}, kept = {0};
	cleanup_free char *copy = NULL;
	struct prefix v[4];
	struct plan_feed feed;
	char *rest, *line;
	size_t n = 0;

	while (cidrs[n]) {
		v[n] = build_prefix(cidrs[n]);
		n++;
	}
	world.settings.family = family;
	world.settings.mode.localhost_proxy = gate;
	node_ports_init(&world.settings.node_ports, family, v, n);
	add_service(world.model);
	plan_feed_open(&feed, &world.settings, world.model);
	script_render(&world.settings, plan_feed_next(&feed), NULL, 0, &all);
	plan_feed_end(&feed, true);
	rest = copy = text_dup(&all);
	while ((line = strsep(&rest, "\n")))
		if (strstr(line, "localhost") && !strstr(line, "add chain"))
			text_printf(&kept, "%s\n", strstr(line, "kube-proxy ") + 11);
	plan_feed_close(&feed);
	node_ports_done(&world.settings.node_ports);
	world_done(&world);
	return text_dup(&kept);
}

#define MAP                                                                            \
	"localhost-nodeport-reject-ports { type inet_proto . inet_service : verdict; " \
	"comment \"localhost NodePorts rejected by kube-proxy\"; }\n"
#define COUNTER(p) "localhost-nodeport-rejected-" p "\n"
#define CHECK(to)                      \
	"nodeport-endpoints-check " to \
	" meta l4proto . th dport vmap @localhost-nodeport-reject-ports\n"
#define COUNT(p) " counter name \"localhost-nodeport-rejected-" p "\""
#define TCP_RULE \
	"localhost-nodeport-reject-tcp meta l4proto tcp" COUNT("tcp") " reject with tcp reset\n"
#define RULE(p) "localhost-nodeport-reject-" p COUNT(p) " reject\n"
#define ELEMENT(p, port)                                                                         \
	"localhost-nodeport-reject-ports { " p " . " port " : goto localhost-nodeport-reject-" p \
	" }\n"
#define ALL(to)                                                                          \
	MAP COUNTER("tcp") COUNTER("udp") COUNTER("sctp") CHECK(to) TCP_RULE RULE("udp") \
		RULE("sctp") ELEMENT("tcp", "30080") ELEMENT("udp", "30053")             \
			ELEMENT("sctp", "30099")
#define NO_TCP(to)                                                            \
	MAP COUNTER("udp") COUNTER("sctp") CHECK(to) RULE("udp") RULE("sctp") \
		ELEMENT("udp", "30053") ELEMENT("sctp", "30099")
#define V4 "ip daddr 127.0.0.0/8"
#define V6 "ip6 daddr ::1"

static void rules_follow_gate_family_and_addresses(void **state attr_unused)
{
	static const struct {
		enum family family;
		bool gate;
		const char *cidrs[4];
		const char *expected;
	} cases[] = {
		{FAMILY_IPV4, false, {NULL}, ""},
		{FAMILY_IPV4, false, {"127.0.0.0/8"}, ""},
		{FAMILY_IPV6, false, {"::1/128"}, ""},
		{FAMILY_IPV4, true, {NULL}, ALL(V4)},
		{FAMILY_IPV6, true, {NULL}, ALL(V6)},
		{FAMILY_IPV4, true, {"0.0.0.0/0"}, ALL(V4)},
		{FAMILY_IPV4, true, {"10.0.0.0/8"}, ALL(V4)},
		{FAMILY_IPV4, true, {"::1/128"}, ALL(V4)},
		{FAMILY_IPV6, true, {"127.0.0.0/8", "::/0"}, ALL(V6)},
		{FAMILY_IPV4, true, {"127.0.0.0/8"}, NO_TCP(V4)},
		{FAMILY_IPV4, true, {"127.0.0.1/32"}, NO_TCP(V4)},
		{FAMILY_IPV4, true, {"127.5.0.0/16", "10.0.0.0/8"}, NO_TCP(V4)},
		{FAMILY_IPV4, true, {"0.0.0.0/0", "127.0.0.0/8"}, NO_TCP(V4)},
		{FAMILY_IPV4, true, {"126.0.0.0/7"}, ALL(V4)}, /* which does not begin there */
		{FAMILY_IPV6, true, {"fd00::/8", "::1/128"}, NO_TCP(V6)},
		{FAMILY_IPV6, true, {"::/0", "::1/128"}, NO_TCP(V6)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_free char *found =
			words(cases[i].family, cases[i].gate, (const char **)cases[i].cidrs);

		if (!streq(found, cases[i].expected))
			fail_msg("case %zu:\n%s\nbut expected:\n%s", i, found, cases[i].expected);
	}
}

/* -- in the kernel */

static void start(struct node_host *host)
{
	host_init(host);
	host_run("ip link set lo up");
	host->world.settings.mode.localhost_proxy = true;
	add_service(host->world.model);
	host_watch(host);
}

/* A full sync with other settings, as a restart with them would do it. */
static void sync_fully(struct node_host *host)
{
	backend_nftables.need_full_sync(host->backend);
	host_sync(host);
	assert_true(host->result.full);
}

static struct table_counters count(void)
{
	cleanup_nft_socket struct nft_socket *socket = NULL;
	struct table_counters counters;
	struct err err;

	assert_int_equal(nft_socket_open(&socket, &err), 0);
	if (table_read_counters(socket, FAMILY_IPV4, &counters, &err) < 0)
		fail_msg("%s", err.text);
	return counters;
}

/* What a process of the node gets that sends to it. */
static int try_port(int type, uint16_t port)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), code = 0;
	char byte = 0;

	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		code = errno;
	else if (type == SOCK_DGRAM && (write(fd, &byte, 1) < 0 || read(fd, &byte, 1) < 0))
		code = errno;
	close(fd);
	return code;
}

#define GREP "nft list table ip kube-proxy | grep -q localhost"

static void what_is_refused_is_counted(void **state attr_unused)
{
	struct node_host host;
	struct table_counters counters;

	start(&host);
	assert_int_equal(try_port(SOCK_DGRAM, 30053), ECONNREFUSED);
	assert_int_equal(try_port(SOCK_STREAM, 30080), ECONNREFUSED);
	assert_int_equal(try_port(SOCK_STREAM, 30080), ECONNREFUSED);
	assert_int_equal(try_port(SOCK_STREAM, 30081), ECONNREFUSED); /* by nobody's rule */
	counters = count();
	assert_true(counters.there[PROTOCOL_SCTP]);
	assert_int_equal(counters.packets[PROTOCOL_TCP], 2);
	assert_int_equal(counters.packets[PROTOCOL_UDP], 1);
	assert_int_equal(counters.packets[PROTOCOL_SCTP], 0);
	sync_fully(&host); /* which empties everything else */
	assert_int_equal(count().packets[PROTOCOL_TCP], 2);
	host_done(&host);
}

static void ports_come_and_go_with_their_services(void **state attr_unused)
{
	struct node_host host;

	start(&host);
	host_run("nft get element ip kube-proxy localhost-nodeport-reject-ports "
		 "'{ udp . 30053 }' >/dev/null");
	model_remove_service(host.world.model, KEY);
	host_sync(&host);
	assert_false(host.result.full);
	host_run("! nft get element ip kube-proxy localhost-nodeport-reject-ports "
		 "'{ udp . 30053 }' 2>/dev/null");
	add_service(host.world.model);
	host_sync(&host);
	assert_false(host.result.full);
	assert_int_equal(try_port(SOCK_DGRAM, 30053), ECONNREFUSED);
	assert_int_equal(count().packets[PROTOCOL_UDP], 1);
	host_done(&host);
}

static void damage_is_repaired(void **state attr_unused)
{
	static const char *const damages[] = {
		"nft delete element ip kube-proxy localhost-nodeport-reject-ports '{ udp . 30053 "
		"}'",
		"nft flush chain ip kube-proxy localhost-nodeport-reject-udp",
		"nft flush chain ip kube-proxy nodeport-endpoints-check",
		"nft 'flush chain ip kube-proxy localhost-nodeport-reject-udp; "
		"delete counter ip kube-proxy localhost-nodeport-rejected-udp'",
		"nft delete table ip kube-proxy",
	};
	struct node_host host;

	start(&host);
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		size_t before = host.n_flushed;
		uint64_t counted;

		host_run(damages[i]);
		while (host.n_flushed == before)
			event_base_loop(host.loop, EVLOOP_ONCE);
		host_sync(&host);
		counted = count().packets[PROTOCOL_UDP];
		assert_int_equal(try_port(SOCK_DGRAM, 30053), ECONNREFUSED);
		assert_int_equal(count().packets[PROTOCOL_UDP], counted + 1);
	}
	host_done(&host);
}

static void other_settings_leave_nothing_of_these(void **state attr_unused)
{
	struct node_host host;
	struct settings *settings = &host.world.settings;

	start(&host);
	host_run(GREP);
	settings->node_ports.names_loopback = true; /* TCP is carried */
	sync_fully(&host);
	assert_false(count().there[PROTOCOL_TCP]);
	host_run("! nft list chain ip kube-proxy localhost-nodeport-reject-tcp 2>/dev/null");
	host_run("nft list chain ip kube-proxy localhost-nodeport-reject-udp >/dev/null");
	settings->node_ports.names_loopback = false;
	sync_fully(&host);
	assert_true(count().there[PROTOCOL_TCP]);
	settings->mode.localhost_proxy = false;
	sync_fully(&host);
	host_run("! " GREP);
	assert_false(count().there[PROTOCOL_UDP]);
	host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_follow_gate_family_and_addresses),
		cmocka_unit_test(what_is_refused_is_counted),
		cmocka_unit_test(ports_come_and_go_with_their_services),
		cmocka_unit_test(damage_is_repaired),
		cmocka_unit_test(other_settings_leave_nothing_of_these),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
