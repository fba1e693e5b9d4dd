/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "base/log.h"
#include "nft_host.h"

/* What others do to our chains while nothing is synced, in network namespaces. Both families. */

static enum family family_of(void **state)
{
	return *(enum family *)*state;
}

static void start(struct host *host, void **state)
{
	host_init(host, family_of(state));
	host_serve(host, "ns1/a", 1, "10.0.1.1 10.0.1.2 10.0.1.3");
	cluster_serve(&host->cluster, host_service(host, "ns1/b", 2), "p80", 80, 30080);
	host_endpoints(host, "ns1/b", "10.0.1.4 10.0.1.5");
	host_sync(host);
	host_expect(host);
}

static const struct nft_sync_stats *stats(const struct host *host)
{
	return nft_sync_stats(host->sync);
}

static void damage(struct host *host, const char *start_of_chain, const char *format)
{
	cleanup_free char *chain = host_chain(host, start_of_chain);
	cleanup_free char *command = xasprintf("c=%s; %s", chain, format);

	host_run(host, command);
}

static size_t n_repairs_wanted;

static bool is_repaired(struct host *host)
{
	return stats(host)->n_repairs >= n_repairs_wanted && host_is_right(host);
}

static void test_single_changes_are_repaired_without_a_sync(void **state)
{
	static const struct {
		const char *chain;
		const char *command;
		size_t missing, extra, jumps;
	} changes[] = {
		{"KUBE-SVC-", "%s -t nat -D $c 1", 1, 0, 0},
		{"KUBE-SVC-", "%s -t nat -A $c -j RETURN", 0, 1, 0},
		{"KUBE-SEP-", "%s -t nat -F $c", 2, 0, 0},
		{"KUBE-SERVICES", "%s -t nat -D $c 1", 1, 0, 0},
		{"KUBE-SERVICES", "%s -t nat -I $c -j RETURN", 0, 1, 0},
		{"KUBE-MARK-MASQ", "%s -t nat -F $c", 1, 0, 0},
		{"KUBE-FORWARD", "%s -D $c 1", 1, 0, 0},
		{"KUBE-SERVICES", "%s -t nat -D OUTPUT 1", 0, 0, 1},
		{"KUBE-SERVICES", "%s -F INPUT", 0, 0, 4},
	};
	struct host host;

	start(&host, state);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct nft_sync_stats before = *stats(&host);

		host.synced = false;
		damage(&host, changes[i].chain, changes[i].command);
		assert_false(host_is_right(&host));
		n_repairs_wanted = before.n_repairs + 1;
		host_wait(&host, is_repaired);
		assert_false(host.synced || host.flushed);
		assert_int_equal(stats(&host)->n_repaired_rules,
				 before.n_repaired_rules + changes[i].missing);
		assert_int_equal(stats(&host)->n_removed_rules,
				 before.n_removed_rules + changes[i].extra);
		assert_int_equal(stats(&host)->n_repaired_jumps,
				 before.n_repaired_jumps + changes[i].jumps);
		assert_int_equal(stats(&host)->n_repairs, before.n_repairs + 1);
	}
	assert_int_equal(stats(&host)->n_audits, 0);
	host_done(&host);
}

static bool has_repaired(struct host *host)
{
	return stats(host)->n_repairs > 0;
}

/* A person would not see that it was gone. */
static void test_the_first_repair_comes_at_once(void **state)
{
	struct host host;
	int64_t began;

	start(&host, state);
	damage(&host, "KUBE-SVC-", "%s -t nat -D $c 1");
	began = clock_now_ns();
	host_wait(&host, has_repaired);
	assert_in_range((clock_now_ns() - began) / CLOCK_NS_PER_MS, 0, 500);
	host_done(&host);
}

