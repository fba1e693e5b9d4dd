/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The writer of nf_tables messages: what is said to it goes into a link's batch, in the order in
 * which it is said, and reaches the kernel as one transaction.
 *
 * A rule is removed by its handle. One whose handle is not known makes its chain be read again,
 * once; one that is not there either needs no removing. Handles that were used are gone from the
 * link's state at once: nft_txn_undo() puts them back when the transaction did not happen. In a
 * chain that spreads connections over endpoints only the rules that differ are written
 * (nft_revision.h).
 *
 *	nft_txn_init(&txn, link);
 *	more = ruleset_write(ruleset, &input, &txn.txn, &stats);
 *	r = nft_txn_commit(&txn, generation, err);
 *	if (more && r >= 0) nft_txn_next(&txn), and again
 *	nft_txn_done(&txn);
 */

#include "backends/iptables/netlink/nft_link.h"
#include "xtables/txn.h"

struct nft_audit;

struct nft_taken {
	uint64_t digest;
	uint64_t handle;
	unsigned int chain;
};

struct nft_txn {
	struct txn txn;
	struct nft_link *link;
	const struct map *held; /* chains that must not be deleted, by name; NULL: none */
	const struct refused_services *refused; /* whose messages are left out; NULL: none */
	bool skip;                              /* what is told now is about one of those */
	/* told of each chain that is written or deleted; NULL: none runs */
	struct nft_audit *audit;
	/*
	 * Rules of the table. The kernel validates what can be reached with each transaction, which takes
	 * as long as writing about 30 bytes for each of them: a piece is at least twice as large as that.
	 */
	size_t n_standing;
	size_t n_sent;    /* transactions before the one in hand */
	size_t n_missing; /* rules to be removed that were not there */
	int error;        /* of reading a chain */
	struct err err;
	struct nft_taken *taken;
	size_t n_taken, taken_capacity;
	unsigned int *learnt; /* chains that were read again */
	size_t n_learnt, learnt_capacity;
};

void nft_txn_init(struct nft_txn *txn, struct nft_link *link); /* empties the batch */
void nft_txn_done(struct nft_txn *txn);
/* As nft_link_commit(). After -ERESTART it may be called again. */
int nft_txn_commit(struct nft_txn *txn, uint32_t generation, struct err *err);
void nft_txn_next(struct nft_txn *txn); /* that was done, and there is more to say */
void nft_txn_undo(struct nft_txn *txn); /* and empties the batch */

#define cleanup_nft_txn attr_cleanup(nft_txn_done)
