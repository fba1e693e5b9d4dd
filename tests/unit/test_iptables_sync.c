/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/host.h"
#include "backends/iptables/ruleset.h"
#include "backends/modes.h"
#include "base/clock.h"
#include "build.h"
#include "fake_tools.h"
#include "kernel/nfacct.h"
#include "kernel/sysctl.h"
#include "plan_feed.h"
#include "xtables/restore_writer.h"

/* A backend on pretended tools and a pretended /proc. */
struct context {
	struct backend_host host; /* the variant AUTO: what `iptables` is */
	struct fake fake;
	struct event_base *loop;
	struct settings settings;
	struct backend_events events;
	struct model *model;
	struct plan_feed feed;
	struct backend *backend;
	struct err err;
	bool synced, flushed;
	struct backend_result result;
};

static void on_synced(void *arg, const struct backend_result *result)
{
	struct context *context = arg;

	context->synced = true;
	context->result = *result;
	plan_feed_end(&context->feed, result->error == 0);
}

static void on_flushed(void *arg, const char *what)
{
	struct context *context = arg;

	assert_string_equal(what, "chain " CHAIN_CANARY " deleted");
	context->flushed = true;
}

static void make_proc(struct context *context)
{
	cleanup_free char *command = xasprintf("cd %s && mkdir -p net sys/net/ipv4/conf/all "
					       "sys/net/ipv6/conf/all sys/net/netfilter",
					       context->fake.folder);

	assert_int_equal(system(command), 0);
	fake_write(&context->fake, "net/if_inet6", "");
	fake_write(&context->fake, "sys/net/ipv4/conf/all/route_localnet", "0\n");
	fake_write(&context->fake, "sys/net/ipv6/conf/all/disable_ipv6", "0\n");
	fake_write(&context->fake, "sys/net/netfilter/nf_conntrack_tcp_be_liberal", "0\n");
	sysctl_set_proc(context->fake.folder);
}

static int set_up(void **state)
{
	struct context *context = xcalloc(1, sizeof(*context));

	*state = context;
	fake_start(&context->fake);
	make_proc(context);
	context->loop = event_base_new();
	context->model = model_new("node-a", 0);
	context->events = (struct backend_events){on_synced, on_flushed, context};
	context->settings = (struct settings){
		.node_name = "node-a",
		.node_ip = build_addr("192.168.0.2"),
		.masquerade_mark = 0x4000,
		.localhost_node_ports = true,
		.allow_external_ips = true,
		.detector = {.kind = DETECTOR_CIDR, .cidr = build_prefix("10.0.0.0/8")},
		.sync_period_ns = 20 * CLOCK_NS_PER_MS,
	};
	node_ports_init(&context->settings.node_ports, FAMILY_IPV4, NULL, 0);
	plan_feed_open(&context->feed, &context->settings, context->model);
	return 0;
}

static int tear_down(void **state)
{
	struct context *context = *state;

	backend_iptables.close(context->backend);
	plan_feed_close(&context->feed);
	model_free(context->model);
	node_ports_done(&context->settings.node_ports);
	event_base_free(context->loop);
	sysctl_set_proc(NULL);
	fake_stop(&context->fake);
	free(context);
	return 0;
}

static int try_open(struct context *context)
{
	return backend_iptables.open(context->loop, &context->host, &context->settings,
				     &context->events, &context->backend, &context->err);
}

/* Opens in a network namespace of its own, because counters are created for real. */
static void open_backend(struct context *context)
{
	private_network();
	assert_int_equal(try_open(context), 0);
	free(fake_log(&context->fake));
}

static void add_service(struct context *context, const char *key, const char *ip,
			const char *endpoint)
{
	struct service *service = build_service(key, ip);
	cleanup_free char *slice_key = xasprintf("%s-1", key);
	struct draft *slice = build_slice(slice_key, strchr(key, '/') + 1, FAMILY_IPV4);

	build_port(service, "p80", PROTOCOL_TCP, 80, 0);
	build_slice_port(slice, "p80", PROTOCOL_TCP, 80);
	build_endpoint(slice, endpoint, "node-a", BUILD_READY);
	model_set_service(context->model, service);
	build_set_slice(context->model, slice);
}

