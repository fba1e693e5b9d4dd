/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the rules of a chain that stands to those that it shall have, by handles: rules that both lists
 * begin or end with are left alone, their counters too. Between them rules take the places of
 * others, and what is left over is inserted or deleted. Where endpoints come and go that is the
 * least there is, because the rules behind a place do not say how many there are before it.
 */

#include "backends/iptables/netlink/nft_link.h"
#include "xtables/rule_list.h"

/* wanted->twin stands. False, and nothing is written: its handles are not known. */
bool nft_revision_write(struct nft_link *link, const struct rule_chain *wanted);
