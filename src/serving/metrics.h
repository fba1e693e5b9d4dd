/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers for Prometheus: counters, gauges and histograms, each a family of series that differ in
 * their labels, printed in the text format (version 0.0.4).
 *
 * A family is described once, by a static table, and registered; series come into being when they
 * are first asked for, and a family without labels has its one series from the start. Families and
 * series are printed in the order of their names and labels, so that two scrapes compare.
 */

#include "base/text.h"
#include "base/util.h"

enum metric_kind {
	METRIC_COUNTER = 0,
	METRIC_GAUGE,
	METRIC_HISTOGRAM,
	METRIC_KIND_COUNT,
};

#define METRIC_LABELS_MAX 10

struct metric_desc {
	const char *name;
	const char *help;
	enum metric_kind kind;
	const char *labels[METRIC_LABELS_MAX]; /* names, NULL behind the last */
	const double *buckets; /* HISTOGRAM: upper bounds, ascending, without +Inf */
	size_t n_buckets;
};

struct metrics;
struct metric; /* a family */
struct series;

struct metrics *metrics_new(void);
struct metrics *metrics_free(struct metrics *metrics); /* accepts NULL, returns NULL */

/* desc is borrowed. A name must not be registered twice. */
struct metric *metrics_add(struct metrics *metrics, const struct metric_desc *desc);
/* fn runs before each scrape and brings series up to date that are read from elsewhere. */
void metrics_before_scrape(struct metrics *metrics, void (*fn)(void *arg), void *arg);

/* The series of these label values, as many as desc names, in its order; kept until removed. */
struct series *metric_series(struct metric *metric, const char *const *values);
/* The same for families with one label, or none (NULL). */
struct series *metric_series1(struct metric *metric, const char *value);
void metric_clear(struct metric *metric); /* forgets all series */
size_t metric_count(const struct metric *metric);

void series_set(struct series *series, double value);      /* GAUGE, or a counter kept elsewhere */
void series_add(struct series *series, double value);      /* COUNTER: not negative */
void series_observe(struct series *series, double value);  /* HISTOGRAM */
double series_value(const struct series *series);          /* HISTOGRAM: the sum */
uint64_t series_observations(const struct series *series); /* HISTOGRAM: how many */

void metrics_print(struct metrics *metrics, struct text *ret);
