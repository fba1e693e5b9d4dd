/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules of one family as values, chain by chain: those of a transaction once it is applied to an empty
 * host, or those of the kernel. A writer (txn.h) that remembers.
 *
 *	struct rule_store *store = rule_store_new(FAMILY_IPV4);
 *	ruleset_write(ruleset, &facts, rule_store_txn(store), &stats);
 *	rule_store_save(store, &text);
 */

#include "base/map.h"
#include "base/text.h"
#include "xtables/txn.h"

/*
 * What the last packet met (inspect/iptables_rules.h) has the number of its walk: chains that it entered,
 * and rules of them that it matched or that a step tells about.
 */

struct stored_rule {
	const char *service; /* its key; NULL: a rule of no Service */
	const char *text;    /* as iptables-save prints it; NULL: it was not asked for yet */
	size_t position;     /* in its chain, from 1 */
	uint64_t met;        /* by which walk, the last of them; 0: by none */
	const struct rule
		rule; /* has room for its own matches and no more: never copied by value */
};

struct stored_chain {
	enum table table;
	const char *name;
	uint64_t met; /* as of a rule */
	bool unread;  /* of the kernel's (kernel_rules.h): the rules have not been asked for */
	bool listed;  /* of the kernel's: iptables has been asked for the texts */
	struct stored_rule **v;
	size_t n, capacity;
};

struct rule_store {
	struct txn txn;
	enum family family;
	struct arena *arena;
	struct map chains[TABLE_COUNT]; /* by name */
	const char *service;            /* whose rules are being told */
	uint64_t walks;                 /* packets so far */
};

struct rule_store *rule_store_new(enum family family);
struct rule_store *rule_store_free(struct rule_store *store); /* accepts NULL */
struct txn *rule_store_txn(struct rule_store *store);

struct stored_chain *rule_store_chain(const struct rule_store *store, enum table table,
				      const char *name); /* NULL: none */
struct stored_chain *rule_store_open_chain(struct rule_store *store, enum table table,
					   const char *name); /* made if it is missing */
/* At the end of its chain, or before all others: iptables -I. All of it is copied. */
struct stored_rule *rule_store_add(struct rule_store *store, const struct rule *rule);
void rule_store_prepend(struct rule_store *store, const struct rule *rule);

/* As iptables-save prints it. */
const char *rule_store_text(struct rule_store *store, struct stored_rule *stored);

/*
 * All of them as iptables-save (1.8.9, nf_tables) shows them: user chains sorted by name, counters zero,
 * without the two comment lines with the time.
 */
void rule_store_save(const struct rule_store *store, struct text *ret);
