/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/host_facts.h"

#include <stdlib.h>

#include "base/log.h"
#include "kernel/interfaces.h"
#include "kernel/nfacct.h"
#include "kernel/nfnetlink.h"

static void ensure_counter(struct nfnetlink_conn *line, const char *name, bool *usable)
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
	struct nfnetlink_conn line = {0};

	ensure_counter(&line, NFACCT_INVALID, &host->nfacct_invalid);
	ensure_counter(&line, NFACCT_LOCALHOST, &host->nfacct_localhost);
	nfnetlink_conn_done(&line);
}

static void tell_blind(enum family family, const struct host_addresses *addresses,
		       const struct err *err)
{
	log_error(addresses->known
			  ? "Cannot read the addresses of this host, NodePorts stay where they are"
			  : "Cannot read the addresses of this host, NodePorts may not be answered",
		  KV("ipFamily", LOG_STR(family_name(family))), KV("err", LOG_STR(err->text)));
}

void host_facts_addresses(enum family family, struct host_addresses *addresses)
{
	struct addr *v;
	struct err err;
	size_t n;

	if (interfaces_addresses(family, &v, &n, &err) < 0) {
		if (!addresses->blind)
			tell_blind(family, addresses, &err);
		addresses->blind = true;
		return;
	}
	free(addresses->v);
	*addresses = (struct host_addresses){.known = true, .v = v, .n = n};
}

void host_facts_addresses_done(struct host_addresses *addresses)
{
	free(addresses->v);
	*addresses = (struct host_addresses){0};
}
