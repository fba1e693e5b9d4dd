/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * This process as Prometheus' client libraries describe one: processor time, memory, descriptors and
 * network, read from /proc/self before each scrape. What cannot be read is not told.
 */

#include "serving/metrics.h"

enum process_metric {
	PROCESS_CPU = 0,
	PROCESS_OPEN_FDS,
	PROCESS_MAX_FDS,
	PROCESS_VIRTUAL,
	PROCESS_VIRTUAL_MAX,
	PROCESS_RESIDENT,
	PROCESS_START,
	PROCESS_RECEIVED,
	PROCESS_SENT,
	PROCESS_METRIC_COUNT,
};

struct process_metrics {
	struct metric *v[PROCESS_METRIC_COUNT];
};

/* process must live as long as metrics. */
void process_metrics_register(struct process_metrics *process, struct metrics *metrics);
double process_start_time(void); /* seconds since 1970; 0: cannot be read */
