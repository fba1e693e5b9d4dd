/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What others did to rules of ours, in words for the log, until it is told:
 *
 *	element of map service-ips deleted, rule of chain services added (3 times), and 7 more
 *
 * The same deed is noted once, with a count. Of different ones the first few are kept and the rest are
 * counted, so that nobody can make it grow. All of it is zero at first, and again to forget it.
 */

#include "base/util.h"

struct nlmsghdr;

#define NFT_DEEDS_MAX 6

struct nft_deed {
	char words[320]; /* names in nf_tables have 255 bytes at most */
	size_t n;        /* times */
};

struct nft_deeds {
	struct nft_deed v[NFT_DEEDS_MAX];
	size_t n;
	size_t n_more; /* of others, which have no words */
};

/* A notification. One that is of no known kind is counted among the rest. */
void nft_deeds_take(struct nft_deeds *deeds, const struct nlmsghdr *message);
/* The words are copied, and cut when they are too long. */
void nft_deeds_add(struct nft_deeds *deeds, const char *words, size_t n);
/* Adds all of `from`, which is empty afterwards. */
void nft_deeds_merge(struct nft_deeds *deeds, struct nft_deeds *from);
char *nft_deeds_text(const struct nft_deeds *deeds); /* owned by the caller; "" for none */
