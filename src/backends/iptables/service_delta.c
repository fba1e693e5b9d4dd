/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/service_delta.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/siphash.h"
#include "xtables/restore_writer.h"

/*
 * Both lists of rules are said twice: first to a listener that keeps a digest of each rule, then,
 * when the chains that differ are known, to one that lets only those pass. Saying the rules of a
 * Service is cheap, keeping them is not.
 *
 * The order within the transaction makes every step lawful at its time: old entries go; chains that
 * are rewritten or not wanted are emptied; new rules come, into chains that are declared; and what
 * nothing leads to any more is deleted.
 */

struct chain_digest {
	struct chain_digest *next;
	struct chain_name name;
	enum table table;
	bool own;        /* not shared */
	bool differs;    /* from the one of the same name on the other side, or there is none */
	bool only;       /* there is none */
	uint64_t *rules; /* digests, in order */
	size_t n_rules, capacity;
};

/* The chains that one service has rules in: a listener, in the order in which it hears of them. */
struct chain_digests {
	struct txn txn;
	struct arena *arena;
	uint64_t key[2];
	struct map by_name[TABLE_COUNT];
	struct chain_digest *first, **last;
};

static struct chain_digest *find_chain(const struct chain_digests *digests, enum table table,
				       const char *name)
{
	return map_get(&digests->by_name[table], name);
}

static struct chain_digest *add_chain(struct chain_digests *digests, enum table table,
				      const char *name, bool own)
{
	struct chain_digest *chain = arena_alloc(digests->arena, sizeof(*chain));

	assert(strlen(name) < sizeof(chain->name.text));
	strcpy(chain->name.text, name);
	chain->table = table;
	chain->own = own;
	map_set(&digests->by_name[table], chain->name.text, chain);
	*digests->last = chain;
	digests->last = &chain->next;
	return chain;
}

static void hear_chain(struct txn *txn, enum table table, const char *name)
{
	struct chain_digests *digests = (struct chain_digests *)txn;

	if (!find_chain(digests, table, name))
		add_chain(digests, table, name, true);
}

static void emit_rule(struct txn *txn, const struct rule *rule)
{
	struct chain_digests *digests = (struct chain_digests *)txn;
	struct chain_digest *chain = find_chain(digests, rule->table, rule->chain);
	char line[RULE_TEXT_MAX];

	if (!chain)
		chain = add_chain(digests, rule->table, rule->chain, false);
	array_grow(&chain->rules, &chain->capacity, chain->n_rules, sizeof(*chain->rules));
	chain->rules[chain->n_rules++] = siphash(digests->key, line, restore_rule_line(rule, line));
}

static const struct txn_ops digest_ops = {
	.chain = hear_chain,
	.rule = emit_rule,
};

static void digests_init(struct chain_digests *digests, struct arena *arena, const uint64_t key[2])
{
	*digests = (struct chain_digests){.txn.ops = &digest_ops, .arena = arena};
	memcpy(digests->key, key, sizeof(digests->key));
	digests->last = &digests->first;
}

static void digests_done(struct chain_digests *digests)
{
	for (struct chain_digest *chain = digests->first; chain; chain = chain->next)
		free(chain->rules);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		map_done(&digests->by_name[i]);
}

static void collect(struct service_rules *service, const struct rule_output *like,
		    struct chain_digests *ret)
{
	struct rule_output output = *like;

	output.txn = &ret->txn;
	if (service)
		service_rules_write(service, &output, RULESET_ALL);
}

static bool same_rules(const struct chain_digest *a, const struct chain_digest *b)
{
	return a->n_rules == b->n_rules &&
	       (a->n_rules == 0 || memcmp(a->rules, b->rules, a->n_rules * sizeof(*a->rules)) == 0);
}

static void compare(struct chain_digests *digests, const struct chain_digests *others)
{
	for (struct chain_digest *chain = digests->first; chain; chain = chain->next) {
		const struct chain_digest *other =
			find_chain(others, chain->table, chain->name.text);

		chain->only = !other;
		chain->differs = !other || !same_rules(chain, other);
	}
}