/* One sync to its end; returns its error. */
static int run_sync(struct context *context)
{
	context->synced = false;
	backend_iptables.sync(context->backend, plan_feed_next(&context->feed));
	fake_wait(context->loop, &context->synced);
	assert_false(backend_iptables.syncing(context->backend));
	return context->result.error;
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	while ((text = strstr(text, part))) {
		text += strlen(part);
		n++;
	}
	return n;
}

static void forget_log(struct context *context)
{
	free(fake_log(&context->fake));
}

/* -- a full sync */

/* The commands for all jump rules on an empty host, in order. */
static void expect_jumps(struct text *expected, bool absent)
{
	for (size_t i = 0; i < RULESET_JUMPS; i++) {
		cleanup_arena struct arena *arena = arena_new(512);
		struct rule rule;
		char **words;
		size_t n;

		ruleset_jump(i, &rule);
		words = restore_rule_argv(&rule, arena, &n);
		text_printf(expected, "iptables -w 5 -N %s -t %s\n", rule.target.chain,
			    table_name(rule.table));
		for (const char *op = absent ? "CI" : "C"; *op; op++) {
			text_printf(expected, "iptables -w 5 -%c %s -t %s", *op, rule.chain,
				    table_name(rule.table));
			for (size_t j = 0; j < n; j++)
				text_printf(expected, " %s", words[j]);
			text_str(expected, "\n");
		}
	}
}

static void full_sync_ensures_jumps_then_restores_both_tables(void **state)
{
	struct context *context = *state;
	cleanup_text struct text expected = {0};
	cleanup_free char *commands = NULL;
	cleanup_free char *input = NULL;

	open_backend(context);
	add_service(context, "ns1/svc1", "172.30.0.41", "10.180.0.1");
	assert_int_equal(run_sync(context), 0);
	expect_jumps(&expected, true);
	text_str(&expected, "iptables-save -t nat\niptables-restore -w 5 --noflush --counters\n");
	commands = text_dup(&expected);
	fake_expect_log(&context->fake, commands);
	assert_true(context->result.full);
	assert_int_equal(context->feed.changes.n_services, 1);
	assert_true(context->result.rules > 8);
	assert_true(context->result.duration_ns > 0);
	input = fake_read(&context->fake, "input");
	assert_true(has_prefix(input, "*filter\n:KUBE-SERVICES - [0:0]\n"));
	assert_non_null(strstr(input, "COMMIT\n*nat\n"));
	assert_non_null(strstr(input, "-A KUBE-SVC-XPGD46QRK7WJZT7O "));
	assert_true(has_suffix(input, "COMMIT\n"));
	assert_int_equal(count(input, "\n*"), 1);
}

static void the_jump_words_are_those_of_kube_proxy(void **state)
{
	struct context *context = *state;
	cleanup_free char *log = NULL;

	open_backend(context);
	assert_int_equal(run_sync(context), 0);
	log = fake_log(&context->fake);
	assert_true(has_prefix(
		log,
		"iptables -w 5 -N KUBE-EXTERNAL-SERVICES -t filter\n"
		"iptables -w 5 -C INPUT -t filter -m conntrack --ctstate NEW -m comment --comment "
		"kubernetes externally-visible service portals -j KUBE-EXTERNAL-SERVICES\n"
		"iptables -w 5 -I INPUT -t filter -m conntrack --ctstate NEW -m comment --comment "
		"kubernetes externally-visible service portals -j KUBE-EXTERNAL-SERVICES\n"));
	assert_non_null(strstr(log, "\niptables -w 5 -C OUTPUT -t filter -j KUBE-FIREWALL\n"
				    "iptables -w 5 -I OUTPUT -t filter -j KUBE-FIREWALL\n"
				    "iptables-save -t nat\n"));
}

