/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A rule as the kernel lists it, as the value that we would have written: the way back from statement_put.h.
 * What we would not write is kept as raw statements.
 */

#include "backends/nftables/statement.h"
#include "base/arena.h"

struct nlmsghdr;

/*
 * NFT_MSG_NEWRULE, whose lengths are not trusted. *ret and what it names live as long as the arena. A chain that is
 * none of ours is not told: it is the first of all.
 */
void statement_read_rule(struct arena *arena, enum family family, const struct nlmsghdr *message,
			 struct nft_rule *ret);
