/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The transaction of a full sync: what is there is emptied and written again. The table is not read,
 * because lists of large maps cost the square of their size; the clients that affinity remembers stay.
 * A table of another kind is replaced as a whole, and a map of clients if it is to have another size.
 *
 * What the kernel may refuse, and what helps:
 *
 *	by_owner   each service port has messages of its own, so that a refusal says whose it is
 *	replace    a table that carries our comment may still have been bent by hand so that it cannot
 *	           be emptied and filled again: then it is replaced too, and the clients are put back
 */

#include "backends/nftables/batch_writer.h"
#include "backends/nftables/state.h"

struct nft_batch;
struct nft_socket;

struct table_full {
	const struct settings *settings; /* this and the next three are borrowed */
	struct nft_socket *socket;
	struct nft_batch *batch;
	struct state *state;
	bool by_owner, replace;
	bool ids_known; /* those that clients were remembered by; else the table is replaced, and no client is remembered */
	int64_t clients_until_ns; /* then clients are read no more */
	struct batch_owners owners;
	size_t n_written; /* elements */
};

void table_full_done(struct table_full *full);
int table_full_commit(struct table_full *full, uint32_t generation, struct err *err);

/*
 * After a refusal, by_owner: one service port of each Service whose messages were refused, up to
 * half of all Services. 0: it was something else, or it was so many that the table must be wrong.
 */
struct table_full_culprit {
	const struct port_plan *port;
	char reason[256];
};

size_t table_full_culprits(const struct table_full *full, struct table_full_culprit **ret);
