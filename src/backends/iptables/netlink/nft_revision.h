/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the rules of a chain that stands to those that it shall have, by handles: rules that both lists
 * begin or end with are left alone, their counters too. Between them rules take the places of
 * others, and what is left over is inserted or deleted. Where endpoints come and go that is the
 * least there is, because the rules behind a place do not say how many there are before it.
 *
 *	revision = nft_revision_new(link, &wanted);      NULL: the handles are not known
 *	nft_revision_rule(revision, &rule);              each wanted rule, in order
 *	nft_revision_free(revision);                     all were told
 */

#include "backends/iptables/netlink/nft_link.h"
#include "xtables/txn.h"

struct nft_revision;

/* The digests of `wanted` are borrowed for as long as there is a revision. Deletes what is too much. */
struct nft_revision *nft_revision_new(struct nft_link *link, const struct txn_revision *wanted);
bool nft_revision_is(const struct nft_revision *revision, enum table table, const char *chain);
void nft_revision_rule(struct nft_revision *revision, const struct rule *rule);
struct nft_revision *nft_revision_free(struct nft_revision *revision); /* returns NULL */
