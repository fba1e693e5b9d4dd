/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/metrics.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <math.h>
#include <stdlib.h>

static const double bounds[] = {0.001, 0.5, 2};

static const struct metric_desc plain = {
	.name = "b_total", .help = "Plain", .kind = METRIC_COUNTER};
static const struct metric_desc labelled = {
	.name = "a_value",
	.help = "Two\nlines \\ here",
	.kind = METRIC_GAUGE,
	.labels = {"table", "ip_family"},
};
static const struct metric_desc timing = {
	.name = "c_seconds",
	.help = "Timing",
	.kind = METRIC_HISTOGRAM,
	.labels = {"ip_family"},
	.buckets = bounds,
	.n_buckets = ARRAY_SIZE(bounds),
};

static void expect(struct metrics *metrics, const char *wanted)
{
	cleanup_text struct text text = {0};
	cleanup_free char *printed = NULL;

	metrics_print(metrics, &text);
	printed = text_dup(&text);
	assert_string_equal(printed, wanted);
}

static void family_without_labels_is_there_from_the_start(void **state attr_unused)
{
	struct metrics *metrics = metrics_new();
	struct metric *metric = metrics_add(metrics, &plain);

	expect(metrics, "# HELP b_total Plain\n# TYPE b_total counter\nb_total 0\n");
	series_add(metric_series1(metric, NULL), 2.5);
	expect(metrics, "# HELP b_total Plain\n# TYPE b_total counter\nb_total 2.5\n");
	metrics_free(metrics);
}

static void families_and_series_are_sorted_and_escaped(void **state attr_unused)
{
	static const char *const second[] = {"nat", "IPv6"};
	static const char *const first[] = {"a\"b\\c\nd", "IPv4"};
	struct metrics *metrics = metrics_new();
	struct metric *metric;

	metrics_add(metrics, &plain);
	metric = metrics_add(metrics, &labelled);
	series_set(metric_series(metric, second), 12);
	series_set(metric_series(metric, first), -1);
	series_set(metric_series(metric, second), 13);
	expect(metrics, "# HELP a_value Two\\nlines \\\\ here\n# TYPE a_value gauge\n"
			"a_value{table=\"a\\\"b\\\\c\\nd\",ip_family=\"IPv4\"} -1\n"
			"a_value{table=\"nat\",ip_family=\"IPv6\"} 13\n"
			"# HELP b_total Plain\n# TYPE b_total counter\nb_total 0\n");
	metrics_free(metrics);
}

static void family_without_series_is_not_printed(void **state attr_unused)
{
	struct metrics *metrics = metrics_new();
	struct metric *metric = metrics_add(metrics, &timing);

	expect(metrics, "");
	series_observe(metric_series1(metric, "IPv4"), 1);
	assert_int_equal(metric_count(metric), 1);
	metric_clear(metric);
	expect(metrics, "");
	metrics_free(metrics);
}

static void histogram_counts_up_to_each_bound(void **state attr_unused)
{
	struct metrics *metrics = metrics_new();
	struct series *series = metric_series1(metrics_add(metrics, &timing), "IPv4");

	series_observe(series, 0.001); /* a bound belongs to its bucket */
	series_observe(series, 0.25);
	series_observe(series, 1);
	series_observe(series, 7);
	assert_int_equal(series_observations(series), 4);
	assert_true(fabs(series_value(series) - 8.251) < 1e-9);
	expect(metrics, "# HELP c_seconds Timing\n# TYPE c_seconds histogram\n"
			"c_seconds_bucket{ip_family=\"IPv4\",le=\"0.001\"} 1\n"
			"c_seconds_bucket{ip_family=\"IPv4\",le=\"0.5\"} 2\n"
			"c_seconds_bucket{ip_family=\"IPv4\",le=\"2\"} 3\n"
			"c_seconds_bucket{ip_family=\"IPv4\",le=\"+Inf\"} 4\n"
			"c_seconds_sum{ip_family=\"IPv4\"} 8.251\n"
			"c_seconds_count{ip_family=\"IPv4\"} 4\n");
	metrics_free(metrics);
}

static void numbers_read_back_as_the_same(void **state attr_unused)
{
	static const double numbers[] = {0.1, 1e21, 1763250000.123456, 1.0 / 3,
					 123456789012345678.0};
	struct metrics *metrics = metrics_new();
	struct series *series = metric_series1(metrics_add(metrics, &plain), NULL);

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		cleanup_text struct text text = {0};
		cleanup_free char *printed = NULL;

		series_set(series, numbers[i]);
		metrics_print(metrics, &text);
		printed = text_dup(&text);
		assert_true(strtod(strrchr(printed, ' '), NULL) == numbers[i]);
	}
	metrics_free(metrics);
}

static void bring_up_to_date(void *arg)
{
	series_set(arg, 42);
}

static void hooks_run_before_each_scrape(void **state attr_unused)
{
	struct metrics *metrics = metrics_new();
	struct series *series = metric_series1(metrics_add(metrics, &plain), NULL);

	metrics_before_scrape(metrics, bring_up_to_date, series);
	expect(metrics, "# HELP b_total Plain\n# TYPE b_total counter\nb_total 42\n");
	metrics_free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(family_without_labels_is_there_from_the_start),
		cmocka_unit_test(families_and_series_are_sorted_and_escaped),
		cmocka_unit_test(family_without_series_is_not_printed),
		cmocka_unit_test(histogram_counts_up_to_each_bound),
		cmocka_unit_test(numbers_read_back_as_the_same),
		cmocka_unit_test(hooks_run_before_each_scrape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
