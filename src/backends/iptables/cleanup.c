/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/cleanup.h"

#include <errno.h>
#include <stdlib.h>

#include "backends/iptables/ruleset.h"
#include "base/arena.h"
#include "base/log.h"
#include "base/map.h"
#include "kernel/iptables_save.h"
#include "kernel/iptables_tool.h"
#include "xtables/chains.h"
#include "xtables/restore_writer.h"

static const char *const nat_chains[] = {
	CHAIN_SERVICES, CHAIN_NODEPORTS, CHAIN_POSTROUTING, CHAIN_MARK_MASQ, CHAIN_CANARY, NULL,
};

static const char *const filter_chains[] = {
	CHAIN_SERVICES,
	CHAIN_EXTERNAL_SERVICES,
	CHAIN_FORWARD,
	CHAIN_NODEPORTS,
	CHAIN_PROXY_FIREWALL,
	CHAIN_CANARY,
	NULL,
};

/* How the versions of iptables say that there is nothing to remove. */
static const char *const not_found[] = {
	"No chain/target/match by that name",
	"No such file or directory",
	"does a matching rule exist",
	"does not exist",
};

struct leftovers {
	struct iptables_tool *tool;
	struct err *err; /* the first failure */
	int error;
};

static bool is_not_found(const struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(not_found); i++)
		if (strstr(err->text, not_found[i]))
			return true;
	return false;
}

static void note(struct leftovers *leftovers, int r, const struct err *err)
{
	if (leftovers->error < 0) {
		log_error("Cleaning up, another step failed", KV("err", LOG_STR(err->text)));
		return;
	}
	leftovers->error = r;
	*leftovers->err = *err;
}

/* -- jump rules */

static void remove_jump(struct leftovers *leftovers, const struct rule *rule)
{
	cleanup_arena struct arena *arena = arena_new(1024);
	size_t unused;
	struct iptables_command command = {
		.op = IPTABLES_CHECK,
		.table = table_name(rule->table),
		.chain = rule->chain,
		.words = (const char *const *)restore_rule_argv(rule, arena, &unused),
	};
	struct err err;
	int r = iptables_tool_call(leftovers->tool, &command, &err);

	if (r == 1) {
		command.op = IPTABLES_DELETE;
		r = iptables_tool_call(leftovers->tool, &command, &err);
	}
	if (r >= 0 || is_not_found(&err))
		return;
	r = err_wrap(&err, r, "removing the jump from chain %s to %s in table %s", rule->chain,
		     rule->target.chain, command.table);
	note(leftovers, r, &err);
}

/* -- chains */

/* One table: the chains found in it that are ours. */
struct table_leftovers {
	struct leftovers *all;
	const char *table;
	const char *const *fixed;
	bool per_service; /* chains of service ports and endpoints too */
	struct arena *arena;
	const char **chains;
	size_t n_chains, capacity;
	struct map held; /* chains that cannot go, each with the first rule that leads to it */
};

static bool is_ours(const struct table_leftovers *leftovers, const char *name)
{
	for (const char *const *fixed = leftovers->fixed; *fixed; fixed++)
		if (streq(*fixed, name))
			return true;
	return leftovers->per_service && chain_is_per_service(name);
}

/* The kernel deletes no chain that a rule leads to, and with one refusal all of a restore fails. */
static void take_rule(struct table_leftovers *leftovers, const char *line)
{
	struct iptables_jump jump;

	if (!iptables_save_jump(line, &jump) || !is_ours(leftovers, jump.target) ||
	    is_ours(leftovers, jump.chain) || map_get(&leftovers->held, jump.target))
		return;
	map_set(&leftovers->held, arena_strdup(leftovers->arena, jump.target),
		arena_strdup(leftovers->arena, line));
}

