/* SPDX-License-Identifier: Apache-2.0 */

/* How often the table of connections is walked. */

#include "build.h"
#include "conntrack/traffic_meter.h"

#define SECOND CLOCK_NS_PER_SECOND
#define ROUND  (SECOND / 1000)

/* A round that began at 100 s and took a thousandth of a second. */
static const struct traffic_meter_times times = {
	.begun_ns = 100 * SECOND,
	.ended_ns = 100 * SECOND + ROUND,
	.spent_ns = ROUND,
};

static void while_nobody_looks_it_walks_every_five_seconds(void **state attr_unused)
{
	assert_int_equal(traffic_meter_rest(&times, times.ended_ns), 5 * SECOND - ROUND);
}

static void whoever_looks_gets_a_round_a_second(void **state attr_unused)
{
	struct traffic_meter_times watched = times;

	watched.looked_ns = 99 * SECOND;
	assert_int_equal(traffic_meter_rest(&watched, times.ended_ns), SECOND - ROUND);
	watched.looked_ns = 98 * SECOND;
	assert_int_equal(traffic_meter_rest(&watched, times.ended_ns), SECOND - ROUND);
	watched.looked_ns = 97 * SECOND;
	assert_int_equal(traffic_meter_rest(&watched, times.ended_ns), 5 * SECOND - ROUND);
}

static void whoever_comes_late_gets_one_at_once(void **state attr_unused)
{
	struct traffic_meter_times watched = times;

	watched.looked_ns = 103 * SECOND;
	assert_int_equal(traffic_meter_rest(&watched, 103 * SECOND), 0);
}

static void a_large_table_is_walked_less_often_whoever_looks(void **state attr_unused)
{
	const struct traffic_meter_times large = {
		.begun_ns = 100 * SECOND,
		.ended_ns = 101 * SECOND,
		.spent_ns = SECOND / 2,
		.looked_ns = 101 * SECOND,
	};

	assert_int_equal(traffic_meter_rest(&large, 101 * SECOND), 25 * SECOND);
	assert_int_equal(traffic_meter_rest(&large, 120 * SECOND), 6 * SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(while_nobody_looks_it_walks_every_five_seconds),
		cmocka_unit_test(whoever_looks_gets_a_round_a_second),
		cmocka_unit_test(whoever_comes_late_gets_one_at_once),
		cmocka_unit_test(a_large_table_is_walked_less_often_whoever_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