/* A chain that is deleted takes references to it along: first the rules that lead there must go. */
static void test_chains_that_were_deleted_come_back(void **state)
{
	struct host host;

	start(&host, state);
	damage(&host, "KUBE-SEP-",
	       "svc=$(%s -t nat -S | grep -- \"-j $c\" | head -n 1 | cut -d' ' -f2); "
	       "%s -t nat -F $svc; %s -t nat -F $c; %s -t nat -X $c");
	host_wait(&host, host_is_right);
	host_run(&host, "%s -F KUBE-FORWARD; %s -D FORWARD -m comment --comment 'kubernetes "
			"forwarding rules' -j KUBE-FORWARD; %s -X KUBE-FORWARD");
	host_wait(&host, host_is_right);
	assert_false(host.flushed);
	host_done(&host);
}

static void expect_logged(int log, const char *part)
{
	char text[16384];
	ssize_t n = pread(log, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	if (!strstr(text, part))
		fail_msg("'%s' is not in the log:\n%s", part, text);
}

static bool has_mended_jumps(struct host *host)
{
	return stats(host)->n_repaired_jumps > 0 && host_is_right(host);
}

static void test_repaired_chains_and_jumps_are_named(void **state)
{
	int log = memfd_create("log", 0);
	struct host host;

	start(&host, state);
	log_set_fd(log);
	host_run(&host, "%s -t nat -D OUTPUT 1; %s -t nat -F KUBE-MARK-MASQ");
	host_wait(&host, has_mended_jumps);
	log_set_fd(STDERR_FILENO);
	expect_logged(log, "what=\"OUTPUT of table nat to KUBE-SERVICES\"");
	expect_logged(log, "table=\"nat\" chain=\"KUBE-MARK-MASQ\" missingRules=1");
	close(log);
	host_done(&host);
}

static bool is_flushed(struct host *host)
{
	return host->flushed;
}

static void test_a_flush_asks_for_a_full_sync(void **state)
{
	struct host host;

	start(&host, state);
	host_run(&host, "nft flush ruleset");
	host_wait(&host, is_flushed);
	assert_non_null(strstr(host.flushed_what, "table nat deleted"));
	assert_non_null(strstr(host.flushed_what, "table filter deleted"));
	host_sync(&host);
	assert_true(host.result.full);
	host_expect(&host);
	host_done(&host);
}

static bool has_audited(struct host *host)
{
	return stats(host)->n_audits > 0;
}

/* -F of all chains: too much to name, so everything is looked at. */
static void test_all_chains_emptied_are_filled_again(void **state)
{
	struct host host;

	host_init(&host, family_of(state));
	host_serve_many(&host, 60);
	host_sync(&host);
	host_run(&host, "%s -t nat -F");
	host_wait(&host, has_audited);
	host_expect(&host);
	host_done(&host);
}

static bool is_at_rest(struct host *host)
{
	return !event_base_get_num_events(host->loop, EVENT_BASE_COUNT_ACTIVE) &&
	       stats(host)->n_repairs >= 1;
}

/* What is not ours is looked at by nobody. */
static void test_foreign_chains_and_rules_cause_nothing(void **state)
{
	struct host host;
	size_t before;

	start(&host, state);
	before = stats(&host)->n_transactions;
	host_run(&host, "%s -t nat -N MINE; %s -t nat -A MINE -j RETURN; %s -I INPUT -j ACCEPT; "
			"%s -t mangle -A PREROUTING -j ACCEPT");
	damage(&host, "KUBE-SVC-", "%s -t nat -D $c 1"); /* so that there is an end to wait for */
	host_wait(&host, is_at_rest);
	assert_int_equal(stats(&host)->n_repairs, 1);
	assert_int_equal(stats(&host)->n_transactions, before + 1);
	assert_true(host_has(&host, "-A INPUT -j ACCEPT"));
	host_done(&host);
}

static void test_a_delta_after_damage_to_its_own_rules_works(void **state)
{
	struct host host;

	start(&host, state);
	host_run(&host, "%s -t nat -F KUBE-SERVICES"); /* with the entry that is to be removed */
	host_remove(&host, "ns1/a");
	host_sync(&host);
	host_wait(&host, host_is_right);
	host_done(&host);
}

/* -- audits */

static void test_an_audit_of_right_rules_sends_nothing(void **state)
{
	struct host host;
	uint32_t before;

	start(&host, state);
	before = host_generation(&host);
	nft_sync_audit(host.sync);
	host_wait(&host, has_audited);
	assert_int_equal(host_generation(&host), before);
	assert_int_equal(stats(&host)->n_repairs, 0);
	host_done(&host);
}

static size_t audits_before;

static bool has_audited_again(struct host *host)
{
	return stats(host)->n_audits > audits_before;
}

/* A sync that comes in the middle is done before the audit is, and the audit misses nothing. */
static void test_an_audit_gives_way_to_syncs(void **state)
{
	struct host host;

	host_init(&host, family_of(state));
	host_serve_many(&host, 300);
	host_sync(&host);
	for (unsigned int i = 0; i < 6; i++) {
		cleanup_free char *gone = xasprintf("many/svc%04u", i * 40);
		cleanup_free char *new = xasprintf("new/svc%u", i);

		audits_before = stats(&host)->n_audits;
		nft_sync_audit(host.sync);
		event_base_loop(host.loop, EVLOOP_ONCE);
		event_base_loop(host.loop, EVLOOP_ONCE);
		host_remove(&host, gone);
		host_serve(&host, new, i, "10.0.3.1 10.0.3.2");
		host_sync(&host);
		assert_false(host.result.full);
		assert_false(has_audited_again(&host));
		host_wait(&host, has_audited_again);
	}
	assert_int_equal(stats(&host)->n_repairs, 0);
	host_expect(&host);
	host_done(&host);
}

/* Who asked for an audit is told what it found, even if a full sync has come in between. */
static void test_an_audit_on_request_is_not_lost_in_a_full_sync(void **state)
{
	struct host host;

	host_init(&host, family_of(state));
	host_serve_many(&host, 300);
	host_sync(&host);
	nft_sync_audit(host.sync);
	event_base_loop(host.loop, EVLOOP_ONCE);
	host_sync_full(&host);
	host_expect(&host);
	host_wait(&host, has_audited);
	host_done(&host);
}

/* More notifications than the queue holds, while nobody reads it. */
static void test_lost_notifications_lead_to_an_audit(void **state)
{
	struct host host;

	start(&host, state);
	damage(&host, "KUBE-SVC-", "%s -t nat -D $c 1");
	host_run(&host, "nft add table inet flood; nft add chain inet flood c; "
			"awk 'BEGIN { for (i = 0; i < 60000; i++) print \"add rule inet flood c "
			"counter\" }' "
			">/tmp/flood.$$; for i in 1 2 3 4; do nft -f /tmp/flood.$$; done; rm "
			"/tmp/flood.$$");
	host_wait(&host, has_audited);
	assert_true(host_is_right(&host));
	host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_single_changes_are_repaired_without_a_sync),
		BOTH(test_the_first_repair_comes_at_once),
		BOTH(test_chains_that_were_deleted_come_back),
		BOTH(test_repaired_chains_and_jumps_are_named),
		BOTH(test_a_flush_asks_for_a_full_sync),
		BOTH(test_all_chains_emptied_are_filled_again),
		BOTH(test_foreign_chains_and_rules_cause_nothing),
		BOTH(test_a_delta_after_damage_to_its_own_rules_works),
		BOTH(test_an_audit_of_right_rules_sends_nothing),
		BOTH(test_an_audit_gives_way_to_syncs),
		BOTH(test_an_audit_on_request_is_not_lost_in_a_full_sync),
		{"test_lost_notifications_lead_to_an_audit",
		 test_lost_notifications_lead_to_an_audit, NULL, NULL, &ipv4},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
