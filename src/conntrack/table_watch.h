/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Is the connection tracking table about to be full, who fills it, and what would help? A full table
 * drops the first packets of new connections, and tells no program.
 *
 * Pure arithmetic: the caller brings the numbers and the flows.
 */

#include "base/text.h"
#include "kernel/conntrack.h"
#include "model/model.h"

enum table_level {
	TABLE_ROOMY = 0,
	TABLE_FILLING,     /* from 80 % on, until it is below 75 % */
	TABLE_NEARLY_FULL, /* from 95 % on, until it is below 90 % */
	TABLE_LEVEL_COUNT,
};

/* Rises at once, falls only when there is some distance: a table on the brink does not flap. */
enum table_level table_level_next(enum table_level before, const struct conntrack_stats *stats);

/*
 * "conntrack.maxPerCore=...": what would leave half of the table free with as many entries as there
 * are, in whole KiB of them; or what to do instead where that is beyond what maxPerCore can give.
 */
void table_advice(const struct conntrack_stats *stats, int64_t cores, struct text *ret);

/* -- who has how many entries: a walk of the table, or of a fair part of it */

#define TABLE_TOP_NAMED 5 /* service ports */

struct table_top;

struct table_top *table_top_new(const struct model *model); /* Services as they are now */
struct table_top *table_top_free(struct table_top *top);    /* accepts NULL, returns NULL */
void table_top_see(struct table_top *top, const struct conntrack_flow *flow);
/* "ns/name:port/tcp 62%, ns/other:53/udp 21%, no Service 17%": the largest; "" when nothing was seen. */
void table_top_print(const struct table_top *top, struct text *ret);
