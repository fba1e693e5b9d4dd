/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_found.h"

#include <assert.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_message.h"
#include "xtables/nft_chain.h"

struct slot {
	struct chain_hash hash;
	uint8_t there;  /* bits of enum chain_kind; 0: free, or all were deleted */
	uint8_t wanted; /* the same */
};

static_assert(sizeof(struct slot) == 12, "slots are packed");

struct nft_found {
	struct slot *slots;
	size_t size, count;
	struct map others; /* by a letter for the table and the name */
	struct arena *names;
};

#define MIN_SIZE 64
#define KEY_MAX  64

/* Who may lead to whom: those of the index to all, FW to EXT, EXT to SVC and SVL, those to SEP. */
static const enum chain_kind deletion_order[] = {
	CHAIN_KIND_INDEX, CHAIN_KIND_FW,  CHAIN_KIND_EXT,
	CHAIN_KIND_SVC,   CHAIN_KIND_SVL, CHAIN_KIND_SEP,
};

static_assert(ARRAY_SIZE(deletion_order) == CHAIN_KIND_COUNT, "each kind has its turn");

/* -- the chains of services */

static bool is_free(const struct slot *slot)
{
	static const struct chain_hash none;

	return !slot->there && !slot->wanted && memcmp(&slot->hash, &none, sizeof(none)) == 0;
}

static struct slot *find_slot(const struct nft_found *found, const struct chain_hash *hash)
{
	uint32_t start;

	memcpy(&start, hash->bytes, sizeof(start));
	for (size_t i = start;; i++) {
		struct slot *slot = &found->slots[i & (found->size - 1)];

		if (is_free(slot) || memcmp(&slot->hash, hash, sizeof(*hash)) == 0)
			return slot;
	}
}

static void grow(struct nft_found *found)
{
	struct slot *old = found->slots;
	size_t old_size = found->size;

	found->size *= 2;
	found->slots = xcalloc(found->size, sizeof(*found->slots));
	for (size_t i = 0; i < old_size; i++)
		if (!is_free(&old[i]))
			*find_slot(found, &old[i].hash) = old[i];
	free(old);
}

static struct slot *add_slot(struct nft_found *found, const struct chain_hash *hash)
{
	struct slot *slot;

	if (4 * (found->count + 1) > 3 * found->size)
		grow(found);
	slot = find_slot(found, hash);
	found->count += is_free(slot);
	slot->hash = *hash;
	return slot;
}

/* -- all others */

static bool make_key(enum table table, const char *chain, char key[static KEY_MAX])
{
	size_t n = strlen(chain);

	if (n > KEY_MAX - 2)
		return false;
	key[0] = (char)('a' + table);
	memcpy(key + 1, chain, n + 1);
	return true;
}

static bool is_worth_remembering(enum table table, const char *chain)
{
	return has_prefix(chain, "KUBE-") || nft_chain_is_base(table, chain);
}

/* -- reading */

static void restart(void *arg)
{
	struct nft_found *found = arg;

	free(found->slots);
	found->size = MIN_SIZE;
	found->count = 0;
	found->slots = xcalloc(found->size, sizeof(*found->slots));
	map_done(&found->others);
	found->names = arena_free(found->names);
	found->names = arena_new(1024);
}

static int take_chain(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	const char *table_text = nft_message_string(message, NFTA_CHAIN_TABLE);
	const char *name = nft_message_string(message, NFTA_CHAIN_NAME);
	enum table table;

	if (nft_message_type(message) == NFT_MSG_NEWCHAIN && table_text && name &&
	    table_parse(table_text, &table))
		nft_found_add(arg, table, name);
	return 0;
}

int nft_found_read(struct nft_link *link, struct nft_found **ret, struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = restart, .message = take_chain};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETCHAIN,
		.family = link->family,
	};
	struct nft_found *found = xcalloc(1, sizeof(*found));
	int r;

	restart(found);
	r = nft_dump(link->socket, &request, &ops, found, err);
	if (r < 0) {
		nft_found_free(found);
		return err_wrap(err, r, "listing the chains");
	}
	*ret = found;
	return 0;
}

struct nft_found *nft_found_free(struct nft_found *found)
{
	if (!found)
		return NULL;
	free(found->slots);
	map_done(&found->others);
	arena_free(found->names);
	free(found);
	return NULL;
}

/* -- asking */

bool nft_found_has(const struct nft_found *found, enum table table, const char *chain)
{
	struct chain_hash hash;
	enum chain_kind kind;
	char key[KEY_MAX];

	if (table == TABLE_NAT && chain_name_parse(chain, &kind, &hash))
		return find_slot(found, &hash)->there & 1U << kind;
	return make_key(table, chain, key) && map_get(&found->others, key);
}

void nft_found_want(struct nft_found *found, const char *nat_chain)
{
	struct chain_hash hash;
	enum chain_kind kind;

	if (chain_name_parse(nat_chain, &kind, &hash))
		add_slot(found, &hash)->wanted |= (uint8_t)(1U << kind);
}

void nft_found_add(struct nft_found *found, enum table table, const char *chain)
{
	struct chain_hash hash;
	enum chain_kind kind;
	char key[KEY_MAX];
	char *copy;

	if (table == TABLE_NAT && chain_name_parse(chain, &kind, &hash)) {
		add_slot(found, &hash)->there |= (uint8_t)(1U << kind);
		return;
	}
	if (!is_worth_remembering(table, chain) || !make_key(table, chain, key) ||
	    map_get(&found->others, key))
		return;
	copy = arena_strdup(found->names, key);
	map_set(&found->others, copy, copy);
}

void nft_found_remove(struct nft_found *found, enum table table, const char *chain)
{
	struct chain_hash hash;
	enum chain_kind kind;
	char key[KEY_MAX];

	if (table == TABLE_NAT && chain_name_parse(chain, &kind, &hash)) {
		struct slot *slot = find_slot(found, &hash);

		slot->there &= (uint8_t) ~(1U << kind);
		slot->wanted &= (uint8_t) ~(1U << kind);
	} else if (make_key(table, chain, key)) {
		map_remove(&found->others, key);
	}
}

bool nft_found_next_stale(const struct nft_found *found, size_t *at, struct chain_name *ret)
{
	for (; *at < found->size * CHAIN_KIND_COUNT; (*at)++) {
		enum chain_kind kind = deletion_order[*at / found->size];
		const struct slot *slot = &found->slots[*at % found->size];

		if (slot->there & ~slot->wanted & 1U << kind) {
			chain_name_make(kind, &slot->hash, ret);
			(*at)++;
			return true;
		}
	}
	return false;
}
