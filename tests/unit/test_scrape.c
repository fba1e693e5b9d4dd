/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/scrape.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>

#include "serving/metrics.h"

static const struct metric_desc counter = {
	.name = "a_total", .help = "Plain", .kind = METRIC_COUNTER};

static int64_t clock_ns;
static int64_t step_ns;

/* Each look at the clock costs step_ns, so a print does. */
static int64_t fake_cost(void)
{
	clock_ns += step_ns;
	return clock_ns;
}

struct world {
	struct metrics *metrics;
	struct series *series;
	struct scrape scrape;
};

static void world_init(struct world *world, int64_t cost_ns)
{
	clock_ns = 0;
	step_ns = cost_ns;
	world->metrics = metrics_new();
	world->series = metric_series1(metrics_add(world->metrics, &counter), NULL);
	world->scrape = (struct scrape){.cost_ns = fake_cost};
}

static void world_done(struct world *world)
{
	scrape_done(&world->scrape);
	metrics_free(world->metrics);
}

static void expect(struct world *world, int64_t now_ns, const char *value)
{
	cleanup_text struct text text = {0};
	cleanup_free char *printed = NULL;
	cleanup_free char *wanted =
		xasprintf("# HELP a_total Plain\n# TYPE a_total counter\na_total %s\n", value);

	scrape_print(&world->scrape, world->metrics, now_ns, &text);
	printed = text_dup(&text);
	assert_string_equal(printed, wanted);
}

static void printing_takes_a_tenth_of_the_time(void **state attr_unused)
{
	struct world world;

	world_init(&world, 1000);
	expect(&world, 1, "0");
	series_add(world.series, 1);
	expect(&world, 1, "0");
	expect(&world, 10000, "0");
	expect(&world, 10001, "1");
	series_add(world.series, 1);
	expect(&world, 20000, "1");
	expect(&world, 20001, "2");
	world_done(&world);
}

static void no_text_is_kept_for_longer_than_a_second(void **state attr_unused)
{
	struct world world;

	world_init(&world, INT64_C(3600000000000));
	expect(&world, 0, "0");
	series_add(world.series, 1);
	expect(&world, SCRAPE_KEPT_MAX_NS - 1, "0");
	expect(&world, SCRAPE_KEPT_MAX_NS, "1");
	world_done(&world);
}

static void what_costs_nothing_is_printed_each_time(void **state attr_unused)
{
	struct world world;

	world_init(&world, 0);
	expect(&world, 5, "0");
	series_add(world.series, 1);
	expect(&world, 5, "1");
	world_done(&world);
}

static void the_clock_of_the_thread_is_the_default(void **state attr_unused)
{
	cleanup_text struct text text = {0};
	struct world world;

	world_init(&world, 0);
	world.scrape.cost_ns = NULL;
	scrape_print(&world.scrape, world.metrics, 7, &text);
	assert_true(world.scrape.good_until_ns > 7);
	assert_true(world.scrape.good_until_ns <= 7 + SCRAPE_KEPT_MAX_NS);
	world_done(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printing_takes_a_tenth_of_the_time),
		cmocka_unit_test(no_text_is_kept_for_longer_than_a_second),
		cmocka_unit_test(what_costs_nothing_is_printed_each_time),
		cmocka_unit_test(the_clock_of_the_thread_is_the_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
