/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * When to run: requests are merged, runs keep a distance, failures are tried again. Only arithmetic
 * on the times given (nanoseconds on any steady clock): the owner of a clock and a timer asks
 * runner_next().
 *
 *   - the first request after start runs at once;
 *   - after each run, good or bad, nothing happens for min_interval (counted from its end);
 *   - without a request it runs max_interval after a good run, min(retry_interval, max_interval)
 *     after a bad one, but never within min_interval. A good run in between cancels the retry.
 *
 * With runner_pace() the distance follows what runs cost. Each run adds its cost to a debt, which is
 * paid off at half of real time, also while it runs. As long as the debt is below
 * RUNNER_DEBT_LIMIT_NS the next run may start at once; else when it has come down to that, but never
 * later than min_interval would have it. So a run now and then is never late, a flood of cheap ones
 * takes half of the time at most, and dear ones are min_interval apart, as without a pace.
 *
 * In a flood each run but the first few is also followed by a rest, RUNNER_REST_TIMES as long as it
 * took and RUNNER_REST_MAX_NS at most: what comes meanwhile is served by one run, and other work that shares the
 * thread gets its turn.
 */

#include "base/util.h"

#define RUNNER_NEVER         INT64_MAX
#define RUNNER_DEBT_LIMIT_NS INT64_C(2000000000)
#define RUNNER_FLOOD_NS      INT64_C(100000000) /* a run so soon after another one ... */
#define RUNNER_FLOOD_RUNS    3                  /* ... so many times in a row: a flood */
#define RUNNER_REST_TIMES    3
#define RUNNER_REST_MAX_NS   INT64_C(20000000)

struct runner {
	int64_t min_interval_ns;
	int64_t retry_interval_ns;
	int64_t max_interval_ns;
	bool requested;
	bool running;
	bool apart; /* what runs is no run of the schedule */
	bool paced;
	int64_t debt_ns;       /* at the end of the last run, ... */
	int64_t debt_at_ns;    /* ... which was then */
	unsigned int n_close;  /* runs in a row, each soon after the one before */
	int64_t not_before_ns; /* end of the last run + its distance */
	int64_t due_ns;        /* the next run without a request */
};

/* max_interval must not be less than min_interval. Nothing is due before the first request. */
void runner_init(struct runner *runner, int64_t min_interval_ns, int64_t retry_interval_ns,
		 int64_t max_interval_ns);
/* Directly after runner_init(). */
void runner_pace(struct runner *runner);
void runner_request(struct runner *runner);
/* When the next run should start: now or earlier, later, or RUNNER_NEVER (as while one runs). */
int64_t runner_next(const struct runner *runner, int64_t now_ns);
void runner_started(struct runner *runner);
/*
 * The same for a run that the caller decided on. It serves the requests made before it, but the
 * next run keeps no distance from it, and it leaves no debt.
 */
void runner_started_apart(struct runner *runner);
/* cost: how long the run took, as its owner sees it; without a pace it does not count. */
void runner_finished(struct runner *runner, bool success, int64_t cost_ns, int64_t now_ns);
