/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A line of iptables-save as the value that is printed so (rule_text.h). Of a line that no rule of ours
 * prints, as much as is understood, and a match of kind OTHER. Whether the target of such a line is a
 * chain is not in its words: it is TARGET_CHAIN.
 */

#include "base/arena.h"
#include "xtables/rule.h"

/*
 * False when it is no "-A CHAIN ...". Texts of the rule are in the arena. The table is TABLE_COUNT: it
 * is not in the line.
 */
bool rule_parse(const char *line, enum family family, struct arena *arena, struct rule *ret);

/*
 * Cuts the next word off a line: up to a blank, or between quotes, where a letter behind a backslash is
 * itself. NULL: there is none.
 */
char *rule_next_word(char **at);
