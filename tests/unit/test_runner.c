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
	runner_finished(&world->runner, !world->fails, 0, world->now);
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
	runner_finished(runner, true, 0, world.now);
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
	runner_finished(runner, true, 0, world.now);
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
	runner_finished(&world.runner, true, 0, world.now);
	tick(&world);
	assert_int_equal(world.runs, 1);
	request(&world);
	assert_int_equal(world.runs, 1); /* of the schedule: from here on it counts */
	runner_started_apart(&world.runner);
	runner_finished(&world.runner, false, 0, world.now);
	step(&world, 5 * S);
	assert_int_equal(world.runs, 2); /* the retry of that, which served the request, too */
}

/* -- the pace */

static struct world paced_new(void)
{
	struct world world = world_new(1 * S, 30 * S, 3600 * S);

	runner_pace(&world.runner);
	return world;
}

/* Something is asked for, and runs for so long as soon as it may. Returns how long it waited. */
static int64_t run_for(struct world *world, int64_t cost)
{
	int64_t asked = world->now;

	runner_request(&world->runner);
	world->now = MAX(world->now, runner_next(&world->runner, world->now));
	runner_started(&world->runner);
	world->now += cost;
	runner_finished(&world->runner, !world->fails, cost, world->now);
	return world->now - cost - asked;
}

static void pace_lets_single_runs_start_at_once(void **state attr_unused)
{
	struct world world = paced_new();

	for (int i = 0; i < 100; i++) {
		assert_true(run_for(&world, 1 * S) == 0);
		world.now += 1 * S; /* what the run left is paid off in as much time */
	}
}

static void pace_lets_a_burst_run_until_two_seconds_of_debt(void **state attr_unused)
{
	struct world world = paced_new();

	/* 100 ms each leave 50 ms each, of which the rest after it pays off 10 */
	for (int i = 0; i < 49; i++)
		assert_true(run_for(&world, 100 * MS) <= RUNNER_REST_MAX_NS);
	run_for(&world, 100 * MS); /* about here the debt is above the limit */
	run_for(&world, 100 * MS);
	assert_true(run_for(&world, 100 * MS) == 100 * MS);
}

static void pace_lets_the_first_runs_of_a_flood_start_at_once(void **state attr_unused)
{
	struct world world = paced_new();

	for (int i = 0; i < 3; i++) {
		world.now += 200 * MS; /* peace: what was before is forgotten */
		for (int j = 0; j < RUNNER_FLOOD_RUNS; j++)
			assert_true(run_for(&world, 5 * MS) == 0);
		run_for(&world, 5 * MS);
		assert_true(run_for(&world, 5 * MS) == 15 * MS);
		assert_true(run_for(&world, 100 * MS) == 15 * MS);
		assert_true(run_for(&world, 5 * MS) == RUNNER_REST_MAX_NS);
	}
}

static void pace_does_not_delay_what_comes_after_the_rest(void **state attr_unused)
{
	struct world world = paced_new();

	for (int i = 0; i < 100; i++) {
		assert_true(run_for(&world, 5 * MS) == 0);
		world.now += 15 * MS;
	}
}

static void pace_rests_no_longer_than_the_least_interval(void **state attr_unused)
{
	struct world world = world_new(1 * MS, 30 * S, 3600 * S);

	runner_pace(&world.runner);
	for (int i = 0; i < 20; i++)
		assert_true(run_for(&world, 5 * MS) <= 1 * MS);
}

static void pace_leaves_half_of_the_time_in_a_flood(void **state attr_unused)
{
	struct world world = paced_new();
	int64_t start;

	while (run_for(&world, 100 * MS) < 100 * MS) {
	}
	start = world.now;
	for (int i = 0; i < 1000; i++)
		run_for(&world, 100 * MS);
	assert_true(world.now - start == 1000 * (100 + 100) * MS);
}

static void pace_never_waits_longer_than_the_least_interval(void **state attr_unused)
{
	struct world world = paced_new();

	assert_true(run_for(&world, 60 * S) == 0);
	for (int i = 0; i < 10; i++)
		assert_true(run_for(&world, 60 * S) == 1 * S);
	world.now += 5 * S; /* and it is forgotten soon: 2.5 s at half of real time */
	for (int i = 0; i < 20; i++)
		assert_true(run_for(&world, 200 * MS) <= RUNNER_REST_MAX_NS);
}

static void pace_forgives_debt_at_half_of_real_time(void **state attr_unused)
{
	struct world world = paced_new();

	run_for(&world, 4 * S); /* leaves 2 s */
	world.now += 2 * S;     /* of which 1 s stays */
	assert_true(run_for(&world, 2 * S) == 0);
	assert_true(runner_next(&world.runner, world.now) != world.now);
	runner_request(&world.runner);
	assert_true(runner_next(&world.runner, world.now) == world.now);
	run_for(&world, 500 * MS);
	runner_request(&world.runner);
	assert_true(runner_next(&world.runner, world.now) == world.now + 500 * MS);
}

static void pace_counts_no_run_apart(void **state attr_unused)
{
	struct world world = paced_new();

	runner_started_apart(&world.runner);
	world.now += 60 * S;
	runner_finished(&world.runner, true, 60 * S, world.now);
	for (int i = 0; i < 40; i++)
		assert_true(run_for(&world, 100 * MS) <= RUNNER_REST_MAX_NS);
}

static void pace_keeps_the_retry_of_a_failed_run(void **state attr_unused)
{
	struct world world = paced_new();

	world.fails = true;
	run_for(&world, 100 * MS);
	assert_true(runner_next(&world.runner, world.now) == world.now + 30 * S);
}

static void pace_takes_odd_costs(void **state attr_unused)
{
	struct world world = paced_new();

	run_for(&world, 1 * S);
	runner_request(&world.runner);
	runner_started(&world.runner);
	runner_finished(&world.runner, true, -5 * S, world.now); /* no clock is so bad: as 0 */
	runner_request(&world.runner);
	assert_true(runner_next(&world.runner, world.now) == world.now);
	runner_started(&world.runner);
	runner_finished(&world.runner, true, INT64_MAX, world.now); /* more than has passed */
	runner_request(&world.runner);
	assert_true(runner_next(&world.runner, world.now) == world.now + 1 * S);
}

static void without_a_pace_costs_do_not_count(void **state attr_unused)
{
	struct world world = world_new(1 * S, 30 * S, 3600 * S);

	run_for(&world, 1 * MS);
	assert_true(run_for(&world, 60 * S) == 1 * S);
	assert_true(run_for(&world, 1 * MS) == 1 * S);
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
		cmocka_unit_test(pace_lets_single_runs_start_at_once),
		cmocka_unit_test(pace_lets_a_burst_run_until_two_seconds_of_debt),
		cmocka_unit_test(pace_lets_the_first_runs_of_a_flood_start_at_once),
		cmocka_unit_test(pace_does_not_delay_what_comes_after_the_rest),
		cmocka_unit_test(pace_rests_no_longer_than_the_least_interval),
		cmocka_unit_test(pace_leaves_half_of_the_time_in_a_flood),
		cmocka_unit_test(pace_never_waits_longer_than_the_least_interval),
		cmocka_unit_test(pace_forgives_debt_at_half_of_real_time),
		cmocka_unit_test(pace_counts_no_run_apart),
		cmocka_unit_test(pace_keeps_the_retry_of_a_failed_run),
		cmocka_unit_test(pace_takes_odd_costs),
		cmocka_unit_test(without_a_pace_costs_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
