/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "backends/refused_services.h"
#include "neighbour.h"
#include "nft_host.h"

/* Syncs over netlink, in network namespaces, read back with iptables-save. Both families. */

static enum family family_of(void **state)
{
	return *(enum family *)*state;
}

static size_t n_transactions(const struct host *host)
{
	return nft_sync_stats(host->sync)->n_transactions;
}

/* Three services: plain, with a node port, without endpoints. */
static void serve_some(struct host *host)
{
	host_serve(host, "ns1/a", 1, "10.0.1.1 10.0.1.2 10.0.1.3");
	cluster_serve(&host->cluster, host_service(host, "ns1/b", 2), "p80", 80, 30080);
	host_endpoints(host, "ns1/b", "10.0.1.4 10.0.1.5");
	cluster_serve(&host->cluster, host_service(host, "ns1/none", 3), "p80", 80, 0);
}

static void start_some(struct host *host, void **state)
{
	host_init(host, family_of(state));
	serve_some(host);
	host_sync(host);
	host_expect(host);
}

/* -- full syncs */

static void test_a_cold_start_writes_what_a_dry_run_foretells(void **state)
{
	struct host host;
	cleanup_free char *there = NULL;

	start_some(&host, state);
	assert_true(host.result.full);
	there = host_save(&host);
	/* the order of Services too, as nothing was there before */
	assert_true(strstr(there, "ns1/a:p80 cluster IP") < strstr(there, "ns1/b:p80 cluster IP"));
	host_done(&host);
}

static void test_a_cold_start_of_many_takes_pieces(void **state)
{
	struct host host;

	host_init(&host, family_of(state));
	host_serve_many(&host, 400);
	host_sync(&host);
	/* shared chains, own chains in three pieces or more, entries, jumps */
	assert_in_range(n_transactions(&host), 5, 12);
	host_expect(&host);
	host_done(&host);
}

static void test_a_full_sync_over_the_right_rules_sends_nothing(void **state)
{
	struct host host;
	uint32_t before;

	start_some(&host, state);
	before = host_generation(&host);
	host_sync_full(&host);
	host_restart(&host);
	host_sync(&host);
	assert_true(host.result.full);
	assert_int_equal(n_transactions(&host), 0);
	assert_int_equal(host_generation(&host), before);
	host_done(&host);
}

/* As after a change from the other writer, or from kube-proxy. */
static void test_rules_of_iptables_restore_are_found_right(void **state)
{
	struct host host;
	char path[] = "/tmp/test-nft-sync-XXXXXX";
	int fd = mkstemp(path);
	cleanup_free char *text = NULL;
	cleanup_free char *command = xasprintf("%%s-restore --noflush <%s", path);
	uint32_t before;

	start_some(&host, state);
	text = host_foretold(&host, RENDER_RESTORE);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	host_run(&host, "nft flush ruleset");
	host_run(&host, "for c in KUBE-SERVICES KUBE-POSTROUTING; do %s -t nat -N $c; done");
	host_run(&host, command);
	unlink(path);
	host_restart(&host);
	host_sync(&host); /* jumps and canaries are missing, no rule of a chain of ours is */
	host_expect(&host);
	assert_int_equal(host.result.rules, RULESET_JUMPS);
	before = host_generation(&host);
	host_sync_full(&host);
	assert_int_equal(host_generation(&host), before);
	host_done(&host);
}

static void damage_chain(struct host *host, const char *start, const char *format)
{
	cleanup_free char *chain = host_chain(host, start);
	cleanup_free char *command = xasprintf("c=%s; %s", chain, format);

	host_run(host, command);
}

