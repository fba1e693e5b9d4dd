/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which objects of a kind have been seen: their keys, and no more of them than that. Each carries
 * the number of the list that last had it, so that a complete list knows what it lacks; whether it
 * is served; and what was last said about it, so that nothing is said twice.
 *
 * An object that cannot be understood is there all the same: a list that has it does not remove it,
 * and what was served of it before goes on being served. If not even its name can be read it may be
 * any of them, and such a list removes nothing at all.
 *
 * An object that was served and that a list has emptied (API_SET_EMPTY) is one that it lacks: it is
 * not taken over, and goes at the list's end if that counts. A watch empties at once.
 *
 * A list that would remove too much is held back (sync_guard.h): what it lacks stays, marked as
 * held. Whatever else becomes known of such an object counts as ever: it is set again, or removed by
 * a watch event. How much is too much is measured by what was there before: an object that only
 * lists have told of that were not complete, or were held back, is served, and not among it.
 */

#include "base/map.h"
#include "sources/api_object.h"
#include "sources/api_watch.h"
#include "sources/sync_guard.h"

struct api_known {
	const struct api_watch_kind *kind;
	const struct api_watch_io *io; /* to report */
	struct map objects;
	uint32_t list; /* the number of the list at hand, or of the last one */
	bool listing;  /* it is not complete yet */
	size_t n_served;
	uint32_t blind;  /* the number of the last list with an object whose name cannot be read */
	bool blind_said; /* and that was reported */
	bool full_said;  /* likewise that there are too many */
	struct sync_guard guard;
	size_t n_held; /* of the known objects */
	bool counted;  /* a list has counted, so that there is something to compare the next with */
};

/* A list begins, whatever came of the one before. */
void api_known_begin(struct api_known *known);
/* Offers an object to its kind; what cannot be understood is named, and stays as it was. */
void api_known_set(struct api_known *known, const struct api_object *object);
/* Something came of which not even the name can be read. */
void api_known_unreadable(struct api_known *known, const char *why);
void api_known_remove(struct api_known *known, const struct api_object *object);
/* The list is complete: what it did not have goes, or is held back. False: the first one is held
 * back as a whole, because it has nothing. */
bool api_known_sweep(struct api_known *known, int64_t now_ms);
/* What is held back goes now. False: nothing was. */
bool api_known_release(struct api_known *known);
void api_known_done(struct api_known *known); /* removes nothing */
