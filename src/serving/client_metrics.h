/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests to the API server, under the names of Kubernetes' client library: rest_client_requests_total
 * and rest_client_request_duration_seconds. Its other metrics are about parts that this client has not
 * (a rate limiter, a cache of transports).
 */

#include "serving/metrics.h"

struct client_metrics {
	struct metric *requests; /* code, host, method */
	struct metric *duration; /* host, verb */
};

void client_metrics_register(struct client_metrics *client, struct metrics *metrics);
/* A request was answered, or (status 0) got no answer; how long that took. */
void client_metrics_count(struct client_metrics *client, const char *host, const char *method,
			  int status, double seconds);
