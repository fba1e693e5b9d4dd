/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which Services a reader has not seen yet, for any number of readers that each read at a pace of their own.
 *
 * Every Service stands once in a list, in the order of its last change: one that changes moves to the end. A
 * reader has a cursor, the number of the last change that it saw, and reads on from there. So a new reader
 * gets all Services and then what changes, by the same words; one that is slow finds a Service that changed
 * a hundred times once; and nothing is kept for a reader but its cursor.
 *
 *	uint64_t cursor = 0;
 *	while ((item = service_log_next(log, &cursor)))
 *		...
 *
 * A Service that is gone is a change, too. It is forgotten when every reader has seen it, which the owner
 * tells with service_log_trim().
 */

#include "base/util.h"

struct service_log;

struct service_log_item {
	uint64_t number;   /* of its last change, from 1 */
	size_t place;      /* the log's own */
	int64_t changed_s; /* since the epoch; 0: not known */
	bool gone;
	char key[];
};

struct service_log *service_log_new(void);
struct service_log *service_log_free(struct service_log *log); /* accepts NULL, returns NULL */

/* The Service is there, or gone, since that time. One that is not known and gone is nothing. */
void service_log_touch(struct service_log *log, const char *key, bool gone, int64_t changed_s);
/* The first item behind the cursor, which moves to it; NULL: all was seen. Borrowed until the next change. */
const struct service_log_item *service_log_next(const struct service_log *log, uint64_t *cursor);
bool service_log_seen(const struct service_log *log, uint64_t cursor); /* is all of it? */
/* The slowest reader is there: what is gone and before it may be forgotten. */
void service_log_trim(struct service_log *log, uint64_t slowest);
size_t service_log_count(const struct service_log *log); /* Services that are not gone */
