/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_found.h"

#include <assert.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "backends/iptables/chain_set.h"
#include "base/arena.h"
#include "base/map.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_message.h"
#include "xtables/nft_chain.h"

struct nft_found {
	struct chain_set chains; /* of services */
	struct map others;       /* by a letter for the table and the name */
	struct arena *names;
};

#define KEY_MAX 64

/* Who may lead to whom: those of the index to all, FW to EXT, EXT to SVC and SVL, those to SEP. */
static const enum chain_kind deletion_order[] = {
	CHAIN_KIND_INDEX, CHAIN_KIND_FW,  CHAIN_KIND_EXT,
	CHAIN_KIND_SVC,   CHAIN_KIND_SVL, CHAIN_KIND_SEP,
};

static_assert(ARRAY_SIZE(deletion_order) == CHAIN_KIND_COUNT, "each kind has its turn");

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

	chain_set_done(&found->chains);
	chain_set_init(&found->chains, 64);
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
	chain_set_done(&found->chains);
	map_done(&found->others);
	arena_free(found->names);
	free(found);
	return NULL;
}

/* -- asking */

bool nft_found_has(const struct nft_found *found, enum table table, const char *chain)
{
	char key[KEY_MAX];

	if (table == TABLE_NAT && chain_set_has(&found->chains, chain))
		return true;
	return make_key(table, chain, key) && map_get(&found->others, key);
}

void nft_found_want(struct nft_found *found, const char *nat_chain)
{
	struct chain_hash hash;
	enum chain_kind kind;

	if (chain_name_parse(nat_chain, &kind, &hash))
		chain_set_ensure(&found->chains, &hash)->wanted |= (uint8_t)(1U << kind);
}

void nft_found_add(struct nft_found *found, enum table table, const char *chain)
{
	struct chain_hash hash;
	enum chain_kind kind;
	char key[KEY_MAX];
	char *copy;

	if (table == TABLE_NAT && chain_name_parse(chain, &kind, &hash)) {
		chain_set_add(&found->chains, kind, &hash);
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
		struct chain_slot *slot = chain_set_find(&found->chains, &hash);

		if (!slot)
			return;
		slot->there &= (uint8_t) ~(1U << kind);
		slot->wanted &= (uint8_t) ~(1U << kind);
	} else if (make_key(table, chain, key)) {
		map_remove(&found->others, key);
	}
}

bool nft_found_next_stale(const struct nft_found *found, size_t *at, struct chain_name *ret)
{
	const struct chain_set *chains = &found->chains;

	for (; *at < chains->size * CHAIN_KIND_COUNT; (*at)++) {
		enum chain_kind kind = deletion_order[*at / chains->size];
		const struct chain_slot *slot = &chains->slots[*at % chains->size];

		if (slot->there & ~slot->wanted & 1U << kind) {
			chain_name_make(kind, &slot->hash, ret);
			(*at)++;
			return true;
		}
	}
	return false;
}
