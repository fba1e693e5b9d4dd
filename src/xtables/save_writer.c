/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/save_writer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "xtables/rule_text.h"

/*
 * The tool prints chain by chain, sorted by name, while rules arrive in any order: each chain
 * collects its own lines in one growing piece of memory, which is released as soon as the finished
 * text has it.
 *
 * In a rule the tool puts source, destination, interface and protocol first, in this order,
 * whatever the order of writing, and then the extensions in the order of their -m words.
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

/* Each of these puts the words of one match, with a blank before every word. */
typedef char *put_fn(char *at, const struct match *match, enum family family);

/* Quoted unless it is plain letters. */
static char *put_comment(char *at, const struct match *match, enum family family attr_unused)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	bool quoted = match->text[strspn(match->text, plain)];

	return put_comment_match(at, match->text, quoted);
}

static char *put_invert(char *at, const struct match *match)
{
	return match->invert ? PUT(at, " !") : at;
}

static char *put_protocol_match(char *at, const struct match *match, enum family family attr_unused)
{
	return put_string(PUT(at, " -m "), protocol_name(match->protocol));
}

static char *put_port(char *at, const struct match *match, enum family family attr_unused)
{
	return put_number(PUT(at, " --dport "), match->port);
}

static char *put_ctstate(char *at, const struct match *match, enum family family attr_unused)
{
	at = put_invert(PUT(at, " -m conntrack"), match);
	return put_ctstates(PUT(at, " --ctstate "), match->ctstate);
}

static char *put_hex(char *at, uint32_t n)
{
	return at + sprintf(at, "0x%x", n);
}

static char *put_mark(char *at, const struct match *match, enum family family attr_unused)
{
	at = put_invert(PUT(at, " -m mark"), match);
	at = put_hex(PUT(at, " --mark "), match->mark);
	*at++ = '/';
	return put_hex(at, match->mark);
}

static char *put_source_local(char *at, const struct match *match attr_unused,
			      enum family family attr_unused)
{
	return PUT(at, " -m addrtype --src-type LOCAL");
}

static char *put_destination_local(char *at, const struct match *match attr_unused,
				   enum family family attr_unused)
{
	return PUT(at, " -m addrtype --dst-type LOCAL");
}

/* The kernel's share of 2^31, as a number between 0 and 1 again. */
static char *put_statistic(char *at, const struct match *match, enum family family attr_unused)
{
	double p = probability_value(match->one_in) / 2147483648.0;

	return at + sprintf(at, " -m statistic --mode random --probability %.11f", p);
}

