/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/client_metrics.h"

#include <stdio.h>

#define CODE_MAX 12

static const double bounds[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};

void client_metrics_register(struct client_metrics *client, struct metrics *metrics)
{
	static const struct metric_desc requests = {
		.name = "rest_client_requests_total",
		.help = "[ALPHA] Number of HTTP requests, partitioned by status code, method, and "
			"host.",
		.kind = METRIC_COUNTER,
		.labels = {"code", "host", "method"},
	};
	static const struct metric_desc duration = {
		.name = "rest_client_request_duration_seconds",
		.help = "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
		.kind = METRIC_HISTOGRAM,
		.labels = {"host", "verb"},
		.buckets = bounds,
		.n_buckets = ARRAY_SIZE(bounds),
	};

	client->requests = metrics_add(metrics, &requests);
	client->duration = metrics_add(metrics, &duration);
}

void client_metrics_count(struct client_metrics *client, const char *host, const char *method,
			  int status, double seconds)
{
	char code[CODE_MAX] = "<error>";
	const char *const request[] = {code, host, method};
	const char *const latency[] = {host, method};

	if (status > 0)
		snprintf(code, sizeof(code), "%d", status);
	series_add(metric_series(client->requests, request), 1);
	series_observe(metric_series(client->duration, latency), seconds);
}
