/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tables in memory that take a transaction as the kernel does, for tests: rules go only into chains
 * that exist and lead only to such, only rules that are there are removed, and a chain goes only when
 * it is empty and nothing leads to it. Anything else fails the test.
 *
 * A transaction comes word by word (fake_txn) or as the text of iptables-restore --noflush.
 */

#include <stdio.h>

#include "base/arena.h"
#include "base/map.h"
#include "build.h"
#include "xtables/restore_writer.h"

struct fake_chain {
	char *name;
	char **lines; /* "-A CHAIN words" */
	size_t n, capacity;
	size_t refs; /* rules that lead here */
};

struct fake_kernel {
	struct map chains[TABLE_COUNT];
	size_t operations; /* words heard, chains and rules alike */
};

static struct fake_chain *fake_kernel_chain(const struct fake_kernel *kernel, enum table table,
					    const char *name)
{
	return map_get(&kernel->chains[table], name);
}

static struct fake_chain *fake_kernel_need(const struct fake_kernel *kernel, enum table table,
					   const char *name)
{
	struct fake_chain *chain = fake_kernel_chain(kernel, table, name);

	if (!chain)
		fail_msg("table %s has no chain %s", table_name(table), name);
	return chain;
}

/* The chain of ours that a rule leads to, as a copy, or NULL. */
static char *fake_target(const char *line)
{
	const char *at = NULL;

	for (const char *next = line; (next = strstr(next, " -j ")); next++)
		at = next + 4;
	return at && has_prefix(at, "KUBE-") ? strndup(at, strcspn(at, " ")) : NULL;
}

static void fake_refer(struct fake_kernel *kernel, enum table table, const char *line, int by)
{
	cleanup_free char *target = fake_target(line);

	if (target)
		fake_kernel_need(kernel, table, target)->refs += (size_t)by;
}

static void fake_empty(struct fake_kernel *kernel, enum table table, struct fake_chain *chain)
{
	for (size_t i = 0; i < chain->n; i++) {
		fake_refer(kernel, table, chain->lines[i], -1);
		free(chain->lines[i]);
	}
	chain->n = 0;
}

static void fake_declare(struct fake_kernel *kernel, enum table table, const char *name)
{
	struct fake_chain *chain = fake_kernel_chain(kernel, table, name);

	kernel->operations++;
	if (chain) {
		fake_empty(kernel, table, chain);
		return;
	}
	assert_true(strlen(name) <= 28);
	chain = xcalloc(1, sizeof(*chain));
	chain->name = xstrdup(name);
	map_set(&kernel->chains[table], chain->name, chain);
}

static struct fake_chain *fake_chain_of(struct fake_kernel *kernel, enum table table,
					const char *line)
{
	cleanup_free char *name = strndup(line + 3, strcspn(line + 3, " "));

	return fake_kernel_need(kernel, table, name);
}

static void fake_add(struct fake_kernel *kernel, enum table table, const char *line, bool first)
{
	struct fake_chain *chain = fake_chain_of(kernel, table, line);
	size_t at = first ? 0 : chain->n;

	kernel->operations++;
	fake_refer(kernel, table, line, 1);
	array_grow(&chain->lines, &chain->capacity, chain->n, sizeof(*chain->lines));
	memmove(chain->lines + at + 1, chain->lines + at, (chain->n - at) * sizeof(*chain->lines));
	chain->lines[at] = xstrdup(line);
	chain->n++;
}

static void fake_append(struct fake_kernel *kernel, enum table table, const char *line)
{
	fake_add(kernel, table, line, false);
}

static void fake_remove(struct fake_kernel *kernel, enum table table, const char *line)
{
	struct fake_chain *chain = fake_chain_of(kernel, table, line);
	size_t at = 0;

	kernel->operations++;
	while (at < chain->n && !streq(chain->lines[at], line))
		at++;
	if (at == chain->n)
		fail_msg("table %s has no rule %s", table_name(table), line);
	fake_refer(kernel, table, line, -1);
	free(chain->lines[at]);
	chain->n--;
	memmove(chain->lines + at, chain->lines + at + 1, (chain->n - at) * sizeof(*chain->lines));
}

