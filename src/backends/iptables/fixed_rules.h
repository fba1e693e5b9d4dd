/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rules that do not depend on any Service: around those of the services, in every sync. */

#include "backends/iptables/rule_facts.h"
#include "xtables/rule_list.h"

/* Is it one of the shared chains of the nat table? */
bool fixed_rules_is_shared(const char *nat_chain);

/* Groups: before the services' rules, and behind them. */
enum fixed_rules_group {
	FIXED_RULES_HEAD = 0,
	FIXED_RULES_TAIL,
};

/*
 * Declares all shared chains; own are those with no other rules. The way to NodePorts must be the
 * last rule of its chain.
 */
void fixed_rules_make(const struct rule_facts *facts, const struct ruleset_input *input,
		      struct rule_list *list);

/*
 * Some of them one by one, for a caller that wants to know whether the shared chains hold what they should:
 * index 0, 1, ... until there is none (false).
 */
bool fixed_rules_sample(const struct settings *settings, size_t index, struct rule *ret);
