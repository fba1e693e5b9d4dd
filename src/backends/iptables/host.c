/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/host.h"

#include <stdlib.h>

#include "backends/backend.h"
#include "base/log.h"
#include "kernel/iptables_leftovers.h"
#include "kernel/iptables_variant.h"

struct backend_host *host_open(const struct mode_options *options, int level)
{
	struct backend_host *host = xcalloc(1, sizeof(*host));
	struct iptables_variant_found found = {
		.variant = options->iptables_variant,
		.reason = "--iptables-variant says so",
	};

	if (options->iptables_variant == IPTABLES_VARIANT_AUTO)
		iptables_variant_find(&found);
	if (found.doubtful || log_enabled(level))
		LOG_CALL(found.doubtful ? LOG_SEVERITY_WARNING : LOG_SEVERITY_INFO, level,
			 "Chose the variant of iptables",
			 KV("variant", LOG_STR(iptables_variant_name(found.variant))),
			 KV("reason", LOG_STR(found.reason)));
	host->variant = found.variant;
	return host;
}

void host_close(struct backend_host *host)
{
	free(host);
}

unsigned int host_leftovers(enum family family, unsigned int *ret_needs)
{
	unsigned int left = 0;

	for (enum iptables_variant i = IPTABLES_VARIANT_NFT; i < IPTABLES_VARIANT_COUNT; i++)
		if (iptables_leftovers(family, i))
			left |= 1u << i;
	*ret_needs = left ? BACKEND_NEEDS_PROGRAMS : 0;
	if (left & 1u << IPTABLES_VARIANT_LEGACY)
		*ret_needs |= BACKEND_NEEDS_RAW;
	return left;
}
