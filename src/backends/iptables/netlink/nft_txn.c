/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_txn.h"

#include <stdlib.h>

#include "backends/iptables/netlink/nft_audit.h"
#include "backends/iptables/netlink/nft_revision.h"
#include "backends/refused_services.h"
#include "xtables/rule_compare.h"

static void note_taken(struct nft_txn *txn, const struct nft_taken *taken)
{
	array_grow(&txn->taken, &txn->taken_capacity, txn->n_taken, sizeof(*txn->taken));
	txn->taken[txn->n_taken++] = *taken;
}

static void note_flushed(void *arg, unsigned int chain, uint64_t digest, uint64_t handle)
{
	note_taken(arg, &(struct nft_taken){digest, handle, chain});
}

/* nft flush chain ip nat NAME */
static void write_empty_chain(struct txn *t, enum table table, const char *name)
{
	struct nft_txn *txn = (struct nft_txn *)t;

	if (txn->skip)
		return;
	nft_link_flush(txn->link, table, name);
	if (txn->audit)
		nft_audit_chain_written(txn->audit, table, name);
	if (nft_link_is_shared(name))
		nft_state_forget(txn->link->state, nft_state_chain(txn->link->state, table, name),
				 note_flushed, txn);
}

/* nft add chain ip nat NAME; nft flush chain ip nat NAME */
static void write_chain(struct txn *t, enum table table, const char *name)
{
	struct nft_txn *txn = (struct nft_txn *)t;

	if (txn->skip)
		return;
	nft_link_new_chain(txn->link, table, name);
	write_empty_chain(t, table, name);
}

static bool write_revision(struct txn *t, const struct rule_chain *wanted)
{
	struct nft_txn *txn = (struct nft_txn *)t;

	if (txn->skip)
		return true;
	if (!nft_revision_write(txn->link, wanted))
		return false;
	if (txn->audit)
		nft_audit_chain_written(txn->audit, wanted->table, wanted->name);
	return true;
}

static void write_rule(struct txn *t, const struct rule *rule)
{
	struct nft_txn *txn = (struct nft_txn *)t;

	if (!txn->skip)
		nft_link_append(txn->link, rule);
}

/* nft insert rule ip nat KUBE-SERVICES ... */
static void write_insert_rule(struct txn *t, const struct rule *rule)
{
	struct nft_txn *txn = (struct nft_txn *)t;

	if (!txn->skip)
		nft_link_prepend(txn->link, rule);
}

static bool was_learnt(const struct nft_txn *txn, unsigned int chain)
{
	for (size_t i = 0; i < txn->n_learnt; i++)
		if (txn->learnt[i] == chain)
			return true;
	return false;
}

/* Reads a chain again. The kernel still shows what this transaction is going to remove. */
static void learn(struct nft_txn *txn, const struct rule *rule, unsigned int chain)
{
	struct nft_state *state = txn->link->state;
	struct err err;
	int r = nft_link_learn(txn->link, rule->table, rule->chain, &err);

	array_grow(&txn->learnt, &txn->learnt_capacity, txn->n_learnt, sizeof(*txn->learnt));
	txn->learnt[txn->n_learnt++] = chain;
	if (r < 0 && txn->error == 0) {
		txn->error = r;
		txn->err = err;
	}
	for (size_t i = 0; i < txn->n_taken; i++)
		if (txn->taken[i].chain == chain)
			nft_state_remove(state, chain, txn->taken[i].digest, txn->taken[i].handle);
}

static void write_remove_rule(struct txn *t, const struct rule *rule)
{
	struct nft_txn *txn = (struct nft_txn *)t;
	struct nft_state *state = txn->link->state;
	unsigned int chain = nft_state_chain(state, rule->table, rule->chain);
	struct nft_taken taken = {.chain = chain};
	bool known;

	if (txn->skip)
		return;
	taken.digest = rule_hash(rule);
	known = nft_state_take(state, chain, taken.digest, &taken.handle);
	if (!known && !was_learnt(txn, chain)) {
		learn(txn, rule, chain);
		known = nft_state_take(state, chain, taken.digest, &taken.handle);
	}
	if (!known) {
		txn->n_missing++;
		return;
	}
	note_taken(txn, &taken);
	nft_link_delete_rule(txn->link, rule->table, rule->chain, taken.handle);
}

static void write_delete_chain(struct txn *t, enum table table, const char *name)
{
	struct nft_txn *txn = (struct nft_txn *)t;

	if (txn->skip || (txn->held && map_get(txn->held, name)))
		return;
	nft_link_delete_chain(txn->link, table, name);
	if (txn->audit)
		nft_audit_chain_deleted(txn->audit, table, name);
}

static void write_subject(struct txn *t, const char *key)
{
	struct nft_txn *txn = (struct nft_txn *)t;

	txn->skip = key && txn->refused && refused_services_wait(txn->refused, key);
	nft_link_subject(txn->link, key);
}

static bool is_full(struct txn *t)
{
	const struct nft_txn *txn = (const struct nft_txn *)t;

	return nft_batch_size(txn->link->batch) >= MAX(NFT_LINK_PIECE, txn->n_standing * 64);
}

static const struct txn_ops nft_ops = {
	.chain = write_chain,
	.rule = write_rule,
	.insert_rule = write_insert_rule,
	.remove_rule = write_remove_rule,
	.delete_chain = write_delete_chain,
	.subject = write_subject,
	.empty_chain = write_empty_chain,
	.revise = write_revision,
	.full = is_full,
};

void nft_txn_init(struct nft_txn *txn, struct nft_link *link)
{
	*txn = (struct nft_txn){.txn.ops = &nft_ops, .link = link};
	nft_link_reset(link);
}

void nft_txn_done(struct nft_txn *txn)
{
	free(take(txn->taken));
	free(take(txn->learnt));
	nft_link_reset(txn->link);
}

int nft_txn_commit(struct nft_txn *txn, uint32_t generation, struct err *err)
{
	if (txn->error < 0) {
		*err = txn->err;
		return txn->error;
	}
	return nft_link_commit(txn->link, generation, err);
}

void nft_txn_next(struct nft_txn *txn)
{
	txn->n_taken = 0;
	txn->n_learnt = 0;
	txn->n_sent++;
	nft_link_reset(txn->link);
}

void nft_txn_undo(struct nft_txn *txn)
{
	for (size_t i = 0; i < txn->n_taken; i++)
		nft_state_add(txn->link->state, txn->taken[i].chain, txn->taken[i].digest,
			      txn->taken[i].handle);
	txn->n_taken = 0;
	txn->n_learnt = 0;
	nft_link_reset(txn->link);
}
