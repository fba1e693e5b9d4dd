/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the rules that a chain has in the kernel to those that it shall have: rules that both lists begin
 * or end with are left alone, their counters too. Between them rules take the places of others,
 * and what is left over is inserted or deleted. Where endpoints come and go that is the least there is,
 * because the rules behind a place do not say how many there are before it.
 *
 * The chain is read first. That costs one request, about as much as writing two rules, and needs no
 * memory between syncs: handles of rules that spread connections over endpoints are kept nowhere.
 */

#include "backends/iptables/netlink/nft_link.h"
#include "xtables/rule_list.h"

/*
 * For the chains that spread connections over endpoints (KUBE-SVC-, KUBE-SVL-). False, and nothing is
 * written: it is another one, or it cannot be read.
 */
bool nft_revision_write(struct nft_link *link, const struct rule_chain *wanted);
