/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A set of per-service chains, kept as hashes: 11 bytes a place, for 60,000 chains 0.9 MB. */

#include "xtables/chains.h"

struct chain_slot {
	struct chain_hash hash;
	uint8_t kinds; /* bits of enum chain_kind; 0: free */
};

struct chain_set {
	struct chain_slot *slots;
	size_t size;
};

void chain_set_init(struct chain_set *set, size_t n_hashes); /* room for that many, no more */
void chain_set_done(struct chain_set *set);
void chain_set_add(struct chain_set *set, enum chain_kind kind, const struct chain_hash *hash);
bool chain_set_has(const struct chain_set *set, const char *name);

#define cleanup_chain_set attr_cleanup(chain_set_done)
