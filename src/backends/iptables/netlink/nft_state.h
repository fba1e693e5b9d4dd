/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The handles of the rules in shared chains, found by digest: the kernel deletes a rule by handle,
 * and a delta only knows the rule. 16 bytes an entry, so that 10,000 services take a quarter of a
 * megabyte.
 *
 * Equal rules may stand in a chain more than once; each of them has its entry. A rule that is not
 * here may still be in the kernel: then its chain is read again (nft_txn.h).
 */

#include "xtables/rule.h"

struct nft_state;

struct nft_state *nft_state_new(void);
struct nft_state *nft_state_free(struct nft_state *state); /* accepts NULL, returns NULL */

/* The number of a chain, which gets one when it has none. There are few (64,000 at most). */
unsigned int nft_state_chain(struct nft_state *state, enum table table, const char *name);
bool nft_state_find_chain(const struct nft_state *state, enum table table, const char *name,
			  unsigned int *ret);
/* The way back. */
size_t nft_state_n_chains(const struct nft_state *state);
const char *nft_state_chain_name(const struct nft_state *state, unsigned int chain);
enum table nft_state_chain_table(const struct nft_state *state, unsigned int chain);

void nft_state_add(struct nft_state *state, unsigned int chain, uint64_t digest, uint64_t handle);
/* Removes an entry and returns its handle; false: there is none. */
bool nft_state_take(struct nft_state *state, unsigned int chain, uint64_t digest,
		    uint64_t *ret_handle);
/* Removes the entry with that handle; false: there is none. */
bool nft_state_remove(struct nft_state *state, unsigned int chain, uint64_t digest,
		      uint64_t handle);
/* Forgets the rules of a chain; each is told first, if there is a function. */
typedef void nft_state_fn(void *arg, unsigned int chain, uint64_t digest, uint64_t handle);
void nft_state_forget(struct nft_state *state, unsigned int chain, nft_state_fn *fn, void *arg);
void nft_state_forget_all(struct nft_state *state);
size_t nft_state_count(const struct nft_state *state);