/* A program that starts finds rules in disorder: it repairs them, and only them. */
static void test_a_full_sync_repairs_what_is_wrong(void **state)
{
	static const char *const damages[][2] = {
		{"KUBE-SVC-", "%s -t nat -D $c 1"},
		{"KUBE-SVC-",
		 "r=$(%s -t nat -S $c 1); %s -t nat -D $c 1; %s -t nat -A $c -j RETURN"},
		{"KUBE-SEP-", "%s -t nat -A $c -j RETURN"},
		{"KUBE-SEP-", "%s -t nat -F $c"},
		{"KUBE-SERVICES", "%s -t nat -A $c -j RETURN"},
		{"KUBE-SERVICES", "%s -t nat -D $c 1"},
		{"KUBE-SERVICES", "%s -t nat -F $c"},
		{"KUBE-POSTROUTING", "%s -t nat -D $c 1"},
		{"KUBE-POSTROUTING", "%s -t nat -I $c -j RETURN"},
		{"KUBE-FORWARD", "%s -F $c"},
		{"KUBE-NODEPORTS", "%s -t nat -F $c"},
		{"KUBE-MARK-MASQ", "%s -t nat -A $c -j RETURN"},
		{"KUBE-SVC-", "%s -t nat -N KUBE-SVC-AAAAAAAAAAAAAAAA"},
		{"KUBE-PROXY-CANARY", "%s -t mangle -X $c"},
	};
	struct host host;

	start_some(&host, state);
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		nft_sync_free(host.sync); /* so that nobody repairs it before */
		host.sync = NULL;
		damage_chain(&host, damages[i][0], damages[i][1]);
		assert_false(host_is_right(&host));
		host_restart(&host);
		host_sync(&host);
		host_expect(&host);
		assert_in_range(host.result.rules, 0, 8);
	}
	host_done(&host);
}

/* Equal sets of rules, other orders. */
static void test_the_order_of_rules_is_repaired(void **state)
{
	struct host host;
	cleanup_free char *before = NULL;
	cleanup_free char *after = NULL;

	start_some(&host, state);
	before = host_save(&host);
	host.sync = nft_sync_free(host.sync);
	/* the first choice of an endpoint becomes the last, the way to node ports the first */
	damage_chain(&host, "KUBE-SVC-",
		     "r=$(%s -t nat -S $c 1); %s -t nat -D $c 1; eval %s -t nat $r");
	host_run(&host, "n=$(%s -t nat -S KUBE-SERVICES | grep -c ^-A); "
			"r=$(%s -t nat -S KUBE-SERVICES $n | sed 's/^-A/-I/'); "
			"%s -t nat -D KUBE-SERVICES $n; eval %s -t nat $r");
	after = host_save(&host);
	assert_string_not_equal(before, after);
	host_restart(&host);
	host_sync(&host);
	free(after);
	after = host_save(&host);
	assert_string_equal(before, after);
	host_done(&host);
}

/* A Service with a cluster IP and an external one. */
static void serve_outside(struct host *host, const char *key, unsigned int n)
{
	struct service *service = host_service(host, key, n);
	bool v4 = host->cluster.settings.family == FAMILY_IPV4;
	cleanup_free char *ip = xasprintf(v4 ? "198.51.100.%u" : "2001:db8:1::%x", n);

	build_external_ip(service, ip);
	cluster_serve(&host->cluster, service, "p80", 80, 0);
	host_endpoints(host, key, "10.0.9.1");
}

/* kube-proxy writes one Service after the other; here what is outside moves behind all cluster IPs. */
static void test_cluster_ips_are_put_before_others(void **state)
{
	struct host host;
	uint32_t before;

	host_init(&host, family_of(state));
	serve_outside(&host, "ns/a", 1);
	serve_outside(&host, "ns/b", 2);
	host_sync(&host);
	host_expect_leading(&host);
	host.sync = nft_sync_free(host.sync);
	host_run(&host, "r=$(%s -t nat -S KUBE-SERVICES | grep 'ns/a.* external IP' | "
			"sed 's/^-A/-I/'); eval %s -t nat $r; %s -t nat -D KUBE-SERVICES 4");
	host_restart(&host);
	host_sync(&host);
	assert_int_equal(host.result.rules, 2); /* it, and the way to node ports behind it */
	host_expect(&host);
	host_expect_leading(&host);
	before = host_generation(&host);
	host_sync_full(&host);
	assert_int_equal(host_generation(&host), before);
	host_done(&host);
}

static void test_a_cluster_ip_that_comes_later_goes_to_the_head(void **state)
{
	struct host host;

	host_init(&host, family_of(state));
	serve_outside(&host, "ns/a", 1);
	host_sync(&host);
	host_serve(&host, "ns/b", 2, "10.0.9.2");
	host_sync(&host);
	assert_int_equal(host.result.rules, 5); /* its entry and its chains: nothing moves for it */
	serve_outside(&host, "ns/c", 3);
	host_sync(&host);
	host_expect(&host);
	host_expect_leading(&host);
	host_run(&host, "%s -t nat -D KUBE-SERVICES 1"); /* and so does one that others removed */
	host_sync_full(&host);
	host_expect(&host);
	host_expect_leading(&host);
	host_remove(&host, "ns/b"); /* its handle is known */
	host_sync(&host);
	host_expect(&host);
	host_done(&host);
}

