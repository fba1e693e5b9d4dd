/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/rule_list.h"

#include <stddef.h>

#include "base/fiber.h"
#include "xtables/chains.h"
#include "xtables/rule_compare.h"

#define MAPPED_CHAINS 16 /* more than that are found by a map */

void rule_list_init(struct rule_list *list, size_t expected)
{
	*list = (struct rule_list){.arena = arena_new(expected)};
	list->last_chain = &list->chains;
	list->last_item = &list->items;
}

void rule_list_done(struct rule_list *list)
{
	for (size_t i = 0; i < TABLE_COUNT; i++)
		map_done(&list->by_name[i]);
	arena_free(list->arena);
	*list = (struct rule_list){0};
}

/* Most lists have few chains, and are gone before a map of them would have paid. */
struct rule_chain *rule_list_find(const struct rule_list *list, enum table table, const char *chain)
{
	struct rule_chain *at = list->chains;

	if (list->n_chains > MAPPED_CHAINS)
		return map_get(&list->by_name[table], chain);
	while (at && (at->table != table || (at->name != chain && !streq(at->name, chain))))
		at = at->next;
	return at;
}

static void map_chains(struct rule_list *list)
{
	for (struct rule_chain *chain = list->chains; chain; chain = chain->next)
		map_set(&list->by_name[chain->table], chain->name, chain);
}

static struct rule_chain *add_chain(struct rule_list *list, enum table table, const char *name,
				    bool own)
{
	struct rule_chain *chain = arena_alloc(list->arena, sizeof(*chain));

	*chain = (struct rule_chain){.table = table, .name = name, .own = own};
	*list->last_chain = chain;
	list->last_chain = &chain->next;
	if (++list->n_chains > MAPPED_CHAINS + 1)
		map_set(&list->by_name[table], name, chain);
	else if (list->n_chains > MAPPED_CHAINS)
		map_chains(list);
	return chain;
}

void rule_list_declare(struct rule_list *list, enum table table, const char *chain, bool own)
{
	if (!rule_list_find(list, table, chain))
		add_chain(list, table, chain, own);
}

static void append(struct rule_list *list, struct rule_chain *chain, struct rule_item *item)
{
	struct rule_item **old = chain->items;

	if (chain->n == chain->capacity) {
		chain->capacity = MAX(2, 2 * chain->capacity);
		chain->items =
			arena_array(list->arena, chain->capacity, sizeof(struct rule_item *));
		if (old)
			memcpy(chain->items, old, chain->n * sizeof(struct rule_item *));
	}
	chain->items[chain->n++] = item;
}

/* Rules of one chain mostly follow each other, and chains the order of their declaration. */
static struct rule_chain *find_for(const struct rule_list *list, const struct rule *rule)
{
	struct rule_chain *last = list->used;

	if (last && last->name == rule->chain && last->table == rule->table)
		return last;
	if (last && last->next && last->next->name == rule->chain &&
	    last->next->table == rule->table)
		return last->next;
	return rule_list_find(list, rule->table, rule->chain);
}

void rule_list_add(struct rule_list *list, const struct rule *rule)
{
	struct rule_chain *chain = find_for(list, rule);
	struct rule_item *item =
		arena_alloc(list->arena, offsetof(struct rule_item, rule) + rule_size(rule));

	fiber_breathe(); /* one Service may have 300,000 rules */
	if (!chain)
		chain = add_chain(list, rule->table, rule->chain, false);
	list->used = item->chain = chain;
	item->subject = list->subject;
	item->group = list->group;
	memcpy((void *)&item->rule, rule, rule_size(rule));
	append(list, chain, item);
	*list->last_item = item;
	list->last_item = &item->next;
}

void rule_list_order(struct rule_list *list)
{
	size_t n = 0;

	for (const struct rule_chain *chain = list->chains; chain; chain = chain->next)
		n += chain->own;
	list->own = arena_array(list->arena, n + 1, sizeof(struct rule_chain *));
	list->n_own = 0;
	for (unsigned int rank = 0; list->n_own < n; rank++)
		for (struct rule_chain *chain = list->chains; chain; chain = chain->next)
			if (chain->own && chain_rank(chain->name) == rank)
				list->own[list->n_own++] = chain;
}

bool rule_chain_equal(const struct rule_chain *a, const struct rule_chain *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!rule_equal(&a->items[i]->rule, &b->items[i]->rule))
			return false;
	return true;
}

void rule_list_compare(struct rule_list *a, struct rule_list *b)
{
	for (struct rule_chain *chain = b->chains; chain; chain = chain->next) {
		chain->twin = NULL;
		chain->differs = true;
	}
	for (struct rule_chain *chain = a->chains; chain; chain = chain->next) {
		chain->twin = rule_list_find(b, chain->table, chain->name);
		chain->differs = !chain->twin || !rule_chain_equal(chain, chain->twin);
		if (!chain->twin)
			continue;
		chain->twin->twin = chain;
		chain->twin->differs = chain->differs;
	}
	rule_list_order(a);
	rule_list_order(b);
}
