/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is known of the running proxy, for those who ask: metrics, health, and the health check ports
 * of Services. And what is to be done whenever a sync went well: connections that the new rules
 * would send elsewhere are forgotten.
 *
 * Each family_sync tells what happens through an observer; the sources' events are told by the daemon. Lives
 * as long as the daemon, while family_syncs come and go with the configuration.
 */

#include "base/text.h"
#include "daemon/family_sync.h"
#include "daemon/readiness.h"

struct connection_budget;
struct event_base;
struct gates;
struct metrics;
struct telemetry;

struct telemetry_config {
	struct event_base *loop;
	const struct model *model; /* borrowed */
	const char *mode;          /* as --proxy-mode has it; borrowed */
	const struct gates *gates;
	struct connection_budget *budget; /* borrowed */
	int64_t sync_period_ns;
	enum terminate terminate;   /* see stale_flows.h */
	enum readiness_probe probe; /* see readiness.h */
	const char *probe_target;   /* borrowed */
	int64_t probe_interval_ns;
	void (*check_rules)(void *arg); /* telemetry is told as an observer */
	/* As family_set_localhost(), for each scrape; NULL: nothing is done about NodePorts on localhost. */
	bool (*read_localhost)(void *arg, enum family family, struct backend_localhost *ret);
	/* The health check port of a Service cannot be opened: its owner should be told. */
	void (*port_failed)(void *arg, const char *ns, const char *name, const struct err *err);
	void *arg;
};

struct telemetry *telemetry_new(const struct telemetry_config *config);
struct telemetry *telemetry_free(struct telemetry *telemetry); /* accepts NULL, returns NULL */

const struct family_sync_observer *telemetry_observer(const struct telemetry *telemetry);
/* A family is proxied by these settings from now on, perhaps after others. */
int telemetry_set_family(struct telemetry *telemetry, const struct settings *settings,
			 struct err *err);

/* An object was set or removed; of slices, those of which families. */
void telemetry_service_event(struct telemetry *telemetry);
void telemetry_slice_event(struct telemetry *telemetry, unsigned int families);

/* A list is held back, or not any more. */
struct source_held;
void telemetry_held(struct telemetry *telemetry, const struct source_held *held);

/* A request to the API server; arg is a struct telemetry. */
struct api_http_seen;
void telemetry_request_seen(void *arg, const struct api_http_seen *seen);

struct metrics *telemetry_metrics(const struct telemetry *telemetry);
/* From now on this page is told of syncs and repairs, after telemetry's own work; NULL: none. */
struct live_page;
void telemetry_set_page(struct telemetry *telemetry, struct live_page *page);
/* Another instance is waited for: /healthz says so. */
void telemetry_set_waiting(struct telemetry *telemetry, bool waiting);
/* Would /healthz say so? Not counted. *ret_reason: why not, for the caller to free; NULL: it would. */
bool telemetry_healthy(const struct telemetry *telemetry, char **ret_reason);
/* What is wrong and changes no status, for the caller to free; NULL: nothing. */
char *telemetry_degraded(const struct telemetry *telemetry);
/* Bodies in JSON, counted; both return the status. */
int telemetry_healthz(struct telemetry *telemetry, struct text *ret);
int telemetry_livez(struct telemetry *telemetry, struct text *ret);
