/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From sums that only grow (service_traffic.h) to rates: what came between two looks, divided by the
 * time between them. No clock of its own.
 *
 *	rates_take(&rates, traffic, now_ns);    again and again
 *
 * The first look knows how many flows there are, and no rates yet.
 */

#include "base/map.h"
#include "conntrack/service_traffic.h"

struct rate_row {
	const char *name; /* "default/web:http/tcp" */
	/* a second */
	double connections;
	double packets, bytes; /* to the service and back, of flows that are counted */
	size_t flows;          /* that the table holds now */
};

struct rates {
	struct rate_row *v; /* in no order */
	size_t n;
	struct rate_row total;
	bool measured; /* there were two looks */
	int64_t at_ns;
	struct map sums; /* of the last look, by name */
};

void rates_take(struct rates *rates, const struct service_traffic *traffic, int64_t now_ns);
void rates_done(struct rates *rates);
#define cleanup_rates attr_cleanup(rates_done)
