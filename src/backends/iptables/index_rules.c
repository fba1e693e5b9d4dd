/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/index_rules.h"

#include <assert.h>
#include <stdlib.h>

#include "xtables/restore_writer.h"

/* The address that an entry is for: every one has its destination. */
static const struct addr *entry_address(const struct rule *rule)
{
	size_t i = 0;

	while (i < rule->n_matches && rule->matches[i].kind != MATCH_DESTINATION)
		i++;
	assert(i < rule->n_matches);
	return &rule->matches[i].prefix.addr;
}

static bool is_entry(const struct rule *rule)
{
	return rule->table == TABLE_NAT && streq(rule->chain, CHAIN_SERVICES);
}

/* Says the entries to a listener without counting them: they are the index's. */
static void say_entries(struct service_rules *service, const struct rule_output *like,
			unsigned int parts, struct txn *txn)
{
	struct rule_output output = *like;
	uint32_t leading[TABLE_COUNT], following[TABLE_COUNT];

	output.txn = txn;
	output.indexed = false;
	memcpy(leading, service->n_leading, sizeof(leading));
	memcpy(following, service->n_following, sizeof(following));
	service_rules_write(service, &output, parts);
	memcpy(service->n_leading, leading, sizeof(leading));
	memcpy(service->n_following, following, sizeof(following));
}

/* -- what there is */

struct entries {
	struct txn txn;
	struct addr *v; /* one for each rule */
	size_t n, capacity;
	struct text text; /* all rules, to compare them */
};

static void collect_rule(struct txn *txn, const struct rule *rule)
{
	struct entries *entries = (struct entries *)txn;
	char line[RULE_TEXT_MAX];

	if (!is_entry(rule))
		return;
	array_grow(&entries->v, &entries->capacity, entries->n, sizeof(*entries->v));
	entries->v[entries->n++] = *entry_address(rule);
	text_add(&entries->text, line, restore_rule_line(rule, line) + 1);
}

static void entries_collect(struct entries *entries, struct service_rules *service,
			    const struct rule_output *like)
{
	static const struct txn_ops ops = {.rule = collect_rule};

	*entries = (struct entries){.txn.ops = &ops};
	text_init(&entries->text);
	if (service)
		say_entries(service, like, RULESET_ENTRIES, &entries->txn);
}

static void entries_done(struct entries *entries)
{
	free(entries->v);
	text_done(&entries->text);
}

static bool entries_equal(const struct entries *a, const struct entries *b)
{
	const struct text_block *x = a->text.first, *y = b->text.first;

	if (a->n != b->n || a->text.size != b->text.size)
		return false;
	for (; x && y; x = x->next, y = y->next)
		if (x->used != y->used || memcmp(x->data, y->data, x->used) != 0)
			return false;
	return true;
}

void index_rules_change(struct service_index *index, struct service_rules *old,
			struct service_rules *wanted, const struct rule_output *like)
{
	struct entries before, after;

	entries_collect(&before, old, like);
	entries_collect(&after, wanted, like);
	if (!entries_equal(&before, &after)) {
		for (size_t i = 0; i < before.n; i++)
			service_index_remove(index, old->plan->key, &before.v[i]);
		for (size_t i = 0; i < after.n; i++)
			service_index_add(index, wanted->plan->key, &after.v[i]);
	}
	entries_done(&before);
	entries_done(&after);
}

/* -- saying it again */

struct repeat {
	struct txn txn;
	const struct service_set *services;
	struct rule_output *output;
	const struct addr *addr;
	const char *chain;
};

static void repeat_rule(struct txn *txn, const struct rule *rule)
{
	struct repeat *repeat = (struct repeat *)txn;
	struct rule moved = *rule;

	if (!is_entry(rule) || !addr_equal(entry_address(rule), repeat->addr))
		return;
	moved.chain = repeat->chain;
	rule_output_add(repeat->output, &moved);
}

static void repeat_subject(struct txn *txn, const char *key)
{
	txn_subject(((struct repeat *)txn)->output->txn, key);
}

static void repeat_rules(void *arg, const char *key, const struct addr *addr, const char *chain,
			 unsigned int parts)
{
	struct repeat *repeat = arg;

	repeat->addr = addr;
	repeat->chain = chain;
	say_entries(service_set_get(repeat->services, key), repeat->output, parts, &repeat->txn);
}

static struct repeat begin_repeat(const struct service_set *services, struct rule_output *output)
{
	static const struct txn_ops ops = {.rule = repeat_rule, .subject = repeat_subject};

	return (struct repeat){.txn.ops = &ops, .services = services, .output = output};
}

void index_rules_write_chain(struct service_index *index, size_t number,
			     const struct service_set *services, struct rule_output *output)
{
	struct repeat repeat = begin_repeat(services, output);

	service_index_write_chain(index, number, output, repeat_rules, &repeat);
}

void index_rules_write_root(const struct service_index *index, const struct service_set *services,
			    struct rule_output *output)
{
	struct repeat repeat = begin_repeat(services, output);

	service_index_write_root(index, output, repeat_rules, &repeat);
}

void index_rules_write(const struct service_index *index, const struct service_set *services,
		       struct rule_output *output)
{
	struct repeat repeat = begin_repeat(services, output);

	service_index_write(index, output, repeat_rules, &repeat);
}
