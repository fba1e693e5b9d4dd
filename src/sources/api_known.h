/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which objects of a kind have been seen: their keys, and no more of them than that. Each carries
 * the number of the list that last had it, so that a complete list knows what it lacks; whether it
 * is served; and what was last said about it, so that nothing is said twice.
 */

#include "base/map.h"
#include "sources/api_object.h"
#include "sources/api_watch.h"

struct api_known {
	const struct api_watch_kind *kind;
	const struct api_watch_io *io; /* to report */
	struct map objects;
	uint32_t list; /* the number of the list at hand; whoever begins one adds 1 */
	size_t n_served;
};

/* Offers an object to its kind; what cannot be served counts as removed, and is named. */
void api_known_set(struct api_known *known, const struct api_meta *meta, struct api_bytes object);
void api_known_remove(struct api_known *known, const struct api_meta *meta);
/* The list is complete: what it did not have goes. */
void api_known_sweep(struct api_known *known);
void api_known_done(struct api_known *known); /* removes nothing */
