/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sync step of one family: decides when the backend is told to bring the kernel to what the
 * model asks for, and says in the log how that went.
 *
 * Nothing is written before proxier_start(). After that a request runs as soon as the least time
 * between syncs allows, or where none was asked for the pace (runner.h), the first one at once; a failed sync is tried again after the sync period,
 * the one of the start too; rules that somebody else removed are put back at once.
 */

#include "backends/backend.h"

struct proxier;

/* Where the time comes from, so that tests can move it by hand. */
struct proxier_clock {
	int64_t (*now_ns)(void *arg); /* steady */
	void *arg;
};

/* Who is told what happens; every function is there. */
struct proxier_observer {
	void (*started)(void *arg, enum family family); /* the sync loop */
	void (*queued)(void *arg, enum family family);  /* a request that waits for its sync */
	void (*synced)(void *arg, enum family family, const struct backend_result *result);
	void (*flushed)(void *arg, enum family family);  /* by somebody else; a repair follows */
	void (*repaired)(void *arg, enum family family); /* foreign damage, without a sync */
	/* the answer to proxier_check(), as backend_events.checked() */
	void (*checked)(void *arg, enum family family, int r, const struct err *err);
	void *arg;
};

/* Opens the backend. All but err is borrowed and must outlive the proxier. */
int proxier_new(struct event_base *loop, const struct backend_ops *ops,
		const struct settings *settings, struct model *model,
		const struct proxier_clock *clock, struct proxier **ret, struct err *err);
struct proxier *proxier_free(struct proxier *proxier); /* accepts NULL, returns NULL; rules stay */

/* Before the start; borrowed. */
void proxier_observe(struct proxier *proxier, const struct proxier_observer *observer);

/* What an owner may want to hear beside the log; each may be NULL. */
struct proxier_hooks {
	void (*first_synced)(void *arg); /* the first good sync is over */
	void (*conflict)(void *arg, const struct backend_conflict *conflict);
	void (*refused)(void *arg, const struct backend_refusal *refusal);
	void *arg;
};

void proxier_set_hooks(struct proxier *proxier, const struct proxier_hooks *hooks); /* copied */

/* The model holds the whole initial state: the first sync starts now. */
void proxier_start(struct proxier *proxier);
/* Something changed. Any number of requests before the next sync are one. */
void proxier_request(struct proxier *proxier);
/* A request that also says: trust nothing that was applied before. */
void proxier_request_full(struct proxier *proxier);
/* Somebody wants to know whether all rules are right: repairs and logs; a full sync at the least. */
void proxier_audit(struct proxier *proxier);

/* Are the rules there? The observer is told, now or soon. */
void proxier_check(struct proxier *proxier);

/* Runs what is due, and sets the timer that calls this again. Idle calls are harmless. */
void proxier_tick(struct proxier *proxier);
/* When the next sync starts by itself; RUNNER_NEVER while one runs or before the start. */
int64_t proxier_next_ns(const struct proxier *proxier);
