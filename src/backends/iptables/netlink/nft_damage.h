/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What others did to our chains, as notifications tell it, until it is repaired: which chains have to
 * be read back. Foreign rules in base chains, and everything in chains that are not ours, is none of
 * it; of a base chain only the loss of one of our jumps is.
 *
 * Where rules of a shared chain whose handles were known are gone, and nothing else happened to it, their
 * number is all that has to be known: what is left need not be read.
 */

#include "backends/iptables/netlink/nft_link.h"
#include "backends/iptables/ruleset.h"
#include "base/map.h"
#include "kernel/foreign_changes.h"

#define NFT_DAMAGE_CHAINS_MAX 64 /* more chains of services than this: everything is looked at */

struct nft_damage_shared {
	bool touched;
	bool unclear;  /* more happened to it than the loss of known rules */
	size_t n_lost; /* of those */
};

struct nft_damage {
	bool flushed;      /* a table or a canary is gone: write all again */
	bool unknown;      /* notifications were lost, or there was too much: look at everything */
	struct map chains; /* of services, by name */
	struct arena *names;              /* NULL: none */
	struct nft_damage_shared *shared; /* by the number in link->state */
	size_t n_shared;                  /* length of that */
	bool shared_missing;              /* a shared chain was deleted */
	bool jumps;                       /* one is gone */
	size_t n_messages;
};

void nft_damage_done(struct nft_damage *damage); /* none any more */
bool nft_damage_any(const struct nft_damage *damage);

/* Digests of the jumps, to recognise them. */
struct nft_damage_jumps {
	uint64_t digests[RULESET_JUMPS];
};

void nft_damage_jumps_init(struct nft_damage_jumps *jumps);
/* A message of another program. changes: those that flush are added. */
void nft_damage_take(struct nft_damage *damage, const struct nft_link *link,
		     const struct nft_damage_jumps *jumps, const struct nlmsghdr *message,
		     struct foreign_changes *changes);
/* Adds all of `from`, which is empty afterwards. */
void nft_damage_merge(struct nft_damage *damage, struct nft_damage *from);
