/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules of no Service, remembered: they are few, and what they depend on (the node's addresses)
 * is not kept. A chain that has nothing else is written whole when its rules change. The rules at
 * the end of nat KUBE-SERVICES are taken away and put there again when they change, or when others
 * came behind them.
 */

#include "backends/iptables/fixed_rules.h"

struct fixed_list {
	struct rule *v; /* all their strings are constants */
	size_t n, capacity;
};

void fixed_list_done(struct fixed_list *list); /* may be used again */
/* What fixed_rules_head() and fixed_rules_tail() say. Replaces the old contents. */
void fixed_list_collect(struct fixed_list *list, const struct rule_output *like,
			const struct ruleset_input *input);
void fixed_list_copy(struct fixed_list *to, const struct fixed_list *from);
void fixed_list_count(const struct fixed_list *list, size_t counts[TABLE_COUNT]); /* adds */
/* What has become of the rules at the end of nat KUBE-SERVICES. */
enum fixed_last {
	FIXED_LAST_STANDS = 0,
	FIXED_LAST_OVERTAKEN, /* others have come behind them */
	FIXED_LAST_GONE,      /* the chain was declared and is being written anew */
};

void fixed_delta_write(const struct fixed_list *old, const struct fixed_list *wanted,
		       enum fixed_last last, struct rule_output *output);
