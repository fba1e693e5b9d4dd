/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A traced packet, what the plan says about it, and whether the two agree.
 *
 *	struct trace_report *report = trace_report_new(trace, explain);
 *	while (the trace goes on)
 *		trace_report_follow(report);  steps that are settled get the plan's words
 *	trace_report_finish(report);          compares, and says it in a sentence
 *
 * They agree when the packet came to one of the ends that are planned, and met our rules in the
 * planned order on its way there. Rules of others, which a plan does not know, do not count. Of a
 * client that affinity remembers, and of a connection that began earlier, only the end is compared:
 * plans take both to be new.
 */

#include "inspect/explain.h"
#include "inspect/trace.h"

struct trace_report {
	struct trace *trace;
	struct explain *explain;         /* NULL: nothing is planned */
	struct explanation *explanation; /* of this very packet; NULL likewise */
	size_t n_followed;               /* steps that have their words */
	const struct outcome *outcome;   /* the planned one that it came to; NULL: none */
	char *difference;                /* from the plan, in words; NULL: none is known */
	char *summary;                   /* set by trace_report_finish() */
};

/* Both are borrowed. With a plan, the trace's packet gets an origin that the plan knows. */
struct trace_report *trace_report_new(struct trace *trace, struct explain *explain);
struct trace_report *trace_report_free(struct trace_report *report); /* accepts NULL */
void trace_report_follow(struct trace_report *report);
/* Once, when the trace has ended. */
void trace_report_finish(struct trace_report *report);

/* -- printing */

/* The packet; then the steps from `from` on that are settled, and the number of the next; then the end. */
void trace_human_begin(const struct trace_report *report, const struct printer *printer);
size_t trace_human_steps(const struct trace_report *report, const struct printer *printer,
			 size_t from);
void trace_human_end(const struct trace_report *report, const struct printer *printer);

struct doc;
/* One map; portolan.8 has its members. */
void trace_doc(const struct trace_report *report, struct doc *doc, const char *key);
