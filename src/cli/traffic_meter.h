/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Counts traffic by service port (backends/flows/service_traffic.h says how) and tells it as metrics
 * (serving/service_metrics.h): turns on the kernel's accounting, walks the table once a second,
 * or less often where that would take more than a fiftieth of a core, and hears of flows that end.
 *
 * Accounting (net.netfilter.nf_conntrack_acct) stays on when the daemon ends, as all sysctls do.
 * Where it cannot be turned on connections are counted, packets and bytes are not.
 */

#include "base/clock.h"
#include "base/err.h"

struct event_base;
struct metrics;
struct model;
struct traffic_meter;

#define TRAFFIC_METER_PERIOD_NS CLOCK_NS_PER_SECOND
#define TRAFFIC_METER_SHARE     50 /* rests at least so many times as long as it worked */

struct traffic_meter_config {
	struct event_base *loop;
	const struct model *model; /* borrowed, as all here */
	struct metrics *metrics;   /* not asked after the meter is gone */
	size_t limit;              /* of service ports with numbers of their own */
};

struct traffic_meter *traffic_meter_new(const struct traffic_meter_config *config);
struct traffic_meter *traffic_meter_free(struct traffic_meter *meter); /* accepts NULL */
/* Each service port with numbers of its own, in no order. */
struct service_traffic_port;
void traffic_meter_each(const struct traffic_meter *meter,
			void (*each)(void *arg, const struct service_traffic_port *port),
			void *arg);
/* A Service was set or removed; NULL: nothing to do. */
void traffic_meter_services_changed(struct traffic_meter *meter);
