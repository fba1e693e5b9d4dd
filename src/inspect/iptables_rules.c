/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/iptables_rules.h"

#include "backends/iptables/ruleset.h"
#include "xtables/rule_compare.h"
#include "xtables/rule_parse.h"

void iptables_rules_jumps(struct rule_store *rules)
{
	struct rule jump;

	for (size_t i = 0; i < RULESET_JUMPS; i++) {
		ruleset_jump(i, &jump);
		rule_store_open_chain(rules, jump.table, jump.target.chain);
		rule_store_prepend(rules, &jump);
	}
}

void iptables_rules_plan(struct rule_store *rules, const struct settings *settings,
			 const struct plan_delta *delta, const struct host *host,
			 const struct ruleset_host *features)
{
	static const struct ruleset_host all = {
		.nfacct_invalid = true,
		.nfacct_localhost = true,
	};
	const struct ruleset_input facts = {
		.addresses_known = true,
		.addresses = host->addresses,
		.n_addresses = host->n_addresses,
	};
	struct ruleset *ruleset = ruleset_new(settings, features ? features : &all);
	struct ruleset_begun begun;
	struct ruleset_stats stats;

	ruleset_begin(ruleset, delta, 0, &begun);
	iptables_rules_jumps(rules);
	ruleset_write(ruleset, &facts, rule_store_txn(rules), &stats);
	ruleset_end(ruleset, true, 0);
	ruleset_free(ruleset);
}

/* -- what depends on the host */

void iptables_rules_strip(struct rule *rule)
{
	size_t n = 0;

	for (size_t i = 0; i < rule->n_matches; i++)
		if (rule->matches[i].kind != MATCH_NFACCT)
			rule->matches[n++] = rule->matches[i];
	rule->n_matches = n;
}

bool iptables_rules_same_line(enum family family, const char *a, const char *b)
{
	cleanup_arena struct arena *arena = NULL;
	struct rule rules[2];

	if (streq(a, b))
		return true;
	arena = arena_new(1024);
	if (!rule_parse(a, family, arena, &rules[0]) || !rule_parse(b, family, arena, &rules[1]))
		return false;
	iptables_rules_strip(&rules[0]);
	iptables_rules_strip(&rules[1]);
	return streq(rules[0].chain, rules[1].chain) && rule_equal(&rules[0], &rules[1]);
}
