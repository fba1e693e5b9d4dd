/* SPDX-License-Identifier: Apache-2.0 */
#include "base/runner.h"

#include <assert.h>

/*
 * Two times say everything: before not_before_ns nothing runs, whatever asks for it; due_ns is when
 * the runner would run by itself. Both are set anew at the end of each run (after one apart from
 * the schedule only due_ns), so a run of any kind replaces whatever was scheduled before it, a
 * retry included.
 */

/* A far future stays one: callers may pass "never" as an interval. */
static int64_t add_interval(int64_t time_ns, int64_t interval_ns)
{
	int64_t sum;

	return __builtin_add_overflow(time_ns, interval_ns, &sum) ? RUNNER_NEVER : sum;
}

void runner_init(struct runner *runner, int64_t min_interval_ns, int64_t retry_interval_ns,
		 int64_t max_interval_ns)
{
	assert(min_interval_ns >= 0 && retry_interval_ns >= 0);
	assert(max_interval_ns >= min_interval_ns);

	*runner = (struct runner){
		.min_interval_ns = min_interval_ns,
		.retry_interval_ns = retry_interval_ns,
		.max_interval_ns = max_interval_ns,
		.not_before_ns = INT64_MIN,
		.due_ns = RUNNER_NEVER,
	};
}

void runner_request(struct runner *runner)
{
	runner->requested = true;
}

int64_t runner_next(const struct runner *runner, int64_t now_ns)
{
	int64_t wanted = runner->requested ? now_ns : runner->due_ns;

	if (runner->running || wanted == RUNNER_NEVER)
		return RUNNER_NEVER;
	return MAX(wanted, runner->not_before_ns);
}

static void started(struct runner *runner, bool apart)
{
	assert(!runner->running);

	runner->running = true;
	runner->apart = apart;
	runner->requested = false; /* what is asked for from now on needs another run */
}

void runner_started(struct runner *runner)
{
	started(runner, false);
}

void runner_started_apart(struct runner *runner)
{
	started(runner, true);
}

void runner_finished(struct runner *runner, bool success, int64_t now_ns)
{
	int64_t interval = runner->max_interval_ns;

	assert(runner->running);

	if (!success)
		interval = MIN(interval, runner->retry_interval_ns);
	runner->running = false;
	if (!runner->apart)
		runner->not_before_ns = add_interval(now_ns, runner->min_interval_ns);
	runner->due_ns = add_interval(now_ns, interval);
}
