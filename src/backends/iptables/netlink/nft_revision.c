/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_revision.h"

#include <assert.h>
#include <stdlib.h>

struct nft_revision {
	struct nft_link *link;
	struct txn_revision wanted;
	struct chain_name name;
	size_t head, tail; /* rules that both lists begin with, and end with */
	uint64_t *handles; /* of the old rules */
	uint64_t *list;    /* of the wanted ones, as far as they were told */
	size_t n;
};

static void measure(struct nft_revision *revision)
{
	const struct txn_revision *wanted = &revision->wanted;
	size_t most = MIN(wanted->n_old, wanted->n_wanted);

	while (revision->head < most &&
	       wanted->old[revision->head] == wanted->wanted[revision->head])
		revision->head++;
	while (revision->head + revision->tail < most &&
	       wanted->old[wanted->n_old - 1 - revision->tail] ==
		       wanted->wanted[wanted->n_wanted - 1 - revision->tail])
		revision->tail++;
}

/* Old rules between the two that find no successor in their place. */
static void delete_surplus(struct nft_revision *revision)
{
	const struct txn_revision *wanted = &revision->wanted;
	size_t end = wanted->n_old - revision->tail;

	for (size_t i = wanted->n_wanted - revision->tail; i < end; i++)
		nft_link_delete_rule(revision->link, wanted->table, wanted->chain,
				     revision->handles[i]);
}

struct nft_revision *nft_revision_new(struct nft_link *link, const struct txn_revision *wanted)
{
	cleanup_free uint64_t *handles = NULL;
	struct nft_revision *revision;
	size_t n = 0;

	if (wanted->table != TABLE_NAT)
		return NULL;
	handles = nft_handles_get(link->handles, wanted->chain, &n);
	if (!handles || n != wanted->n_old)
		return NULL;
	revision = xcalloc(1, sizeof(*revision));
	revision->link = link;
	revision->wanted = *wanted;
	strncpy(revision->name.text, wanted->chain, sizeof(revision->name.text) - 1);
	revision->wanted.chain = revision->name.text;
	revision->handles = take(handles);
	revision->list = xcalloc(wanted->n_wanted + 1, sizeof(*revision->list));
	measure(revision);
	delete_surplus(revision);
	return revision;
}

bool nft_revision_is(const struct nft_revision *revision, enum table table, const char *chain)
{
	return revision->wanted.table == table && streq(revision->name.text, chain);
}

/* Not by NLM_F_REPLACE: some kernels (6.18) then keep the handle, others do not. */
static uint64_t replace(struct nft_revision *revision, const struct rule *rule, uint64_t handle)
{
	uint64_t made = nft_link_insert(revision->link, rule, handle);

	nft_link_delete_rule(revision->link, rule->table, rule->chain, handle);
	return made;
}

/* What the next rule is in the list, once it is written. */
static uint64_t put(struct nft_revision *revision, const struct rule *rule)
{
	const struct txn_revision *wanted = &revision->wanted;
	size_t i = revision->n;
	size_t old_tail = wanted->n_old - revision->tail;
	size_t new_tail = wanted->n_wanted - revision->tail;

	if (i >= new_tail)
		return revision->handles[i - new_tail + old_tail];
	if (i >= old_tail)
		return nft_link_insert(revision->link, rule,
				       revision->tail ? revision->handles[old_tail] : 0);
	if (wanted->old[i] == wanted->wanted[i])
		return revision->handles[i];
	return replace(revision, rule, revision->handles[i]);
}

void nft_revision_rule(struct nft_revision *revision, const struct rule *rule)
{
	assert(revision->n < revision->wanted.n_wanted);
	revision->list[revision->n] = put(revision, rule);
	revision->n++;
}

struct nft_revision *nft_revision_free(struct nft_revision *revision)
{
	assert(revision->n == revision->wanted.n_wanted);
	nft_handles_plan(revision->link->handles, revision->name.text, revision->list, revision->n);
	free(revision->handles);
	free(revision->list);
	free(revision);
	return NULL;
}
