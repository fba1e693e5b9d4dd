/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A dry run of nftables mode: what a first, full sync of one family would write, as a script for
 * `nft -f`. Touches nothing.
 */

#include "base/text.h"
#include "plan/plan_store.h"

/* Appends to *ret. delta: a full one. addresses: of the node's interfaces. */
void script_render(const struct settings *settings, const struct plan_delta *delta,
		   const struct addr *addresses, size_t n_addresses, struct text *ret);
