/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Looks at the connection tracking table every five seconds, and warns when it is filling up: once at
 * 80 %, once at 95 %, and says when there is room again (table_watch.h has the bounds). A warning
 * tells who has the most entries, from a walk of up to CONNTRACK_WATCH_SAMPLE flows in slices of the
 * loop's turns; the table is walked for this at most once a minute, a second warning within it
 * repeats what the first one found.
 */

#include "conntrack/table_watch.h"

#define CONNTRACK_WATCH_PERIOD_NS (5 * CLOCK_NS_PER_SECOND)
#define CONNTRACK_WATCH_WALK_NS   (60 * CLOCK_NS_PER_SECOND)
#define CONNTRACK_WATCH_SAMPLE    100000

struct conntrack_watch;
struct event_base;
struct nfnetlink_conn;

/* All is borrowed and must outlive the watch. */
struct conntrack_watch_config {
	struct event_base *loop;
	const struct model *model;
	int64_t cores;
	int64_t (*now_ns)(void);
	int (*stats)(struct nfnetlink_conn *line, struct conntrack_stats *ret, struct err *err);
	/* After it has been logged: an event about the node. level: TABLE_FILLING or more. */
	void (*warned)(void *arg, enum table_level level, const char *note);
	void *arg;
};

struct conntrack_watch *conntrack_watch_new(const struct conntrack_watch_config *config);
struct conntrack_watch *conntrack_watch_free(struct conntrack_watch *watch); /* accepts NULL */

/* Looks now; the timer does the same. */
void conntrack_watch_look(struct conntrack_watch *watch);
