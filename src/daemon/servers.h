/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The two servers that anyone may ask: metrics (--metrics-bind-address: numbers, mode, settings) and
 * health (--healthz-bind-address: /healthz, /livez).
 *
 * An address that cannot be listened on is tried again every 5 s, or with --bind-address-hard-fail
 * told to failed(), which ends the program. Where another instance has just ended it may be closing
 * its sockets still: then it is tried more often at first, and for a tenth of a second nothing is said.
 */

#include "base/err.h"

struct config;
struct connection_budget;
struct event_base;
struct options;
struct servers;
struct status_page;
struct telemetry;

enum servers_kind {
	SERVERS_HEALTH = 0,
	SERVERS_METRICS,
	SERVERS_KIND_COUNT,
};

struct servers_config {
	struct event_base *loop;
	struct telemetry *telemetry; /* borrowed, as all here */
	const struct options *options;
	struct connection_budget *budget;
	struct status_page *page; /* beside the metrics; NULL: there is none */
	void (*failed)(void *arg, enum servers_kind kind, const struct err *err);
	void *arg;
};

struct servers *servers_new(const struct servers_config *input, const struct config *config);
/* Opens both, as far as config has them; may call failed(), then or later. */
void servers_open(struct servers *servers, bool after_another);
/* While another instance is waited for: tells health, if the address happens to be free. */
void servers_offer_health(struct servers *servers);
struct servers *servers_free(struct servers *servers); /* accepts NULL, returns NULL */
/* Another configuration is in force, with the same addresses. */
void servers_set_config(struct servers *servers, const struct config *config);
