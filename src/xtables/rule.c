/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/rule.h"

#include <assert.h>

const char *table_name(enum table table)
{
	static const char *const names[] = {
		[TABLE_FILTER] = "filter",
		[TABLE_NAT] = "nat",
		[TABLE_MANGLE] = "mangle",
	};

	static_assert(ARRAY_SIZE(names) == TABLE_COUNT, "one name for each table");
	return names[table];
}

bool table_parse(const char *name, enum table *ret)
{
	for (enum table table = 0; table < TABLE_COUNT; table++) {
		if (streq(name, table_name(table))) {
			*ret = table;
			return true;
		}
	}
	return false;
}

size_t rule_size(const struct rule *rule)
{
	return offsetof(struct rule, matches) + rule->n_matches * sizeof(rule->matches[0]);
}

bool rule_is_foreign(const struct rule *rule)
{
	return rule->target.kind == TARGET_OTHER || rule_match(rule, MATCH_OTHER);
}

bool match_has_prefix(const struct match *match)
{
	return match->kind == MATCH_SOURCE || match->kind == MATCH_DESTINATION;
}

const struct match *rule_match(const struct rule *rule, enum match_kind kind)
{
	for (size_t i = 0; i < rule->n_matches; i++)
		if (rule->matches[i].kind == kind)
			return &rule->matches[i];
	return NULL;
}

/* Only what is used is set: a rule is built some 100,000 times in a row. */
void rule_init(struct rule *rule, enum table table, const char *chain)
{
	rule->table = table;
	rule->chain = chain;
	rule->leading = false;
	rule->n_matches = 0;
	rule->target.kind = TARGET_NONE;
}

static struct match *add_match(struct rule *rule, enum match_kind kind, bool invert)
{
	struct match *match;

	assert(rule->n_matches < RULE_MATCH_MAX);
	match = &rule->matches[rule->n_matches++];
	match->kind = kind;
	match->invert = invert;
	match->bare = false;
	match->text = NULL;
	match->number = 0;
	return match;
}

void rule_comment(struct rule *rule, const char *text)
{
	add_match(rule, MATCH_COMMENT, false)->text = text;
}

void rule_protocol(struct rule *rule, enum protocol protocol)
{
	add_match(rule, MATCH_PROTOCOL, false)->protocol = protocol;
}

void rule_source(struct rule *rule, bool invert, const struct prefix *prefix)
{
	add_match(rule, MATCH_SOURCE, invert)->prefix = *prefix;
}

void rule_destination(struct rule *rule, bool invert, const struct prefix *prefix)
{
	add_match(rule, MATCH_DESTINATION, invert)->prefix = *prefix;
}

static void add_address(struct rule *rule, enum match_kind kind, const struct addr *addr)
{
	struct match *match = add_match(rule, kind, false);

	match->bare = true;
	match->prefix.addr = *addr;
	match->prefix.length = addr_bits(addr->family);
}

void rule_source_addr(struct rule *rule, const struct addr *addr)
{
	add_address(rule, MATCH_SOURCE, addr);
}

void rule_destination_addr(struct rule *rule, const struct addr *addr)
{
	add_address(rule, MATCH_DESTINATION, addr);
}

void rule_interface(struct rule *rule, bool invert, const char *name)
{
	add_match(rule, MATCH_INTERFACE, invert)->text = name;
}

void rule_port(struct rule *rule, uint16_t port)
{
	add_match(rule, MATCH_PORT, false)->port = port;
}

void rule_ctstate(struct rule *rule, bool invert, unsigned int states)
{
	add_match(rule, MATCH_CTSTATE, invert)->ctstate = states;
}

void rule_mark(struct rule *rule, bool invert, uint32_t mark)
{
	add_match(rule, MATCH_MARK, invert)->mark = mark;
}

void rule_source_local(struct rule *rule)
{
	add_match(rule, MATCH_SOURCE_TYPE_LOCAL, false);
}

void rule_destination_local(struct rule *rule)
{
	add_match(rule, MATCH_DESTINATION_TYPE_LOCAL, false);
}

void rule_statistic(struct rule *rule, unsigned int one_in)
{
	add_match(rule, MATCH_STATISTIC, false)->one_in = one_in;
}

void rule_recent_check(struct rule *rule, const char *name, uint32_t seconds)
{
	struct match *match = add_match(rule, MATCH_RECENT_CHECK, false);

	match->recent.name = name;
	match->recent.seconds = seconds;
}

void rule_recent_set(struct rule *rule, const char *name)
{
	struct match *match = add_match(rule, MATCH_RECENT_SET, false);

	match->recent.name = name;
	match->recent.seconds = 0;
}

void rule_nfacct(struct rule *rule, const char *name)
{
	add_match(rule, MATCH_NFACCT, false)->text = name;
}

static struct target *set_target(struct rule *rule, enum target_kind kind)
{
	assert(rule->target.kind == TARGET_NONE);
	rule->target.kind = kind;
	return &rule->target;
}

void rule_jump(struct rule *rule, const char *chain)
{
	set_target(rule, TARGET_CHAIN)->chain = chain;
}

void rule_verdict(struct rule *rule, enum target_kind kind)
{
	assert(kind == TARGET_ACCEPT || kind == TARGET_DROP || kind == TARGET_RETURN ||
	       kind == TARGET_REJECT);
	set_target(rule, kind);
}

void rule_mark_xor(struct rule *rule, uint32_t mark)
{
	set_target(rule, TARGET_MARK_XOR)->mark = mark;
}

void rule_mark_or(struct rule *rule, uint32_t mark)
{
	set_target(rule, TARGET_MARK_OR)->mark = mark;
}

void rule_masquerade(struct rule *rule, bool random_fully)
{
	set_target(rule, TARGET_MASQUERADE)->random_fully = random_fully;
}

void rule_dnat(struct rule *rule, const struct addr *addr, uint16_t port)
{
	struct target *target = set_target(rule, TARGET_DNAT);

	target->dnat.addr = *addr;
	target->dnat.port = port;
}

const struct addr *rule_address(const struct rule *rule)
{
	const struct match *destination = rule_match(rule, MATCH_DESTINATION);

	assert(destination);
	return &destination->prefix.addr;
}
