/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "nft_host.h"

/* Which rules of a Service's chain a delta leaves alone: they keep their handles, hence counters. */

struct view {
	struct nft_link link;
	struct host host;
	char *chain;
	struct nft_link_rules before, after;
};

static void read_chain(struct view *view, struct nft_link_rules *ret)
{
	struct err err;

	assert_int_equal(nft_link_read(&view->link, TABLE_NAT, view->chain, ret, &err), 0);
}

static void view_init(struct view *view, void **state, const char *endpoints)
{
	enum family family = *(enum family *)*state;

	*view = (struct view){0};
	host_init(&view->host, family);
	nft_link_init(&view->link, family, view->host.socket, NULL);
	host_serve(&view->host, "ns1/a", 1, endpoints);
	host_sync(&view->host);
	view->chain = host_chain(&view->host, "KUBE-SVC-");
	read_chain(view, &view->before);
}

/* The chains are right to the order of their rules: a comparison of everything finds nothing to do. */
static void expect_right(struct view *view)
{
	uint32_t before;

	host_expect(&view->host);
	before = host_generation(&view->host);
	host_sync_full(&view->host);
	assert_int_equal(host_generation(&view->host), before);
}

static void view_done(struct view *view)
{
	expect_right(view);
	nft_link_rules_done(&view->before);
	nft_link_rules_done(&view->after);
	nft_link_done(&view->link);
	host_done(&view->host);
	free(view->chain);
}

/* Other endpoints, by a delta of one transaction; how many rules are those of before. */
static size_t change(struct view *view, const char *endpoints)
{
	uint32_t before = host_generation(&view->host);
	size_t same = 0;

	host_endpoints(&view->host, "ns1/a", endpoints);
	host_sync(&view->host);
	assert_false(view->host.result.full);
	assert_int_equal(host_generation(&view->host), before + 1);
	read_chain(view, &view->after);
	for (size_t i = 0; i < view->before.n; i++)
		for (size_t j = 0; j < view->after.n; j++)
			same += view->before.v[i].handle == view->after.v[j].handle;
	read_chain(view, &view->before);
	return same;
}

static void test_an_exchange_in_place_replaces_one_rule(void **state)
{
	struct view view;
	size_t n;

	view_init(&view, state, "10.0.1.1 10.0.1.3 10.0.1.5");
	n = view.before.n;
	assert_int_equal(change(&view, "10.0.1.1 10.0.1.4 10.0.1.5"), n - 1);
	assert_int_equal(view.after.n, n);
	assert_int_equal(change(&view, "10.0.1.1 10.0.1.4 10.0.1.6"), n - 1);
	assert_int_equal(change(&view, "10.0.1.2 10.0.1.4 10.0.1.6"), n - 1);
	assert_int_equal(change(&view, "10.0.1.1 10.0.1.3 10.0.1.6"), n - 2);
	view_done(&view);
}

/* Rules behind a place do not change when one is put there or taken away; those before it do. */
static void test_rules_behind_a_new_endpoint_stay(void **state)
{
	struct view view;
	size_t n;

	view_init(&view, state, "10.0.1.2 10.0.1.4 10.0.1.6");
	n = view.before.n;
	assert_int_equal(change(&view, "10.0.1.1 10.0.1.2 10.0.1.4 10.0.1.6"), n);
	assert_int_equal(view.after.n, n + 1);
	assert_int_equal(change(&view, "10.0.1.2 10.0.1.4 10.0.1.6"), n);
	assert_int_equal(change(&view, "10.0.1.2 10.0.1.4 10.0.1.5 10.0.1.6"), n - 2);
	assert_int_equal(change(&view, "10.0.1.2 10.0.1.4 10.0.1.5 10.0.1.6 10.0.1.7"), n - 3);
	assert_int_equal(change(&view, "10.0.1.7"), n - 2);
	view_done(&view);
}

static void test_all_endpoints_may_go_and_come(void **state)
{
	struct view view;

	view_init(&view, state, "10.0.1.1 10.0.1.2");
	change(&view, "");
	expect_right(&view);
	change(&view, "10.0.1.1 10.0.1.2 10.0.1.3");
	assert_int_equal(change(&view, "10.0.1.1 10.0.1.2 10.0.1.4"), view.after.n - 1);
	view_done(&view);
}

