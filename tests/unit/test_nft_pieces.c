/* SPDX-License-Identifier: Apache-2.0 */
#include "nft_host.h"

/*
 * A Service larger than a piece: in deltas and in full syncs it is written in several transactions,
 * none of which is much larger than a piece. Each endpoint takes about 2 KB of messages.
 */

#define N_PORTS     19
#define N_ENDPOINTS 50 /* together fewer than make a cluster large, where comments go */
#define N_PIECES    (N_PORTS * N_ENDPOINTS * 1800 / NFT_LINK_PIECE)
/* what cannot be cut: a chain that spreads connections over endpoints */
#define LARGEST (NFT_LINK_PIECE + 100 * 1024)

static void serve_large(struct host *host, const char *key, unsigned int n)
{
	struct service *service = host_service(host, key, n);

	for (unsigned int i = 0; i < N_PORTS; i++) {
		cleanup_free char *name = xasprintf("p%u", i);

		build_port(service, name, PROTOCOL_TCP, (uint16_t)(80 + i), 0);
	}
	model_set_service(host->cluster.model, service);
}

/* All ports have the same endpoints, from that number on. */
static void set_endpoints(struct host *host, const char *key, unsigned int first)
{
	enum family family = host->cluster.settings.family;
	struct draft *slice = build_slice(key, strchr(key, '/') + 1, family);

	for (unsigned int i = 0; i < N_PORTS; i++) {
		cleanup_free char *name = xasprintf("p%u", i);

		build_slice_port(slice, name, PROTOCOL_TCP, (uint16_t)(8000 + i));
	}
	for (unsigned int i = first; i < first + N_ENDPOINTS; i++) {
		cleanup_free char *address =
			xasprintf(family == FAMILY_IPV4 ? "10.0.1.%u" : "fd00:10::%u", i);

		build_endpoint(slice, address, NULL, BUILD_READY);
	}
	build_set_slice(host->cluster.model, slice);
}

/* Transactions of one sync. */
static size_t sync_once(struct host *host)
{
	size_t before = nft_sync_stats(host->sync)->n_transactions;

	host_sync(host);
	host_expect(host);
	assert_true(nft_sync_stats(host->sync)->largest < LARGEST);
	return nft_sync_stats(host->sync)->n_transactions - before;
}

/* A comparison of everything finds nothing to do. */
static void expect_right(struct host *host)
{
	uint32_t before = host_generation(host);

	host_sync_full(host);
	assert_int_equal(host_generation(host), before);
}

static void host_with_others(struct host *host, void **state)
{
	host_init(host, *(enum family *)*state);
	host_serve(host, "ns2/other", 2, "10.0.2.1 10.0.2.2");
	host_sync(host);
}

static void test_a_large_service_is_a_delta_in_pieces(void **state)
{
	struct host host;

	host_with_others(&host, state);
	serve_large(&host, "ns1/large", 1);
	set_endpoints(&host, "ns1/large", 1);
	assert_in_range(sync_once(&host), N_PIECES, 2 * N_PIECES);
	assert_false(host.result.full);
	expect_right(&host);
	set_endpoints(&host, "ns1/large", 1 + N_ENDPOINTS / 2);
	assert_in_range(sync_once(&host), N_PIECES / 2, 2 * N_PIECES);
	assert_false(host.result.full);
	expect_right(&host);
	host_remove(&host, "ns1/large");
	assert_in_range(sync_once(&host), 1, N_PIECES);
	assert_false(host.result.full);
	expect_right(&host);
	host_done(&host);
}

static void test_a_small_change_is_one_transaction(void **state)
{
	struct host host;

	host_with_others(&host, state);
	host_endpoints(&host, "ns2/other", "10.0.2.1 10.0.2.3");
	assert_int_equal(sync_once(&host), 1);
	assert_false(host.result.full);
	host_done(&host);
}

static void test_a_full_sync_cuts_a_large_service(void **state)
{
	struct host host;

	host_init(&host, *(enum family *)*state);
	serve_large(&host, "ns1/large", 1);
	set_endpoints(&host, "ns1/large", 1);
	assert_in_range(sync_once(&host), N_PIECES,
			2 * N_PIECES + 2); /* its first and last step, too */
	assert_true(host.result.full);
	expect_right(&host);
	host_done(&host);
}

