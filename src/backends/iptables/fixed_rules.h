/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rules that do not depend on any Service: around those of the services, in every sync. */

#include "backends/iptables/rule_output.h"

/* Declares the shared chains, which empties them. */
void fixed_rules_chains(struct rule_output *output);
/* Is it one of those of the nat table? */
bool fixed_rules_is_shared(const char *nat_chain);
void fixed_rules_head(struct rule_output *output); /* before the services' rules */
/* Behind them: the way to NodePorts must be the last rule of its chain. */
void fixed_rules_tail(struct rule_output *output, const struct ruleset_input *input);

/*
 * Some of them one by one, for whoever wants to know whether the shared chains hold what they should:
 * index 0, 1, ... until there is none (false).
 */
bool fixed_rules_sample(const struct settings *settings, size_t index, struct rule *ret);
