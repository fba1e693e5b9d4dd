/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Compares the chains of one Service with the kernel's and puts into the batch what makes them as
 * they should be. A chain that is right is not touched; one that differs in anything, the order of
 * its rules included, is emptied and filled anew. Rules are made twice rather than kept.
 */

#include "backends/iptables/netlink/nft_found.h"
#include "backends/iptables/ruleset.h"

struct nft_own;

/* A chain that was not as it should be. A chain that does not exist misses all its rules. */
struct nft_difference {
	enum table table;
	const char *chain;
	size_t missing; /* rules; with extra 0 too: in the wrong order */
	size_t extra;
};

typedef void nft_difference_fn(void *arg, const struct nft_difference *difference);

/*
 * All is borrowed. left: Services that the kernel refused, by key; what the index of services has of
 * them is left out.
 */
struct nft_own *nft_own_new(struct nft_link *link, const struct map *left,
			    nft_difference_fn *differs, void *arg);
struct nft_own *nft_own_free(struct nft_own *own); /* accepts NULL, returns NULL */

/*
 * found NULL: what exists is not known; every chain is read. Else only those in it are, and its
 * wants are noted. Returns how many chains were not right.
 */
int nft_own_compare(struct nft_own *own, struct ruleset *ruleset, size_t index,
		    struct nft_found *found, struct err *err);

/* Of two lists of digests, how many of the one are not in the other. Sorts both. */
void nft_own_count(uint64_t *wanted, size_t n_wanted, uint64_t *there, size_t n_there,
		   size_t *ret_missing, size_t *ret_extra);
