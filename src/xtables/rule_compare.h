/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Do two rules do the same? What counts is what the kernel keeps of a rule: not its table and chain,
 * not how an address was written, not where -i, -s, -d and --dport stand among the other matches. A
 * prefix of length 0 that is not inverted says nothing. Texts count as far as the kernel holds them. Of a
 * match or target that is none of ours only its name counts.
 */

#include "xtables/rule.h"

bool rule_equal(const struct rule *a, const struct rule *b);
/*
 * Equal for equal rules. The key is drawn anew by each process: two rules that differ have the same
 * hash by a chance that no author of rules can raise, and a hash says nothing to another process.
 */
uint64_t rule_hash(const struct rule *rule);
