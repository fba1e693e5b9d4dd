/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which variant of iptables a node uses, when the operator does not say it.
 *
 * kubelet leaves a chain in table mangle for just this question: KUBE-IPTABLES-HINT, and in older
 * versions KUBE-KUBELET-CANARY. The variant that has one of them, in either family, is the node's
 * (nft when both do). Without them it is the one that the program `iptables` is.
 *
 * Looking changes nothing: no module is loaded and no table comes into being by it. nf_tables is
 * only asked when the kernel has it loaded or built in, ip_tables only when this network namespace
 * has such a table already.
 */

#include "base/variant.h"

struct iptables_variant_found {
	enum iptables_variant variant; /* never AUTO */
	/* kubelet uses the other one, for which there are no programs here; or only root could see that */
	bool doubtful;
	char reason[192];
};

/* Blocks, for some ten milliseconds. */
void iptables_variant_find(struct iptables_variant_found *ret);
