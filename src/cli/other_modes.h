/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Moving from one mode to another: once all families have had their first good sync, what a proxy of
 * another mode left is removed. Until then both are there, and whichever sees a connection first
 * serves it, so nobody is without service for a moment. That may take a while, so another process
 * does it (kernel/errand.h), and syncs go on meanwhile.
 */

#include "backends/backend.h"

struct event_base;
struct other_modes;

/* families: a bit for each. Reports by itself. NULL: no process can be started, which is logged. */
struct other_modes *other_modes_clean(struct event_base *loop, const struct backend_ops *mine,
				      unsigned int families);
/* Accepts NULL, returns NULL. What is not finished within seconds is left to the next start. */
struct other_modes *other_modes_free(struct other_modes *other);
