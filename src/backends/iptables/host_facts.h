/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a sync asks of the running system, whichever way it writes. A failure is logged, never fatal. */

#include "backends/iptables/ruleset.h"

/* Makes the nfacct counters; those that cannot be made are not named in rules. */
void host_facts_counters(struct ruleset_host *host);
/* The addresses of the node's interfaces, for the caller to free. False: they cannot be read. */
bool host_facts_addresses(enum family family, struct addr **ret, size_t *ret_n);
