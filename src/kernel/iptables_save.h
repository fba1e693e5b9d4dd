/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reading the output of iptables-save, line by line. */

#include "base/util.h"

/* The chain of a line ":NAME POLICY [0:0]": its length behind the colon, or 0 for any other line.
 */
size_t iptables_save_chain(const char *line);
/* Does a line of iptables-save hold this rule? Order and quotes do not count: as good as it gets
 * without -C. */
bool iptables_save_rule(const char *line, const char *chain, const char *const *words);
