/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * May a complete list take away all that it lacks? An API server that answers with an empty list, or
 * with half of one, is more often broken than a cluster is suddenly empty, and the rules of a node
 * are all that still works then. So a list that would take away more than a share of what is known
 * is held back, until a second one, a minute later or more, says the same.
 *
 *   free -> holding    a list would take away too much
 *   holding -> holding what it lacks too much of is not confirmed: it has a minute of its own
 *   holding -> free    a list a minute later lacks the same, and counts; or one lacks so little that
 *                      it counts at once; or the operator lets it through
 *
 * The first list has nothing to be compared with. But every cluster has the Service
 * default/kubernetes and its endpoints, so a first list of nothing is doubtful in the same way.
 *
 * Only arithmetic on what it is told; no clock of its own.
 */

#include "base/util.h"

#define SYNC_GUARD_PERCENT    50    /* unless told otherwise: more than half */
#define SYNC_GUARD_MIN        20    /* of fewer than that, anything may go */
#define SYNC_GUARD_CONFIRM_MS 60000 /* between two lists that say the same */

struct sync_guard {
	unsigned int percent; /* more than this is too much; 0: everything may go */
	bool holding;
	int64_t since_ms; /* while holding: when the list came that counts as the first */
};

struct sync_guard_loss {
	size_t known; /* Services, or Services with endpoints */
	size_t lost;  /* of these, how many would be lost */
	size_t fresh; /* objects that this list lacks, and that no minute has confirmed */
	bool blank;   /* the first list, and it has nothing at all: that is too much, too */
};

/* "off", "on" or a percentage from 1 to 99, with or without its sign. */
bool sync_guard_parse(const char *text, unsigned int *ret_percent);

enum sync_guard_verdict {
	SYNC_GUARD_FREE = 0,  /* so little is lacking that it may go */
	SYNC_GUARD_HELD,      /* it stays */
	SYNC_GUARD_CONFIRMED, /* it was held back, and may go now */
};

/* The list is complete: what becomes of what it lacks? */
enum sync_guard_verdict sync_guard_judge(struct sync_guard *guard,
					 const struct sync_guard_loss *loss, int64_t now_ms);
/* From when on another list may confirm it; only while holding. */
int64_t sync_guard_due_ms(const struct sync_guard *guard);
/* A list came that confirms nothing and denies nothing: the minute begins anew. */
void sync_guard_postpone(struct sync_guard *guard, int64_t now_ms);
/* Nothing is held back any more, for whatever reason. */
void sync_guard_release(struct sync_guard *guard);
