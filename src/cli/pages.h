/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the servers of servers.h answer: one handler for each. */

#include "serving/http_server.h"

struct config;
struct options;
struct telemetry;

/* All is borrowed. */
struct pages {
	struct telemetry *telemetry;
	const struct options *options;
	const struct config *config; /* in force */
};

/* Their arg is a struct pages. */
http_handler_fn pages_health;
http_handler_fn pages_metrics;
