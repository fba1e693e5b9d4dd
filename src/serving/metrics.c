/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/metrics.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"

struct series {
	char *labels;      /* as printed between braces; "" without */
	double value;      /* HISTOGRAM: the sum */
	uint64_t *buckets; /* HISTOGRAM: one for each bound, not cumulated, then that of +Inf */
	const struct metric_desc *desc;
};

struct metric {
	const struct metric_desc *desc;
	struct map series; /* by labels */
};

struct scrape_hook {
	void (*fn)(void *arg);
	void *arg;
};

struct metrics {
	struct map families; /* by name */
	struct scrape_hook *hooks;
	size_t n_hooks, hooks_capacity;
};

/* -- registering */

struct metrics *metrics_new(void)
{
	return xcalloc(1, sizeof(struct metrics));
}

static void series_free(struct series *series)
{
	free(series->labels);
	free(series->buckets);
	free(series);
}

void metric_clear(struct metric *metric)
{
	struct series *series;
	size_t at = 0;

	while ((series = map_next(&metric->series, &at)))
		series_free(series);
	map_done(&metric->series);
	metric->series = (struct map){0};
}

struct metrics *metrics_free(struct metrics *metrics)
{
	struct metric *metric;
	size_t at = 0;

	if (!metrics)
		return NULL;
	while ((metric = map_next(&metrics->families, &at))) {
		metric_clear(metric);
		free(metric);
	}
	map_done(&metrics->families);
	free(metrics->hooks);
	free(metrics);
	return NULL;
}

struct metric *metrics_add(struct metrics *metrics, const struct metric_desc *desc)
{
	struct metric *metric = xcalloc(1, sizeof(*metric));
	const void *twice;

	metric->desc = desc;
	twice = map_set(&metrics->families, desc->name, metric);
	assert(!twice);
	(void)twice;
	if (!desc->labels[0])
		metric_series(metric, NULL);
	return metric;
}

void metrics_before_scrape(struct metrics *metrics, void (*fn)(void *arg), void *arg)
{
	array_grow(&metrics->hooks, &metrics->hooks_capacity, metrics->n_hooks,
		   sizeof(*metrics->hooks));
	metrics->hooks[metrics->n_hooks++] = (struct scrape_hook){fn, arg};
}

/* -- series */

/* Between the quotes of a label: backslash, quote and line feed are escaped. */
static void put_label_value(struct text *text, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			text_str(text, "\\n");
		else if (*value == '\\' || *value == '"')
			text_printf(text, "\\%c", *value);
		else
			text_add(text, value, 1);
	}
}

static char *print_labels(const struct metric_desc *desc, const char *const *values)
{
	cleanup_text struct text text = {0};

	for (size_t i = 0; i < METRIC_LABELS_MAX && desc->labels[i]; i++) {
		text_printf(&text, "%s%s=\"", i > 0 ? "," : "", desc->labels[i]);
		put_label_value(&text, values[i]);
		text_add(&text, "\"", 1);
	}
	return text_dup(&text);
}

struct series *metric_series(struct metric *metric, const char *const *values)
{
	cleanup_free char *labels = print_labels(metric->desc, values);
	struct series *series = map_get(&metric->series, labels);

	if (series)
		return series;
	series = xcalloc(1, sizeof(*series));
	series->desc = metric->desc;
	if (metric->desc->kind == METRIC_HISTOGRAM)
		series->buckets = xcalloc(metric->desc->n_buckets + 1, sizeof(*series->buckets));
	series->labels = take(labels);
	map_set(&metric->series, series->labels, series);
	return series;
}

struct series *metric_series1(struct metric *metric, const char *value)
{
	return metric_series(metric, &value);
}

size_t metric_count(const struct metric *metric)
{
	return metric->series.count;
}

void series_set(struct series *series, double value)
{
	series->value = value;
}

void series_add(struct series *series, double value)
{
	series->value += value;
}

void series_observe(struct series *series, double value)
{
	size_t i = 0;

	while (i < series->desc->n_buckets && value > series->desc->buckets[i])
		i++;
	series->buckets[i]++;
	series->value += value;
}