static void test_foreign_rules_of_base_chains_stay(void **state)
{
	struct host host;

	host_init(&host, family_of(state));
	host_run(&host, "%s -A INPUT -p tcp --dport 22 -j ACCEPT; %s -P FORWARD DROP; "
			"%s -t nat -A POSTROUTING -o eth9 -j MASQUERADE");
	serve_some(&host);
	host_sync(&host);
	assert_true(host_has(&host, "-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT"));
	assert_true(host_has(&host, "-A POSTROUTING -o eth9 -j MASQUERADE"));
	assert_true(host_has(&host, ":FORWARD DROP"));
	host_done(&host);
}

/* -C does not ask for the place either. */
static void test_a_jump_that_is_anywhere_is_there(void **state)
{
	struct host host;
	uint32_t before;

	start_some(&host, state);
	host_run(&host, "%s -t nat -I OUTPUT -p tcp --dport 1 -j ACCEPT");
	before = host_generation(&host);
	host_sync_full(&host);
	assert_int_equal(host_generation(&host), before);
	host_done(&host);
}

static void test_a_jump_that_is_missing_becomes_the_first_rule(void **state)
{
	struct host host;
	cleanup_free char *there = NULL;

	start_some(&host, state);
	host.sync = nft_sync_free(host.sync);
	host_run(&host, "%s -t nat -F OUTPUT; %s -t nat -A OUTPUT -p tcp --dport 1 -j ACCEPT");
	host_restart(&host);
	host_sync(&host);
	there = host_save(&host);
	assert_true(strstr(there, "-A OUTPUT -m comment") < strstr(there, "--dport 1 -j ACCEPT"));
	assert_int_equal(host.result.rules, 1);
	host_done(&host);
}

static void test_services_that_went_while_nobody_ran_leave_nothing(void **state)
{
	struct host host;

	start_some(&host, state);
	host_remove(&host, "ns1/a");
	host_remove(&host, "ns1/b");
	host_restart(&host);
	host_sync(&host);
	host_expect(&host);
	host_done(&host);
}

/* -- deltas */

static void test_a_delta_is_one_transaction(void **state)
{
	struct host host;
	uint32_t before;

	start_some(&host, state);
	before = host_generation(&host);
	host_endpoints(&host, "ns1/a", "10.0.1.1 10.0.1.9");
	host_serve(&host, "ns1/new", 9, "10.0.1.7");
	host_remove(&host, "ns1/b");
	host_sync(&host);
	assert_false(host.result.full);
	assert_int_equal(host_generation(&host), before + 1);
	host_expect(&host);
	host_done(&host);
}

static void test_many_deltas_leave_what_a_full_sync_would(void **state)
{
	struct host host;
	uint32_t before;

	start_some(&host, state);
	for (unsigned int i = 0; i < 30; i++) {
		cleanup_free char *key = xasprintf("ns2/s%u", i % 7);

		if (i % 3 == 2)
			host_remove(&host, key);
		else
			host_serve(&host, key, 100 + i, i % 2 ? "10.0.2.1" : "10.0.2.2 10.0.2.3");
		host_sync(&host);
	}
	host_expect(&host);
	before = host_generation(&host);
	host_sync_full(&host);
	assert_int_equal(host_generation(&host), before);
	host_done(&host);
}

/* Nothing is learnt from echoes here: the handles come from a list. */
static void test_a_delta_finds_handles_of_rules_that_others_wrote(void **state)
{
	struct host host;

	start_some(&host, state);
	host_restart(&host);
	host_sync(&host);
	host_remove(&host, "ns1/a");
	host_sync(&host);
	assert_false(host.result.full);
	host_expect(&host);
	host_done(&host);
}

static void test_a_foreign_change_elsewhere_does_not_disturb_a_delta(void **state)
{
	struct host host;

	start_some(&host, state);
	host_run(&host, "%s -A INPUT -p tcp --dport 22 -j ACCEPT; %s -D INPUT -p tcp --dport 22 -j "
			"ACCEPT");
	host_endpoints(&host, "ns1/a", "10.0.1.9");
	host_sync(&host);
	assert_false(host.result.full);
	host_expect(&host);
	host_done(&host);
}

/* Somebody who never stops writing, elsewhere. */
static pid_t start_busy_writer(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		setpgid(0, 0); /* to be ended with its children */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sh", "sh", "-c",
		      "yes 'add table inet busy; delete table inet busy' | nft -i >/dev/null 2>&1",
		      NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	setpgid(pid, pid); /* whoever comes first */
	return pid;
}

