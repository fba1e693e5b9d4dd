/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The two kinds of iptables programs, which keep their rules in different places of the kernel
 * (nf_tables, ip_tables) and do not see each other's: `iptables --version` names the kind.
 */

#include "base/util.h"

enum iptables_variant {
	IPTABLES_VARIANT_AUTO = 0, /* not decided yet: see kernel/iptables_variant.h */
	IPTABLES_VARIANT_NFT,
	IPTABLES_VARIANT_LEGACY,
	IPTABLES_VARIANT_COUNT,
};

/* "auto", "nft", "legacy" */
const char *iptables_variant_name(enum iptables_variant variant);
bool iptables_variant_parse(const char *name, enum iptables_variant *ret);
