/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sync step of one family: has its plans (plan_store.h), decides when the backend is told to bring the kernel
 * to what they ask for, and says in the log how that went.
 *
 * Nothing is written before family_sync_start(). After that a request runs as soon as the least time
 * between syncs allows, or where none was asked for the pace (runner.h), the first one at once; a failed sync is tried again after the sync period,
 * the one of the start too; rules that another program removed are put back at once.
 */

#include "backends/backend.h"

struct family_sync;

/* Where the time comes from, so that tests can move it by hand. */
struct family_sync_clock {
	int64_t (*now_ns)(void *arg); /* steady */
	void *arg;
};

/* Who is told what happens; every function is there. */
struct family_sync_observer {
	void (*started)(void *arg, enum family family); /* the sync loop */
	void (*queued)(void *arg, enum family family);  /* a request that waits for its sync */
	void (*synced)(void *arg, enum family family, const struct backend_result *result);
	void (*flushed)(void *arg, enum family family);  /* by another program; a repair follows */
	void (*repaired)(void *arg, enum family family); /* foreign damage, without a sync */
	/* the answer to family_sync_check(), as backend_events.checked() */
	void (*checked)(void *arg, enum family family, int r, const struct err *err);
	/* as backend_events.clients_full_count() */
	void (*clients_full)(void *arg, enum family family, size_t n);
	void *arg;
};

/* Opens the backend. All but err is borrowed and must outlive it. */
int family_sync_new(struct event_base *loop, const struct backend_ops *ops,
		    const struct backend_host *host, const struct settings *settings,
		    struct model *model, const struct family_sync_clock *clock,
		    struct family_sync **ret, struct err *err);
struct family_sync *
family_sync_free(struct family_sync *sync); /* accepts NULL, returns NULL; rules stay */

/* Before the start; borrowed. */
void family_sync_observe(struct family_sync *sync, const struct family_sync_observer *observer);
unsigned int family_sync_needs(const struct family_sync *sync); /* enum backend_needs */

/* What an owner may want to hear beside the log; each may be NULL. */
struct family_sync_hooks {
	void (*first_synced)(void *arg); /* the first good sync is over */
	void (*conflict)(void *arg, const struct conflict *conflict);
	void (*refused)(void *arg, const struct backend_refusal *refusal);
	void (*clients_full)(void *arg, const struct backend_full *full);
	void *arg;
};

void family_sync_set_hooks(struct family_sync *sync,
			   const struct family_sync_hooks *hooks); /* copied */

/* The model holds the whole initial state: the first sync starts now. */
void family_sync_start(struct family_sync *sync);
/* Something changed. Any number of requests before the next sync are one. */
void family_sync_request(struct family_sync *sync);
/* A request that also says: trust nothing that was applied before. */
void family_sync_request_full(struct family_sync *sync);
/* The operator wants to know whether all rules are right: repairs and logs; a full sync at the least. */
void family_sync_audit(struct family_sync *sync);

/* Are the rules there? The observer is told, now or soon. */
void family_sync_check(struct family_sync *sync);

/* NodePorts on localhost, as backend_ops.localhost() tells; false: the mode has no such thing. */
bool family_sync_localhost(const struct family_sync *sync, struct backend_localhost *ret);

/* Runs what is due, and sets the timer that calls this again. Idle calls are harmless. */
void family_sync_tick(struct family_sync *sync);
/* When the next sync starts by itself; RUNNER_NEVER while one runs or before the start. */
int64_t family_sync_next_ns(const struct family_sync *sync);
