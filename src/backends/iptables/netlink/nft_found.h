/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The chains of one family that exist, as one dump lists them, and which of them are wanted: what a
 * comparison need not read because it is not there, and what is left over at its end.
 *
 * Chains of services are kept as hashes (chain_set.h), because there may be 60,000. Of all others
 * only base chains and those whose names begin as ours do are remembered.
 */

#include "backends/iptables/netlink/nft_link.h"

struct nft_found;

int nft_found_read(struct nft_link *link, struct nft_found **ret, struct err *err);
struct nft_found *nft_found_free(struct nft_found *found); /* accepts NULL, returns NULL */

bool nft_found_has(const struct nft_found *found, enum table table, const char *chain);
/* A chain of a service that is there, or was written meanwhile, is wanted. */
void nft_found_want(struct nft_found *found, const char *nat_chain);
/* A chain has been written, or deleted, since the list was made. */
void nft_found_add(struct nft_found *found, enum table table, const char *chain);
void nft_found_remove(struct nft_found *found, enum table table, const char *chain);

/*
 * Chains of services that no plan wants, each one before those that its rules may lead to, so that
 * they can be deleted in this order. Those of the index come first and may lead to each other: they
 * are all emptied before. *at begins at 0; false: no more.
 */
bool nft_found_next_stale(const struct nft_found *found, size_t *at, struct chain_name *ret);