/* The generation moves between reading and writing: sent again, until it is through. */
static void test_a_delta_gets_through_beside_a_busy_writer(void **state)
{
	struct host host;
	pid_t writer;

	start_some(&host, state);
	writer = start_busy_writer();
	for (unsigned int i = 0; i < 20000 && nft_sync_stats(host.sync)->n_resent < 3; i++) {
		host_endpoints(&host, "ns1/a", i % 2 ? "10.0.1.9" : "10.0.1.8");
		host_sync(&host);
		assert_false(host.result.full);
	}
	kill(-writer, SIGKILL);
	waitpid(writer, NULL, 0);
	assert_true(nft_sync_stats(host.sync)->n_resent >= 3);
	host_expect(&host);
	host_done(&host);
}

/* Who was served by an endpoint stays with it, whatever happens to the others. */
static void test_affinity_survives_changes(void **state)
{
	struct host host;
	struct service *service;
	cleanup_free char *sep = NULL;
	cleanup_free char *write_command = NULL;
	cleanup_free char *check_command = NULL;

	host_init(&host, family_of(state));
	service = host_service(&host, "ns1/sticky", 5);
	service->sticky_seconds = 10800;
	cluster_serve(&host.cluster, service, "p80", 80, 0);
	host_endpoints(&host, "ns1/sticky", "10.0.1.1");
	host_sync(&host);
	sep = host_chain(&host, "KUBE-SEP-");
	write_command = xasprintf("echo +%s >/proc/net/xt_recent/%s",
				  family_of(state) == FAMILY_IPV4 ? "10.1.2.3" : "fd00::3", sep);
	check_command = xasprintf("grep -q src= /proc/net/xt_recent/%s", sep);
	host_run(&host, write_command);
	host_endpoints(&host, "ns1/sticky", "10.0.1.1 10.0.1.2");
	host_sync(&host);
	host_run(&host, check_command);
	damage_chain(&host, sep, "%s -t nat -A $c -j RETURN");
	host_sync_full(&host);
	host_expect(&host);
	host_run(&host, check_command);
	host_done(&host);
}

/* -- refusals */

static void test_a_service_that_is_refused_does_not_stop_others(void **state)
{
	struct host host;
	cleanup_free char *chain = NULL;
	cleanup_free char *command = NULL;

	host_init(&host, family_of(state));
	chain = host_spoil(&host, "ns1/bad");
	host_serve(&host, "ns1/bad", 50, "10.0.5.1");
	host_serve(&host, "ns1/good", 51, "10.0.5.2");
	host_sync(&host);
	assert_true(host_has(&host, "ns1/good:p80 cluster IP"));
	assert_false(host_has(&host, "ns1/bad:p80 cluster IP"));
	assert_int_equal(nft_sync_stats(host.sync)->n_refused, 1);
	assert_int_equal(host.n_refused, 1); /* for the Event and the page */
	assert_string_equal(host.refused, "ns1/bad");

	host_serve(&host, "ns1/other", 52, "10.0.5.3");
	host_sync(&host); /* a delta that does not concern it */
	assert_false(host.result.full);
	assert_true(host_has(&host, "ns1/other:p80 cluster IP"));
	assert_int_equal(nft_sync_stats(host.sync)->n_refused, 1);

	command = xasprintf("nft delete chain %s nat %s",
			    family_of(state) == FAMILY_IPV4 ? "ip" : "ip6", chain);
	host_run(&host, command);
	host_endpoints(&host, "ns1/bad", "10.0.5.1 10.0.5.4");
	host_sync(&host);
	host_expect(&host);
	host_done(&host);
}

static int64_t ahead_ns;

int64_t __real_clock_now_ns(void);
int64_t __wrap_clock_now_ns(void);

int64_t __wrap_clock_now_ns(void)
{
	return __real_clock_now_ns() + ahead_ns;
}

static bool is_wanted(struct host *host)
{
	return host->n_wanted > 0;
}

