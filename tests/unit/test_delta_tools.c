/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Deltas through iptables-restore itself, of both variants and families: a random cluster changes for
 * a while in one network namespace, is written in full in another, and both must list the same. What
 * the tool would refuse (a rule to remove that it does not find, a chain that it cannot delete) fails
 * here, not only in the tables of fake_kernel.h.
 */

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"
#include "kernel/nfacct.h"
#include "random_cluster.h"

struct variant {
	enum family family;
	const char *name; /* "nft", "legacy" */
};

static char lock_file[] = "/tmp/portolan-xtables-lock-XXXXXX";

static int set_up(void **state attr_unused)
{
	int fd = mkstemp(lock_file);

	if (fd >= 0)
		close(fd);
	return setenv("XTABLES_LOCKFILE", lock_file, 1); /* other namespaces need not wait for us */
}

static int tear_down(void **state attr_unused)
{
	return unlink(lock_file);
}

static char *command(const struct variant *variant, const char *what)
{
	return xasprintf("%s-%s-%s", variant->family == FAMILY_IPV4 ? "iptables" : "ip6tables",
			 variant->name, what);
}

/* An empty namespace; the counters must exist before a rule can name them. */
static void enter(struct cluster *c)
{
	struct err err;

	if (unshare(CLONE_NEWNET) < 0)
		fail_msg("no network namespace can be made here");
	c->host.nfacct_invalid = nfacct_ensure(NULL, NFACCT_INVALID, &err) >= 0;
	c->host.nfacct_localhost = nfacct_ensure(NULL, NFACCT_LOCALHOST, &err) >= 0;
}

static void restore(const struct variant *variant, const struct text *text)
{
	cleanup_free char *program = command(variant, "restore -w 5 --noflush --counters");
	FILE *pipe = popen(program, "we");

	assert_non_null(pipe);
	for (const struct text_block *block = text->first; block; block = block->next)
		assert_int_equal(fwrite(block->data, 1, block->used, pipe), block->used);
	if (pclose(pipe) != 0) {
		cleanup_free char *input = text_dup(text);

		fail_msg("%s refused\n%s", program, input);
	}
}

/* All lines by their own order: which Service comes first in a shared chain is free. */
static char *list(const struct variant *variant)
{
	cleanup_free char *program =
		command(variant, "save | sed '/^#/d; s/ \\[[0-9]*:[0-9]*\\]$//' | LC_ALL=C sort");
	cleanup_text struct text text = {0};
	FILE *pipe = popen(program, "re");
	char block[4096];
	size_t n;

	assert_non_null(pipe);
	while ((n = fread(block, 1, sizeof(block), pipe)) > 0)
		text_add(&text, block, n);
	assert_int_equal(pclose(pipe), 0);
	return text_dup(&text);
}

/* Returns how many bytes the tool got. */
static size_t sync_with(struct cluster *c, const struct variant *variant)
{
	cleanup_text struct text text = {0};
	struct ruleset_input input = {.now_ns = c->now_ns};
	struct restore_writer writer;
	size_t size;

	ruleset_begin(c->ruleset, plan_feed_next(&c->feed), c->now_ns, &c->begun);
	restore_writer_init(&writer);
	ruleset_write(c->ruleset, &input, &writer.txn, &c->stats);
	restore_writer_finish(&writer, &text);
	restore_writer_done(&writer);
	size = text.size;
	if (size > 0)
		restore(variant, &text);
	ruleset_end(c->ruleset, true, c->now_ns);
	plan_feed_end(&c->feed, true);
	return size;
}

static void deltas_list_as_a_full_sync_does(void **state)
{
	const struct variant *variant = *state;
	cleanup_free char *changed = NULL;
	cleanup_free char *fresh = NULL;
	size_t deltas = 0;
	struct cluster c;
	struct random_cluster random = {.state = 4711, .family = variant->family};

	cluster_init(&c, variant->family);
	random.model = c.model;
	enter(&c);
	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < 4; k++)
			random_change(&random);
		deltas += sync_with(&c, variant) > 0 && !c.begun.full;
	}
	assert_true(deltas > 30);
	changed = list(variant);
	enter(&c);
	ruleset_need_full_sync(c.ruleset);
	sync_with(&c, variant);
	fresh = list(variant);
	assert_non_null(strstr(fresh, "-j KUBE-SVC-"));
	assert_string_equal(changed, fresh);
	cluster_done(&c);
}

int main(void)
{
	static struct variant variants[] = {
		{FAMILY_IPV4, "nft"},
		{FAMILY_IPV6, "nft"},
		{FAMILY_IPV4, "legacy"},
		{FAMILY_IPV6, "legacy"},
	};
	const struct CMUnitTest tests[] = {
		{"deltas list as a full sync does (nft, IPv4)", deltas_list_as_a_full_sync_does,
		 NULL, NULL, &variants[0]},
		{"deltas list as a full sync does (nft, IPv6)", deltas_list_as_a_full_sync_does,
		 NULL, NULL, &variants[1]},
		{"deltas list as a full sync does (legacy, IPv4)", deltas_list_as_a_full_sync_does,
		 NULL, NULL, &variants[2]},
		{"deltas list as a full sync does (legacy, IPv6)", deltas_list_as_a_full_sync_does,
		 NULL, NULL, &variants[3]},
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
