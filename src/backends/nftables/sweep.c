/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/sweep.h"

#include <errno.h>

#include "backends/nftables/batch_writer.h"
#include "backends/nftables/clients.h"
#include "kernel/nft_batch.h"

/*
 * An entry may time out between our reading it and its removal, and then the kernel refuses the
 * whole transaction. So it is tried again, and what is left after that dies within its time-out:
 * nothing renews it, since it is no member any more.
 */
#define ATTEMPTS 5

static int forget(struct nft_socket *socket, struct nft_batch *batch, enum family family,
		  const struct clients *stale, struct err *err)
{
	struct batch_writer writer;
	int r;

	batch_writer_init(&writer, family, LAYOUT_TABLE, batch);
	clients_forget(stale, &writer);
	batch_writer_flush(&writer);
	batch_writer_done(&writer);
	r = nft_batch_commit(socket, batch, 0, NULL, NULL, err);
	nft_batch_reset(batch);
	return r;
}

int sweep(struct nft_socket *socket, struct nft_batch *batch, enum family family,
	  struct state *state, struct err *err)
{
	cleanup_clients struct clients stale = {0};
	int r = -ENOENT;

	for (int i = 0; r == -ENOENT && i < ATTEMPTS; i++) {
		r = clients_find(socket, family, state, true, &stale, err);
		if (r == 0)
			r = forget(socket, batch, family, &stale, err);
	}
	return r < 0 ? r : (int)stale.n;
}
