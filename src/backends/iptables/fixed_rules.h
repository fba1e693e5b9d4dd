/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rules that do not depend on any Service: around those of the services, in every sync. */

#include "backends/iptables/rule_output.h"

void fixed_rules_chains(
	struct rule_output *output); /* declares the shared chains, which empties them */
void fixed_rules_head(struct rule_output *output); /* before the services' rules */
/* Behind them: the way to NodePorts must be the last rule of its chain. */
void fixed_rules_tail(struct rule_output *output, const struct ruleset_input *input);
