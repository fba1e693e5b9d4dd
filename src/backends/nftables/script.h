/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A dry run of nftables mode: what a first, full sync of one family would write, as a script for
 * `nft -f`. Touches nothing.
 */

#include "base/text.h"
#include "model/model.h"
#include "plan/settings.h"

/*
 * Appends to *ret. Takes the family's pending changes out of the model, as any sync does.
 * addresses: of the node's interfaces.
 */
void script_render(const struct settings *settings, struct model *model,
		   const struct addr *addresses, size_t n_addresses, struct text *ret);