/* Nothing changes but the time, and what the kernel minds. */
static void test_a_service_that_is_refused_is_tried_again_later(void **state)
{
	struct host host;
	cleanup_free char *chain = NULL;
	cleanup_free char *command = NULL;

	host_init(&host, family_of(state));
	chain = host_spoil(&host, "ns1/bad");
	host_serve(&host, "ns1/bad", 50, "10.0.5.1");
	host_serve(&host, "ns1/good", 51, "10.0.5.2");
	host_sync(&host);
	assert_int_equal(host.n_refused, 1);
	ahead_ns += REFUSED_FIRST_NS;
	host_run(&host, "%s -F KUBE-FORWARD"); /* whatever is done then: it sees that it is time */
	host_wait(&host, is_wanted);
	host_sync(&host);
	assert_int_equal(nft_sync_stats(host.sync)->n_refused, 2);
	assert_int_equal(host.n_refused, 1); /* it has been told */
	command = xasprintf("nft delete chain %s nat %s",
			    family_of(state) == FAMILY_IPV4 ? "ip" : "ip6", chain);
	host_run(&host, command);
	host_sync(&host);
	assert_false(host_has(&host, "ns1/bad:p80 cluster IP")); /* not yet */
	ahead_ns += 2 * REFUSED_FIRST_NS;
	host_sync(&host);
	host_expect(&host);
	host_done(&host);
}

static void test_a_chain_that_foreign_rules_hold_is_only_emptied(void **state)
{
	struct host host;
	cleanup_free char *chain = NULL;

	start_some(&host, state);
	chain = host_chain(&host, "KUBE-SVC-");
	damage_chain(&host, chain, "%s -t nat -N MINE; %s -t nat -A MINE -j $c");
	host_remove(&host, "ns1/a");
	host_remove(&host, "ns1/b");
	host_sync(&host);
	assert_true(host_has(&host, chain));
	host_run(&host, "%s -t nat -F MINE; %s -t nat -X MINE");
	host_sync_full(&host);
	host_expect(&host);
	host_done(&host);
}

/* -- others write while a sync runs */

/* Syncs as often as it takes, as a proxier would. */
static bool is_settled(struct host *host)
{
	if (!host->synced)
		return false;
	if (host->flushed || host->result.error < 0) {
		host->flushed = host->synced = false;
		nft_sync_start(host->sync, plan_feed_next(&host->cluster.feed));
		return false;
	}
	return host_is_right(host);
}

/* After each of the first steps of a sync, until it is over before that. */
static void test_a_flush_while_a_sync_runs_is_made_good(void **state)
{
	bool interrupted = true;

	for (unsigned int steps = 1; interrupted; steps += 3) {
		struct host host;

		host_init(&host, family_of(state));
		host_serve_many(&host, 300);
		nft_sync_start(host.sync, plan_feed_next(&host.cluster.feed));
		for (unsigned int i = 0; i < steps && !host.synced; i++)
			event_base_loop(host.loop, EVLOOP_ONCE);
		interrupted = !host.synced;
		host_run(&host, "nft flush ruleset");
		host_wait(&host, is_settled);
		host_done(&host);
	}
}

static void test_a_table_that_vanished_is_written_by_the_next_delta(void **state)
{
	struct host host;

	start_some(&host, state);
	host_run(&host, family_of(state) == FAMILY_IPV4 ? "nft delete table ip nat"
							: "nft delete table ip6 nat");
	host_endpoints(&host, "ns1/a", "10.0.1.9");
	host_sync(&host);
	assert_int_equal(host.n_repaired, 1);
	host_expect(&host);
	host_endpoints(&host, "ns1/a", "10.0.1.8");
	host_sync(&host);
	assert_int_equal(host.n_repaired, 1);
	host_done(&host);
}

static void test_a_closed_engine_leaves_a_sync_unfinished(void **state)
{
	struct host host;

	host_init(&host, family_of(state));
	host_serve_many(&host, 400);
	nft_sync_start(host.sync, plan_feed_next(&host.cluster.feed));
	event_base_loop(host.loop, EVLOOP_ONCE);
	assert_true(nft_sync_running(host.sync));
	host_restart(&host);
	host_sync(&host);
	host_expect(&host);
	host_done(&host);
}

/* -- the other family of the process, which has its turn in front of the kernel meanwhile */

/* A sync begins, and comes to where it waits for its turn. */
static void sync_behind(struct host *host, struct neighbour *neighbour)
{
	neighbour_run(neighbour);
	host->synced = false;
	nft_sync_start(host->sync, plan_feed_next(&host->cluster.feed));
	for (size_t i = 0; i < 10; i++)
		event_base_loop(host->loop, EVLOOP_ONCE);
	assert_false(host->synced);
}

