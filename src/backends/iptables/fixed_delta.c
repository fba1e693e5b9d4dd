/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/fixed_delta.h"

#include <stdlib.h>

#include "xtables/restore_writer.h"

/* Chains with fixed rules and no others. */
static const struct {
	enum table table;
	const char *chain;
} fixed_chains[] = {
	{TABLE_FILTER, CHAIN_FORWARD},
	{TABLE_FILTER, CHAIN_KUBELET_FIREWALL},
	{TABLE_NAT, CHAIN_POSTROUTING},
	{TABLE_NAT, CHAIN_MARK_MASQ},
};

void fixed_list_done(struct fixed_list *list)
{
	free(list->v);
	*list = (struct fixed_list){0};
}

struct collector {
	struct txn txn;
	struct fixed_list *list;
};

static void collect_rule(struct txn *txn, const struct rule *rule)
{
	struct fixed_list *list = ((struct collector *)txn)->list;

	array_grow(&list->v, &list->capacity, list->n, sizeof(*list->v));
	list->v[list->n++] = *rule;
}

void fixed_list_collect(struct fixed_list *list, const struct rule_output *like,
			const struct ruleset_input *input)
{
	static const struct txn_ops ops = {.rule = collect_rule};
	struct collector collector = {.txn.ops = &ops, .list = list};
	struct rule_output output = *like;

	list->n = 0;
	output.txn = &collector.txn;
	fixed_rules_head(&output);
	fixed_rules_tail(&output, input);
}

void fixed_list_copy(struct fixed_list *to, const struct fixed_list *from)
{
	to->n = 0;
	for (size_t i = 0; i < from->n; i++) {
		array_grow(&to->v, &to->capacity, to->n, sizeof(*to->v));
		to->v[to->n++] = from->v[i];
	}
}

void fixed_list_count(const struct fixed_list *list, size_t counts[TABLE_COUNT])
{
	for (size_t i = 0; i < list->n; i++)
		counts[list->v[i].table]++;
}

/* The first rule of the chain at or behind *at, which moves behind it; NULL: no more. */
static const struct rule *next_rule(const struct fixed_list *list, enum table table,
				    const char *chain, size_t *at)
{
	while (*at < list->n) {
		const struct rule *rule = &list->v[(*at)++];

		if (rule->table == table && streq(rule->chain, chain))
			return rule;
	}
	return NULL;
}

static bool rules_equal(const struct rule *a, const struct rule *b)
{
	char lines[2][RULE_TEXT_MAX];

	return restore_rule_line(a, lines[0]) == restore_rule_line(b, lines[1]) &&
	       streq(lines[0], lines[1]);
}

static bool chain_changed(const struct fixed_list *old, const struct fixed_list *wanted,
			  enum table table, const char *chain)
{
	const struct rule *a, *b;
	size_t at_a = 0, at_b = 0;

	do {
		a = next_rule(old, table, chain, &at_a);
		b = next_rule(wanted, table, chain, &at_b);
	} while (a && b && rules_equal(a, b));
	return a || b;
}

static void append_rules(const struct fixed_list *list, enum table table, const char *chain,
			 struct rule_output *output)
{
	const struct rule *rule;
	size_t at = 0;

	while ((rule = next_rule(list, table, chain, &at)))
		rule_output_add(output, rule);
}

static void move_last(const struct fixed_list *old, const struct fixed_list *wanted,
		      struct rule_output *output)
{
	const struct rule *rule;
	size_t at = 0;

	while ((rule = next_rule(old, TABLE_NAT, CHAIN_SERVICES, &at)))
		txn_remove_rule(output->txn, rule);
	append_rules(wanted, TABLE_NAT, CHAIN_SERVICES, output);
}

void fixed_delta_write(const struct fixed_list *old, const struct fixed_list *wanted,
		       enum fixed_last last, struct rule_output *output)
{
	for (size_t i = 0; i < ARRAY_SIZE(fixed_chains); i++) {
		enum table table = fixed_chains[i].table;
		const char *chain = fixed_chains[i].chain;

		if (!chain_changed(old, wanted, table, chain))
			continue;
		txn_chain(output->txn, table, chain);
		append_rules(wanted, table, chain, output);
	}
	if (last == FIXED_LAST_GONE)
		append_rules(wanted, TABLE_NAT, CHAIN_SERVICES, output);
	else if (last == FIXED_LAST_OVERTAKEN ||
		 chain_changed(old, wanted, TABLE_NAT, CHAIN_SERVICES))
		move_last(old, wanted, output);
}
