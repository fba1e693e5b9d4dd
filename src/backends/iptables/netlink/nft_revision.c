/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_revision.h"

#include <stdlib.h>

struct revision {
	struct nft_link *link;
	const struct rule_chain *old, *wanted;
	const uint64_t *handles; /* of the old rules */
	size_t head, tail;       /* rules that both lists begin with, and end with */
};

static bool is_same(const struct revision *revision, size_t old, size_t wanted)
{
	return rule_equal(&revision->old->items[old]->rule, &revision->wanted->items[wanted]->rule);
}

static void measure(struct revision *revision)
{
	size_t n_old = revision->old->n;
	size_t n_wanted = revision->wanted->n;
	size_t most = MIN(n_old, n_wanted);

	while (revision->head < most && is_same(revision, revision->head, revision->head))
		revision->head++;
	while (revision->head + revision->tail < most &&
	       is_same(revision, n_old - 1 - revision->tail, n_wanted - 1 - revision->tail))
		revision->tail++;
}

/* Old rules between the two that find no successor in their place. */
static void delete_surplus(const struct revision *revision)
{
	const struct rule_chain *wanted = revision->wanted;

	for (size_t i = wanted->n - revision->tail; i < revision->old->n - revision->tail; i++)
		nft_link_delete_rule(revision->link, wanted->table, wanted->name,
				     revision->handles[i]);
}

/* Not by NLM_F_REPLACE: some kernels (6.18) then keep the handle, others do not. */
static uint64_t replace(const struct revision *revision, const struct rule *rule, uint64_t handle)
{
	uint64_t made = nft_link_insert(revision->link, rule, handle);

	nft_link_delete_rule(revision->link, rule->table, rule->chain, handle);
	return made;
}

/* What a wanted rule is in the list of handles, once it is written. */
static uint64_t put(const struct revision *revision, size_t i)
{
	const struct rule *rule = &revision->wanted->items[i]->rule;
	size_t old_tail = revision->old->n - revision->tail;
	size_t new_tail = revision->wanted->n - revision->tail;

	if (i >= new_tail)
		return revision->handles[i - new_tail + old_tail];
	if (i >= old_tail)
		return nft_link_insert(revision->link, rule,
				       revision->tail ? revision->handles[old_tail] : 0);
	if (i < revision->head || is_same(revision, i, i))
		return revision->handles[i];
	return replace(revision, rule, revision->handles[i]);
}

bool nft_revision_write(struct nft_link *link, const struct rule_chain *wanted)
{
	struct revision revision = {.link = link, .old = wanted->twin, .wanted = wanted};
	cleanup_free uint64_t *handles = NULL, *list = NULL;
	size_t n = 0;

	if (wanted->table != TABLE_NAT)
		return false;
	handles = nft_handles_get(link->handles, wanted->name, &n);
	if (!handles || n != wanted->twin->n)
		return false;
	revision.handles = handles;
	list = xcalloc(wanted->n + 1, sizeof(*list));
	measure(&revision);
	delete_surplus(&revision);
	for (size_t i = 0; i < wanted->n; i++)
		list[i] = put(&revision, i);
	nft_handles_plan(link->handles, wanted->name, list, wanted->n);
	return true;
}