static char *put_recent_list(char *at, const struct match *match, enum family family)
{
	at = put_string(PUT(at, " --name "), match->recent.name);
	if (family == FAMILY_IPV4)
		at = PUT(at, " --mask 255.255.255.255");
	else
		at = PUT(at, " --mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
	return PUT(at, " --rsource");
}

static char *put_recent_check(char *at, const struct match *match, enum family family)
{
	at = put_number(PUT(at, " -m recent --rcheck --seconds "), match->recent.seconds);
	return put_recent_list(PUT(at, " --reap"), match, family);
}

static char *put_recent_set(char *at, const struct match *match, enum family family)
{
	return put_recent_list(PUT(at, " -m recent --set"), match, family);
}

/* Two blanks: the tool's own. */
static char *put_nfacct(char *at, const struct match *match, enum family family attr_unused)
{
	return put_string(PUT(at, " -m nfacct --nfacct-name  "), match->text);
}

/* What is missing here stands in front, see put_front(). */
static put_fn *const put_match[MATCH_COUNT] = {
	[MATCH_COMMENT] = put_comment,
	[MATCH_PROTOCOL] = put_protocol_match,
	[MATCH_PORT] = put_port,
	[MATCH_CTSTATE] = put_ctstate,
	[MATCH_MARK] = put_mark,
	[MATCH_SOURCE_TYPE_LOCAL] = put_source_local,
	[MATCH_DESTINATION_TYPE_LOCAL] = put_destination_local,
	[MATCH_STATISTIC] = put_statistic,
	[MATCH_RECENT_CHECK] = put_recent_check,
	[MATCH_RECENT_SET] = put_recent_set,
	[MATCH_NFACCT] = put_nfacct,
};

static const struct match *find_match(const struct rule *rule, enum match_kind kind)
{
	for (size_t i = 0; i < rule->n_matches; i++)
		if (rule->matches[i].kind == kind)
			return &rule->matches[i];
	return NULL;
}

/* A prefix of length 0 says nothing and is not shown. */
static char *put_prefix(char *at, const struct match *match, const char *option)
{
	if (!match || match->prefix.length == 0)
		return at;
	at = put_string(put_invert(at, match), option);
	return at + prefix_print(&match->prefix, at);
}

static char *put_front(char *at, const struct rule *rule)
{
	const struct match *match;

	at = put_prefix(at, find_match(rule, MATCH_SOURCE), " -s ");
	at = put_prefix(at, find_match(rule, MATCH_DESTINATION), " -d ");
	match = find_match(rule, MATCH_INTERFACE);
	if (match)
		at = put_string(PUT(put_invert(at, match), " -i "), match->text);
	match = find_match(rule, MATCH_PROTOCOL);
	if (match)
		at = put_string(PUT(at, " -p "), protocol_name(match->protocol));
	return at;
}

/* --dport belongs to the words of -m tcp, wherever it was written. */
static char *put_extensions(char *at, const struct rule *rule, enum family family)
{
	const struct match *port = find_match(rule, MATCH_PORT);

	for (size_t i = 0; i < rule->n_matches; i++) {
		const struct match *match = &rule->matches[i];

		if (match->kind == MATCH_PORT || !put_match[match->kind])
			continue;
		at = put_match[match->kind](at, match, family);
		if (match->kind == MATCH_PROTOCOL && port)
			at = put_match[MATCH_PORT](at, port, family);
	}
	return at;
}

static char *put_xmark(char *at, uint32_t value, uint32_t mask)
{
	at = put_hex(PUT(at, " -j MARK --set-xmark "), value);
	*at++ = '/';
	return put_hex(at, mask);
}

static char *put_reject(char *at, enum family family)
{
	at = PUT(at, " -j REJECT --reject-with ");
	return family == FAMILY_IPV4 ? PUT(at, "icmp-port-unreachable")
				     : PUT(at, "icmp6-port-unreachable");
}

static char *put_target(char *at, const struct target *target, enum family family)
{
	switch (target->kind) {
	case TARGET_REJECT:
		return put_reject(at, family);
	case TARGET_MARK_XOR:
		return put_xmark(at, target->mark, 0);
	case TARGET_MARK_OR:
		return put_xmark(at, target->mark, target->mark);
	default:
		return put_plain_target(at, target);
	}
}

static char *put_rule(char *at, const struct rule *rule, enum family family)
{
	at = put_string(PUT(at, "-A "), rule->chain);
	at = put_front(at, rule);
	at = put_extensions(at, rule, family);
	at = put_target(at, &rule->target, family);
	*at++ = '\n';
	return at;
}

size_t save_writer_print(const struct rule *rule, enum family family, char *out)
{
	char *end = put_rule(out, rule, family) - 1;

	*end = '\0';
	return (size_t)(end - out);
}

static void insert_rule(struct save_writer *writer, const struct rule *rule, bool first)
{
	struct save_table *table = open_table(writer, rule->table);
	struct save_chain *chain = map_get(&table->chains, rule->chain);
	char line[RULE_TEXT_MAX];
	char *end = put_rule(line, rule, writer->family);

	assert(chain); /* declared before rules go into it */
	chain_insert(chain, first ? 0 : chain->size, line, (size_t)(end - line));
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
	size_t n = (size_t)(put_rule(line, rule, writer->family) - line);
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
