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

void runner_pace(struct runner *runner)
{
	runner->paced = true;
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

/*
 * Half of the cost is paid off by the time that the run itself took, whatever it began with. The
 * ceiling is the debt that takes min_interval to come down to the limit.
 */
static void add_debt(struct runner *runner, int64_t cost_ns, int64_t now_ns)
{
	int64_t ceiling = add_interval(RUNNER_DEBT_LIMIT_NS, runner->min_interval_ns / 2);
	int64_t cost = MAX(cost_ns, INT64_C(0));
	int64_t idle = 0;

	if (runner->debt_ns > 0)
		idle = MAX(now_ns - runner->debt_at_ns - cost, INT64_C(0));
	runner->debt_ns = MAX(runner->debt_ns - idle / 2, INT64_C(0)) + cost / 2;
	runner->debt_ns = MIN(runner->debt_ns, ceiling);
	if (now_ns - cost - runner->debt_at_ns > RUNNER_FLOOD_NS)
		runner->n_close = 0;
	else if (runner->n_close < RUNNER_FLOOD_RUNS)
		runner->n_close++;
	runner->debt_at_ns = now_ns;
}

static int64_t rest(const struct runner *runner, int64_t cost_ns)
{
	if (runner->n_close < RUNNER_FLOOD_RUNS || cost_ns <= 0)
		return 0;
	if (cost_ns > RUNNER_REST_MAX_NS / RUNNER_REST_TIMES)
		return MIN(RUNNER_REST_MAX_NS, runner->min_interval_ns);
	return MIN(cost_ns * RUNNER_REST_TIMES, runner->min_interval_ns);
}

/* How long after its end the next run may start. */
static int64_t distance(const struct runner *runner, int64_t cost_ns)
{
	if (!runner->paced)
		return runner->min_interval_ns;
	return MAX(MAX(runner->debt_ns - RUNNER_DEBT_LIMIT_NS, INT64_C(0)) * 2,
		   rest(runner, cost_ns));
}

void runner_finished(struct runner *runner, bool success, int64_t cost_ns, int64_t now_ns)
{
	int64_t interval = runner->max_interval_ns;

	assert(runner->running);

	if (!success)
		interval = MIN(interval, runner->retry_interval_ns);
	runner->running = false;
	if (!runner->apart) {
		add_debt(runner, cost_ns, now_ns);
		runner->not_before_ns = add_interval(now_ns, distance(runner, cost_ns));
	}
	runner->due_ns = add_interval(now_ns, interval);
}
