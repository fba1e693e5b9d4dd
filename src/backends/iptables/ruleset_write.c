/* SPDX-License-Identifier: Apache-2.0 */

/* From a ruleset to a transaction: of everything, or of what changed. */

#include <stdlib.h>

#include "backends/iptables/chain_set.h"
#include "backends/iptables/fixed_rules.h"
#include "backends/iptables/index_rules.h"
#include "backends/iptables/ruleset_parts.h"

/*
 * A small delta is one transaction, and the lists of a Service are made once. A large one may take several:
 * first chains of Services, then, in one transaction, whatever leads to them, last the chains that nothing
 * leads to any more. The lists are then made once for each of these, because keeping all of them at a
 * time would take more memory than all plans do.
 */

#define LARGE_DELTA 200 /* chains of endpoints: about 2 KB each in messages */

/* -- everything */

static void mark_active(void *arg, enum chain_kind kind, const struct chain_hash *hash)
{
	chain_set_add(arg, kind, hash);
}

static void collect_active(const struct ruleset *ruleset, struct chain_set *ret)
{
	const struct service_set *services = &ruleset->services;
	size_t n = 0;

	for (size_t i = 0; i < services->n; i++)
		n += service_rules_count_hashes(services->v[i]);
	if (ruleset->index)
		n += service_index_n_chains(ruleset->index);
	chain_set_init(ret, n);
	for (size_t i = 0; i < services->n; i++)
		service_rules_each_chain(services->v[i], mark_active, ret);
	for (size_t i = 0; ruleset->index && i < service_index_n_chains(ruleset->index); i++) {
		struct chain_hash hash;

		service_index_chain_hash(ruleset->index, i, &hash);
		chain_set_add(ret, CHAIN_KIND_INDEX, &hash);
	}
}

static bool is_held(const struct ruleset_input *input, const char *chain)
{
	return input->held_chains && map_get(input->held_chains, chain);
}

/* Chains that have the look of ours and no purpose any more. */
static void find_stale_chains(struct ruleset *ruleset, const struct ruleset_input *input)
{
	cleanup_chain_set struct chain_set active = {0};

	free(ruleset->stale);
	ruleset->stale = xcalloc(input->n_nat_chains + 1, sizeof(*ruleset->stale));
	ruleset->n_stale = ruleset->n_deleted = 0;
	if (!input->nat_chains)
		return;
	collect_active(ruleset, &active);
	for (size_t i = 0; i < input->n_nat_chains; i++) {
		const char *name = input->nat_chains[i];

		if (!chain_is_per_service(name) || chain_set_has(&active, name))
			continue;
		ruleset->stale[ruleset->n_stale++] = name;
		ruleset->n_deleted += !is_held(input, name);
	}
}

void ruleset_forget_stale(struct ruleset *ruleset)
{
	free(take(ruleset->stale));
	ruleset->n_stale = ruleset->n_deleted = 0;
}

static void delete_stale_chains(const struct ruleset *ruleset, const struct ruleset_input *input,
				struct txn *txn)
{
	for (size_t i = 0; i < ruleset->n_stale; i++)
		txn_chain(txn, TABLE_NAT, ruleset->stale[i]);
	for (size_t i = 0; i < ruleset->n_stale; i++)
		if (!is_held(input, ruleset->stale[i]))
			txn_delete_chain(txn, TABLE_NAT, ruleset->stale[i]);
}

static void write_fixed(const struct ruleset *ruleset, enum fixed_rules_group group,
			struct txn *txn)
{
	for (const struct rule_item *item = ruleset->fixed->items; item; item = item->next)
		if (item->group == group)
			txn_rule(txn, &item->rule);
}

void ruleset_write_head(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn)
{
	if (!ruleset->stale)
		find_stale_chains(ruleset, input);
	ruleset_make_fixed(ruleset, input);
	txn_chains(txn, ruleset->fixed);
	write_fixed(ruleset, FIXED_RULES_HEAD, txn);
}

