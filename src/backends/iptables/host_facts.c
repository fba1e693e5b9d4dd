/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/host_facts.h"

#include "base/log.h"
#include "kernel/interfaces.h"
#include "kernel/nfacct.h"

static void ensure_counter(const char *name, bool *usable)
{
	struct err err;
	int r = nfacct_ensure(NULL, name, &err);

	*usable = r >= 0;
	if (r < 0)
		log_warning("Could not create an nfacct counter, its rule goes without",
			    KV("name", LOG_STR(name)), KV("err", LOG_STR(err.text)));
}

void host_facts_counters(struct ruleset_host *host)
{
	ensure_counter(NFACCT_INVALID, &host->nfacct_invalid);
	ensure_counter(NFACCT_LOCALHOST, &host->nfacct_localhost);
}

bool host_facts_addresses(enum family family, struct addr **ret, size_t *ret_n)
{
	struct err err;
	int r = interfaces_addresses(family, ret, ret_n, &err);

	if (r < 0)
		log_warning("Node ports are not answered until the node's addresses can be read",
			    KV("ipFamily", LOG_STR(family_name(family))),
			    KV("err", LOG_STR(err.text)));
	return r >= 0;
}
