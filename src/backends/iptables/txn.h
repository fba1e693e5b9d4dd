/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A transaction of iptables mode: chains to declare, rules to append, chains to delete.
 *
 * The backend says what it wants in these three words and does not know who listens:
 * restore_writer.h (text for iptables-restore --noflush) and save_writer.h (what iptables-save will
 * show) do, and a netlink writer can. Declaring a chain creates it, or empties it when it exists.
 * Within a table a chain is declared before rules go into it or jump to it; a chain to be deleted
 * is declared first, so that it is empty.
 */

#include "backends/iptables/rule.h"

struct txn;

struct txn_ops {
	void (*chain)(struct txn *txn, enum table table, const char *name);
	void (*rule)(struct txn *txn, const struct rule *rule);
	void (*delete_chain)(struct txn *txn, enum table table, const char *name);
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

static inline void txn_delete_chain(struct txn *txn, enum table table, const char *name)
{
	txn->ops->delete_chain(txn, table, name);
}
