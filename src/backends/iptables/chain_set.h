/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A set of per-service chains, kept as hashes: 12 bytes a place, for 60,000 chains 1 MB. For each kind of
 * chain a bit says whether it is there, and another one whether it is wanted.
 */

#include "xtables/chains.h"

struct chain_slot {
	struct chain_hash hash;
	uint8_t there, wanted; /* bits of enum chain_kind */
};

struct chain_set {
	struct chain_slot *slots;
	size_t size, count;
};

void chain_set_init(struct chain_set *set, size_t n_hashes); /* has room for so many, and grows */
void chain_set_done(struct chain_set *set);
void chain_set_add(struct chain_set *set, enum chain_kind kind, const struct chain_hash *hash);
bool chain_set_has(const struct chain_set *set, const char *name); /* is it there? */

/* The slot of a hash: NULL, or made, when there is none. Good until the next one is made. */
struct chain_slot *chain_set_find(const struct chain_set *set, const struct chain_hash *hash);
struct chain_slot *chain_set_ensure(struct chain_set *set, const struct chain_hash *hash);

#define cleanup_chain_set attr_cleanup(chain_set_done)