static void fake_delete(struct fake_kernel *kernel, enum table table, const char *name)
{
	struct fake_chain *chain = fake_kernel_need(kernel, table, name);

	kernel->operations++;
	if (chain->n > 0 || chain->refs > 0)
		fail_msg("chain %s is deleted with %zu rules and %zu that lead to it", name,
			 chain->n, chain->refs);
	map_remove(&kernel->chains[table], name);
	free(chain->name);
	free(chain->lines);
	free(chain);
}

attr_unused static void fake_kernel_done(struct fake_kernel *kernel)
{
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		struct fake_chain *chain;
		size_t at = 0;

		while ((chain = map_next(&kernel->chains[i], &at))) {
			for (size_t k = 0; k < chain->n; k++)
				free(chain->lines[k]);
			free(chain->lines);
			free(chain->name);
			free(chain);
		}
		map_done(&kernel->chains[i]);
	}
}

/* -- word by word */

struct fake_txn {
	struct txn txn;
	struct fake_kernel *kernel;
	char *subject;
	size_t full_at; /* operations of the kernel; 0: never */
};

static void fake_txn_chain(struct txn *txn, enum table table, const char *name)
{
	fake_declare(((struct fake_txn *)txn)->kernel, table, name);
}

static void fake_txn_check(const struct fake_txn *txn, const char *line)
{
	if (txn->subject && strstr(line, " --comment ") && !strstr(line, txn->subject))
		fail_msg("a rule for %s that does not say so: %s", txn->subject, line);
}

static void fake_txn_rule(struct txn *txn, const struct rule *rule)
{
	struct fake_txn *fake = (struct fake_txn *)txn;
	char line[RULE_TEXT_MAX];

	rule_print(rule, RULE_FORM_RESTORE, line);
	fake_txn_check(fake, line);
	fake_append(fake->kernel, rule->table, line);
}

static void fake_txn_insert_rule(struct txn *txn, const struct rule *rule)
{
	struct fake_txn *fake = (struct fake_txn *)txn;
	char line[RULE_TEXT_MAX];

	rule_print(rule, RULE_FORM_RESTORE, line);
	fake_txn_check(fake, line);
	fake_add(fake->kernel, rule->table, line, true);
}

static void fake_txn_remove_rule(struct txn *txn, const struct rule *rule)
{
	struct fake_txn *fake = (struct fake_txn *)txn;
	char line[RULE_TEXT_MAX];

	rule_print(rule, RULE_FORM_RESTORE, line);
	fake_txn_check(fake, line);
	fake_remove(fake->kernel, rule->table, line);
}

static void fake_txn_delete_chain(struct txn *txn, enum table table, const char *name)
{
	fake_delete(((struct fake_txn *)txn)->kernel, table, name);
}

static void fake_txn_subject(struct txn *txn, const char *key)
{
	struct fake_txn *fake = (struct fake_txn *)txn;

	free(fake->subject);
	fake->subject = key ? xstrdup(key) : NULL;
}

static bool fake_txn_full(struct txn *txn)
{
	const struct fake_txn *fake = (const struct fake_txn *)txn;

	return fake->full_at && fake->kernel->operations >= fake->full_at;
}

attr_unused static void fake_txn_init(struct fake_txn *txn, struct fake_kernel *kernel)
{
	static const struct txn_ops ops = {
		.chain = fake_txn_chain,
		.rule = fake_txn_rule,
		.insert_rule = fake_txn_insert_rule,
		.remove_rule = fake_txn_remove_rule,
		.delete_chain = fake_txn_delete_chain,
		.subject = fake_txn_subject,
		.full = fake_txn_full,
	};

	*txn = (struct fake_txn){.txn.ops = &ops, .kernel = kernel};
}

attr_unused static void fake_txn_done(struct fake_txn *txn)
{
	free(txn->subject);
}

/* -- as text */

static void fake_line(struct fake_kernel *kernel, enum table table, char *line)
{
	if (line[0] == ':') {
		line[strcspn(line, " ")] = '\0';
		fake_declare(kernel, table, line + 1);
	} else if (has_prefix(line, "-A ")) {
		fake_append(kernel, table, line);
	} else if (has_prefix(line, "-I ")) {
		line[1] = 'A';
		fake_add(kernel, table, line, true);
	} else if (has_prefix(line, "-D ")) {
		line[1] = 'A';
		fake_remove(kernel, table, line);
	} else if (has_prefix(line, "-X ")) {
		fake_delete(kernel, table, line + 3);
	} else {
		fail_msg("not a line for iptables-restore: %s", line);
	}
}

