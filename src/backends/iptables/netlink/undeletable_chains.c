/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/undeletable_chains.h"

#include <stdlib.h>

#include "base/log.h"

void undeletable_chains_add(struct undeletable_chains *chains, const char *name)
{
	char *copy;

	if (map_get(&chains->names, name))
		return;
	copy = xstrdup(name);
	map_set(&chains->names, copy, copy);
	log_warning("A chain is emptied but stays, because a rule that is not ours leads to it",
		    KV("ipFamily", LOG_STR(family_name(chains->family))),
		    KV("chain", LOG_STR(name)));
}

void undeletable_chains_forget(struct undeletable_chains *chains)
{
	char *name;
	size_t at = 0;

	while ((name = map_next(&chains->names, &at))) {
		map_remove(&chains->names, name);
		free(name);
	}
	map_done(&chains->names);
}
