/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The plans of one family: the wanted one of every Service and, for each reader, the one that it applied last.
 *
 *	plan_store_update()    takes the model's changes and plans the Services that they concern, once for all
 *	                       readers; all Services, when the zone has changed
 *	plan_reader_take()     a delta: the Services whose wanted plan differs from the one that the reader applied
 *	plan_reader_commit()   the reader has applied what its delta says
 *	plan_reader_fail()     it has not: the next delta has the same Services again, merged with what comes until
 *	                       then. One that is as it was before, or that came and went, is in no delta
 *
 * Readers go at their own pace and see nothing of each other. Plans are shared by reference: a reader costs one
 * pointer for each Service. An update and a delta cost what changed; only a full delta, which has every Service, and
 * an update after another zone walk over all of them.
 *
 * A destination that several Services ask for is withheld (withheld.h) from all but its owner (address_owners.h). A
 * Service that gets or loses one because of what others ask for has a new plan, so it is in the deltas like any
 * other that changed. Conflicts (conflicts.h) are found, and told, when they are planned.
 *
 * While no reader is open nothing is planned, and an update only takes the model's changes.
 */

#include "plan/conflicts.h"
#include "plan/plan.h"

struct plan_record;

struct plan_change {
	const char *key;
	struct service_plan *applied, *wanted; /* NULL: none */
	struct plan_record *record;            /* the store's */
};

/* What a reader has to do. Valid until it commits or fails. */
struct plan_delta {
	bool full; /* has every Service that is wanted or applied, changed or not */
	const struct plan_change *changes; /* sorted by key */
	size_t n_changes;
	/*
	 * The same decisions, made from newer objects: there is nothing to apply, but who holds on to plans should
	 * take these, so that the older objects can go. None in a full delta.
	 */
	const struct plan_change *renewed;
	size_t n_renewed;

	/* about the family as a whole */
	size_t n_endpoints;
	const struct prefix *service_cidrs;
	size_t n_service_cidrs;
};

struct plan_store;
struct plan_reader;

/* n_readers: that may be open at the same time, 8 at most. Settings and model are borrowed. */
struct plan_store *plan_store_new(const struct settings *settings, struct model *model,
				  size_t n_readers);
struct plan_store *plan_store_free(struct plan_store *store); /* accepts NULL, returns NULL */
/* Hears of each new conflict. */
void plan_store_on_conflict(struct plan_store *store, conflict_fn *fn, void *arg);
/*
 * Hands on what was taken from the model, and adds the Services that got or lost a destination because of others; the
 * caller ends it.
 */
void plan_store_update(struct plan_store *store, struct model_changes *ret);

/* For who plans nothing: takes the changes, so that the model's endpoint lists are those of now. */
void plan_store_take_only(struct model *model, enum family family);

/* As of the last update: a Service that has a plan, and the one whose a destination is. NULL: none. */
const struct service *plan_store_service(const struct plan_store *store, const char *key);
const struct service *plan_store_owner(const struct plan_store *store,
				       const struct destination *destination);
/* Services that ask for what is not theirs, by kind. */
const size_t *plan_store_conflicts(const struct plan_store *store);
/* Service ports with a Local policy and only remote endpoints. */
void plan_store_count_no_local(const struct plan_store *store, size_t *ret_internal,
			       size_t *ret_external);

/* One that has applied nothing yet: its first delta has every Service. */
struct plan_reader *plan_reader_new(struct plan_store *store);
struct plan_reader *plan_reader_free(struct plan_reader *reader); /* accepts NULL, returns NULL */
/* Not again before commit or fail. */
const struct plan_delta *plan_reader_take(struct plan_reader *reader, bool full);
void plan_reader_commit(struct plan_reader *reader);
void plan_reader_fail(struct plan_reader *reader);

/* For who looks once: a store and a reader of its own, and the full delta of this moment. */
struct plan_once {
	struct plan_store *store;
	struct plan_reader *reader;
	const struct plan_delta *delta;
};

/* Takes the family's pending changes out of the model. */
void plan_once_take(struct plan_once *once, const struct settings *settings, struct model *model);
void plan_once_done(struct plan_once *once);
#define cleanup_plan_once attr_cleanup(plan_once_done)
