/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/iptables_rules.h"

#include <assert.h>
#include <stdlib.h>

#include "backends/iptables/ruleset.h"
#include "xtables/rule_compare.h"
#include "xtables/rule_parse.h"
#include "xtables/rule_text.h"

struct iptables_chain *iptables_rules_chain(const struct iptables_rules *rules, enum table table,
					    const char *name)
{
	return map_get(&rules->chains[table], name);
}

struct iptables_chain *iptables_rules_open_chain(struct iptables_rules *rules, enum table table,
						 const char *name)
{
	struct iptables_chain *chain = iptables_rules_chain(rules, table, name);

	if (chain)
		return chain;
	chain = arena_alloc(rules->arena, sizeof(*chain));
	chain->table = table;
	chain->name = arena_strdup(rules->arena, name);
	map_set(&rules->chains[table], chain->name, chain);
	return chain;
}

/* -- a rule that outlives its call */

static struct iptables_rule *keep_rule(struct iptables_rules *rules, const struct rule *rule)
{
	size_t size = rule->n_matches * sizeof(rule->matches[0]);
	struct iptables_rule *kept = arena_alloc(rules->arena, sizeof(*kept) + size);

	kept->service = rules->service;
	kept->target = rule->target;
	if (rule->target.kind == TARGET_CHAIN || rule->target.kind == TARGET_GOTO ||
	    rule->target.kind == TARGET_OTHER)
		kept->target.chain = arena_strdup(rules->arena, rule->target.chain);
	kept->n_matches = rule->n_matches;
	memcpy(kept->matches, rule->matches, size);
	for (struct match *match = kept->matches; match < kept->matches + kept->n_matches; match++)
		if (!match_has_prefix(match) && match->text)
			match->text = arena_strdup(rules->arena, match->text);
	return kept;
}

static struct iptables_rule *add_rule(struct iptables_rules *rules, const struct rule *rule,
				      bool first)
{
	struct iptables_chain *chain = iptables_rules_open_chain(rules, rule->table, rule->chain);
	size_t at = first ? 0 : chain->n;

	array_grow(&chain->v, &chain->capacity, chain->n, sizeof(*chain->v));
	memmove(&chain->v[at + 1], &chain->v[at], (chain->n - at) * sizeof(*chain->v));
	chain->v[at] = keep_rule(rules, rule);
	chain->n++;
	for (size_t i = at; i < chain->n; i++)
		chain->v[i]->position = i + 1;
	return chain->v[at];
}

struct iptables_rule *iptables_rules_add(struct iptables_rules *rules, const struct rule *rule)
{
	return add_rule(rules, rule, false);
}

const struct match *iptables_rule_match(const struct iptables_rule *rule, enum match_kind kind)
{
	return match_find(rule->matches, rule->n_matches, kind);
}

void iptables_rules_value(const struct iptables_chain *chain, const struct iptables_rule *kept,
			  struct rule *ret)
{
	rule_init(ret, chain->table, chain->name);
	ret->n_matches = kept->n_matches;
	memcpy(ret->matches, kept->matches, kept->n_matches * sizeof(kept->matches[0]));
	ret->target = kept->target;
}

/* -- what depends on the host */

void iptables_rules_strip(struct rule *rule)
{
	size_t n = 0;

	for (size_t i = 0; i < rule->n_matches; i++)
		if (rule->matches[i].kind != MATCH_NFACCT)
			rule->matches[n++] = rule->matches[i];
	rule->n_matches = n;
	if (rule->target.kind == TARGET_MASQUERADE)
		rule->target.random_fully = false;
}

bool iptables_rules_same_line(enum family family, const char *a, const char *b)
{
	cleanup_arena struct arena *arena = NULL;
	struct rule rules[2];

	if (streq(a, b))
		return true;
	arena = arena_new(1024);
	if (!rule_parse(a, family, arena, &rules[0]) || !rule_parse(b, family, arena, &rules[1]))
		return false;
	iptables_rules_strip(&rules[0]);
	iptables_rules_strip(&rules[1]);
	return streq(rules[0].chain, rules[1].chain) && rule_equal(&rules[0], &rules[1]);
}

/* -- the writer */

