/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Compares the shared chains with the kernel's and puts into the batch what makes them as they
 * should be.
 *
 * In a chain with entries of Services those that lead come first. Else the order among Services, and
 * among the ports of one, is free; that within a port is not, and fixed rules behind the entries stay
 * behind them. A chain of fixed rules alone has one order. Rules that no list has leave, whichever
 * program wrote them: these chains are ours.
 *
 *	nft_shared_collect()    what is wanted
 *	nft_shared_compare()    for each chain: reads it and decides what has to be done; where only known
 *	                        rules were lost it need not be read
 *	nft_shared_add()        entries that are missing, in as many transactions as it takes
 *	nft_shared_finish()     everything else, for one transaction: rules that leave, the last rules of
 *	                        chains, chains that are filled anew
 *
 * So an entry that replaces another one is there before the old one leaves.
 */

#include "backends/iptables/netlink/nft_own.h"
#include "backends/iptables/ruleset.h"

struct nft_shared;

/*
 * All is borrowed. refused: Services that wait. Their entries are left as they
 * are, and as nothing tells which unknown rule is one of them, none leaves while there are any.
 */
struct nft_shared *nft_shared_new(struct nft_link *link, struct ruleset *ruleset,
				  const struct refused_services *refused,
				  nft_difference_fn *differs, void *arg);
struct nft_shared *nft_shared_free(struct nft_shared *shared); /* accepts NULL, returns NULL */

/* fixed: as ruleset_fixed() returns it. What is collected is good until the ruleset changes. */
void nft_shared_collect(struct nft_shared *shared, const struct rule_list *fixed);
size_t nft_shared_n_chains(const struct nft_shared *shared);
/* Its table, its name, and its number in link->state. */
const struct rule_chain *nft_shared_chain(const struct nft_shared *shared, size_t index,
					  unsigned int *ret_number);

/*
 * there: it exists, or may. n_lost: when so many rules are gone from link->state, and nothing else
 * happened to the chain, it is compared with what that knows and not read, which in a large chain costs
 * more than the repair; 0: it is read. Returns 1 when something has to be done, 0 when it is right.
 */
int nft_shared_compare(struct nft_shared *shared, size_t index, bool there, size_t n_lost,
		       struct err *err);
/*
 * Puts entries into the batch, up to about that many bytes. *at begins at 0 and says how far it came;
 * an older value repeats. False: there are no more.
 */
bool nft_shared_add(struct nft_shared *shared, size_t size, size_t *at);
void nft_shared_finish(struct nft_shared *shared);
