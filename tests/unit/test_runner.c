/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock is a number that each test moves by hand. tick() does what an event loop does: it lets
 * the runner run as soon as it wants to, never earlier.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/runner.h"

#define MS INT64_C(1000000)
#define S  (1000 * MS)

struct world {
	struct runner runner;
	int64_t now;
	int runs;
	bool fails; /* what the next runs report */
};

static struct world world_new(int64_t min, int64_t retry, int64_t max)
{
	struct world world = {.now = 1234 * S};

	runner_init(&world.runner, min, retry, max);
	return world;
}

/* Runs once if it is time. */
static void tick(struct world *world)
{
	if (runner_next(&world->runner, world->now) > world->now)
		return;
	runner_started(&world->runner);
	world->runs++;
	runner_finished(&world->runner, !world->fails, world->now);
}

static void step(struct world *world, int64_t ns)
{
	world->now += ns;
	tick(world);
}

static void request(struct world *world)
{
	runner_request(&world->runner);
	tick(world);
}

static void runner_first_request_runs_at_once(void **state attr_unused)
{
	struct world world = world_new(1 * S, 5 * S, 10 * S);

	assert_true(runner_next(&world.runner, world.now) == RUNNER_NEVER);
	request(&world);
	assert_int_equal(world.runs, 1);
}

static void runner_nothing_is_due_before_the_first_request(void **state attr_unused)
{
	struct world world = world_new(1 * S, 5 * S, 10 * S);

	step(&world, 3600 * S);
	assert_int_equal(world.runs, 0);
}

static void runner_not_before_min_interval(void **state attr_unused)
{
	struct world world = world_new(1 * S, 5 * S, 10 * S);

	request(&world);
	step(&world, 500 * MS);
	request(&world);
	assert_int_equal(world.runs, 1);
	assert_int_equal(runner_next(&world.runner, world.now), world.now + 500 * MS);
	step(&world, 499 * MS);
	request(&world);
	assert_int_equal(world.runs, 1);
	step(&world, 1 * MS); /* the deferred run */
	assert_int_equal(world.runs, 2);
}

static void runner_min_interval_counts_from_the_end_of_a_run(void **state attr_unused)
{
	struct world world = world_new(1 * S, 5 * S, 10 * S);
	struct runner *runner = &world.runner;

	runner_request(runner);
	runner_started(runner);
	world.now += 7 * S; /* a slow run */
	runner_finished(runner, true, world.now);
	runner_request(runner);
	assert_int_equal(runner_next(runner, world.now), world.now + 1 * S);
}

static void runner_requests_merge(void **state attr_unused)
{
	struct world world = world_new(1 * S, 5 * S, 10 * S);

	request(&world);
	for (int i = 0; i < 10; i++)
		request(&world);
	step(&world, 1 * S);
	assert_int_equal(world.runs, 2);
	step(&world, 1 * S); /* nothing is left of the ten */
	assert_int_equal(world.runs, 2);
}

static void runner_request_during_a_run_is_kept(void **state attr_unused)
{
	struct world world = world_new(1 * S, 5 * S, 10 * S);
	struct runner *runner = &world.runner;

	runner_request(runner);
	runner_started(runner);
	runner_request(runner);
	assert_true(runner_next(runner, world.now) == RUNNER_NEVER);
	runner_finished(runner, true, world.now);
	assert_int_equal(runner_next(runner, world.now), world.now + 1 * S);
}

static void runner_runs_again_after_min_interval(void **state attr_unused)
{
	struct world world = world_new(500 * MS, 800 * MS, 1500 * MS);

	request(&world);
	step(&world, 1 * S);
	assert_int_equal(world.runs, 1);
	request(&world); /* at once: the distance is kept already */
	assert_int_equal(world.runs, 2);
}

static void runner_runs_at_max_interval(void **state attr_unused)
{
	struct world world = world_new(1 * S, 5 * S, 10 * S);

	request(&world);
	step(&world, 1 * S);
	step(&world, 8999 * MS);
	assert_int_equal(world.runs, 1);
	step(&world, 1 * MS);
	assert_int_equal(world.runs, 2);
	step(&world, 1 * MS);
	request(&world); /* and keeps its distance from that one too */
	assert_int_equal(world.runs, 2);
	step(&world, 999 * MS);
	assert_int_equal(world.runs, 3);
}