static void write_index_root(struct ruleset *ruleset, struct txn *txn)
{
	cleanup_rule_list struct rule_list list = {0};

	if (!ruleset->index)
		return;
	ruleset_make_index(ruleset, SERVICE_INDEX_ROOT, &list);
	txn_rules(txn, &list);
}

void ruleset_write_tail(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn)
{
	delete_stale_chains(ruleset, input, txn);
	write_index_root(ruleset, txn);
	write_fixed(ruleset, FIXED_RULES_TAIL, txn);
}

static void write_full(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn,
		       struct ruleset_stats *ret)
{
	ruleset_write_head(ruleset, input, txn);
	for (size_t i = 0; i < ruleset_n_services(ruleset); i++)
		ruleset_write_service(ruleset, i, RULESET_LEADING | RULESET_OWN_CHAINS, txn);
	for (size_t i = 0; i < ruleset_n_services(ruleset); i++)
		ruleset_write_service(ruleset, i, RULESET_FOLLOWING | RULESET_OWN_RULES, txn);
	ruleset_write_tail(ruleset, input, txn);
	ruleset_count(ruleset, ret);
	memcpy(ret->rules_written, ret->rules_total, sizeof(ret->rules_written));
}

/* -- what changed */

void ruleset_rewind(struct ruleset *ruleset)
{
	rule_list_done(&ruleset->walk.old);
	rule_list_done(&ruleset->walk.wanted);
	ruleset->walk = (struct delta_walk){0};
}

static void open_change(struct ruleset *ruleset)
{
	const struct change *change = &ruleset->changes[ruleset->walk.at];
	struct delta_walk *walk = &ruleset->walk;

	ruleset_make_rules(ruleset, change->old, RULESET_ALL, &walk->old);
	ruleset_make_rules(ruleset, change->new, RULESET_ALL, &walk->wanted);
	rule_list_compare(&walk->old, &walk->wanted);
	walk->chain = 0;
}

static void close_change(struct delta_walk *walk)
{
	rule_list_done(&walk->old);
	rule_list_done(&walk->wanted);
	walk->at++;
}

static bool write_phase(struct ruleset *ruleset, enum rule_delta_phase phase, struct txn *txn)
{
	struct delta_walk *walk = &ruleset->walk;
	const struct rule_list *named = walk->wanted.subject ? &walk->wanted : &walk->old;
	bool full;

	txn_subject(txn, named->subject);
	full = rule_delta_write(&walk->old, &walk->wanted, phase, &walk->chain, txn, &walk->stats);
	txn_subject(txn, NULL);
	return full;
}

/* One phase of all changes. True: it has to go on in another transaction. */
static bool write_changes(struct ruleset *ruleset, enum rule_delta_phase phase, struct txn *txn)
{
	struct delta_walk *walk = &ruleset->walk;

	while (walk->at < ruleset->n_changes) {
		if (!walk->wanted.arena)
			open_change(ruleset);
		if (write_phase(ruleset, phase, txn))
			return true;
		close_change(walk);
	}
	walk->at = 0;
	return false;
}

/* All phases of one change after the other. */
static void write_whole_changes(struct ruleset *ruleset, struct txn *txn)
{
	struct delta_walk *walk = &ruleset->walk;

	while (walk->at < ruleset->n_changes) {
		open_change(ruleset);
		for (unsigned int phase = 0; phase < RULE_DELTA_PHASES; phase++, walk->chain = 0)
			while (write_phase(ruleset, (enum rule_delta_phase)phase, txn))
				; /* no matter how large */
		close_change(walk);
	}
}

/*
 * The rules at the end of nat KUBE-SERVICES are taken away and put there again when they change, or when
 * others came behind them. With an index they may be gone: the chain is being written anew.
 */
static void write_fixed_delta(struct ruleset *ruleset, bool gone, struct txn *txn,
			      struct rule_delta_stats *stats)
{
	size_t at = 0;
	struct rule_chain *last = rule_list_find(ruleset->fixed, TABLE_NAT, CHAIN_SERVICES);