static void jumps_that_are_there_are_left_where_they_are(void **state)
{
	struct context *context = *state;
	cleanup_text struct text expected = {0};
	cleanup_free char *commands = NULL;

	open_backend(context);
	assert_int_equal(run_sync(context), 0);
	forget_log(context);
	backend_iptables.need_full_sync(context->backend);
	assert_int_equal(run_sync(context), 0);
	assert_true(context->result.full);
	expect_jumps(&expected, false);
	text_str(&expected, "iptables-save -t nat\niptables-restore -w 5 --noflush --counters\n");
	commands = text_dup(&expected);
	fake_expect_log(&context->fake, commands);
}

static void full_sync_creates_the_counters(void **state)
{
	struct context *context = *state;
	struct nfacct_counter counter;
	cleanup_free char *input = NULL;

	open_backend(context);
	if (!nfacct_supported())
		skip();
	assert_int_equal(run_sync(context), 0);
	assert_int_equal(nfacct_get(NULL, NFACCT_INVALID, &counter, &context->err), 0);
	assert_int_equal(nfacct_get(NULL, NFACCT_LOCALHOST, &counter, &context->err), 0);
	input = fake_read(&context->fake, "input");
	assert_non_null(strstr(input, "-m nfacct --nfacct-name " NFACCT_INVALID " -j DROP\n"));
}

static void a_failing_jump_aborts_before_anything_is_restored(void **state)
{
	static const char *const patterns[] = {"*-N KUBE-FORWARD*", "*-C INPUT*",
					       "*-I POSTROUTING*"};
	struct context *context = *state;

	open_backend(context);
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		cleanup_free char *log = NULL;

		fake_answer(&context->fake, patterns[i], 4, true,
			    "Another app is holding the xtables lock.");
		assert_int_equal(run_sync(context), -EAGAIN);
		assert_true(context->result.full);
		assert_true(has_prefix(context->result.err.text, "ensuring the jump from chain "));
		assert_non_null(strstr(context->result.err.text, "holding the xtables lock"));
		log = fake_log(&context->fake);
		assert_null(strstr(log, "restore"));
	}
	assert_int_equal(run_sync(context), 0); /* and the next one makes it good */
	assert_true(context->result.full);
}

/* -- a partial sync */

static void partial_sync_runs_restore_only(void **state)
{
	struct context *context = *state;
	cleanup_free char *input = NULL;

	open_backend(context);
	add_service(context, "ns1/svc1", "172.30.0.41", "10.180.0.1");
	assert_int_equal(run_sync(context), 0);
	forget_log(context);
	add_service(context, "ns2/svc2", "172.30.0.42", "10.180.0.2");
	assert_int_equal(run_sync(context), 0);
	assert_false(context->result.full);
	fake_expect_log(&context->fake, "iptables-restore -w 5 --noflush --counters\n");
	input = fake_read(&context->fake, "input");
	assert_null(strstr(input, "ns1/svc1:p80"));
	assert_non_null(strstr(input, "ns2/svc2:p80"));
}

static void a_sync_without_changes_runs_nothing(void **state)
{
	struct context *context = *state;

	open_backend(context);
	add_service(context, "ns1/svc1", "172.30.0.41", "10.180.0.1");
	assert_int_equal(run_sync(context), 0);
	forget_log(context);
	assert_int_equal(run_sync(context), 0);
	assert_false(context->result.full);
	assert_int_equal(context->result.rules, 0);
	fake_expect_log(&context->fake, "");
}

