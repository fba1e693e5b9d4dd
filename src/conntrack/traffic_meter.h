/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Counts traffic by service port (conntrack/service_traffic.h says how) and tells it as metrics
 * (serving/service_metrics.h): turns on the kernel's accounting, walks the table and hears of flows that
 * end. It walks once a second while a page is open, every few seconds and with each scrape otherwise, and less
 * often where that would take more than a fiftieth of a core.
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

#define TRAFFIC_METER_PERIOD_NS    CLOCK_NS_PER_SECOND
#define TRAFFIC_METER_UNWATCHED_NS (5 * CLOCK_NS_PER_SECOND)
#define TRAFFIC_METER_WATCHED_NS   (3 * CLOCK_NS_PER_SECOND) /* so long after a page asked */
#define TRAFFIC_METER_SHARE        50 /* rests at least so many times as long as it worked */

/* Of a round, on the monotonic clock. */
struct traffic_meter_times {
	int64_t begun_ns, ended_ns;
	int64_t spent_ns;  /* of CPU time */
	int64_t looked_ns; /* when a page last asked for the numbers; 0: never */
};

/* How long the next round may wait. */
int64_t traffic_meter_rest(const struct traffic_meter_times *times, int64_t now_ns);

struct traffic_meter_config {
	struct event_base *loop;
	const struct model *model; /* borrowed, as all here */
	struct metrics *metrics;   /* not asked after the meter is gone */
	size_t limit;              /* of service ports with numbers of their own */
};

struct traffic_meter *traffic_meter_new(const struct traffic_meter_config *config);
struct traffic_meter *traffic_meter_free(struct traffic_meter *meter); /* accepts NULL */
/* Each service port with numbers of its own, in no order. To look keeps the numbers fresh. */
struct service_traffic_port;
void traffic_meter_each(struct traffic_meter *meter,
			void (*each)(void *arg, const struct service_traffic_port *port),
			void *arg);
/* A Service was set or removed; NULL: nothing to do. */
void traffic_meter_services_changed(struct traffic_meter *meter);