static enum table fake_table(const char *name)
{
	size_t i = 0;

	while (i < TABLE_COUNT && !streq(table_name((enum table)i), name))
		i++;
	assert_true(i < TABLE_COUNT);
	return (enum table)i;
}

/* all: otherwise only the filter table. The tool commits one after another, and may fail between. */
attr_unused static void fake_kernel_restore(struct fake_kernel *kernel, const char *text, bool all)
{
	cleanup_free char *copy = xstrdup(text);
	char *rest = copy, *line;
	enum table table = TABLE_COUNT;
	bool rules = false;

	while ((line = strsep(&rest, "\n")) && *line) {
		if (streq(line, "*nat") && !all)
			return;
		if (*line == '*') {
			table = fake_table(line + 1);
			rules = false;
		} else if (streq(line, "COMMIT")) {
			table = TABLE_COUNT;
		} else {
			assert_true(table < TABLE_COUNT);
			rules = rules || *line == '-';
			assert_false(rules && *line == ':'); /* chains come first */
			fake_line(kernel, table, line);
		}
	}
	assert_int_equal(table, TABLE_COUNT);
}

/* -- the index of services, as if it were not there */

#define FAKE_INDEX "KUBE-SVC-IX-"

static bool fake_destination(const char *line, struct prefix *ret)
{
	const char *at = strstr(line, " -d ");
	cleanup_free char *text = at ? strndup(at + 4, strcspn(at + 4, " ")) : NULL;

	if (!text)
		return false;
	if (!strchr(text, '/')) {
		ret->addr = build_addr(text);
		ret->length = addr_bits((enum family)ret->addr.family);
	} else {
		*ret = build_prefix(text);
	}
	return true;
}

/* Appends the rules at and below a chain to `to`, each as one of KUBE-SERVICES. */
static void fake_flatten(const struct fake_kernel *kernel, const struct fake_chain *chain,
			 const struct prefix *within, struct fake_chain *to)
{
	struct prefix prefix;

	assert_true(chain->n > 0 || !within);
	for (size_t i = 0; i < chain->n; i++) {
		const char *line = chain->lines[i];
		cleanup_free char *target = fake_target(line);
		bool has = fake_destination(line, &prefix);

		if (within && (!has || prefix.length <= within->length - 1 ||
			       !prefix_contains(within, &prefix.addr)))
			fail_msg("%s stands where nobody finds it", line);
		if (target && has_prefix(target, FAKE_INDEX)) {
			fake_flatten(kernel, fake_kernel_need(kernel, TABLE_NAT, target), &prefix,
				     to);
			continue;
		}
		array_grow(&to->lines, &to->capacity, to->n, sizeof(*to->lines));
		to->lines[to->n++] = xasprintf("-A KUBE-SERVICES%s", strchr(line + 3, ' '));
	}
}

/* -- as a text that can be compared */

/* The order of one service's rules matters only among those for one address. */
static bool fake_by_address;

/* What a shared chain is sorted by: the Service that a rule's comment names; "~" for the last. */
static const char *fake_place(const char *line, char *buffer, size_t size)
{
	const char *at = strstr(line, "--comment ");
	const char *to = fake_by_address ? strstr(line, " -d ") : NULL;

	if (strstr(line, "NOTE: this must be the last"))
		return "~";
	snprintf(buffer, size, "%.*s %.*s",
		 at ? (int)strcspn(at + 10 + (at[10] == '"'), " :\"") : 0,
		 at ? at + 10 + (at[10] == '"') : "", to ? (int)strcspn(to + 4, " ") : 0,
		 to ? to + 4 : "");
	return buffer;
}

/* An entry for a cluster IP. Those of filter KUBE-SERVICES, which refuse, are all for one. */
static bool fake_leads(const char *line)
{
	return has_prefix(line, "-A KUBE-SERVICES ") &&
	       (strstr(line, " cluster IP\"") || strstr(line, " endpoints\""));
}

/* As they stand, but for the ports of a Service that lead: their order is free. */
static int fake_compare_lines(const void *a, const void *b)
{
	const char *const *x = *(const char *const *const *)a;
	const char *const *y = *(const char *const *const *)b;
	char buffers[2][256];
	int order = strcmp(fake_place(*x, buffers[0], sizeof(buffers[0])),
			   fake_place(*y, buffers[1], sizeof(buffers[1])));

	if (order == 0 && fake_leads(*x) && fake_leads(*y))
		order = strcmp(*x, *y);
	return order ? order : (x > y) - (x < y);
}

