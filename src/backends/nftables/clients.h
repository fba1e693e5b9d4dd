/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The clients that affinity remembers, read so that they can be put into maps that take the place of those they are in: when the
 * table is replaced, or a map because --affinity-clients says another size.
 *
 * Packets write these maps, so what they hold is known only by reading; what that costs grows with
 * the square of their number. Therefore a sync does not do it for longer than CLIENTS_READ_NS, however often it tries; a client that is not
 * read by then is balanced anew.
 */

#include "backends/nftables/state.h"
#include "backends/nftables/table.h"
#include "base/clock.h"
#include "base/err.h"

struct batch_writer;
struct nft_socket;

#define CLIENTS_READ_NS (500 * CLOCK_NS_PER_MS)

struct remembered {
	enum container container;
	uint32_t number;
	struct table_client client;
};

struct clients {
	struct remembered *v;
	size_t n, capacity;
	size_t n_unread; /* maps that could not be read, or not to their end */
	struct err err;  /* why, of the last one */
};

void clients_done(struct clients *clients);

#define cleanup_clients attr_cleanup(clients_done)

/* Those of one map, as many as it is to hold. Nothing is done after deadline_ns. */
void clients_read(struct nft_socket *socket, enum family family, const struct table_map *map,
		  size_t most, int64_t deadline_ns, struct clients *ret);
/* With the time that is left to each. */
void clients_restore(struct clients *clients, struct batch_writer *writer);
