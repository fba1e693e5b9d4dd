/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The transaction of a repair: what others touched (damage.h) is written again as it was, and nothing else.
 *
 *	a key          is deleted if another program put it there, and added if it was there before
 *	a container    is emptied and filled
 *	a chain        is made if it is gone, emptied, and gets its rules
 *
 * It belongs between two syncs, and on the generation up to which the damage is known: then the table is once more what
 * the state says that it is, and the next difference can be made. What has changed in the model is no part of it.
 *
 * The kernel sees to it that the damage is enough. A chain that is used cannot be deleted, so a program that deleted one has
 * touched all that led to it, and has been heard to; the same holds for chains of others that our rules and elements
 * were bent to. Where the table is not what the notifications made of it all the same, the kernel
 * refuses an element that is not there, or has other data, and a full sync (table_full.h) takes over.
 */

#include "backends/nftables/batch_writer.h"
#include "backends/nftables/damage.h"
#include "backends/nftables/state.h"

/* False: only a full sync helps, and nothing was written. */
bool table_repair_write(const struct damage *damage, struct state *state,
			struct batch_writer *writer);
