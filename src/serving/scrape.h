/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The text of a scrape. To print all metrics costs much more than to send them: the kernel is asked
 * for several of them. So that scrapes never keep a sync waiting, printing takes SCRAPE_SHARE of
 * the time at most: a text is used again until that many times the processor time that it took has
 * passed, which is a few milliseconds, and at most SCRAPE_KEPT_MAX_NS. A client that asks less often always
 * gets a new one.
 */

#include "base/text.h"

#define SCRAPE_SHARE       10                    /* one tenth */
#define SCRAPE_KEPT_MAX_NS (INT64_C(1000000000)) /* however much it cost */

struct metrics;

struct scrape {
	char *text; /* NULL: none yet */
	size_t size;
	int64_t good_until_ns;
	int64_t (*cost_ns)(void); /* processor time so far; NULL: this thread's own */
};

void scrape_done(struct scrape *scrape);
/* Appends the metrics as they are now, or were a moment ago. */
void scrape_print(struct scrape *scrape, struct metrics *metrics, int64_t now_ns, struct text *ret);