static void stale_chains_of_the_dump_are_deleted(void **state)
{
	struct context *context = *state;
	cleanup_free char *input = NULL;

	open_backend(context);
	add_service(context, "ns1/svc1", "172.30.0.41", "10.180.0.1");
	fake_write(&context->fake, "save.nat",
		   "*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n"
		   ":KUBE-SVC-XPGD46QRK7WJZT7O - [0:0]\n:FOREIGN - [0:0]\nCOMMIT\n");
	assert_int_equal(run_sync(context), 0);
	input = fake_read(&context->fake, "input");
	assert_non_null(strstr(input, ":KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n"));
	assert_non_null(strstr(input, "-X KUBE-SVC-AAAAAAAAAAAAAAAA\n"));
	assert_int_equal(count(input, "-X "), 1);
}

/* The kernel refuses to delete a chain that a rule leads to, and with it the whole sync. */
static void stale_chains_that_foreign_rules_lead_to_are_emptied_only(void **state)
{
	struct context *context = *state;
	cleanup_free char *input = NULL;

	open_backend(context);
	fake_write(&context->fake, "save.nat",
		   "*nat\n:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n:KUBE-SVC-BBBBBBBBBBBBBBBB - [0:0]\n"
		   ":KUBE-SEP-CCCCCCCCCCCCCCCC - [0:0]\n:FOREIGN - [0:0]\n"
		   "-A FOREIGN -m comment --comment \"a word -j\" -j KUBE-SVC-AAAAAAAAAAAAAAAA\n"
		   "-A KUBE-SERVICES -p tcp -j KUBE-SVC-BBBBBBBBBBBBBBBB\n"
		   "-A KUBE-SVC-AAAAAAAAAAAAAAAA -j KUBE-SEP-CCCCCCCCCCCCCCCC\nCOMMIT\n");
	assert_int_equal(run_sync(context), 0);
	input = fake_read(&context->fake, "input");
	assert_non_null(strstr(input, ":KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n"));
	assert_null(strstr(input, "-X KUBE-SVC-AAAAAAAAAAAAAAAA\n"));
	assert_non_null(strstr(input, "-X KUBE-SVC-BBBBBBBBBBBBBBBB\n"));
	assert_non_null(strstr(input, "-X KUBE-SEP-CCCCCCCCCCCCCCCC\n"));
}

static void a_failing_dump_only_puts_deletions_off(void **state)
{
	struct context *context = *state;
	cleanup_free char *input = NULL;

	open_backend(context);
	fake_answer(&context->fake, "iptables-save*", 1, true, "cannot dump");
	fake_write(&context->fake, "save.nat", ":KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n");
	assert_int_equal(run_sync(context), 0);
	input = fake_read(&context->fake, "input");
	assert_null(strstr(input, "-X "));
}

static void failing_restore_is_told_and_the_next_sync_is_full(void **state)
{
	struct context *context = *state;
	cleanup_free char *log = NULL;

	open_backend(context);
	assert_int_equal(run_sync(context), 0);
	add_service(context, "ns1/svc1", "172.30.0.41", "10.180.0.1");
	fake_answer(&context->fake, "iptables-restore*", 1, true,
		    "iptables-restore: line 1 failed");
	assert_int_equal(run_sync(context), -EIO);
	assert_false(context->result.full);
	assert_string_equal(context->result.err.text,
			    "writing the IPv4 rules: iptables-restore -w 5 --noflush --counters, "
			    "line 1 '*nat', "
			    "failed with status 1: iptables-restore: line 1 failed");
	forget_log(context);
	assert_int_equal(run_sync(context), 0);
	assert_true(context->result.full);
	log = fake_log(&context->fake);
	assert_int_equal(count(log, " -N "), RULESET_JUMPS);
}

static void a_vanished_restore_is_told_and_recovered_from(void **state)
{
	struct context *context = *state;

	open_backend(context);
	assert_int_equal(run_sync(context), 0);
	add_service(context, "ns1/svc1", "172.30.0.41", "10.180.0.1");
	fake_remove(&context->fake, "bin/iptables-restore");
	assert_int_equal(run_sync(context), -ENOENT);
	assert_non_null(strstr(context->result.err.text, "starting iptables-restore"));
	fake_write(&context->fake, "bin/iptables-restore", fake_script);
	assert_int_equal(run_sync(context), 0);
}

