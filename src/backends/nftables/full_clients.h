/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Maps of clients that are full. The kernel does not tell when a map has no room for a client; but the rule that writes it
 * ends there, and the next one notes the service port in set full-clients (layout.c), for LAYOUT_FULL_SECONDS
 * from the last such client on. So a look at that set, which is empty as a rule, is all it takes.
 */

#include "backends/backend.h"
#include "backends/nftables/state.h"
#include "base/err.h"

struct nft_socket;

struct full_clients {
	struct map told; /* "namespace/name:port/tcp" */
};

void full_clients_done(struct full_clients *full);

/* Each is told once, and again after there was room. Returns how many service ports have a full map, or an error. */
typedef void full_clients_fn(void *arg, const struct backend_full *full);
int full_clients_look(struct full_clients *full, struct nft_socket *socket, struct state *state,
		      const struct settings *settings, full_clients_fn *fn, void *arg,
		      struct err *err);