	rule_list_compare(ruleset->applied_fixed, ruleset->fixed);
	if (gone) {
		last->twin->differs = false;
		last->differs = true;
	} else if (stats->enters_services) {
		last->twin->differs = last->differs = true;
	}
	while (rule_delta_write(ruleset->applied_fixed, ruleset->fixed, RULE_DELTA_OWN, &at, txn,
				stats))
		; /* they are few */
	rule_delta_write(ruleset->applied_fixed, ruleset->fixed, RULE_DELTA_ENTRIES, &at, txn,
			 stats);
}

/* Does it have so many chains that they may not fit into one transaction? */
static bool is_large(const struct ruleset *ruleset)
{
	size_t n = 0;

	for (size_t i = 0; i < ruleset->n_changes && n < LARGE_DELTA; i++) {
		const struct change *change = &ruleset->changes[i];

		n += change->old ? service_rules_count_hashes(change->old) : 0;
		n += change->new ? service_rules_count_hashes(change->new) : 0;
	}
	return n >= LARGE_DELTA;
}

static void make_index_difference(struct ruleset *ruleset, struct rule_list *ret_differ,
				  struct rule_list *ret_gone)
{
	struct rule_facts facts = ruleset_facts(ruleset);
	struct index_rules rules = {&ruleset->services, &facts};
	const struct service_index_rules source = index_rules_of(&rules);

	rule_list_init(ret_differ, 4096);
	rule_list_init(ret_gone, 64);
	if (ruleset->index)
		service_index_difference(ruleset->index, &source, ret_differ, ret_gone);
}

/*
 * What makes chains reachable, or unreachable: all in one transaction. Chains of the index that differ are emptied
 * first, so that nothing leads to chains that services delete.
 */
static void write_entries(struct ruleset *ruleset, const struct ruleset_input *input, bool large,
			  struct txn *txn)
{
	struct rule_delta_stats *stats = &ruleset->walk.stats;
	cleanup_rule_list struct rule_list differ, gone;

	ruleset_make_fixed(ruleset, input);
	make_index_difference(ruleset, &differ, &gone);
	txn_chains(txn, &differ);
	txn_chains(txn, &gone);
	if (large)
		write_changes(ruleset, RULE_DELTA_ENTRIES, txn);
	else
		write_whole_changes(ruleset, txn);
	stats->rules[TABLE_NAT] += txn_rules(txn, &differ);
	for (const struct rule_chain *chain = gone.chains; chain; chain = chain->next) {
		txn_delete_chain(txn, chain->table, chain->name);
		stats->chains_deleted++;
	}
	write_fixed_delta(ruleset, rule_list_find(&differ, TABLE_NAT, CHAIN_SERVICES), txn, stats);
}

static bool write_delta(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn)
{
	struct delta_walk *walk = &ruleset->walk;
	bool large = txn->ops->full && is_large(ruleset);

	if (walk->phase == RULE_DELTA_OWN) {
		if (large && write_changes(ruleset, RULE_DELTA_OWN, txn))
			return true;
		write_entries(ruleset, input, large, txn);
		walk->phase = RULE_DELTA_CLEAR;
		if (large && txn_full(txn))
			return true;
	}
	return large && write_changes(ruleset, RULE_DELTA_CLEAR, txn);
}

bool ruleset_write(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn,
		   struct ruleset_stats *ret)
{
	if (ruleset->full) {
		write_full(ruleset, input, txn, ret);
		return false;
	}
	if (write_delta(ruleset, input, txn))
		return true;
	ruleset_count(ruleset, ret);
	memcpy(ret->rules_written, ruleset->walk.stats.rules, sizeof(ret->rules_written));
	ret->chains_deleted = ruleset->walk.stats.chains_deleted;
	ruleset_rewind(ruleset);
	return false;
}
