/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Moving from one mode to another: once all families have had their first good sync, what a proxy of
 * another mode left is removed. Until then both are there, and whichever sees a connection first
 * serves it, so no client is without service for a moment. That may take a while, so another process
 * does it (kernel/forked_task.h), and syncs go on meanwhile.
 */

#include "backends/backend.h"

struct event_base;
struct other_modes;

/* What other modes have left, in the order of backend_modes. */
struct other_modes_leftovers {
	unsigned int v[BACKEND_MODES_MAX][FAMILY_COUNT]; /* as backend_ops.leftovers() says */
	unsigned int needs;                              /* what it takes to remove it all */
};

/* To be asked before the sandbox is entered. Blocks, for some milliseconds. */
void other_modes_look(const struct backend_ops *mine, struct other_modes_leftovers *ret);

/*
 * families: a bit for each. What it begins to remove is taken from leftovers. Reports by itself. NULL: no
 * process can be started, which is logged.
 */
struct other_modes *other_modes_clean(struct event_base *loop, const struct backend_ops *mine,
				      unsigned int families,
				      struct other_modes_leftovers *leftovers);
/* Accepts NULL, returns NULL. What is not finished within seconds is left to the next start. */
struct other_modes *other_modes_free(struct other_modes *other);
