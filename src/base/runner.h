/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * When to run: requests are merged, runs keep a distance, failures are tried again. Only arithmetic
 * on the times given (nanoseconds on any steady clock): whoever owns a clock and a timer asks
 * runner_next().
 *
 *   - the first request after start runs at once;
 *   - after each run, good or bad, nothing happens for min_interval (counted from its end);
 *   - without a request it runs max_interval after a good run, min(retry_interval, max_interval)
 *     after a bad one, but never within min_interval. A good run in between cancels the retry.
 */

#include "base/util.h"

#define RUNNER_NEVER INT64_MAX

struct runner {
	int64_t min_interval_ns;
	int64_t retry_interval_ns;
	int64_t max_interval_ns;
	bool requested;
	bool running;
	bool apart;            /* what runs is no run of the schedule */
	int64_t not_before_ns; /* end of the last run + min_interval */
	int64_t due_ns;        /* the next run without a request */
};

/* max_interval must not be less than min_interval. Nothing is due before the first request. */
void runner_init(struct runner *runner, int64_t min_interval_ns, int64_t retry_interval_ns,
		 int64_t max_interval_ns);
void runner_request(struct runner *runner);
/* When the next run should start: now or earlier, later, or RUNNER_NEVER (as while one runs). */
int64_t runner_next(const struct runner *runner, int64_t now_ns);
void runner_started(struct runner *runner);
/*
 * The same for a run that somebody else decided on. It serves the requests made before it, but the
 * next run keeps no distance from it.
 */
void runner_started_apart(struct runner *runner);
void runner_finished(struct runner *runner, bool success, int64_t now_ns);
