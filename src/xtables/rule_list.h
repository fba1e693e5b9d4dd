/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rules as a list of values: in the order in which they were added, and chain by chain. A list
 * and all that it holds live in one arena. Lists are made, compared and dropped; nothing in one
 * changes afterwards.
 *
 * A chain is own when all its rules are in the list: it was declared. In a shared chain others have
 * rules too, and nothing in the list says how many.
 */

#include "base/arena.h"
#include "base/map.h"
#include "xtables/rule.h"

struct rule_item {
	struct rule_item *next; /* in the list */
	struct rule_chain *chain;
	const char *subject; /* the Service that it belongs to, or NULL */
	unsigned int group;  /* in a shared chain, order matters within a group */
	const struct rule
		rule; /* has room for its own matches and no more: never copied by value */
};

struct rule_chain {
	struct rule_chain *next; /* in the list */
	enum table table;
	const char *name;
	bool own;
	struct rule_item **items;
	size_t n, capacity;
	/* since rule_list_compare() */
	struct rule_chain *twin; /* of the same name, in the other list; NULL: none */
	bool differs;            /* from that, or there is none */
};

struct rule_list {
	struct arena *arena;
	const char *subject; /* of what is added next */
	unsigned int group;
	struct rule_chain *chains, **last_chain;
	size_t n_chains;
	struct rule_chain *used; /* of the rule that was added last */
	struct rule_item *items, **last_item;
	struct map by_name[TABLE_COUNT];
	/* since rule_list_order() or rule_list_compare(): own chains, each one behind those that its rules lead to */
	struct rule_chain **own;
	size_t n_own;
};

/* expected: bytes that it will need, for the arena's first block */
void rule_list_init(struct rule_list *list, size_t expected);
void rule_list_done(struct rule_list *list);

/* Names, and all strings of rules, are borrowed for as long as there is a list. */
void rule_list_declare(struct rule_list *list, enum table table, const char *chain, bool own);
/* A chain that was not declared is a shared one. The rule is copied, its strings are not. */
void rule_list_add(struct rule_list *list, const struct rule *rule);
struct rule_chain *rule_list_find(const struct rule_list *list, enum table table,
				  const char *chain); /* or NULL */

void rule_list_order(struct rule_list *list);
/* Fills in what differs, and the order of own chains, in both. */
void rule_list_compare(struct rule_list *a, struct rule_list *b);
bool rule_chain_equal(const struct rule_chain *a, const struct rule_chain *b);

#define cleanup_rule_list attr_cleanup(rule_list_done)
