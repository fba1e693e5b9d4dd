/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/index_rules.h"

static void make_entries(const struct service_rules *service, const struct rule_facts *facts,
			 struct rule_list *list)
{
	struct rule_facts all = *facts;

	all.indexed = false;
	rule_list_init(list, 2048);
	if (service)
		service_rules_make(service, &all, RULESET_ENTRIES, list);
	rule_list_declare(list, TABLE_NAT, CHAIN_SERVICES, false);
}

void index_rules_change(struct service_index *index, const struct service_rules *old,
			const struct service_rules *wanted, const struct rule_facts *facts)
{
	cleanup_rule_list struct rule_list before, after;
	const struct rule_chain *stand, *come;

	make_entries(old, facts, &before);
	make_entries(wanted, facts, &after);
	stand = rule_list_find(&before, TABLE_NAT, CHAIN_SERVICES);
	come = rule_list_find(&after, TABLE_NAT, CHAIN_SERVICES);
	if (rule_chain_equal(stand, come))
		return;
	for (size_t i = 0; i < stand->n; i++)
		service_index_remove(index, old->plan->key, rule_address(&stand->items[i]->rule));
	for (size_t i = 0; i < come->n; i++)
		service_index_add(index, wanted->plan->key, rule_address(&come->items[i]->rule));
}

static void make_rules(void *arg, const char *key, const struct addr *addr, const char *chain,
		       unsigned int parts, struct rule_list *list)
{
	const struct index_rules *rules = arg;
	struct rule_facts facts = *rules->facts;

	facts.only = addr;
	facts.into = chain;
	service_rules_make(service_set_get(rules->services, key), &facts, parts, list);
}

struct service_index_rules index_rules_of(struct index_rules *rules)
{
	return (struct service_index_rules){.make = make_rules, .arg = rules};
}
