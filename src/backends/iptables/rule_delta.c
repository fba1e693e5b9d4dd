/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/rule_delta.h"

#include "xtables/chains.h"

static void write_rule(const struct rule *rule, struct txn *txn, struct rule_delta_stats *stats)
{
	txn_rule(txn, rule);
	stats->rules[rule->table]++;
}

static void fill(const struct rule_chain *chain, struct txn *txn, struct rule_delta_stats *stats)
{
	for (size_t i = 0; i < chain->n; i++)
		write_rule(&chain->items[i]->rule, txn, stats);
}

static void revise(const struct rule_chain *chain, struct txn *txn, struct rule_delta_stats *stats)
{
	if (txn_revise(txn, chain)) {
		stats->rules[chain->table] += chain->n;
		return;
	}
	txn_empty_chain(txn, chain->table, chain->name);
	fill(chain, txn, stats);
}

static void write_own(const struct rule_chain *chain, struct txn *txn,
		      struct rule_delta_stats *stats)
{
	if (!chain->differs)
		return;
	if (chain->twin) {
		revise(chain, txn, stats);
		return;
	}
	txn_chain(txn, chain->table, chain->name);
	fill(chain, txn, stats);
}

static void enter(const struct rule *rule, struct txn *txn, struct rule_delta_stats *stats)
{
	if (!rule->leading) {
		write_rule(rule, txn, stats);
		if (rule->table == TABLE_NAT && streq(rule->chain, CHAIN_SERVICES))
			stats->enters_services = true;
		return;
	}
	txn_insert_rule(txn, rule);
	stats->rules[rule->table]++;
}

static void write_entries(const struct rule_list *old, const struct rule_list *wanted,
			  struct txn *txn, struct rule_delta_stats *stats)
{
	for (const struct rule_item *item = old->items; item; item = item->next)
		if (!item->chain->own && item->chain->differs)
			txn_remove_rule(txn, &item->rule);
	for (const struct rule_item *item = wanted->items; item; item = item->next)
		if (!item->chain->own && item->chain->differs)
			enter(&item->rule, txn, stats);
}

static void clear(const struct rule_chain *chain, struct txn *txn, struct rule_delta_stats *stats)
{
	if (chain->twin)
		return;
	txn_empty_chain(txn, chain->table, chain->name);
	txn_delete_chain(txn, chain->table, chain->name);
	stats->chains_deleted++;
}

bool rule_delta_write(const struct rule_list *old, const struct rule_list *wanted,
		      enum rule_delta_phase phase, size_t *at, struct txn *txn,
		      struct rule_delta_stats *stats)
{
	if (phase == RULE_DELTA_ENTRIES) {
		write_entries(old, wanted, txn, stats);
		return false;
	}
	while (*at < (phase == RULE_DELTA_OWN ? wanted : old)->n_own) {
		size_t i = (*at)++;

		if (phase == RULE_DELTA_OWN)
			write_own(wanted->own[i], txn, stats);
		else
			clear(old->own[old->n_own - 1 - i], txn, stats);
		if (txn_full(txn))
			return true;
	}
	return false;
}
