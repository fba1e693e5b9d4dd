/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/host_facts.h"

#include "base/log.h"
#include "kernel/interfaces.h"
#include "kernel/nfacct.h"
#include "kernel/nfnetlink.h"

static void ensure_counter(struct nfnetlink_line *line, const char *name, bool *usable)
{
	struct err err;
	int r = nfacct_ensure(line, name, &err);

	*usable = r >= 0;
	if (r < 0)
		log_warning("Could not create an nfacct counter, its rule goes without",
			    KV("name", LOG_STR(name)), KV("err", LOG_STR(err.text)));
}

void host_facts_counters(struct ruleset_host *host)
{
	struct nfnetlink_line line = {0};

	ensure_counter(&line, NFACCT_INVALID, &host->nfacct_invalid);
	ensure_counter(&line, NFACCT_LOCALHOST, &host->nfacct_localhost);
	nfnetlink_line_done(&line);
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
