/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_revision.h"

#include <stdlib.h>

#include "xtables/rule_compare.h"

struct revision {
	struct nft_link *link;
	const struct rule_chain *wanted;
	const uint64_t *digests;     /* of the wanted rules */
	struct nft_link_rules there; /* the kernel's */
	size_t head, tail;           /* rules that both lists begin with, and end with */
};

static bool is_same(const struct revision *revision, size_t there, size_t wanted)
{
	return revision->there.v[there].digest == revision->digests[wanted];
}

static void measure(struct revision *revision)
{
	size_t n_there = revision->there.n;
	size_t n_wanted = revision->wanted->n;
	size_t most = MIN(n_there, n_wanted);

	while (revision->head < most && is_same(revision, revision->head, revision->head))
		revision->head++;
	while (revision->head + revision->tail < most &&
	       is_same(revision, n_there - 1 - revision->tail, n_wanted - 1 - revision->tail))
		revision->tail++;
}

static void remove_rule(const struct revision *revision, size_t there)
{
	nft_link_delete_rule(revision->link, revision->wanted->table, revision->wanted->name,
			     revision->there.v[there].handle);
}

/*
 * A wanted rule between the two. It takes the place of one that is there, but not by NLM_F_REPLACE: some
 * kernels (6.18) then keep the handle, others do not.
 */
static void put(const struct revision *revision, size_t i)
{
	const struct rule *rule = &revision->wanted->items[i]->rule;
	size_t end = revision->there.n - revision->tail;
	size_t before = MIN(i, end);

	if (i < end && is_same(revision, i, i))
		return;
	nft_link_insert(revision->link, rule,
			before < revision->there.n ? revision->there.v[before].handle : 0);
	if (i < end)
		remove_rule(revision, i);
}

static void write_difference(const struct revision *revision)
{
	size_t end = revision->wanted->n - revision->tail;

	for (size_t i = revision->head; i < end; i++)
		put(revision, i);
	for (size_t i = MAX(end, revision->head); i < revision->there.n - revision->tail; i++)
		remove_rule(revision, i);
}

bool nft_revision_write(struct nft_link *link, const struct rule_chain *wanted)
{
	cleanup_free uint64_t *digests = xcalloc(wanted->n + 1, sizeof(*digests));
	struct revision revision = {.link = link, .wanted = wanted, .digests = digests};
	struct err ignored; /* the caller fills the chain instead, and meets it again */
	bool known =
		wanted->table == TABLE_NAT && chain_spreads(wanted->name) &&
		nft_link_read(link, wanted->table, wanted->name, &revision.there, &ignored) >= 0 &&
		revision.there.n > 0;

	for (size_t i = 0; i < wanted->n && known; i++)
		digests[i] = rule_hash(&wanted->items[i]->rule);
	if (known) {
		measure(&revision);
		write_difference(&revision);
	}
	nft_link_rules_done(&revision.there);
	return known;
}
