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

static void prepare(const struct rule_list *wanted, struct txn *txn, struct rule_delta_stats *stats)
{
	for (size_t i = 0; i < wanted->n_own; i++) {
		const struct rule_chain *chain = wanted->own[i];

		if (chain->twin)
			continue;
		txn_chain(txn, chain->table, chain->name);
		fill(chain, txn, stats);
	}
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

static void change_over(const struct rule_list *old, const struct rule_list *wanted,
			struct txn *txn, struct rule_delta_stats *stats)
{
	for (const struct rule_item *item = old->items; item; item = item->next)
		if (!item->chain->own && item->chain->differs)
			txn_remove_rule(txn, &item->rule);
	for (const struct rule_chain *chain = wanted->chains; chain; chain = chain->next)
		if (chain->own && chain->twin && chain->differs)
			revise(chain, txn, stats);
	for (const struct rule_item *item = wanted->items; item; item = item->next)
		if (!item->chain->own && item->chain->differs)
			enter(&item->rule, txn, stats);
}

static void clear(const struct rule_list *old, struct txn *txn, struct rule_delta_stats *stats)
{
	for (size_t i = old->n_own; i-- > 0;) {
		const struct rule_chain *chain = old->own[i];

		if (chain->twin)
			continue;
		txn_empty_chain(txn, chain->table, chain->name);
		txn_delete_chain(txn, chain->table, chain->name);
		stats->chains_deleted++;
	}
}

void rule_delta_write(const struct rule_list *old, const struct rule_list *wanted,
		      enum rule_delta_phase phase, struct txn *txn, struct rule_delta_stats *stats)
{
	switch (phase) {
	case RULE_DELTA_PREPARE:
		prepare(wanted, txn, stats);
		break;
	case RULE_DELTA_SWITCH:
		change_over(old, wanted, txn, stats);
		break;
	case RULE_DELTA_CLEAR:
		clear(old, txn, stats);
		break;
	case RULE_DELTA_PHASES:
		break;
	}
}
