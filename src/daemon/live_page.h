/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The status page (page/status_page.h) of the running daemon: what it reads, and who tells it what happens. */

#include "base/log.h"
#include "daemon/family_sync.h"

struct config;
struct event_base;
struct live_page;
struct status_page;
struct telemetry;
struct traffic_meter;

/* All is borrowed. */
struct live_page_config {
	struct event_base *loop;
	const struct model *model;
	const struct config *config;
	struct telemetry *telemetry;
	bool metered; /* there will be a meter */
};

struct live_page *live_page_new(const struct live_page_config *config);
/* Accepts NULL, returns NULL. The servers are closed before. */
struct live_page *live_page_free(struct live_page *live);
struct status_page *live_page_status(const struct live_page *live); /* for pages.h; NULL for NULL */

/* All from here on accept NULL for a page. */

/* What comes later, and may be replaced: whose settings are in force, and what counts traffic. */
struct family_set;
void live_page_set_families(struct live_page *live, const struct family_set *families);
void live_page_set_meter(struct live_page *live, struct traffic_meter *meter);

/* What family_syncs tell. */
void live_page_synced(struct live_page *live, enum family family,
		      const struct backend_result *result);
void live_page_flushed(struct live_page *live, enum family family);
void live_page_repaired(struct live_page *live, enum family family);
void live_page_conflict(struct live_page *live, const struct conflict *conflict);
void live_page_refused(struct live_page *live, const struct backend_refusal *refusal);
void live_page_clients_full(struct live_page *live, const struct backend_full *full);
/* What the source reports, if it is more than news. */
void live_page_reported(struct live_page *live, enum log_severity severity, const char *text);
