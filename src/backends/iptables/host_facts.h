/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a sync asks of the running system, whichever way it writes. A failure is logged, never fatal. */

#include "backends/iptables/ruleset.h"

/* Makes the nfacct counters; those that cannot be made are not named in rules. */
void host_facts_counters(struct ruleset_host *host);

/* The addresses of the node's interfaces as they were last read; zeroed is a good start. */
struct host_addresses {
	bool known; /* they could be read at least once */
	bool blind; /* not the last time, and that was told */
	struct addr *v;
	size_t n;
};

/* Reads them anew. Where that fails, those known stay: node ports must not go for it. */
void host_facts_addresses(enum family family, struct host_addresses *addresses);
void host_facts_addresses_done(struct host_addresses *addresses);