double series_value(const struct series *series)
{
	return series->value;
}

uint64_t series_observations(const struct series *series)
{
	uint64_t n = 0;

	for (size_t i = 0; i <= series->desc->n_buckets; i++)
		n += series->buckets[i];
	return n;
}

/* -- printing */

#define NUMBER_MAX 32

/* The shortest text that reads back as the same number. */
static void print_number(double value, char out[static NUMBER_MAX])
{
	if (isinf(value)) {
		strcpy(out, value > 0 ? "+Inf" : "-Inf");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(out, NUMBER_MAX, "%.*g", digits, value);
		if (strtod(out, NULL) == value)
			return;
	}
	if (isnan(value))
		strcpy(out, "NaN");
}

static void print_sample(struct text *text, const char *name, const char *suffix,
			 const char *labels, const char *value)
{
	bool bare = !*labels;

	text_printf(text, "%s%s%s%s%s %s\n", name, suffix, bare ? "" : "{", labels, bare ? "" : "}",
		    value);
}

static void print_bucket(struct text *text, const struct series *series, const char *bound,
			 uint64_t count)
{
	text_printf(text, "%s_bucket{%s%sle=\"%s\"} %llu\n", series->desc->name, series->labels,
		    *series->labels ? "," : "", bound, (unsigned long long)count);
}

static void print_histogram(struct text *text, const struct series *series)
{
	char number[NUMBER_MAX];
	uint64_t count = 0;

	for (size_t i = 0; i < series->desc->n_buckets; i++) {
		count += series->buckets[i];
		print_number(series->desc->buckets[i], number);
		print_bucket(text, series, number, count);
	}
	count += series->buckets[series->desc->n_buckets];
	print_bucket(text, series, "+Inf", count);
	print_number(series->value, number);
	print_sample(text, series->desc->name, "_sum", series->labels, number);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)count);
	print_sample(text, series->desc->name, "_count", series->labels, number);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys of a map, sorted; an array for the caller to free. */
static const char **sorted_keys(const struct map *map)
{
	const char **keys = xcalloc(map->count + 1, sizeof(*keys));
	size_t at = 0, n = 0;
	const char *key;

	while ((key = map_next_key(map, &at)))
		keys[n++] = key;
	if (n > 1)
		qsort(keys, n, sizeof(*keys), compare_names);
	return keys;
}

/* In the help text only backslash and line feed are escaped. */
static void print_help(struct text *text, const struct metric_desc *desc)
{
	text_printf(text, "# HELP %s ", desc->name);
	for (const char *c = desc->help; *c; c++) {
		if (*c == '\n' || *c == '\\')
			text_str(text, *c == '\n' ? "\\n" : "\\\\");
		else
			text_add(text, c, 1);
	}
	text_add(text, "\n", 1);
}

static void print_family(struct text *text, const struct metric *metric)
{
	static const char *const kinds[] = {"counter", "gauge", "histogram"};
	cleanup_free const char **labels = sorted_keys(&metric->series);
	const struct metric_desc *desc = metric->desc;
	char number[NUMBER_MAX];

	static_assert(ARRAY_SIZE(kinds) == METRIC_KIND_COUNT, "a word for each kind");
	if (metric->series.count == 0)
		return;
	print_help(text, desc);
	text_printf(text, "# TYPE %s %s\n", desc->name, kinds[desc->kind]);
	for (size_t i = 0; labels[i]; i++) {
		const struct series *series = map_get(&metric->series, labels[i]);

		if (desc->kind == METRIC_HISTOGRAM) {
			print_histogram(text, series);
			continue;
		}
		print_number(series->value, number);
		print_sample(text, desc->name, "", series->labels, number);
	}
}

void metrics_print(struct metrics *metrics, struct text *ret)
{
	cleanup_free const char **names = NULL;

	for (size_t i = 0; i < metrics->n_hooks; i++)
		metrics->hooks[i].fn(metrics->hooks[i].arg);
	names = sorted_keys(&metrics->families);
	for (size_t i = 0; names[i]; i++)
		print_family(ret, map_get(&metrics->families, names[i]));
}
