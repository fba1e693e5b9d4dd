/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Table kube-proxy of nftables mode, in nft's words: base chains, the rules of chains, elements of sets
 * and maps.
 *
 * No differences are: clients that affinity remembers, which packets write; which slot of its group
 * an endpoint has, because one keeps its own when others go; chains with a number that no Service uses
 * any more, which stay for a while; and ids of affinity, which are taken from the kernel.
 */

#include "base/err.h"
#include "inspect/diff.h"
#include "inspect/nftables_rules.h"
#include "plan/settings.h"

/*
 * Appends the differences of one family; of a packet, if there is one: those in chains that it enters and
 * elements that it asks for. An error: the kernel's table cannot be read.
 */
int diff_nftables(struct diff *diff, const struct settings *settings,
		  const struct plan_delta *delta, const struct host *host,
		  const struct packet *packet, struct err *err);