static void runner_retries_after_a_failure(void **state attr_unused)
{
	struct world world = world_new(1 * S, 5 * S, 10 * S);

	world.fails = true;
	request(&world);
	step(&world, 1 * S);
	step(&world, 3999 * MS);
	assert_int_equal(world.runs, 1);
	step(&world, 1 * MS);
	assert_int_equal(world.runs, 2);
	step(&world, 5 * S); /* still failing: again */
	assert_int_equal(world.runs, 3);
	world.fails = false;
	step(&world, 5 * S);
	assert_int_equal(world.runs, 4);
	step(&world, 5 * S); /* good: no retry any more */
	assert_int_equal(world.runs, 4);
}

static void runner_success_cancels_the_retry(void **state attr_unused)
{
	struct world world = world_new(1 * S, 5 * S, 10 * S);

	world.fails = true;
	request(&world);
	world.fails = false;
	step(&world, 100 * MS);
	request(&world);
	step(&world, 900 * MS); /* the deferred run, a good one */
	assert_int_equal(world.runs, 2);
	step(&world, 4 * S); /* 5 s after the failure */
	step(&world, 5 * S); /* 9 s after the good run */
	assert_int_equal(world.runs, 2);
	step(&world, 1 * S);
	assert_int_equal(world.runs, 3);
}

static void runner_retry_never_beats_min_interval(void **state attr_unused)
{
	struct world world = world_new(5 * S, 1 * S, 10 * S);

	world.fails = true;
	request(&world);
	world.fails = false;
	step(&world, 1 * S);
	step(&world, 3999 * MS);
	assert_int_equal(world.runs, 1);
	step(&world, 1 * MS);
	assert_int_equal(world.runs, 2);
	step(&world, 10 * S);
	assert_int_equal(world.runs, 3);
}

static void runner_retry_is_not_later_than_max_interval(void **state attr_unused)
{
	struct world world = world_new(1 * S, 30 * S, 10 * S);

	world.fails = true;
	request(&world);
	assert_int_equal(runner_next(&world.runner, world.now), world.now + 10 * S);
}

static void runner_without_intervals_runs_each_request(void **state attr_unused)
{
	struct world world = world_new(0, 30 * S, RUNNER_NEVER);

	request(&world);
	request(&world);
	assert_int_equal(world.runs, 2);
	assert_true(runner_next(&world.runner, world.now) == RUNNER_NEVER);
}

static void runner_keeps_no_distance_from_a_run_apart(void **state attr_unused)
{
	struct world world = world_new(1 * S, 5 * S, 10 * S);

	runner_started_apart(&world.runner);
	runner_request(&world.runner);
	runner_finished(&world.runner, true, world.now);
	tick(&world);
	assert_int_equal(world.runs, 1);
	request(&world);
	assert_int_equal(world.runs, 1); /* of the schedule: from here on it counts */
	runner_started_apart(&world.runner);
	runner_finished(&world.runner, false, world.now);
	step(&world, 5 * S);
	assert_int_equal(world.runs, 2); /* the retry of that, which served the request, too */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runner_first_request_runs_at_once),
		cmocka_unit_test(runner_nothing_is_due_before_the_first_request),
		cmocka_unit_test(runner_not_before_min_interval),
		cmocka_unit_test(runner_min_interval_counts_from_the_end_of_a_run),
		cmocka_unit_test(runner_requests_merge),
		cmocka_unit_test(runner_request_during_a_run_is_kept),
		cmocka_unit_test(runner_runs_again_after_min_interval),
		cmocka_unit_test(runner_runs_at_max_interval),
		cmocka_unit_test(runner_retries_after_a_failure),
		cmocka_unit_test(runner_success_cancels_the_retry),
		cmocka_unit_test(runner_retry_never_beats_min_interval),
		cmocka_unit_test(runner_retry_is_not_later_than_max_interval),
		cmocka_unit_test(runner_without_intervals_runs_each_request),
		cmocka_unit_test(runner_keeps_no_distance_from_a_run_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
