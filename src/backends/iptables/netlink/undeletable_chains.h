/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Chains of table nat that should be deleted but that rules of other programs lead to: they are emptied and stay, until
 * an audit of everything tries again.
 */

#include "base/addr.h"
#include "base/map.h"

struct undeletable_chains {
	enum family family;
	struct map names; /* as their own values */
};

void undeletable_chains_add(struct undeletable_chains *chains, const char *name);
void undeletable_chains_forget(struct undeletable_chains *chains);
