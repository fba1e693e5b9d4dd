/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/chain_set.h"

#include <assert.h>
#include <stdlib.h>

/*
 * Open addressing, at most three quarters full. A chain's hash is as good as random, so its first 32
 * bits, taken as a fraction of 2^32, are its place.
 */

static_assert(sizeof(struct chain_slot) == 11, "slots are packed");

void chain_set_init(struct chain_set *set, size_t n_hashes)
{
	set->size = n_hashes + n_hashes / 3 + 1;
	set->slots = xcalloc(set->size, sizeof(*set->slots));
}

void chain_set_done(struct chain_set *set)
{
	free(set->slots);
	*set = (struct chain_set){0};
}

/* The slot that has the hash, or the free one that it would get. */
static struct chain_slot *find_slot(const struct chain_set *set, const struct chain_hash *hash)
{
	uint32_t start;

	memcpy(&start, hash->bytes, sizeof(start));
	for (size_t i = (uint64_t)start * set->size >> 32;; i = (i + 1) % set->size) {
		struct chain_slot *slot = &set->slots[i];

		if (!slot->kinds || memcmp(&slot->hash, hash, sizeof(*hash)) == 0)
			return slot;
	}
}

void chain_set_add(struct chain_set *set, enum chain_kind kind, const struct chain_hash *hash)
{
	struct chain_slot *slot = find_slot(set, hash);

	slot->hash = *hash;
	slot->kinds |= (uint8_t)(1U << kind);
}

bool chain_set_has(const struct chain_set *set, const char *name)
{
	struct chain_hash hash;
	enum chain_kind kind;

	if (!chain_name_parse(name, &kind, &hash))
		return false;
	return find_slot(set, &hash)->kinds & 1U << kind;
}