static void interface_addresses_are_read_when_cidrs_are_given(void **state)
{
	const struct prefix cidr = build_prefix("10.20.30.0/24");
	struct context *context = *state;
	cleanup_free char *input = NULL;

	node_ports_done(&context->settings.node_ports);
	node_ports_init(&context->settings.node_ports, FAMILY_IPV4, &cidr, 1);
	open_backend(context);
	assert_int_equal(
		system("ip link show b0 >/dev/null 2>&1 || (ip link add b0 type bridge && "
		       "ip addr add 10.20.30.40/24 dev b0 && ip addr add 10.20.99.1/24 dev b0)"),
		0);
	assert_int_equal(run_sync(context), 0);
	input = fake_read(&context->fake, "input");
	assert_int_equal(count(input, " -d 10.20.30.40 -j KUBE-NODEPORTS\n"), 1);
	assert_null(strstr(input, "10.20.99.1"));
}

/* -- what happens beside a running sync */

static void changes_during_a_sync_wait_for_the_next(void **state)
{
	struct context *context = *state;
	cleanup_free char *first = NULL;
	cleanup_free char *second = NULL;

	open_backend(context);
	add_service(context, "ns1/svc1", "172.30.0.41", "10.180.0.1");
	context->synced = false;
	backend_iptables.sync(context->backend, plan_feed_next(&context->feed));
	assert_true(backend_iptables.syncing(context->backend));
	add_service(context, "ns2/svc2", "172.30.0.42", "10.180.0.2");
	model_remove_service(context->model, "ns1/svc1"); /* the plan of it stays good */
	fake_wait(context->loop, &context->synced);
	first = fake_read(&context->fake, "input");
	assert_non_null(strstr(first, "ns1/svc1:p80"));
	assert_null(strstr(first, "ns2/svc2:p80"));
	assert_int_equal(run_sync(context), 0);
	second = fake_read(&context->fake, "input");
	assert_int_equal(count(second, "-I KUBE-SERVICES -m comment --comment \"ns2/svc2:p80 "), 1);
	assert_int_equal(count(second, "-D KUBE-SERVICES -m comment --comment \"ns1/svc1:p80 "), 1);
	assert_int_equal(count(second, "ns1/svc1:p80"), 1);
}

static void a_full_sync_asked_for_during_a_sync_is_not_forgotten(void **state)
{
	struct context *context = *state;

	open_backend(context);
	assert_int_equal(run_sync(context), 0);
	context->synced = false;
	backend_iptables.sync(context->backend, plan_feed_next(&context->feed));
	backend_iptables.need_full_sync(context->backend);
	fake_wait(context->loop, &context->synced);
	assert_false(context->result.full);
	assert_int_equal(run_sync(context), 0);
	assert_true(context->result.full);
	assert_int_equal(run_sync(context), 0);
	assert_false(context->result.full);
}

static void closing_ends_a_running_sync_silently(void **state)
{
	struct context *context = *state;

	open_backend(context);
	context->synced = false;
	backend_iptables.sync(context->backend, plan_feed_next(&context->feed));
	for (int i = 0; i < 8; i++)
		event_base_loop(context->loop, EVLOOP_ONCE);
	backend_iptables.close(context->backend);
	context->backend = NULL;
	event_base_loop(context->loop, EVLOOP_NONBLOCK);
	assert_false(context->synced);
}

