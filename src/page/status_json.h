/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the page is told, as JSON in one line, which is what an event of a stream has room for. Strings may hold
 * anything, bytes that are no UTF-8 too (doc_quote()).
 */

#include "base/text.h"
#include "page/service_log.h"
#include "page/status_source.h"

/* What is told of one Service, which may have thousands of either, has room in a stream's buffer. */
#define STATUS_PORTS_MAX   256
#define STATUS_ENTRIES_MAX 16   /* addresses of a port */
#define STATUS_TRAFFIC_MAX 4000 /* service ports with numbers */

/*
 * A Service with its ports, each with its entries, the endpoints that get its traffic and all it has. The plan
 * is that of the first family that the Service has here. Without ports: it is gone.
 */
void status_json_service(const struct status_source *source, const struct service_log_item *item,
			 struct text *ret);
/* Once, at the start: who speaks. */
void status_json_hello(const struct status_source *source, struct text *ret);
void status_json_gauges(const struct status_source *source, size_t services, uint64_t repairs,
			struct text *ret);
/* Totals by service port; now_ms: when, by the steady clock, so that a reader can work out rates. */
void status_json_traffic(const struct status_source *source, int64_t now_ms, struct text *ret);