/* Its transaction is no foreign one: what follows it is sent once. */
static void test_a_delta_stands_on_what_the_neighbour_wrote(void **state)
{
	struct neighbour neighbour;
	struct host host;

	start_some(&host, state);
	neighbour_open(&neighbour, host.loop);
	host_endpoints(&host, "ns1/a", "10.0.1.1 10.0.1.9");
	sync_behind(&host, &neighbour);
	host_run(&host, "nft add table ip neighbour");
	neighbour.may_end = true;
	host_wait(&host, host_is_synced);
	assert_int_equal(host.result.error, 0);
	assert_int_equal(nft_sync_stats(host.sync)->n_resent, 0);
	nft_session_free(neighbour.session);
	host_expect(&host);
	host_done(&host);
}

static bool is_repaired(struct host *host)
{
	return nft_sync_stats(host->sync)->n_repairs > 0;
}

static void test_a_repair_stands_on_what_the_neighbour_wrote(void **state)
{
	struct neighbour neighbour;
	struct host host;
	size_t before;

	start_some(&host, state);
	neighbour_open(&neighbour, host.loop);
	neighbour_run(&neighbour);
	before = n_transactions(&host);
	damage_chain(&host, "KUBE-SVC-", "%s -t nat -F $c; %s -t nat -F OUTPUT");
	for (size_t i = 0; i < 100; i++) /* the repair waits for its turn by then */
		event_base_loop(host.loop, EVLOOP_ONCE);
	assert_int_equal(n_transactions(&host), before);
	host_run(&host, "nft add table ip neighbour");
	neighbour.may_end = true;
	host_wait(&host, is_repaired);
	assert_int_equal(n_transactions(&host), before + 1); /* not begun again, in pieces */
	nft_session_free(neighbour.session);
	host_expect(&host);
	host_done(&host);
}

/* What the neighbour missed has to be looked at, but not by asking in the middle of a list. */
static void test_a_list_survives_that_notifications_are_lost(void **state)
{
	struct neighbour neighbour;
	struct host host;

	host_init(&host, family_of(state));
	neighbour_open(&neighbour, host.loop);
	host_serve_many(&host, 400);
	host_sync(&host);
	neighbour.pauses = true;
	ruleset_need_full_sync(host.cluster.ruleset);
	sync_behind(&host, &neighbour);
	host_run(&host, "nft add table ip foreign");
	neighbour.may_end = true;
	host_wait(&host, host_is_synced);
	if (host.result.error < 0)
		fail_msg("%s", host.result.err.text);
	assert_true(neighbour.done);
	nft_session_free(neighbour.session);
	host_expect(&host);
	host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_a_cold_start_writes_what_a_dry_run_foretells),
		BOTH(test_a_cold_start_of_many_takes_pieces),
		BOTH(test_a_full_sync_over_the_right_rules_sends_nothing),
		BOTH(test_rules_of_iptables_restore_are_found_right),
		BOTH(test_a_full_sync_repairs_what_is_wrong),
		BOTH(test_the_order_of_rules_is_repaired),
		BOTH(test_cluster_ips_are_put_before_others),
		BOTH(test_a_cluster_ip_that_comes_later_goes_to_the_head),
		BOTH(test_foreign_rules_of_base_chains_stay),
		BOTH(test_a_jump_that_is_anywhere_is_there),
		BOTH(test_a_jump_that_is_missing_becomes_the_first_rule),
		BOTH(test_services_that_went_while_nobody_ran_leave_nothing),
		BOTH(test_a_delta_is_one_transaction),
		BOTH(test_many_deltas_leave_what_a_full_sync_would),
		BOTH(test_a_delta_finds_handles_of_rules_that_others_wrote),
		BOTH(test_a_foreign_change_elsewhere_does_not_disturb_a_delta),
		BOTH(test_a_delta_gets_through_beside_a_busy_writer),
		BOTH(test_affinity_survives_changes),
		BOTH(test_a_service_that_is_refused_does_not_stop_others),
		BOTH(test_a_service_that_is_refused_is_tried_again_later),
		BOTH(test_a_chain_that_foreign_rules_hold_is_only_emptied),
		BOTH(test_a_flush_while_a_sync_runs_is_made_good),
		BOTH(test_a_table_that_vanished_is_written_by_the_next_delta),
		BOTH(test_a_closed_engine_leaves_a_sync_unfinished),
		BOTH(test_a_delta_stands_on_what_the_neighbour_wrote),
		BOTH(test_a_repair_stands_on_what_the_neighbour_wrote),
		BOTH(test_a_list_survives_that_notifications_are_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
