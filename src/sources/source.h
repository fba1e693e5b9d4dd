/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where wishes come from. A source reads objects somewhere (a folder of manifests, an API server),
 * turns them into the model's plain data and reports typed changes to one sink. It keeps no opinion
 * of what they mean and never touches rules.
 */

#include "model/model.h"

/* An object that is not, or not wholly, served as it asks for; what was served of it before stays. */
struct source_misread {
	const char *kind;    /* "EndpointSlice" */
	const char *key;     /* its own */
	const char *service; /* of the Service that it is about; "": not known */
	bool refused;        /* its newest version, as a whole; else parts of it were left out */
	bool served;         /* something is: an older version, or the other parts */
	const char *why;
};

/* What a list lacks, and is held back all the same; see sync_guard.h. */
struct source_held {
	const char *resource; /* "services" or "endpointslices" */
	size_t n;             /* objects; 0: nothing any more */
	const char *text;     /* what happened, in a line; NULL: only the number changed */
};

struct source_sink {
	/* Takes over the reference; replaces what was known under the same key. Of Nodes only this node's
	 * own is told. */
	void (*set)(void *arg, struct object object);
	void (*remove)(void *arg, enum object_kind kind, const char *key);
	bool service_cidrs; /* are asked for; else none is told */
	/* Of the Services that had endpoints, how many would have none left; may be NULL. */
	void (*count_stranded)(void *arg, const struct model_slice_change *change,
			       size_t *ret_known, size_t *ret_stranded);
	/* Called once, before synced(): there is a Node by now, or there is none. hope: what it lacks may
	 * come soon, and is worth a wait. May be NULL. */
	void (*node_listed)(void *arg, bool hope);
	/* The initial state has been reported in full; called once. No rule is written before. */
	void (*synced)(void *arg);
	void *arg;
};
