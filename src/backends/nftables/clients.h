/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The clients that affinity remembers. Packets write them into the two affinity maps, so they are
 * known only by reading these; what that costs grows with the square of their number.
 */

#include "backends/nftables/state.h"
#include "backends/nftables/table.h"
#include "base/err.h"

struct batch_writer;
struct nft_socket;

struct remembered {
	enum container container;
	struct table_client client;
};

struct clients {
	struct remembered *v;
	size_t n, capacity;
};

void clients_done(struct clients *clients);

#define cleanup_clients attr_cleanup(clients_done)

/* Those whose endpoint is a member of their service port as the wanted plans have it; or, stale,
 * all others. */
int clients_find(struct nft_socket *socket, enum family family, struct state *state, bool stale,
		 struct clients *ret, struct err *err);
void clients_forget(const struct clients *clients, struct batch_writer *writer);
/* With the time that is left to each. */
void clients_restore(const struct clients *clients, struct batch_writer *writer);
