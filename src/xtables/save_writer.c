/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/save_writer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "xtables/rule_text.h"

/*
 * The tool prints chain by chain, sorted by name, while rules arrive in any order: each chain
 * collects its own lines in one growing piece of memory, which is released as soon as the finished
 * text has it.
 */

struct save_chain {
	char *name;
	bool base;
	char *lines;
	size_t size;
	size_t capacity;
};

struct save_table {
	struct arena *arena; /* chains and their names */
	struct map chains;   /* by name */
};

struct save_writer {
	struct txn txn;
	enum family family;
	struct save_table tables[TABLE_COUNT];
};

/* In the tool's order. */
static const enum table table_order[] = {TABLE_MANGLE, TABLE_FILTER, TABLE_NAT};

static_assert(ARRAY_SIZE(table_order) == TABLE_COUNT, "every table is shown");

/* Created with the table, in the order of the packet's way. */
static const char *const base_chains[TABLE_COUNT][6] = {
	[TABLE_FILTER] = {"INPUT", "FORWARD", "OUTPUT"},
	[TABLE_NAT] = {"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"},
	[TABLE_MANGLE] = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"},
};

static struct save_chain *add_chain(struct save_table *table, const char *name, bool base)
{
	struct save_chain *chain = arena_alloc(table->arena, sizeof(*chain));

	chain->name = arena_strdup(table->arena, name);
	chain->base = base;
	map_set(&table->chains, chain->name, chain);
	return chain;
}

/* The tool creates a table with all its base chains when it first needs it. */
static struct save_table *open_table(struct save_writer *writer, enum table which)
{
	struct save_table *table = &writer->tables[which];

	if (table->arena)
		return table;
	table->arena = arena_new(4096);
	for (const char *const *name = base_chains[which]; *name; name++)
		add_chain(table, *name, true);
	return table;
}

static void chain_empty(struct save_chain *chain)
{
	free(chain->lines);
	chain->lines = NULL;
	chain->size = chain->capacity = 0;
}

/* Makes room for n bytes at `offset` and copies them there. */
static void chain_insert(struct save_chain *chain, size_t offset, const char *line, size_t n)
{
	if (chain->size + n > chain->capacity) {
		chain->capacity = MAX(chain->size + n, chain->capacity + chain->capacity / 2);
		chain->lines = xrealloc(chain->lines, chain->capacity);
	}
	memmove(chain->lines + offset + n, chain->lines + offset, chain->size - offset);
	memcpy(chain->lines + offset, line, n);
	chain->size += n;
}

/* A line of RULE_TEXT_MAX bytes: its length. */
static size_t put_line(const struct save_writer *writer, const struct rule *rule, char *line)
{
	char *end = put_rule(line, "-A ", rule, rule_form_save(writer->family));

	*end++ = '\n';
	return (size_t)(end - line);
}

static void insert_rule(struct save_writer *writer, const struct rule *rule, bool first)
{
	struct save_table *table = open_table(writer, rule->table);
	struct save_chain *chain = map_get(&table->chains, rule->chain);
	char line[RULE_TEXT_MAX];
	size_t n = put_line(writer, rule, line);

	assert(chain); /* declared before rules go into it */
	chain_insert(chain, first ? 0 : chain->size, line, n);
}

static void write_chain(struct txn *txn, enum table which, const char *name)
{
	struct save_table *table = open_table((struct save_writer *)txn, which);
	struct save_chain *chain = map_get(&table->chains, name);

	if (chain)
		chain_empty(chain);
	else
		add_chain(table, name, false);
}

static void write_rule(struct txn *txn, const struct rule *rule)
{
	insert_rule((struct save_writer *)txn, rule, false);
}

static char *find_line(struct save_chain *chain, const char *line, size_t n)
{
	char *at = chain->lines;
	char *end = at + chain->size;

	while (at < end) {
		char *next = (char *)memchr(at, '\n', (size_t)(end - at)) + 1;

		if ((size_t)(next - at) == n && memcmp(at, line, n) == 0)
			return at;
		at = next;
	}
	return NULL;
}

