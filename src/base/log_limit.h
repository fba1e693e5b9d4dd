/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The same thing is logged at most once in ten seconds. What comes again in that time is kept, the
 * newest in place of the one before, and may be written when the time is over, with the number of
 * those that were left out: so the last word is always told, and nothing goes uncounted.
 *
 *   object   a hash of what a line is about (see log.h): one line in LOG_LIMIT_NS
 *   site     the place in the source: LOG_LIMIT_SITE lines in LOG_LIMIT_NS, whatever they are about. A
 *            flood of objects fills its own site and no other; one object never fills a site
 *
 * Memory has a bound: a fixed table of objects, in which one with a kept line is never pushed out
 * (when there is no place the line is kept by its site), and one kept line for each.
 *
 * Only arithmetic on the times given.
 */

#include "base/util.h"

#define LOG_LIMIT_NS   (10 * INT64_C(1000000000))
#define LOG_LIMIT_SITE 100
#define LOG_LIMIT_SETS 64
#define LOG_LIMIT_WAYS 8

struct log_gate {
	int64_t until_ns;     /* the end of its ten seconds */
	unsigned int written; /* lines in them, of a site */
	unsigned long kept;   /* lines that came and were not written; the newest is this: */
	char *line;
	size_t n;
	int severity;
	int64_t kept_ns;
};

/* One for each place that logs, static; LOG_CALL makes it. */
struct log_site {
	const char *file;
	int line;
	bool of_object; /* its messages name their object before the first ": " */
	struct log_gate gate;
	bool listed;
	struct log_site *next;
};

struct log_limit {
	struct log_limit_object {
		uint64_t key;
		struct log_gate gate;
	} objects[LOG_LIMIT_SETS * LOG_LIMIT_WAYS];
	struct log_site *sites; /* those that ever kept a line */
};

struct log_kept {
	char *line; /* the caller's */
	size_t n;
	int severity;
	unsigned long left_out; /* besides this one */
	bool of_site;           /* these were about anything, not about the same */
};

/* 0: write it now. Else it is kept (copied), until that time at least. */
int64_t log_limit_ask(struct log_limit *limit, struct log_site *site, uint64_t object,
		      const char *line, size_t n, int severity, int64_t now_ns);
/* The kept line that came first of those whose time has come, or of all. False: there is none. */
bool log_limit_next(struct log_limit *limit, bool all, int64_t now_ns, struct log_kept *ret);
int64_t log_limit_due(const struct log_limit *limit); /* INT64_MAX: nothing is kept */
void log_limit_forget(struct log_limit *limit);       /* all of it */
