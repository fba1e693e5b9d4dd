/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reading the output of iptables-save, line by line. */

#include "base/util.h"

/* The chain of a line ":NAME POLICY [0:0]": its length behind the colon, or 0 for any other line.
 */
size_t iptables_save_chain(const char *line);
/* The chain that a rule stands in, and the chain or target that it leads to by -j or -g. */
struct iptables_jump {
	char chain[64];
	char target[64];
};

/* False when the line is no rule, leads nowhere, or has longer names. */
bool iptables_save_jump(const char *line, struct iptables_jump *ret);