/* A rule of another program leads to a chain that goes: that piece fails when others were written. */
static void test_a_failure_in_the_middle_leaves_nothing_behind(void **state)
{
	struct host host;

	host_with_others(&host, state);
	serve_large(&host, "ns1/large", 1);
	set_endpoints(&host, "ns1/large", 1);
	host_sync(&host);
	host_run(&host,
		 "%s -t nat -N foreign; c=$(%s-save -t nat | sed -n '/-A KUBE-SEP-.*ns1/{s/^-A "
		 "\\([^ ]*\\).*/\\1/p;q}'); %s -t nat -A foreign -j $c");
	host_remove(&host, "ns1/large");
	serve_large(&host, "ns3/large", 3);
	set_endpoints(&host, "ns3/large", 100);
	host_sync(&host);
	assert_false(host.result.full); /* that was what it began as */
	assert_int_equal(nft_sync_stats(host.sync)->n_refused, 0);
	assert_false(host_has(&host, "ns1/large"));
	host_run(&host, "%s -t nat -F foreign; %s -t nat -X foreign");
	host_sync_full(&host);
	host_expect(&host);
	host_done(&host);
}

/* -- a comparison that begins a Service again, of which former pieces wrote chains that it had not found */

/* All chains of Services vanish, and the rules that lead to them. */
static void delete_chains(struct host *host)
{
	host_run(host, "%s-save -t nat | awk '/^:KUBE-S(VC|EP)-/ { c = substr($1, 2) \"\\n\"; "
		       "f = f \"-F \" c; x = x \"-X \" c } "
		       "END { print \"*nat\\n-F KUBE-SERVICES\\n\" f x \"COMMIT\" }' | "
		       "%s-restore --noflush");
}

static size_t transactions_wanted;

static bool has_sent(struct host *host)
{
	return nft_sync_stats(host->sync)->n_transactions >= transactions_wanted;
}

static bool has_audited(struct host *host)
{
	return nft_sync_stats(host->sync)->n_audits > 0;
}

static void test_an_interruption_within_a_service_leaves_no_rule_twice(void **state)
{
	struct host host;

	host_init(&host, *(enum family *)*state);
	serve_large(&host, "ns1/large", 1);
	set_endpoints(&host, "ns1/large", 1);
	host_sync(&host);
	delete_chains(&host);
	transactions_wanted = nft_sync_stats(host.sync)->n_transactions + 2;
	host_wait(&host, has_sent);
	assert_false(has_audited(&host));
	host_serve(&host, "ns2/other", 2, "10.0.2.1");
	host_sync(&host);
	assert_false(has_audited(&host));
	host_wait(&host, has_audited);
	host_expect(&host);
	host_done(&host);
}

/* The last piece of a large Service has the first chains of the next one, which the kernel refuses. */
static void test_a_refusal_behind_a_large_service_leaves_no_rule_of_it_twice(void **state)
{
	cleanup_free char *chain = NULL;
	struct host host;

	host_init(&host, *(enum family *)*state);
	chain = host_spoil(&host, "ns2/bad");
	serve_large(&host, "ns1/large", 1);
	set_endpoints(&host, "ns1/large", 1);
	host_serve(&host, "ns2/bad", 50, "10.0.5.1");
	host_sync_full(&host);
	assert_string_equal(host.refused, "ns2/bad");
	host_run(&host, "test -z \"$(%s-save -t nat | sed -n '/ns1.large/p' | sort | uniq -d)\"");
	host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_a_large_service_is_a_delta_in_pieces),
		BOTH(test_a_small_change_is_one_transaction),
		BOTH(test_a_full_sync_cuts_a_large_service),
		BOTH(test_a_failure_in_the_middle_leaves_nothing_behind),
		BOTH(test_an_interruption_within_a_service_leaves_no_rule_twice),
		BOTH(test_a_refusal_behind_a_large_service_leaves_no_rule_of_it_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