/* Lets pass what concerns a chain that differs. */
struct filter {
	struct txn txn;
	const struct chain_digests *digests;
	const struct chain_digests *others; /* of the other side */
	struct rule_output *output;
	struct service_delta *delta;
};

static bool passes(const struct filter *filter, enum table table, const char *chain)
{
	return find_chain(filter->digests, table, chain)->differs;
}

/* One that stands: does the writer change single rules, or does it start with an empty chain? */
static void revise_chain(struct filter *filter, const struct chain_digest *chain)
{
	const struct chain_digest *old = find_chain(filter->others, chain->table, chain->name.text);
	const struct txn_revision revision = {
		.table = chain->table,
		.chain = chain->name.text,
		.old = old->rules,
		.n_old = old->n_rules,
		.wanted = chain->rules,
		.n_wanted = chain->n_rules,
	};

	if (!txn_revise(filter->output->txn, &revision))
		txn_empty_chain(filter->output->txn, chain->table, chain->name.text);
}

static void pass_chain(struct txn *txn, enum table table, const char *name)
{
	struct filter *filter = (struct filter *)txn;
	const struct chain_digest *chain = find_chain(filter->digests, table, name);

	if (!chain->differs)
		return;
	if (chain->only)
		txn_chain(filter->output->txn, table, name);
	else
		revise_chain(filter, chain);
}

static void pass_rule(struct txn *txn, const struct rule *rule)
{
	struct filter *filter = (struct filter *)txn;

	if (!passes(filter, rule->table, rule->chain))
		return;
	rule_output_enter(filter->output, rule);
	if (!rule->leading && rule->table == TABLE_NAT && streq(rule->chain, CHAIN_SERVICES))
		filter->delta->enters_services = true;
}

static void pass_removal(struct txn *txn, const struct rule *rule)
{
	struct filter *filter = (struct filter *)txn;

	if (passes(filter, rule->table, rule->chain))
		txn_remove_rule(filter->output->txn, rule);
}

static const struct txn_ops write_ops = {
	.chain = pass_chain,
	.rule = pass_rule,
};

static const struct txn_ops remove_ops = {
	.rule = pass_removal,
};

static void write_filtered(struct service_rules *service, unsigned int parts,
			   const struct txn_ops *ops, const struct chain_digests *digests,
			   const struct chain_digests *others, struct rule_output *output,
			   struct service_delta *delta)
{
	struct filter filter = {
		.txn.ops = ops,
		.digests = digests,
		.others = others,
		.output = output,
		.delta = delta,
	};
	struct rule_output filtered = *output;

	filtered.txn = &filter.txn;
	if (service)
		service_rules_write(service, &filtered, parts);
}

static void empty_unwanted(const struct chain_digests *old, struct txn *txn)
{
	for (const struct chain_digest *chain = old->first; chain; chain = chain->next)
		if (chain->own && chain->only)
			txn_empty_chain(txn, chain->table, chain->name.text);
}

static void delete_unwanted(const struct chain_digests *old, struct txn *txn,
			    struct service_delta *delta)
{
	for (const struct chain_digest *chain = old->first; chain; chain = chain->next) {
		if (!chain->own || !chain->only)
			continue;
		txn_delete_chain(txn, chain->table, chain->name.text);
		delta->chains_deleted++;
	}
}

void service_delta_write(struct service_rules *old, struct service_rules *wanted,
			 struct rule_output *output, struct service_delta *ret)
{
	cleanup_arena struct arena *arena = arena_new(4096);
	struct chain_digests before, after;
	uint64_t key[2];

	arc4random_buf(key, sizeof(key));
	digests_init(&before, arena, key);
	digests_init(&after, arena, key);
	collect(old, output, &before);
	collect(wanted, output, &after);
	compare(&before, &after);
	compare(&after, &before);

	txn_subject(output->txn, (wanted ? wanted : old)->plan->key);
	write_filtered(old, RULESET_ENTRIES, &remove_ops, &before, &after, output, ret);
	empty_unwanted(&before, output->txn);
	write_filtered(wanted, RULESET_ALL, &write_ops, &after, &before, output, ret);
	delete_unwanted(&before, output->txn, ret);
	txn_subject(output->txn, NULL);
	digests_done(&before);
	digests_done(&after);
}
