/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Forgetting clients whose endpoint has gone: entries of the two affinity maps that no member
 * stands behind. Packets write these maps, so what they hold is known only by reading them.
 */

#include "backends/nftables/state.h"
#include "base/err.h"

struct nft_batch;
struct nft_socket;

/* After state_end(). Returns how many were forgotten. The batch is empty, and is again afterwards. */
int sweep(struct nft_socket *socket, struct nft_batch *batch, enum family family,
	  struct state *state, struct err *err);
