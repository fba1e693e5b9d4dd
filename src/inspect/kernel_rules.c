/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/kernel_rules.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "kernel/iptables_tool.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"
#include "xtables/nft_rule.h"
#include "xtables/rule_parse.h"

struct kernel_rules {
	struct rule_store *rules;
	struct nft_socket *socket; /* NULL: there is nothing more to read */
	uint32_t generation;       /* as of the first read */
	enum table table;          /* whose lines are being read */
	int r;                     /* the first error: */
	struct err err;
};

struct kernel_rules *kernel_rules_new(enum family family)
{
	struct kernel_rules *kernel = xcalloc(1, sizeof(*kernel));

	kernel->rules = rule_store_new(family);
	kernel->table = TABLE_COUNT;
	return kernel;
}

struct kernel_rules *kernel_rules_free(struct kernel_rules *kernel)
{
	if (!kernel)
		return NULL;
	nft_socket_free(kernel->socket);
	rule_store_free(kernel->rules);
	free(kernel);
	return NULL;
}

const struct stored_chain *kernel_rules_next(const struct kernel_rules *kernel, enum table table,
					     size_t *at)
{
	return map_next(&kernel->rules->chains[table], at);
}

static void fail(struct kernel_rules *kernel, int r, const struct err *err)
{
	if (kernel->r < 0)
		return;
	kernel->r = r;
	kernel->err = *err;
}

/* -- as lines */

void kernel_rules_line(struct kernel_rules *kernel, const char *line)
{
	struct rule_store *rules = kernel->rules;
	struct rule rule;

	if (line[0] == '*') {
		kernel->table = TABLE_COUNT;
		table_parse(line + 1, &kernel->table);
	} else if (kernel->table == TABLE_COUNT) {
		return;
	} else if (line[0] == ':') {
		char *name =
			arena_printf(rules->arena, "%.*s", (int)strcspn(line + 1, " "), line + 1);

		rule_store_open_chain(rules, kernel->table, name);
	} else if (rule_parse(line, rules->family, rules->arena, &rule)) {
		rule.table = kernel->table;
		rule_store_add(rules, &rule)->text = arena_strdup(rules->arena, line);
	}
}

static void on_line(void *arg, const char *line, size_t length attr_unused)
{
	kernel_rules_line(arg, line);
}

static void on_saved(void *arg, int r, struct err *err)
{
	if (r < 0)
		fail(arg, r, err);
}

static int read_saved(struct kernel_rules *kernel, enum iptables_variant variant, struct err *err)
{
	struct iptables_tool *tool = NULL;
	int r = iptables_tool_open(NULL, kernel->rules->family, variant, &tool, err);

	if (r < 0)
		return r;
	iptables_tool_save(tool, "nat", on_line, on_saved, kernel);
	iptables_tool_save(tool, "filter", on_line, on_saved, kernel);
	iptables_tool_finish(tool);
	iptables_tool_close(tool);
	return kernel_rules_end(kernel, err);
}

/* -- as messages */

static int take_chain(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	struct kernel_rules *kernel = arg;
	const char *table_text = nft_message_string(message, NFTA_CHAIN_TABLE);
	const char *name = nft_message_string(message, NFTA_CHAIN_NAME);
	enum table table;

	if (name && table_text && table_parse(table_text, &table))
		rule_store_open_chain(kernel->rules, table, name)->unread = true;
	return 0;
}

static void forget_chains(void *arg)
{
	struct kernel_rules *kernel = arg;
	enum family family = kernel->rules->family;

	rule_store_free(kernel->rules);
	kernel->rules = rule_store_new(family);
}

static int read_chains(struct kernel_rules *kernel, struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = forget_chains, .message = take_chain};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETCHAIN,
		.family = kernel->rules->family,
	};
	int r = nft_socket_open(&kernel->socket, err);

	if (r >= 0)
		r = nft_generation(kernel->socket, &kernel->generation, err);
	if (r >= 0)
		r = nft_dump(kernel->socket, &request, &ops, kernel, err);
	return r;
}

struct chain_reading {
	struct kernel_rules *kernel;
	struct stored_chain *chain;
};

static void forget_rules(void *arg)
{
	((struct chain_reading *)arg)->chain->n = 0;
}

static int take_rule(void *arg, const struct nlmsghdr *message, struct err *err)
{
	struct chain_reading *reading = arg;
	struct nft_rule_read read;
	int r = nft_rule_read(message, &read);

	if (r < 0)
		return err_set(err, r, "a rule of chain %s cannot be read", reading->chain->name);
	if (read.rule.table == reading->chain->table)
		rule_store_add(reading->kernel->rules, &read.rule);
	return 0;
}

static void read_rules(struct kernel_rules *kernel, struct stored_chain *chain)
{
	static const struct nft_dump_ops ops = {.restart = forget_rules, .message = take_rule};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETRULE,
		.family = kernel->rules->family,
		.table = table_name(chain->table),
		.chain = chain->name,
	};
	struct chain_reading reading = {kernel, chain};
	struct err err;
	int r = nft_dump(kernel->socket, &request, &ops, &reading, &err);

	chain->unread = false;
	if (r < 0 && r != -ENOENT) /* gone meanwhile */
		fail(kernel, r, &err);
}

struct stored_chain *kernel_rules_chain(struct kernel_rules *kernel, enum table table,
					const char *name)
{
	struct stored_chain *chain = rule_store_chain(kernel->rules, table, name);

	if (chain && chain->unread)
		read_rules(kernel, chain);
	return chain;
}

/* -- words of other programs' rules */

static void list_chain(struct kernel_rules *kernel, struct stored_chain *chain)
{
	const char **words = iptables_tool_words(kernel->rules->family, table_name(chain->table),
						 chain->name, chain->n, kernel->rules->arena);

	chain->listed = true;
	for (size_t i = 0; words && i < chain->n; i++)
		chain->v[i]->text = words[i];
}

const char *kernel_rules_text(struct kernel_rules *kernel, struct stored_chain *chain, size_t at)
{
	if (kernel->socket && !chain->listed && rule_is_foreign(&chain->v[at]->rule))
		list_chain(kernel, chain);
	return rule_store_text(kernel->rules, chain->v[at]);
}

/* -- */

int kernel_rules_open(enum family family, enum iptables_variant variant, struct kernel_rules **ret,
		      struct err *err)
{
	cleanup_kernel_rules struct kernel_rules *kernel = kernel_rules_new(family);
	int r = variant == IPTABLES_VARIANT_LEGACY ? read_saved(kernel, variant, err)
						   : read_chains(kernel, err);

	if (r < 0)
		return r;
	*ret = take(kernel);
	return 0;
}

int kernel_rules_end(struct kernel_rules *kernel, struct err *err)
{
	uint32_t generation = 0;
	int r = kernel->r;

	if (r < 0)
		*err = kernel->err;
	else if (kernel->socket)
		r = nft_generation(kernel->socket, &generation, err);
	return r < 0 ? r : generation == kernel->generation;
}