static void take_line(void *arg, const char *line, size_t length attr_unused)
{
	struct table_leftovers *leftovers = arg;
	size_t n = iptables_save_chain(line);
	const char *name;

	if (n == 0) {
		take_rule(leftovers, line);
		return;
	}
	name = arena_printf(leftovers->arena, "%.*s", (int)n, line + 1);
	if (!is_ours(leftovers, name))
		return;
	array_grow(&leftovers->chains, &leftovers->capacity, leftovers->n_chains,
		   sizeof(*leftovers->chains));
	leftovers->chains[leftovers->n_chains++] = name;
}

static void listed(void *arg, int r, struct err *err)
{
	struct table_leftovers *leftovers = arg;

	if (r >= 0)
		return;
	leftovers->n_chains = 0;
	note(leftovers->all, err_wrap(err, r, "listing the chains of table %s", leftovers->table),
	     err);
}

static void restored(void *arg, int r, struct err *err)
{
	struct table_leftovers *leftovers = arg;

	if (r < 0)
		note(leftovers->all,
		     err_wrap(err, r, "removing the chains of table %s", leftovers->table), err);
}

/* Empties all chains first, so that none of ours leads to another one; then they can go. */
static void restore_chains(struct table_leftovers *leftovers)
{
	cleanup_text struct text input = {0};

	text_printf(&input, "*%s\n", leftovers->table);
	for (size_t i = 0; i < leftovers->n_chains; i++)
		text_printf(&input, ":%s - [0:0]\n", leftovers->chains[i]);
	for (size_t i = 0; i < leftovers->n_chains; i++)
		if (!map_get(&leftovers->held, leftovers->chains[i]))
			text_printf(&input, "-X %s\n", leftovers->chains[i]);
	text_str(&input, "COMMIT\n");
	iptables_tool_restore(leftovers->all->tool, leftovers->table, &input, restored, leftovers);
	iptables_tool_finish(leftovers->all->tool);
}

static void note_held(struct table_leftovers *leftovers)
{
	for (size_t i = 0; i < leftovers->n_chains; i++) {
		const char *rule = map_get(&leftovers->held, leftovers->chains[i]);
		struct err err;

		if (rule)
			note(leftovers->all,
			     err_set(&err, -EBUSY,
				     "chain %s of table %s is emptied but stays, because a rule "
				     "that is not ours leads to it: %s",
				     leftovers->chains[i], leftovers->table, rule),
			     &err);
	}
}

static void remove_chains(struct leftovers *all, enum table table, const char *const *fixed)
{
	cleanup_arena struct arena *arena = arena_new(4096);
	struct table_leftovers leftovers = {
		.all = all,
		.table = table_name(table),
		.fixed = fixed,
		.per_service = table == TABLE_NAT,
		.arena = arena,
	};

	iptables_tool_save(all->tool, leftovers.table, take_line, listed, &leftovers);
	iptables_tool_finish(all->tool);
	if (leftovers.n_chains > 0) {
		restore_chains(&leftovers);
		note_held(&leftovers);
	}
	free(leftovers.chains);
	map_done(&leftovers.held);
}

int cleanup_family(enum family family, enum iptables_variant variant, struct err *err)
{
	static const struct iptables_command mangle_canary = {
		.op = IPTABLES_DELETE_CHAIN,
		.table = "mangle",
		.chain = CHAIN_CANARY,
	};
	struct leftovers leftovers = {.err = err};
	struct err ignored;
	int r = iptables_tool_open(NULL, family, variant, &leftovers.tool, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < RULESET_JUMPS_CLEANED; i++) {
		struct rule rule;

		ruleset_jump(i, &rule);
		remove_jump(&leftovers, &rule);
	}
	remove_chains(&leftovers, TABLE_NAT, nat_chains);
	remove_chains(&leftovers, TABLE_FILTER, filter_chains);
	iptables_tool_call(leftovers.tool, &mangle_canary, &ignored); /* it may not be there */
	iptables_tool_close(leftovers.tool);
	return leftovers.error;
}