static void watching_begins_after_the_first_good_sync(void **state)
{
	struct context *context = *state;

	open_backend(context);
	backend_iptables.watch(context->backend);
	fake_answer(&context->fake, "iptables-restore*", 1, true, "no");
	assert_int_equal(run_sync(context), -EIO);
	event_base_loop(context->loop, EVLOOP_NONBLOCK);
	assert_false(fake_has(&context->fake, "state/iptables.mangle." CHAIN_CANARY));
	assert_int_equal(run_sync(context), 0);
	while (!fake_has(&context->fake, "state/iptables.filter." CHAIN_CANARY))
		event_base_loop(context->loop, EVLOOP_ONCE);
	fake_remove(&context->fake, "state/iptables.mangle." CHAIN_CANARY);
	fake_remove(&context->fake, "state/iptables.nat." CHAIN_CANARY);
	fake_remove(&context->fake, "state/iptables.filter." CHAIN_CANARY);
	fake_wait(context->loop, &context->flushed);
	assert_int_equal(run_sync(context), 0);
	assert_true(context->result.full);
}

/* -- opening */

static void open_sets_route_localnet_when_it_differs(void **state)
{
	struct context *context = *state;
	cleanup_free char *value = NULL;

	assert_int_equal(try_open(context), 0);
	value = fake_read(&context->fake, "sys/net/ipv4/conf/all/route_localnet");
	assert_string_equal(value, "1\n");
}

static void open_leaves_route_localnet_without_localhost_node_ports(void **state)
{
	struct context *context = *state;
	cleanup_free char *value = NULL;

	context->settings.localhost_node_ports = false;
	assert_int_equal(try_open(context), 0);
	value = fake_read(&context->fake, "sys/net/ipv4/conf/all/route_localnet");
	assert_string_equal(value, "0\n");
	backend_iptables.close(context->backend);
	context->settings.localhost_node_ports = true;
	context->settings.family = FAMILY_IPV6;
	assert_int_equal(try_open(context), 0);
	free(take(value));
	value = fake_read(&context->fake, "sys/net/ipv4/conf/all/route_localnet");
	assert_string_equal(value, "0\n");
}

static void open_fails_when_route_localnet_cannot_be_set(void **state)
{
	struct context *context = *state;

	fake_remove(&context->fake, "sys/net/ipv4/conf/all/route_localnet");
	assert_int_equal(try_open(context), -ENOENT);
	assert_string_equal(context->err.text,
			    "NodePorts on localhost (without them: "
			    "--iptables-localhost-nodeports=false): reading sysctl "
			    "'net/ipv4/conf/all/route_localnet': No such file or directory");
	assert_null(context->backend);
}

static void open_reads_be_liberal(void **state)
{
	struct context *context = *state;
	cleanup_free char *input = NULL;

	fake_write(&context->fake, "sys/net/netfilter/nf_conntrack_tcp_be_liberal", "1\n");
	open_backend(context);
	assert_int_equal(run_sync(context), 0);
	input = fake_read(&context->fake, "input");
	assert_null(strstr(input, "--ctstate INVALID"));
}

static void random_fully_whatever_the_version_is(void **state)
{
	struct context *context = *state;
	cleanup_free char *input = NULL;

	fake_write(&context->fake, "version", "no number\n");
	open_backend(context);
	assert_int_equal(run_sync(context), 0);
	input = fake_read(&context->fake, "input");
	assert_non_null(strstr(input, "-j MASQUERADE --random-fully\n"));
}

/* -- which families are usable */

static void dual_stack_discovery_both(void **state)
{
	struct context *context = *state;

	assert_int_equal(backend_iptables.usable(&context->host, FAMILY_IPV4, &context->err), 1);
	assert_int_equal(backend_iptables.usable(&context->host, FAMILY_IPV6, &context->err), 1);
	fake_expect_log(&context->fake,
			"iptables --version\niptables -w 5 -S POSTROUTING -t nat\n"
			"ip6tables --version\nip6tables -w 5 -S POSTROUTING -t nat\n");
}

