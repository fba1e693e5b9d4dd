/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/rule_store.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "xtables/nft_chain.h"
#include "xtables/rule_compare.h"
#include "xtables/rule_text.h"

struct stored_chain *rule_store_chain(const struct rule_store *store, enum table table,
				      const char *name)
{
	return map_get(&store->chains[table], name);
}

struct stored_chain *rule_store_open_chain(struct rule_store *store, enum table table,
					   const char *name)
{
	struct stored_chain *chain = rule_store_chain(store, table, name);

	if (chain)
		return chain;
	chain = arena_alloc(store->arena, sizeof(*chain));
	chain->table = table;
	chain->name = arena_strdup(store->arena, name);
	map_set(&store->chains[table], chain->name, chain);
	return chain;
}

/* -- a rule that outlives its call */

static struct stored_rule *store_rule(struct rule_store *store, const struct rule *rule,
				      const char *chain)
{
	struct stored_rule *stored =
		arena_alloc(store->arena, offsetof(struct stored_rule, rule) + rule_size(rule));
	struct rule *copy = (struct rule *)&stored->rule;

	stored->service = store->service;
	memcpy(copy, rule, rule_size(rule));
	copy->chain = chain;
	if (rule->target.kind == TARGET_CHAIN || rule->target.kind == TARGET_GOTO ||
	    rule->target.kind == TARGET_OTHER)
		copy->target.chain = arena_strdup(store->arena, rule->target.chain);
	for (struct match *match = copy->matches; match < copy->matches + copy->n_matches; match++)
		if (!match_has_prefix(match) && match->text)
			match->text = arena_strdup(store->arena, match->text);
	return stored;
}

static struct stored_rule *add_rule(struct rule_store *store, const struct rule *rule, bool first)
{
	struct stored_chain *chain = rule_store_open_chain(store, rule->table, rule->chain);
	size_t at = first ? 0 : chain->n;

	array_grow(&chain->v, &chain->capacity, chain->n, sizeof(*chain->v));
	memmove(&chain->v[at + 1], &chain->v[at], (chain->n - at) * sizeof(*chain->v));
	chain->v[at] = store_rule(store, rule, chain->name);
	chain->n++;
	for (size_t i = at; i < chain->n; i++)
		chain->v[i]->position = i + 1;
	return chain->v[at];
}

struct stored_rule *rule_store_add(struct rule_store *store, const struct rule *rule)
{
	return add_rule(store, rule, false);
}

void rule_store_prepend(struct rule_store *store, const struct rule *rule)
{
	add_rule(store, rule, true);
}

/* -- the writer */

static void tell_chain(struct txn *txn, enum table table, const char *name)
{
	rule_store_open_chain((struct rule_store *)txn, table, name)->n = 0;
}

static void tell_rule(struct txn *txn, const struct rule *rule)
{
	add_rule((struct rule_store *)txn, rule, false);
}

static void tell_remove_rule(struct txn *txn, const struct rule *rule)
{
	struct rule_store *store = (struct rule_store *)txn;
	struct stored_chain *chain = rule_store_open_chain(store, rule->table, rule->chain);

	for (size_t i = 0; i < chain->n; i++) {
		if (!rule_equal(&chain->v[i]->rule, rule))
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
	struct rule_store *store = (struct rule_store *)txn;
	struct stored_chain *chain = map_remove(&store->chains[table], name);

	if (chain)
		free(chain->v);
}

static void tell_subject(struct txn *txn, const char *key)
{
	struct rule_store *store = (struct rule_store *)txn;

	if (!key || !store->service || !streq(store->service, key))
		store->service = key ? arena_strdup(store->arena, key) : NULL;
}

static const struct txn_ops store_ops = {
	.chain = tell_chain,
	.rule = tell_rule,
	.remove_rule = tell_remove_rule,
	.delete_chain = tell_delete_chain,
	.subject = tell_subject,
};

struct txn *rule_store_txn(struct rule_store *store)
{
	return &store->txn;
}

/* -- texts */

const char *rule_store_text(struct rule_store *store, struct stored_rule *stored)
{
	char text[RULE_TEXT_MAX];

	if (stored->text)
		return stored->text;
	rule_print(&stored->rule, rule_form_save(store->family), text);
	stored->text = arena_strdup(store->arena, text);
	return stored->text;
}

/* In the order of iptables-save. */
static const enum table table_order[] = {TABLE_MANGLE, TABLE_FILTER, TABLE_NAT};

static_assert(ARRAY_SIZE(table_order) == TABLE_COUNT, "every table is shown");

static int compare_chains(const void *a, const void *b)
{
	const struct stored_chain *const *x = a;
	const struct stored_chain *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Those that are no base chains, by name. An array for the caller to free. */
static const struct stored_chain **sort_chains(const struct rule_store *store, enum table table,
					       size_t *ret_n)
{
	const struct map *map = &store->chains[table];
	const struct stored_chain **chains = xcalloc(map->count, sizeof(*chains)), *chain;
	size_t at = 0;

	*ret_n = 0;
	while ((chain = map_next(map, &at)))
		if (!nft_chain_is_base(table, chain->name))
			chains[(*ret_n)++] = chain;
	if (*ret_n > 1)
		qsort(chains, *ret_n, sizeof(*chains), compare_chains);
	return chains;
}

static void save_rules(const struct rule_store *store, const struct stored_chain *chain,
		       struct text *ret)
{
	for (size_t i = 0; chain && i < chain->n; i++) {
		char line[RULE_TEXT_MAX];
		size_t n = rule_print(&chain->v[i]->rule, rule_form_save(store->family), line);

		line[n++] = '\n';
		text_add(ret, line, n);
	}
}

/* iptables creates a table with all its base chains when it first needs it. */
static void save_table(const struct rule_store *store, enum table table, struct text *ret)
{
	cleanup_free const struct stored_chain **chains = NULL;
	const char *name;
	size_t n;

	if (store->chains[table].count == 0)
		return;
	chains = sort_chains(store, table, &n);
	text_printf(ret, "*%s\n", table_name(table));
	for (size_t i = 0; (name = nft_chain_base(table, i)); i++)
		text_printf(ret, ":%s ACCEPT [0:0]\n", name);
	for (size_t i = 0; i < n; i++)
		text_printf(ret, ":%s - [0:0]\n", chains[i]->name);
	for (size_t i = 0; (name = nft_chain_base(table, i)); i++)
		save_rules(store, rule_store_chain(store, table, name), ret);
	for (size_t i = 0; i < n; i++)
		save_rules(store, chains[i], ret);
	text_str(ret, "COMMIT\n");
}

void rule_store_save(const struct rule_store *store, struct text *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(table_order); i++)
		save_table(store, table_order[i], ret);
}

/* -- */

struct rule_store *rule_store_new(enum family family)
{
	struct rule_store *store = xcalloc(1, sizeof(*store));

	store->txn.ops = &store_ops;
	store->family = family;
	store->arena = arena_new(65536);
	return store;
}

struct rule_store *rule_store_free(struct rule_store *store)
{
	if (!store)
		return NULL;
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		struct stored_chain *chain;
		size_t at = 0;

		while ((chain = map_next(&store->chains[i], &at)))
			free(chain->v);
		map_done(&store->chains[i]);
	}
	arena_free(store->arena);
	free(store);
	return NULL;
}
