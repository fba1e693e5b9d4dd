/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "backends/iptables/chains.h"
#include "explain/iptables_rules.h"
#include "explain/kernel_rules.h"
#include "kernel/iptables_tool.h"

/* -- what iptables-save says */

struct saved_rules {
	struct map chains; /* by key */
	char table[32];    /* whose lines are being read */
};

struct saved_rules *saved_rules_new(void)
{
	return xcalloc(1, sizeof(struct saved_rules));
}

struct saved_rules *saved_rules_free(struct saved_rules *saved)
{
	struct saved_chain *chain;
	size_t at = 0;

	if (!saved)
		return NULL;
	while ((chain = map_next(&saved->chains, &at))) {
		for (size_t i = 0; i < chain->n; i++) {
			free(chain->lines[i].plain);
			free(chain->lines[i].text);
		}
		free(chain->lines);
		free(chain->key);
		free(chain);
	}
	map_done(&saved->chains);
	free(saved);
	return NULL;
}

void saved_rules_cleanup(struct saved_rules **saved)
{
	saved_rules_free(*saved);
}

const struct saved_chain *saved_rules_chain(const struct saved_rules *saved, const char *table,
					    const char *name)
{
	cleanup_free char *key = xasprintf("%s %s", table, name);

	return map_get(&saved->chains, key);
}

const struct saved_chain *saved_rules_next(const struct saved_rules *saved, size_t *at)
{
	return map_next(&saved->chains, at);
}

static struct saved_chain *open_chain(struct saved_rules *saved, const char *name, size_t n)
{
	char *key = xasprintf("%s %.*s", saved->table, (int)n, name);
	struct saved_chain *chain = map_get(&saved->chains, key);

	if (chain) {
		free(key);
		return chain;
	}
	chain = xcalloc(1, sizeof(*chain));
	chain->key = key;
	chain->name = key + strlen(saved->table) + 1;
	map_set(&saved->chains, chain->key, chain);
	return chain;
}

/* Cuts a piece out of a line, once. */
static void cut(char *line, const char *from, size_t n)
{
	char *at = strstr(line, from);

	if (at)
		memmove(at, at + n, strlen(at + n) + 1);
}

char *saved_rules_plain(const char *line)
{
	static const char counter[] = " -m nfacct --nfacct-name ";
	char *copy = xstrdup(line);
	const char *at = strstr(copy, counter);

	cut(copy, " --random-fully", strlen(" --random-fully"));
	if (at) {
		size_t n = strlen(counter);

		n += strspn(at + n, " ");
		n += strcspn(at + n, " ");
		cut(copy, counter, n);
	}
	return copy;
}

void saved_rules_line(struct saved_rules *saved, const char *line)
{
	struct saved_chain *chain;

	if (line[0] == '*') {
		size_t n = strcspn(line + 1, " \n");

		if (n >= sizeof(saved->table))
			n = sizeof(saved->table) - 1;
		memcpy(saved->table, line + 1, n);
		saved->table[n] = '\0';
	} else if (line[0] == ':') {
		open_chain(saved, line + 1, strcspn(line + 1, " "));
	} else if (has_prefix(line, "-A ")) {
		chain = open_chain(saved, line + 3, strcspn(line + 3, " "));
		array_grow(&chain->lines, &chain->capacity, chain->n, sizeof(*chain->lines));
		chain->lines[chain->n++] =
			(struct saved_line){xstrdup(line), saved_rules_plain(line)};
	}
}

/* -- comparing */

static bool has_line(const struct saved_chain *chain, const char *line)
{
	for (size_t i = 0; i < chain->n; i++)
		if (streq(chain->lines[i].plain, line))
			return true;
	return false;
}

static void compare_step(const struct saved_rules *saved, struct step *step)
{
	const struct saved_chain *chain = saved_rules_chain(saved, step->table, step->chain);
	cleanup_free char *line = saved_rules_plain(step->rule);

	if (!chain)
		step->kernel = "there is no such chain";
	else if (!has_line(chain, line) && !strstr(step->rule, "nfacct"))
		step->kernel = "this rule is missing";
}

static bool is_own(const char *name)
{
	struct chain_hash hash;
	enum chain_kind kind;

	return chain_name_parse(name, &kind, &hash);
}