static void write_remove_rule(struct txn *txn, const struct rule *rule)
{
	struct save_writer *writer = (struct save_writer *)txn;
	struct save_table *table = open_table(writer, rule->table);
	struct save_chain *chain = map_get(&table->chains, rule->chain);
	char line[RULE_TEXT_MAX];
	size_t n = put_line(writer, rule, line);
	char *at = chain ? find_line(chain, line, n) : NULL;

	assert(at); /* only what is there is removed */
	chain->size -= n;
	memmove(at, at + n, (size_t)(chain->lines + chain->size - at));
}

static void write_delete_chain(struct txn *txn, enum table which, const char *name)
{
	struct save_table *table = open_table((struct save_writer *)txn, which);
	struct save_chain *chain = map_remove(&table->chains, name);

	if (chain)
		chain_empty(chain);
}

static const struct txn_ops save_ops = {
	.chain = write_chain,
	.rule = write_rule,
	.remove_rule = write_remove_rule,
	.delete_chain = write_delete_chain,
};

struct save_writer *save_writer_new(enum family family)
{
	struct save_writer *writer = xcalloc(1, sizeof(*writer));

	writer->txn.ops = &save_ops;
	writer->family = family;
	return writer;
}

static void close_table(struct save_table *table)
{
	struct save_chain *chain;
	size_t at = 0;

	while ((chain = map_next(&table->chains, &at)))
		free(chain->lines);
	map_done(&table->chains);
	*table = (struct save_table){.arena = arena_free(table->arena)};
}

struct save_writer *save_writer_free(struct save_writer *writer)
{
	if (!writer)
		return NULL;
	for (size_t i = 0; i < TABLE_COUNT; i++)
		close_table(&writer->tables[i]);
	free(writer);
	return NULL;
}

struct txn *save_writer_txn(struct save_writer *writer)
{
	return &writer->txn;
}

void save_writer_prepend(struct save_writer *writer, const struct rule *rule)
{
	insert_rule(writer, rule, true);
}

static int compare_chains(const void *a, const void *b)
{
	const struct save_chain *const *x = a;
	const struct save_chain *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Base chains in their own order, then the others by name. An array for the caller to free. */
static struct save_chain **sort_chains(const struct save_table *table, const char *const *base,
				       size_t *ret_n)
{
	struct save_chain **chains = xcalloc(table->chains.count, sizeof(struct save_chain *));
	struct save_chain *chain;
	size_t n = 0, at = 0, n_base;

	for (; *base; base++)
		chains[n++] = map_get(&table->chains, *base);
	n_base = n;
	while ((chain = map_next(&table->chains, &at)))
		if (!chain->base)
			chains[n++] = chain;
	qsort(chains + n_base, n - n_base, sizeof(struct save_chain *), compare_chains);
	*ret_n = n;
	return chains;
}

static void finish_table(struct save_table *table, enum table which, struct text *ret)
{
	cleanup_free struct save_chain **chains = NULL;
	size_t n;

	if (!table->arena)
		return;
	chains = sort_chains(table, base_chains[which], &n);
	text_str(ret, "*");
	text_str(ret, table_name(which));
	text_str(ret, "\n");
	for (size_t i = 0; i < n; i++) {
		text_str(ret, ":");
		text_str(ret, chains[i]->name);
		text_str(ret, chains[i]->base ? " ACCEPT [0:0]\n" : " - [0:0]\n");
	}
	for (size_t i = 0; i < n; i++) {
		text_add(ret, chains[i]->lines, chains[i]->size);
		chain_empty(chains[i]);
	}
	text_str(ret, "COMMIT\n");
	close_table(table);
}

void save_writer_finish(struct save_writer *writer, struct text *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(table_order); i++)
		finish_table(&writer->tables[table_order[i]], table_order[i], ret);
}
