/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The handles of the rules in the chains that spread connections over endpoints (KUBE-SVC-,
 * KUBE-SVL-), in order: with them a delta replaces single rules. 16 bytes a chain as long as its handles follow
 * each other, as they do in a chain that was written whole.
 *
 * Nobody asks for these handles: they are foretold. The kernel counts handles up, one for each new chain
 * or rule of a table, and nobody comes in between within a transaction. So all are known when the first one
 * and the last one are and when they are as far apart as what was made between them. If they are not, because
 * a chain that was to be made existed, none of that transaction is known, which is no harm: a chain
 * whose handles are not known is written whole.
 *
 *	nft_handles_begin(handles);                     a batch
 *	at = nft_handles_made(handles);                 a message that makes a chain or rule
 *	nft_handles_append(handles, chain, at);         a rule, at the end of its chain
 *	nft_handles_told(handles, at, handle);          the kernel's word, for two of them at least
 *	nft_handles_end(handles);                       it was done
 *
 * Chains are those of table nat, by name; names of other chains are accepted and never known.
 */

#include "xtables/chains.h"

struct nft_handles;

#define NFT_HANDLE_MADE \
	(1ULL << 63) /* in a list: by the batch in hand, as nft_handles_made() said */

struct nft_handles *nft_handles_new(void);
struct nft_handles *nft_handles_free(struct nft_handles *handles); /* accepts NULL, returns NULL */

/* For the caller to free; NULL: not known, or there are none. */
uint64_t *nft_handles_get(const struct nft_handles *handles, const char *chain, size_t *ret_n);
void nft_handles_set(struct nft_handles *handles, const char *chain, const uint64_t *v, size_t n);
void nft_handles_forget(struct nft_handles *handles, const char *chain);
void nft_handles_forget_all(struct nft_handles *handles);
size_t nft_handles_count(const struct nft_handles *handles); /* chains */

void nft_handles_begin(struct nft_handles *handles); /* what was said of another batch is void */
uint64_t nft_handles_made(struct nft_handles *handles);
void nft_handles_append(struct nft_handles *handles, const char *chain, uint64_t at);
/* The chain will have these rules; what is not NFT_HANDLE_MADE is a handle. Copied. */
void nft_handles_plan(struct nft_handles *handles, const char *chain, const uint64_t *v, size_t n);
void nft_handles_told(struct nft_handles *handles, uint64_t at, uint64_t handle);
void nft_handles_end(struct nft_handles *handles);
