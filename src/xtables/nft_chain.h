/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The nf_tables messages for tables and chains, as iptables-nft sends them. Each function puts the
 * attributes into a message that has its headers already; the type and flags that belong to it
 * stand beside. Nothing is allocated.
 */

#include <linux/netlink.h>

#include "xtables/rule.h"

/* A table, made if it is missing. NFT_MSG_NEWTABLE, NLM_F_CREATE */
void nft_table_put(struct nlmsghdr *message, enum table table);

/*
 * A chain of our own by name, for
 *	-N, also where it is there	NFT_MSG_NEWCHAIN, NLM_F_CREATE
 *	-X				NFT_MSG_DELCHAIN, NLM_F_NONREC: EBUSY unless it is empty and unused
 */
void nft_chain_put(struct nlmsghdr *message, enum table table, const char *chain);

/*
 * A base chain ("INPUT"), made if it is missing. NFT_MSG_NEWCHAIN, NLM_F_CREATE. It says no policy:
 * a new chain accepts anyway, and one that exists keeps what its administrator chose. To be sent
 * only before a rule goes into it, as the tool does. chain must be one (nft_chain_is_base).
 */
void nft_base_chain_put(struct nlmsghdr *message, enum table table, const char *chain);
bool nft_chain_is_base(enum table table, const char *chain);
/* Those of a table, in the order of iptables-save; NULL: no more. */
const char *nft_chain_base(enum table table, size_t index);

/* All rules of a chain, which must exist. -F CHAIN; NFT_MSG_DELRULE, no flags */
void nft_flush_put(struct nlmsghdr *message, enum table table, const char *chain);

/* The one rule with that handle. -D CHAIN N; NFT_MSG_DELRULE, no flags */
void nft_delete_rule_put(struct nlmsghdr *message, enum table table, const char *chain,
			 uint64_t handle);