static void test_a_comparison_learns_handles(void **state)
{
	struct view view;

	view_init(&view, state, "10.0.1.1 10.0.1.2 10.0.1.3");
	host_restart(&view.host);
	host_sync(&view.host);
	assert_int_equal(change(&view, "10.0.1.1 10.0.1.2 10.0.1.4"), view.before.n - 1);
	view_done(&view);
}

/* Every outcome is what a full sync would have left, whichever rules were kept. */
static void test_random_endpoints_in_many_deltas(void **state)
{
	struct view view;
	unsigned int seed = 4711;

	view_init(&view, state, "10.0.1.1");
	for (unsigned int i = 1; i <= 64; i++) {
		char endpoints[160] = "";
		unsigned int set = (unsigned int)rand_r(&seed) % 512;

		for (unsigned int bit = 0; bit < 9; bit++)
			if (set & 1U << bit)
				snprintf(endpoints + strlen(endpoints), 16, "10.0.1.%u ", bit + 1);
		host_endpoints(&view.host, "ns1/a", endpoints);
		host_sync(&view.host);
		assert_false(view.host.result.full);
		if (i % 8 == 0)
			expect_right(&view);
	}
	view_done(&view);
}

/* -- others */

static void damage(struct view *view, const char *format)
{
	cleanup_free char *command = xasprintf("c=%s; %s", view->chain, format);

	host_run(&view->host, command);
}

static void test_after_foreign_changes_a_chain_is_written_whole(void **state)
{
	static const char *const damages[] =
		{
			"%s -t nat -D $c 2",           "%s -t nat -I $c 2 -j RETURN",
			"%s -t nat -R $c 2 -j RETURN", "%s -t nat -F $c",
			"%s-save -t nat | %s-restore", /* the same rules with other handles */
		};

	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		struct view view;

		view_init(&view, state, "10.0.1.1 10.0.1.2 10.0.1.3");
		damage(&view, damages[i]);
		host_endpoints(&view.host, "ns1/a", "10.0.1.1 10.0.1.2 10.0.1.4");
		host_sync(&view.host);
		host_expect(&view.host);
		read_chain(&view, &view.before);
		assert_int_equal(change(&view, "10.0.1.1 10.0.1.2 10.0.1.5"), view.before.n - 1);
		view_done(&view);
	}
}

/* Somebody takes the first rule of the chain away, again and again. */
static pid_t start_thief(const struct view *view)
{
	cleanup_free char *command =
		xasprintf("while :; do %s -t nat -D %s 1; done 2>/dev/null",
			  view->link.family == FAMILY_IPV4 ? "iptables" : "ip6tables", view->chain);
	pid_t pid = fork();

	if (pid == 0) {
		setpgid(0, 0); /* to be ended with its children */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	setpgid(pid, pid); /* whoever comes first */
	return pid;
}

/* Handles go stale between looking and writing, too: the sync is good all the same. */
static void test_deltas_get_through_beside_a_thief(void **state)
{
	struct view view;
	pid_t thief;

	view_init(&view, state, "10.0.1.1 10.0.1.2 10.0.1.3");
	thief = start_thief(&view);
	for (unsigned int i = 0; i < 100; i++) {
		host_endpoints(&view.host, "ns1/a",
			       i % 2 ? "10.0.1.1 10.0.1.2 10.0.1.3" : "10.0.1.1 10.0.1.2 10.0.1.4");
		host_sync(&view.host);
	}
	kill(-thief, SIGKILL);
	waitpid(thief, NULL, 0);
	host_wait(&view.host, host_is_right);
	assert_int_equal(nft_sync_stats(view.host.sync)->n_refused, 0);
	view_done(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_an_exchange_in_place_replaces_one_rule),
		BOTH(test_rules_behind_a_new_endpoint_stay),
		BOTH(test_all_endpoints_may_go_and_come),
		BOTH(test_a_comparison_learns_handles),
		BOTH(test_random_endpoints_in_many_deltas),
		BOTH(test_after_foreign_changes_a_chain_is_written_whole),
		BOTH(test_deltas_get_through_beside_a_thief),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
