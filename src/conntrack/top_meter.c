/* SPDX-License-Identifier: Apache-2.0 */
#include "conntrack/top_meter.h"

#include <linux/netfilter/nf_conntrack_common.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/loop.h"
#include "kernel/conntrack_listener.h"
#include "kernel/conntrack_walk.h"
#include "kernel/nfnetlink.h"
#include "kernel/sysctl.h"

#define SYSCTL_ACCT "net/netfilter/nf_conntrack_acct"
#define REST        3 /* times as long as a round took */

struct top_meter {
	struct top_meter_config config;
	struct service_traffic *traffic;
	struct conntrack_listener *listener; /* NULL: ends are not heard */
	struct nfnetlink_conn line;
	struct conntrack_walk *walk; /* NULL: between rounds */
	struct event *timer;
	int64_t begun_ns;
	bool lost; /* ends, since the last round */
};

static void rest(struct top_meter *meter, int64_t spent_ns)
{
	loop_arm(meter->timer, MAX(meter->begun_ns + meter->config.interval_ns - clock_now_ns(),
				   REST * spent_ns));
}

static void on_walked(void *arg, const struct conntrack_walk_result *result)
{
	struct top_meter *meter = arg;
	int64_t begun = clock_cpu_ns(), spent = result->spent_ns;

	if (result->error < 0)
		service_traffic_give_up(meter->traffic);
	else
		service_traffic_end(meter->traffic);
	meter->config.round(meter->config.arg, meter->traffic,
			    result->error < 0 ? result->words : NULL);
	meter->lost = false;
	meter->walk = conntrack_walk_free(meter->walk); /* and the result with it */
	while (service_traffic_sweep(meter->traffic, SERVICE_TRAFFIC_SWEEP))
		;
	rest(meter, spent + clock_cpu_ns() - begun);
}

static void on_flow(void *arg, const struct conntrack_flow *flow)
{
	const struct top_meter *meter = arg;

	service_traffic_see(meter->traffic, flow);
}

/* Ends come before the slice, as in traffic_meter.c. */
static void on_slice(void *arg)
{
	const struct top_meter *meter = arg;

	conntrack_listener_read(meter->listener);
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct top_meter *meter = arg;
	const struct conntrack_walk_config config = {
		.line = &meter->line,
		.status = IPS_DST_NAT,
		.slice = on_slice,
		.flow = on_flow,
		.done = on_walked,
		.arg = meter,
	};
	struct err err;

	meter->begun_ns = clock_now_ns();
	service_traffic_begin(meter->traffic, meter->config.changed(meter->config.arg));
	if (conntrack_walk_start(meter->config.loop, &config, &meter->walk, &err) == 0)
		return;
	service_traffic_give_up(meter->traffic);
	meter->config.round(meter->config.arg, meter->traffic, err.text);
	rest(meter, 0);
}

static void on_ended(void *arg, const struct conntrack_flow *flow)
{
	const struct top_meter *meter = arg;

	service_traffic_ended(meter->traffic, flow);
}

static void on_lost(void *arg)
{
	struct top_meter *meter = arg;

	meter->lost = true;
}

struct top_meter *top_meter_new(const struct top_meter_config *config)
{
	struct top_meter *meter = xcalloc(1, sizeof(*meter));
	const struct conntrack_listener_events events = {on_ended, on_lost, meter};
	struct err ignored;

	meter->config = *config;
	meter->traffic = service_traffic_new(SIZE_MAX);
	meter->timer = loop_timer(config->loop, on_timer, meter);
	if (conntrack_listener_open(config->loop, &events, &meter->listener, &ignored) < 0)
		meter->listener = NULL;
	loop_arm(meter->timer, 0);
	return meter;
}

struct top_meter *top_meter_free(struct top_meter *meter)
{
	if (!meter)
		return NULL;
	conntrack_listener_free(meter->listener);
	conntrack_walk_free(meter->walk);
	nfnetlink_conn_done(&meter->line);
	loop_free(meter->timer);
	service_traffic_free(meter->traffic);
	free(meter);
	return NULL;
}

const char *top_meter_note(const struct top_meter *meter)
{
	if (!meter->listener)
		return "the ends of flows cannot be heard: short ones may be missed";
	return meter->lost ? "too many flows ended at once: some may have been missed" : "";
}

bool top_meter_accounting(void)
{
	struct err ignored;
	int64_t on = 0;

	return sysctl_read(SYSCTL_ACCT, &on, &ignored) >= 0 && on != 0;
}