/* kubelet writes there too, and base chains are everybody's. */
static bool is_ours(const char *name)
{
	return has_prefix(name, "KUBE-") && !streq(name, CHAIN_KUBELET_FIREWALL);
}

/* Rules in a chain that was met and are not planned: they may do anything. */
static void find_extra(const struct saved_chain *saved, struct iptables_rules *rules,
		       const struct iptables_chain *chain, struct explanation *explanation)
{
	struct map planned = {0};
	char **lines = xcalloc(chain->n + 1, sizeof(char *));
	bool order = is_own(chain->name);

	for (size_t i = 0; i < chain->n; i++) {
		lines[i] = saved_rules_plain(iptables_rules_text(rules, chain, chain->v[i]));
		map_set(&planned, lines[i], lines[i]);
	}
	for (size_t i = 0; i < saved->n; i++) {
		const char *line = saved->lines[i].plain;

		if (!map_get(&planned, line))
			kernel_rules_note(explanation,
					  xasprintf("a rule that is not planned: %s", line));
		else if (order && saved->n == chain->n && !streq(line, lines[i]))
			order = false;
	}
	if (is_own(chain->name) && !order)
		kernel_rules_note(explanation,
				  xasprintf("the rules of %s stand in another order", chain->name));
	map_done(&planned);
	for (size_t i = 0; i < chain->n; i++)
		free(lines[i]);
	free(lines);
}

static enum table table_of(const char *name)
{
	enum table table = TABLE_FILTER;

	while (table + 1 < TABLE_COUNT && !streq(table_name(table), name))
		table++;
	return table;
}

static void compare_chain(const struct saved_rules *saved, struct iptables_rules *rules,
			  const struct step *step, struct map *seen,
			  struct explanation *explanation)
{
	struct iptables_chain *chain =
		iptables_rules_chain(rules, table_of(step->table), step->chain);
	const struct saved_chain *found = saved_rules_chain(saved, step->table, step->chain);

	if (!chain || !found || !is_ours(chain->name) || map_get(seen, found->key))
		return;
	map_set(seen, found->key, chain);
	find_extra(found, rules, chain, explanation);
}

void saved_rules_compare(const struct saved_rules *saved, struct iptables_rules *rules,
			 struct explanation *explanation)
{
	struct way *way = explanation->way;
	struct map seen = {0};

	for (size_t i = 0; i < way->n_outcomes; i++) {
		for (size_t j = 0; j < way->outcomes[i].n_steps; j++) {
			compare_step(saved, &way->outcomes[i].steps[j]);
			compare_chain(saved, rules, &way->outcomes[i].steps[j], &seen, explanation);
		}
	}
	map_done(&seen);
}

/* -- reading */

struct reading {
	struct saved_rules *saved;
	int r;
	struct err err;
};

static void on_line(void *arg, const char *line, size_t length attr_unused)
{
	saved_rules_line(((struct reading *)arg)->saved, line);
}

static void on_done(void *arg, int r, struct err *err)
{
	struct reading *reading = arg;

	if (r >= 0 || reading->r < 0)
		return;
	reading->r = r;
	reading->err = *err;
}

int saved_rules_read(enum family family, enum iptables_variant variant, struct saved_rules **ret,
		     struct err *err)
{
	cleanup_saved_rules struct saved_rules *saved = saved_rules_new();
	struct reading reading = {.saved = saved};
	struct iptables_tool *tool = NULL;
	int r = iptables_tool_open(NULL, family, variant, &tool, err);

	if (r < 0)
		return r;
	iptables_tool_save(tool, "nat", on_line, on_done, &reading);
	iptables_tool_save(tool, "filter", on_line, on_done, &reading);
	iptables_tool_finish(tool);
	iptables_tool_close(tool);
	if (reading.r < 0) {
		*err = reading.err;
		return reading.r;
	}
	*ret = take(saved);
	return 0;
}

int kernel_iptables_compare(struct explain *explain, struct explanation *explanation,
			    enum iptables_variant variant, struct err *err)
{
	cleanup_saved_rules struct saved_rules *saved = NULL;
	int r = saved_rules_read(explain_input(explain)->settings->family, variant, &saved, err);

	if (r < 0)
		return r;
	saved_rules_compare(saved, explain_iptables(explain), explanation);
	return 0;
}
