/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the servers of servers.h answer: one handler for each. */

#include "serving/http_server.h"
#include "serving/scrape.h"

struct config;
struct options;
struct status_page;
struct telemetry;

/* All is borrowed but the scrape. */
struct pages {
	struct telemetry *telemetry;
	const struct options *options;
	const struct config *config; /* in force */
	struct status_page *status;  /* NULL: there is none, as in kube-proxy */
	struct scrape scrape;
};

void pages_done(struct pages *pages);
/* Their arg is a struct pages. */
http_handler_fn pages_health;
http_handler_fn pages_metrics;
