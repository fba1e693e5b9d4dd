/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Compares a chain that is all ours with the kernel's and puts into the batch what makes it as it
 * should be. A chain that is right is not touched; one that differs in anything, the order of its rules
 * included, is emptied and filled anew, by messages that are right whatever others do meanwhile.
 */

#include "backends/iptables/netlink/nft_found.h"
#include "backends/refused_services.h"
#include "xtables/rule_list.h"

/* A chain that was not as it should be. A chain that does not exist misses all its rules. */
struct nft_difference {
	enum table table;
	const char *chain;
	size_t missing; /* rules; with extra 0 too: in the wrong order */
	size_t extra;
};

typedef void nft_difference_fn(void *arg, const struct nft_difference *difference);

/*
 * All is borrowed. refused: Services that wait; what the index of services has of
 * them is left out. found NULL: what exists is not known; the chain is read. Else it is read if it is
 * there, and is noted as wanted.
 */
struct nft_own {
	struct nft_link *link;
	const struct refused_services *refused;
	struct nft_found *found;
	bool interrupted; /* in a Service: chains of it that were not found may have been written */
	nft_difference_fn *differs;
	void *arg;
};

/* 1: it was not right, and the batch has it; 0: nothing has to be done. */
int nft_own_compare(const struct nft_own *own, const struct rule_chain *chain, struct err *err);