static bool fake_is_shared(const char *name)
{
	return streq(name, "KUBE-SERVICES") || streq(name, "KUBE-NODEPORTS") ||
	       streq(name, "KUBE-EXTERNAL-SERVICES") || streq(name, "KUBE-PROXY-FIREWALL");
}

static bool fake_is_about_endpoint(const char *line)
{
	return has_prefix(line, "-A KUBE-SEP-") || strstr(line, " -j KUBE-SEP-");
}

/* Without the comment, where that depends on when the rule was written. */
static void fake_put_line(const char *line, struct text *ret)
{
	const char *comment = strstr(line, " -m comment --comment ");
	const char *end;

	if (!comment || !fake_is_about_endpoint(line)) {
		text_printf(ret, "%s\n", line);
		return;
	}
	end = comment + strlen(" -m comment --comment ");
	end = *end == '"' ? strchr(end + 1, '"') + 1 : strchrnul(end, ' ');
	text_printf(ret, "%.*s%s\n", (int)(comment - line), line, end);
}

/* Entries of cluster IPs come first; of an index, in each of its chains. */
static void fake_check_leading(const struct fake_chain *chain)
{
	bool followed = false;

	for (size_t i = 0; i < chain->n; i++) {
		bool leads = strstr(chain->lines[i], " cluster IP\"");

		if (followed && leads)
			fail_msg("%s stands behind %s", chain->lines[i], chain->lines[i - 1]);
		followed = !leads && !strstr(chain->lines[i], " -j " FAKE_INDEX);
	}
}

static void fake_put_rules(const struct fake_chain *chain, struct text *ret)
{
	cleanup_free char ***order = xcalloc(chain->n + 1, sizeof(*order));
	bool last = false;

	for (size_t i = 0; i < chain->n; i++) {
		bool is_last = strstr(chain->lines[i], "NOTE: this must be the last");

		if (last && !is_last)
			fail_msg("%s is not the last rule", chain->lines[i - 1]);
		last = is_last;
		order[i] = &chain->lines[i];
	}
	if (fake_is_shared(chain->name))
		qsort(order, chain->n, sizeof(*order), fake_compare_lines);
	text_printf(ret, ":%s\n", chain->name);
	for (size_t i = 0; i < chain->n; i++)
		fake_put_line(*order[i], ret);
}

static void fake_put_chain(const struct fake_kernel *kernel, enum table table,
			   const struct fake_chain *chain, struct text *ret)
{
	struct fake_chain flat = {.name = chain->name};

	if (table != TABLE_NAT || !streq(chain->name, "KUBE-SERVICES")) {
		fake_put_rules(chain, ret);
		return;
	}
	fake_flatten(kernel, chain, NULL, &flat);
	fake_put_rules(&flat, ret);
	for (size_t i = 0; i < flat.n; i++)
		free(flat.lines[i]);
	free(flat.lines);
}

static int fake_compare_chains(const void *a, const void *b)
{
	const struct fake_chain *const *x = a;
	const struct fake_chain *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/*
 * Entries of cluster IPs must come first in KUBE-SERVICES. Equal states give equal texts: services may
 * otherwise stand in any order in the shared chains, and what an index leads to stands in KUBE-SERVICES.
 */
attr_unused static char *fake_kernel_dump(const struct fake_kernel *kernel)
{
	cleanup_text struct text text = {0};

	for (size_t i = 0; i < TABLE_COUNT; i++) {
		const struct map *chains = &kernel->chains[i];
		cleanup_free struct fake_chain **order = xcalloc(chains->count + 1, sizeof(*order));
		size_t at = 0, n = 0;

		while ((order[n] = map_next(chains, &at))) {
			if (has_prefix(order[n]->name, FAKE_INDEX) ||
			    streq(order[n]->name, "KUBE-SERVICES"))
				fake_check_leading(order[n]);
			n += !has_prefix(order[n]->name, FAKE_INDEX);
		}
		qsort(order, n, sizeof(*order), fake_compare_chains);
		text_printf(&text, "*%s\n", table_name((enum table)i));
		for (size_t k = 0; k < n; k++)
			fake_put_chain(kernel, (enum table)i, order[k], &text);
	}
	return text_dup(&text);
}
