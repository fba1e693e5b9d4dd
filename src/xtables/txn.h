/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A transaction of iptables mode: chains to declare, rules to append, insert or remove, chains to
 * delete.
 *
 * The backend says what it wants in these words and does not know who listens: restore_writer.h
 * (text for iptables-restore --noflush) and rule_store.h (what iptables-save will show) do, and so
 * can a writer of netlink messages. Declaring a chain creates it, or empties it when it exists.
 * Within a table a chain is declared before rules go into it or jump to it, unless it is one that
 * stands already; a chain to be deleted is declared first, so that it is empty, and nothing of ours
 * leads to it any more when it goes.
 *
 * A rule that is removed is there: the listener may fail when it is not. Equal rules may stand in a
 * chain more than once; each removal takes one of them.
 */

#include "xtables/rule_list.h"

struct txn;

struct txn_ops {
	void (*chain)(struct txn *txn, enum table table, const char *name);
	void (*rule)(struct txn *txn, const struct rule *rule);
	/* At the head of a chain that stands. NULL: the writer takes whole states only. */
	void (*insert_rule)(struct txn *txn, const struct rule *rule);
	void (*remove_rule)(struct txn *txn, const struct rule *rule);
	void (*delete_chain)(struct txn *txn, enum table table, const char *name);
	/*
	 * Whose chains and rules follow: the key of a Service, good until the next call; NULL: those
	 * of no Service. For errors that name it. NULL here: the writer does not want to know.
	 */
	void (*subject)(struct txn *txn, const char *key);
	/* A chain that stands is emptied. NULL: as declaring it. */
	void (*empty_chain)(struct txn *txn, enum table table, const char *name);
	/*
	 * Makes a chain that stands what it shall be; its twin is what it was. False, or NULL here: the writer
	 * does not change single rules, so the chain is emptied and filled.
	 */
	bool (*revise)(struct txn *txn, const struct rule_chain *wanted);
	/* Is it enough for one transaction? NULL: never. */
	bool (*full)(struct txn *txn);
};

/* The head of every writer's own structure. */
struct txn {
	const struct txn_ops *ops;
};

static inline void txn_chain(struct txn *txn, enum table table, const char *name)
{
	txn->ops->chain(txn, table, name);
}

static inline void txn_rule(struct txn *txn, const struct rule *rule)
{
	txn->ops->rule(txn, rule);
}

static inline void txn_insert_rule(struct txn *txn, const struct rule *rule)
{
	txn->ops->insert_rule(txn, rule);
}

static inline void txn_remove_rule(struct txn *txn, const struct rule *rule)
{
	txn->ops->remove_rule(txn, rule);
}

static inline void txn_delete_chain(struct txn *txn, enum table table, const char *name)
{
	txn->ops->delete_chain(txn, table, name);
}

static inline void txn_subject(struct txn *txn, const char *key)
{
	if (txn->ops->subject)
		txn->ops->subject(txn, key);
}

static inline void txn_empty_chain(struct txn *txn, enum table table, const char *name)
{
	if (txn->ops->empty_chain)
		txn->ops->empty_chain(txn, table, name);
	else
		txn->ops->chain(txn, table, name);
}

static inline bool txn_revise(struct txn *txn, const struct rule_chain *wanted)
{
	return txn->ops->revise && txn->ops->revise(txn, wanted);
}

static inline bool txn_full(struct txn *txn)
{
	return txn->ops->full && txn->ops->full(txn);
}

/* Declares all chains of a list. */
void txn_chains(struct txn *txn, const struct rule_list *list);
/* Appends all its rules, in order, and tells whose they are. Returns how many. */
size_t txn_rules(struct txn *txn, const struct rule_list *list);
