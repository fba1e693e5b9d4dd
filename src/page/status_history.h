/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The little that is remembered whether a page is open or not, so that one that opens has something to show: how
 * long the last syncs took, what went wrong last, and which Services changed last. All of it is bounded.
 *
 * Readers have cursors here as well (see service_log.h).
 */

#include "base/addr.h"
#include "base/text.h"
#include "page/service_log.h"

#define STATUS_SYNCS    120
#define STATUS_TROUBLES 32
#define STATUS_RECENT   1024 /* changes of Services */

struct status_sync {
	int64_t at_s; /* since the epoch, as all here */
	int64_t duration_ns;
	size_t services; /* that had changed */
	enum family family;
	bool full, good;
};

struct status_trouble {
	uint64_t id;     /* from 1, as it first happened */
	uint64_t number; /* as it last happened */
	int64_t at_s;
	size_t times;
	char *text;
};

struct status_recent {
	char *key;
	int64_t at_s;
};

struct status_history {
	struct status_sync syncs[STATUS_SYNCS];
	uint64_t n_syncs;
	struct status_trouble troubles[STATUS_TROUBLES]; /* in no order */
	uint64_t n_troubles;
	struct status_recent recent[STATUS_RECENT];
	uint64_t n_recent;
	uint64_t repairs;
};

void status_history_done(struct status_history *history);

void status_history_sync(struct status_history *history, const struct status_sync *sync);
/* The same words again count as one trouble; the oldest makes room. */
void status_history_trouble(struct status_history *history, int64_t at_s, const char *text);
void status_history_changed(struct status_history *history, int64_t at_s, const char *key);
/* Touches what changed last, in its order: for a log that holds all Services. */
void status_history_replay(const struct status_history *history, struct service_log *log,
			   bool (*is_there)(void *arg, const char *key), void *arg);

/* What is new since the cursor, which moves on, as a list; false: nothing. */
bool status_history_print_syncs(const struct status_history *history, uint64_t *cursor,
				struct text *ret);
bool status_history_print_troubles(const struct status_history *history, uint64_t *cursor,
				   struct text *ret);
