/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/chain_set.h"

#include <assert.h>
#include <stdlib.h>

/*
 * Open addressing, at most three quarters full. A chain's hash is as good as random, so its first 32
 * bits, taken as a fraction of 2^32, are its place. A slot that was used keeps its hash.
 */

static_assert(sizeof(struct chain_slot) == 12, "slots are packed");

void chain_set_init(struct chain_set *set, size_t n_hashes)
{
	*set = (struct chain_set){.size = n_hashes + n_hashes / 3 + 1};
	set->slots = xcalloc(set->size, sizeof(*set->slots));
}

void chain_set_done(struct chain_set *set)
{
	free(set->slots);
	*set = (struct chain_set){0};
}

static bool is_free(const struct chain_slot *slot)
{
	static const struct chain_hash none;

	return !slot->there && !slot->wanted && memcmp(&slot->hash, &none, sizeof(none)) == 0;
}

/* The slot that has the hash, or the free one that it would get. */
static struct chain_slot *find_slot(const struct chain_set *set, const struct chain_hash *hash)
{
	uint32_t start;

	memcpy(&start, hash->bytes, sizeof(start));
	for (size_t i = (uint64_t)start * set->size >> 32;; i = (i + 1) % set->size) {
		struct chain_slot *slot = &set->slots[i];

		if (is_free(slot) || memcmp(&slot->hash, hash, sizeof(*hash)) == 0)
			return slot;
	}
}

static void grow(struct chain_set *set)
{
	struct chain_set old = *set;

	chain_set_init(set, 2 * old.size);
	set->count = old.count;
	for (size_t i = 0; i < old.size; i++)
		if (!is_free(&old.slots[i]))
			*find_slot(set, &old.slots[i].hash) = old.slots[i];
	free(old.slots);
}

struct chain_slot *chain_set_find(const struct chain_set *set, const struct chain_hash *hash)
{
	struct chain_slot *slot = find_slot(set, hash);

	return is_free(slot) ? NULL : slot;
}

struct chain_slot *chain_set_ensure(struct chain_set *set, const struct chain_hash *hash)
{
	struct chain_slot *slot = find_slot(set, hash);

	if (!is_free(slot))
		return slot;
	if (4 * (set->count + 1) > 3 * set->size) {
		grow(set);
		slot = find_slot(set, hash);
	}
	set->count++;
	slot->hash = *hash;
	return slot;
}

void chain_set_add(struct chain_set *set, enum chain_kind kind, const struct chain_hash *hash)
{
	chain_set_ensure(set, hash)->there |= (uint8_t)(1U << kind);
}

bool chain_set_has(const struct chain_set *set, const char *name)
{
	const struct chain_slot *slot = NULL;
	struct chain_hash hash;
	enum chain_kind kind;

	if (chain_name_parse(name, &kind, &hash))
		slot = chain_set_find(set, &hash);
	return slot && slot->there & 1U << kind;
}
