/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/other_modes.h"

#include "base/log.h"
#include "kernel/iptables_leftovers.h"

static void report(enum family family, const char *mode, int r, const struct err *err)
{
	if (r < 0)
		log_error("Cannot remove what another mode left, going on beside it",
			  KV("ipFamily", LOG_STR(family_name(family))), KV("mode", LOG_STR(mode)),
			  KV("err", LOG_STR(err->text)));
	else if (r > 0)
		log_info("Removed what another mode left",
			 KV("ipFamily", LOG_STR(family_name(family))), KV("mode", LOG_STR(mode)));
}

static void clean_iptables(enum family family)
{
	static const enum iptables_variant variants[] = {IPTABLES_VARIANT_NFT,
							 IPTABLES_VARIANT_LEGACY};

	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		struct err err;
		int r;

		if (!iptables_leftovers(family, variants[i]))
			continue;
		r = backend_iptables.cleanup(family, variants[i], &err);
		report(family, backend_iptables.name, r < 0 ? r : 1, &err);
	}
}

static void clean_nftables(enum family family)
{
	struct err err;

	report(family, backend_nftables.name,
	       backend_nftables.cleanup(family, IPTABLES_VARIANT_AUTO, &err), &err);
}

void other_modes_clean(const struct backend_ops *mine, enum family family)
{
	if (mine != &backend_iptables)
		clean_iptables(family);
	if (mine != &backend_nftables)
		clean_nftables(family);
}