static void dual_stack_discovery_only_ipv4(void **state)
{
	struct context *context = *state;

	fake_answer(&context->fake, "ip6tables*-S*", 3, false,
		    "can't initialize ip6tables table `nat'");
	assert_int_equal(backend_iptables.usable(&context->host, FAMILY_IPV4, &context->err), 1);
	assert_int_equal(backend_iptables.usable(&context->host, FAMILY_IPV6, &context->err), 0);
	assert_non_null(strstr(context->err.text, "can't initialize ip6tables table `nat'"));
}

static void dual_stack_discovery_only_ipv6(void **state)
{
	struct context *context = *state;

	fake_answer(&context->fake, "iptables*-S*", 3, false, "no");
	assert_int_equal(backend_iptables.usable(&context->host, FAMILY_IPV4, &context->err), 0);
	assert_int_equal(backend_iptables.usable(&context->host, FAMILY_IPV6, &context->err), 1);
}

static void dual_stack_discovery_none(void **state)
{
	struct context *context = *state;

	setenv("PATH", "/nonexistent", 1);
	assert_int_equal(backend_iptables.usable(&context->host, FAMILY_IPV4, &context->err), 0);
	assert_string_equal(context->err.text, "program 'iptables' not found in PATH");
	assert_int_equal(backend_iptables.usable(&context->host, FAMILY_IPV6, &context->err), 0);
	assert_string_equal(context->err.text, "program 'ip6tables' not found in PATH");
}

static void ipv6_needs_a_kernel_that_has_it_on(void **state)
{
	struct context *context = *state;

	fake_write(&context->fake, "sys/net/ipv6/conf/all/disable_ipv6", "1\n");
	assert_int_equal(backend_iptables.usable(&context->host, FAMILY_IPV6, &context->err), 0);
	assert_string_equal(context->err.text,
			    "IPv6 is turned off (sysctl net/ipv6/conf/all/disable_ipv6)");
	fake_write(&context->fake, "sys/net/ipv6/conf/all/disable_ipv6", "0\n");
	fake_remove(&context->fake, "net/if_inet6");
	assert_int_equal(backend_iptables.usable(&context->host, FAMILY_IPV6, &context->err), 0);
	assert_string_equal(context->err.text, "the kernel has no IPv6");
	fake_expect_log(&context->fake, "");
}

#define sync_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		sync_test(full_sync_ensures_jumps_then_restores_both_tables),
		sync_test(the_jump_words_are_those_of_kube_proxy),
		sync_test(jumps_that_are_there_are_left_where_they_are),
		sync_test(full_sync_creates_the_counters),
		sync_test(a_failing_jump_aborts_before_anything_is_restored),
		sync_test(partial_sync_runs_restore_only),
		sync_test(a_sync_without_changes_runs_nothing),
		sync_test(stale_chains_of_the_dump_are_deleted),
		sync_test(stale_chains_that_foreign_rules_lead_to_are_emptied_only),
		sync_test(a_failing_dump_only_puts_deletions_off),
		sync_test(failing_restore_is_told_and_the_next_sync_is_full),
		sync_test(a_vanished_restore_is_told_and_recovered_from),
		sync_test(interface_addresses_are_read_when_cidrs_are_given),
		sync_test(changes_during_a_sync_wait_for_the_next),
		sync_test(a_full_sync_asked_for_during_a_sync_is_not_forgotten),
		sync_test(closing_ends_a_running_sync_silently),
		sync_test(watching_begins_after_the_first_good_sync),
		sync_test(open_sets_route_localnet_when_it_differs),
		sync_test(open_leaves_route_localnet_without_localhost_node_ports),
		sync_test(open_fails_when_route_localnet_cannot_be_set),
		sync_test(open_reads_be_liberal),
		sync_test(random_fully_whatever_the_version_is),
		sync_test(dual_stack_discovery_both),
		sync_test(dual_stack_discovery_only_ipv4),
		sync_test(dual_stack_discovery_only_ipv6),
		sync_test(dual_stack_discovery_none),
		sync_test(ipv6_needs_a_kernel_that_has_it_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