static void tell_chain(struct txn *txn, enum table table, const char *name)
{
	iptables_rules_open_chain((struct iptables_rules *)txn, table, name)->n = 0;
}

static void tell_rule(struct txn *txn, const struct rule *rule)
{
	add_rule((struct iptables_rules *)txn, rule, false);
}

static void tell_remove_rule(struct txn *txn, const struct rule *rule)
{
	struct iptables_rules *rules = (struct iptables_rules *)txn;
	struct iptables_chain *chain = iptables_rules_open_chain(rules, rule->table, rule->chain);

	for (size_t i = 0; i < chain->n; i++) {
		struct rule value;

		iptables_rules_value(chain, chain->v[i], &value);
		if (!rule_equal(&value, rule))
			continue;
		chain->n--;
		memmove(&chain->v[i], &chain->v[i + 1], (chain->n - i) * sizeof(*chain->v));
		for (size_t j = i; j < chain->n; j++)
			chain->v[j]->position = j + 1;
		return;
	}
}

static void tell_delete_chain(struct txn *txn, enum table table, const char *name)
{
	struct iptables_rules *rules = (struct iptables_rules *)txn;
	struct iptables_chain *chain = map_remove(&rules->chains[table], name);

	if (chain)
		free(chain->v);
}

static void tell_subject(struct txn *txn, const char *key)
{
	struct iptables_rules *rules = (struct iptables_rules *)txn;

	if (!key || !rules->service || !streq(rules->service, key))
		rules->service = key ? arena_strdup(rules->arena, key) : NULL;
}

static const struct txn_ops keeping = {
	.chain = tell_chain,
	.rule = tell_rule,
	.remove_rule = tell_remove_rule,
	.delete_chain = tell_delete_chain,
	.subject = tell_subject,
};

struct txn *iptables_rules_txn(struct iptables_rules *rules)
{
	return &rules->txn;
}

void iptables_rules_jumps(struct iptables_rules *rules)
{
	struct rule jump;

	for (size_t i = 0; i < RULESET_JUMPS; i++) {
		ruleset_jump(i, &jump);
		iptables_rules_open_chain(rules, jump.table, jump.target.chain);
		add_rule(rules, &jump, true);
	}
}

void iptables_rules_plan(struct iptables_rules *rules, const struct settings *settings,
			 const struct plan_delta *delta, const struct host *host,
			 const struct ruleset_host *features)
{
	static const struct ruleset_host all = {
		.random_fully = true,
		.nfacct_invalid = true,
		.nfacct_localhost = true,
	};
	const struct ruleset_input facts = {
		.addresses_known = true,
		.addresses = host->addresses,
		.n_addresses = host->n_addresses,
	};
	struct ruleset *ruleset = ruleset_new(settings, features ? features : &all);
	struct ruleset_begun begun;
	struct ruleset_stats stats;

	ruleset_begin(ruleset, delta, 0, &begun);
	iptables_rules_jumps(rules);
	ruleset_write(ruleset, &facts, &rules->txn, &stats);
	ruleset_end(ruleset, true, 0);
	ruleset_free(ruleset);
}

/* -- */

const char *iptables_rules_text(struct iptables_rules *rules, const struct iptables_chain *chain,
				struct iptables_rule *kept)
{
	struct rule rule;
	char text[RULE_TEXT_MAX];

	if (kept->text)
		return kept->text;
	iptables_rules_value(chain, kept, &rule);
	rule_print(&rule, rule_form_save(rules->family), text);
	kept->text = arena_strdup(rules->arena, text);
	return kept->text;
}

struct iptables_rules *iptables_rules_new(enum family family)
{
	struct iptables_rules *rules = xcalloc(1, sizeof(*rules));

	rules->txn.ops = &keeping;
	rules->family = family;
	rules->arena = arena_new(65536);
	return rules;
}

struct iptables_rules *iptables_rules_free(struct iptables_rules *rules)
{
	if (!rules)
		return NULL;
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		struct iptables_chain *chain;
		size_t at = 0;

		while ((chain = map_next(&rules->chains[i], &at)))
			free(chain->v);
		map_done(&rules->chains[i]);
	}
	arena_free(rules->arena);
	free(rules);
	return NULL;
}
