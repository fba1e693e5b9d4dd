/* SPDX-License-Identifier: Apache-2.0 */
#include "nft_host.h"

/* The index of services over netlink, in network namespaces, read back with iptables-save. */

static void start_indexed(struct host *host, void **state)
{
	host_init(host, *(enum family *)*state);
	host->cluster.settings.mode.service_index = true;
	host_serve_many(host, 60);
	host_sync(host);
	host_expect(host);
	assert_true(host_has(host, "\n:KUBE-SVC-IX-"));
}

static void test_a_full_sync_over_the_right_tree_sends_nothing(void **state)
{
	struct host host;
	uint32_t before;

	start_indexed(&host, state);
	before = host_generation(&host);
	host_sync_full(&host);
	host_restart(&host);
	host_sync(&host);
	assert_int_equal(host_generation(&host), before);
	host_done(&host);
}

/* Its chains lead to each other, and to those of services. */
static void test_a_tree_that_nobody_wants_leaves_nothing(void **state)
{
	struct host host;

	start_indexed(&host, state);
	host.cluster.settings.mode.service_index = false;
	for (unsigned int i = 0; i < 60; i += 2) {
		cleanup_free char *key = xasprintf("many/svc%04u", i);

		host_remove(&host, key);
	}
	host_restart(&host);
	host_sync(&host);
	host_expect(&host);
	assert_false(host_has(&host, "KUBE-SVC-IX-"));
	host.cluster.settings.mode.service_index = true;
	host_restart(&host);
	host_sync(&host);
	host_expect(&host);
	assert_true(host_has(&host, "KUBE-SVC-IX-"));
	host_done(&host);
}

static bool is_audited(struct host *host)
{
	return nft_sync_stats(host->sync)->n_audits > 0;
}

/* An audit compares the kernel with the tree as deltas have made it: nothing is left to do. */
static void test_deltas_leave_the_tree_that_is_wanted(void **state)
{
	struct host host;
	uint32_t before;

	start_indexed(&host, state);
	for (unsigned int i = 0; i < 90; i++) {
		cleanup_free char *gone = xasprintf("many/svc%04u", i % 60);
		cleanup_free char *new = xasprintf("more/svc%u", i % 25);

		if (i % 3)
			host_remove(&host, gone);
		else
			host_serve(&host, new, 37 * i, "10.0.2.2 10.0.2.3");
		before = host_generation(&host);
		host_sync(&host);
		assert_false(host.result.full);
		assert_in_range(host_generation(&host), before, before + 1);
	}
	before = host_generation(&host);
	nft_sync_audit(host.sync);
	host_wait(&host, is_audited);
	assert_int_equal(host_generation(&host), before);
	host_restart(&host); /* another shape, perhaps, but all of it */
	host_sync(&host);
	host_expect(&host);
	host_done(&host);
}

static void test_what_others_do_to_the_tree_is_repaired(void **state)
{
	struct host host;
	cleanup_free char *chain = NULL;
	cleanup_free char *command = NULL;

	start_indexed(&host, state);
	chain = host_chain(&host, "KUBE-SVC-IX-");
	command = xasprintf("%%s -w 5 -t nat -F %s", chain);
	host_run(&host, command);
	host_wait(&host, host_is_right);
	host_run(&host, "%s -w 5 -t nat -D KUBE-SERVICES 1");
	host_wait(&host, host_is_right);
	host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_a_full_sync_over_the_right_tree_sends_nothing),
		BOTH(test_a_tree_that_nobody_wants_leaves_nothing),
		BOTH(test_deltas_leave_the_tree_that_is_wanted),
		BOTH(test_what_others_do_to_the_tree_is_repaired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
