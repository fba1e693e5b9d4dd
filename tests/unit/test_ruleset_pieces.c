/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A large delta in several transactions, each of which may be carried out and be the last for a
 * while: after every one of them the entries of Services lead to endpoints, and to nothing else.
 */

#include "cluster.h"
#include "fake_kernel.h"

#define N_ENDPOINTS 210
#define PIECE       50 /* operations */
/* what cannot be cut: a chain with its rules, or the entries of all Services */
#define UNCUT (2 * N_ENDPOINTS + 20)

static void set_endpoints(struct cluster *c, const char *key, unsigned int first)
{
	char addresses[N_ENDPOINTS * 16] = "";

	for (unsigned int i = first; i < first + N_ENDPOINTS; i++)
		sprintf(addresses + strlen(addresses), "10.0.%u.%u ", i / 200, i % 200 + 1);
	cluster_slice(c, key, "p80", 80, addresses);
}

/* How many endpoints a packet may reach from there. */
static size_t reach(const struct fake_kernel *kernel, const char *name)
{
	const struct fake_chain *chain = fake_kernel_need(kernel, TABLE_NAT, name);
	size_t n = 0;

	assert_true(chain->n > 0);
	for (size_t i = 0; i < chain->n; i++) {
		cleanup_free char *target = fake_target(chain->lines[i]);

		if (strstr(chain->lines[i], "-j DNAT"))
			n++;
		else if (target &&
			 (has_prefix(target, "KUBE-SVC-") || has_prefix(target, "KUBE-SEP-")))
			n += reach(kernel, target);
	}
	return n;
}

/* Every entry of a Service leads to all endpoints that it had or has. Returns how many entries there are. */
static size_t check_entries(const struct fake_kernel *kernel)
{
	const struct fake_chain *services = fake_kernel_need(kernel, TABLE_NAT, CHAIN_SERVICES);
	size_t n = 0;

	for (size_t i = 0; i < services->n; i++) {
		cleanup_free char *target = fake_target(services->lines[i]);

		if (!target || !has_prefix(target, "KUBE-SVC-"))
			continue;
		assert_int_equal(reach(kernel, target), N_ENDPOINTS);
		n++;
	}
	return n;
}

/* How many services have entries changes at once. Returns in how many pieces it was written. */
static size_t sync_in_pieces(struct cluster *c, struct fake_kernel *kernel, size_t n_services)
{
	const struct ruleset_input input = {.now_ns = c->now_ns};
	size_t before = check_entries(kernel), pieces = 0;
	struct ruleset_stats stats;
	struct fake_txn txn;
	bool more = true;

	ruleset_begin(c->ruleset, plan_feed_next(&c->feed), c->now_ns, &c->begun);
	assert_false(c->begun.full);
	fake_txn_init(&txn, kernel);
	for (; more; pieces++) {
		size_t start = kernel->operations, n;

		txn.full_at = start + PIECE;
		more = ruleset_write(c->ruleset, &input, &txn.txn, &stats);
		assert_true(kernel->operations - start < PIECE + UNCUT);
		n = check_entries(kernel);
		assert_true(n == n_services || n == before);
		before = n == n_services ? n : before;
	}
	fake_txn_done(&txn);
	ruleset_end(c->ruleset, true, c->now_ns);
	plan_feed_end(&c->feed, true);
	assert_int_equal(before, n_services);
	return pieces;
}

static void first_sync(struct cluster *c, struct fake_kernel *kernel)
{
	const struct ruleset_input input = {.now_ns = c->now_ns};
	struct ruleset_stats stats;
	struct fake_txn txn;

	ruleset_begin(c->ruleset, plan_feed_next(&c->feed), c->now_ns, &c->begun);
	fake_txn_init(&txn, kernel);
	assert_false(ruleset_write(c->ruleset, &input, &txn.txn, &stats));
	fake_txn_done(&txn);
	ruleset_end(c->ruleset, true, c->now_ns);
	plan_feed_end(&c->feed, true);
}

static void what_works_is_never_gone_while_pieces_are_written(void **state attr_unused)
{
	struct fake_kernel kernel = {0};
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	first_sync(&c, &kernel);
	cluster_serve(&c, build_service("ns/a", "172.30.0.1"), "p80", 80, 0);
	cluster_serve(&c, build_service("ns/b", "172.30.0.2"), "p80", 80, 0);
	set_endpoints(&c, "ns/a", 0);
	set_endpoints(&c, "ns/b", 0);
	assert_true(sync_in_pieces(&c, &kernel, 2) > 2 * N_ENDPOINTS * 3 / PIECE);
	set_endpoints(&c, "ns/a", 100); /* half of them stay */
	set_endpoints(&c, "ns/b", 400);
	assert_true(sync_in_pieces(&c, &kernel, 2) > N_ENDPOINTS * 3 / PIECE);
	cluster_serve(&c, build_service("ns/c", "172.30.0.3"), "p80", 80, 0);
	set_endpoints(&c, "ns/c", 0);
	assert_true(sync_in_pieces(&c, &kernel, 3) > N_ENDPOINTS * 3 / PIECE);
	model_remove_service(c.model, "ns/a");
	model_remove_service(c.model, "ns/b");
	assert_true(sync_in_pieces(&c, &kernel, 1) > 2 * N_ENDPOINTS * 2 / PIECE);
	model_remove_service(c.model, "ns/c");
	sync_in_pieces(&c, &kernel, 0);
	assert_int_equal(kernel.chains[TABLE_NAT].count, 4); /* the shared ones */
	cluster_done(&c);
	fake_kernel_done(&kernel);
}

/* What was not carried out is said again from the beginning. */
static void a_delta_may_begin_again(void **state attr_unused)
{
	struct fake_kernel kernel = {0}, other = {0};
	struct ruleset_stats stats;
	struct fake_txn txn;
	struct cluster c;

	cluster_init(&c, FAMILY_IPV4);
	first_sync(&c, &kernel);
	cluster_serve(&c, build_service("ns/a", "172.30.0.1"), "p80", 80, 0);
	set_endpoints(&c, "ns/a", 0);
	set_endpoints(&c, "ns/b", 0);
	cluster_serve(&c, build_service("ns/b", "172.30.0.2"), "p80", 80, 0);
	ruleset_begin(c.ruleset, plan_feed_next(&c.feed), c.now_ns, &c.begun);
	fake_txn_init(&txn, &other);
	fake_declare(&other, TABLE_NAT, CHAIN_MARK_MASQ);
	txn.full_at = PIECE;
	assert_true(ruleset_write(c.ruleset, &(struct ruleset_input){0}, &txn.txn, &stats));
	ruleset_rewind(c.ruleset);
	txn.kernel = &kernel;
	txn.full_at = 0;
	assert_false(ruleset_write(c.ruleset, &(struct ruleset_input){0}, &txn.txn, &stats));
	assert_int_equal(check_entries(&kernel), 2);
	assert_int_equal(stats.rules_written[TABLE_NAT], 2 * (2 + 3 * N_ENDPOINTS));
	fake_txn_done(&txn);
	ruleset_end(c.ruleset, true, c.now_ns);
	plan_feed_end(&c.feed, true);
	cluster_done(&c);
	fake_kernel_done(&kernel);
	fake_kernel_done(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_works_is_never_gone_while_pieces_are_written),
		cmocka_unit_test(a_delta_may_begin_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
