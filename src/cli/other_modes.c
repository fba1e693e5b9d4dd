/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/other_modes.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/errand.h"
#include "kernel/iptables_leftovers.h"

/* Whoever ends us waits longer than that. */
#define GRACE_NS (5 * CLOCK_NS_PER_SECOND)

struct other_modes {
	const struct backend_ops *mine;
	unsigned int families;
	struct errand *errand;
};

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

static int clean(void *arg)
{
	const struct other_modes *other = arg;

	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		if (!(other->families & 1u << family))
			continue;
		if (other->mine != &backend_iptables)
			clean_iptables(family);
		if (other->mine != &backend_nftables)
			clean_nftables(family);
	}
	return 0;
}

struct other_modes *other_modes_clean(struct event_base *loop, const struct backend_ops *mine,
				      unsigned int families)
{
	struct other_modes *other = xcalloc(1, sizeof(*other));
	const struct errand_spec spec = {.work = clean, .arg = other, .grace_ns = GRACE_NS};
	struct err err;

	other->mine = mine;
	other->families = families;
	if (errand_start(loop, &spec, &other->errand, &err) == 0)
		return other;
	log_error("Cannot remove what another mode left, going on beside it",
		  KV("err", LOG_STR(err.text)));
	return other_modes_free(other);
}

struct other_modes *other_modes_free(struct other_modes *other)
{
	if (!other)
		return NULL;
	errand_free(other->errand);
	free(other);
	return NULL;
}
