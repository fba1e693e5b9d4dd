/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A round is: begin, a walk in slices, end, a sweep in slices, rest. The first one comes before rules
 * are written, so that on a fresh node nothing is missed.
 *
 * The kernel may use a flow's place again for the next one between the same ports. So ends that have
 * been told by then are read before each slice: one that comes late would be taken for that of the
 * next flow.
 */

#include "conntrack/traffic_meter.h"

#include <linux/netfilter/nf_conntrack_common.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/loop.h"
#include "conntrack/service_traffic.h"
#include "kernel/conntrack_listener.h"
#include "kernel/conntrack_walk.h"
#include "kernel/nfnetlink.h"
#include "kernel/sysctl.h"
#include "serving/service_metrics.h"

#define SYSCTL_ACCT "net/netfilter/nf_conntrack_acct"

enum phase {
	RESTING = 0, /* the timer begins a round */
	WALKING,
	SWEEPING, /* the timer goes on */
};

struct traffic_meter {
	struct traffic_meter_config config;
	struct service_traffic *traffic;
	struct service_metrics *metrics;
	struct service_metrics_work work;
	struct conntrack_listener *listener; /* NULL: ends are not heard */
	struct nfnetlink_conn line;
	struct conntrack_walk *walk; /* NULL but for WALKING */
	struct event *timer;
	enum phase phase;
	struct traffic_meter_times times; /* of this round, or the last one */
	bool accounting;                  /* is on */
	bool changed;                     /* Services, since the last round */
	bool news;                        /* numbers, since the last scrape */
	char *failure;                    /* what was logged last; NULL: all is well */
};

static void say_failure(struct traffic_meter *meter, const char *words)
{
	if (meter->failure && streq(meter->failure, words))
		return;
	log_error("Traffic of Services cannot be counted, trying again", KV("err", LOG_STR(words)));
	free(meter->failure);
	meter->failure = xstrdup(words);
}

/* Tried before the first rounds too, when connection tracking may not be loaded yet. */
static void ensure_accounting(struct traffic_meter *meter)
{
	struct err err;

	if (meter->accounting)
		return;
	meter->accounting = sysctl_ensure(SYSCTL_ACCT, 1, &err) >= 0;
	if (!meter->accounting && meter->work.rounds == 1)
		log_warning("Packets and bytes of Services cannot be counted, only connections are",
			    KV("err", LOG_STR(err.text)));
}

/* -- rounds */

int64_t traffic_meter_rest(const struct traffic_meter_times *times, int64_t now_ns)
{
	bool watched = times->looked_ns && now_ns - times->looked_ns < TRAFFIC_METER_WATCHED_NS;
	int64_t period_ns = watched ? TRAFFIC_METER_PERIOD_NS : TRAFFIC_METER_UNWATCHED_NS;
	int64_t due_ns = MAX(times->begun_ns + period_ns,
			     times->ended_ns + TRAFFIC_METER_SHARE * times->spent_ns);

	return MAX(due_ns - now_ns, 0);
}

static void rest(struct traffic_meter *meter)
{
	meter->phase = RESTING;
	meter->times.ended_ns = clock_now_ns();
	meter->work.seconds += (double)meter->times.spent_ns / (double)CLOCK_NS_PER_SECOND;
	loop_arm(meter->timer, traffic_meter_rest(&meter->times, meter->times.ended_ns));
}

/* The next round comes as soon as for one who looks. */
static void hurry(struct traffic_meter *meter)
{
	struct traffic_meter_times times = meter->times;

	times.looked_ns = clock_now_ns();
	if (meter->phase == RESTING)
		loop_arm(meter->timer, traffic_meter_rest(&times, times.looked_ns));
}

static void sweep(struct traffic_meter *meter)
{
	int64_t begun = clock_cpu_ns();
	bool more = service_traffic_sweep(meter->traffic, SERVICE_TRAFFIC_SWEEP);

	meter->phase = SWEEPING;
	meter->times.spent_ns += clock_cpu_ns() - begun;
	if (more)
		loop_arm(meter->timer, 0);
	else
		rest(meter);
}

static void on_walked(void *arg, const struct conntrack_walk_result *result)
{
	struct traffic_meter *meter = arg;
	bool failed = result->error < 0;

	meter->times.spent_ns += result->spent_ns;
	if (failed) {
		say_failure(meter, result->words);
		service_traffic_give_up(meter->traffic);
	} else {
		free(take(meter->failure));
		service_traffic_end(meter->traffic);
		meter->work.rounds++;
		meter->news = true;
	}
	meter->walk = conntrack_walk_free(meter->walk); /* and the result with it */
	if (failed)
		rest(meter);
	else
		sweep(meter);
}

static void on_flow(void *arg, const struct conntrack_flow *flow)
{
	const struct traffic_meter *meter = arg;

	service_traffic_see(meter->traffic, flow);
}

static void on_slice(void *arg)
{
	const struct traffic_meter *meter = arg;

	conntrack_listener_read(meter->listener);
}

static void begin(struct traffic_meter *meter)
{
	const struct conntrack_walk_config config = {
		.line = &meter->line,
		.status = IPS_DST_NAT,
		.slice = on_slice,
		.flow = on_flow,
		.done = on_walked,
		.arg = meter,
	};
	int64_t begun = clock_cpu_ns();
	struct err err;

	ensure_accounting(meter);
	conntrack_listener_read(meter->listener);
	meter->times.begun_ns = clock_now_ns();
	service_traffic_begin(meter->traffic, meter->changed ? meter->config.model : NULL);
	meter->changed = false;
	meter->phase = WALKING;
	meter->times.spent_ns = clock_cpu_ns() - begun;
	if (conntrack_walk_start(meter->config.loop, &config, &meter->walk, &err) == 0)
		return;
	say_failure(meter, err.text);
	service_traffic_give_up(meter->traffic);
	rest(meter);
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct traffic_meter *meter = arg;

	if (meter->phase == SWEEPING)
		sweep(meter);
	else
		begin(meter);
}

void traffic_meter_services_changed(struct traffic_meter *meter)
{
	if (meter)
		meter->changed = true;
}

/* -- ends */

static void on_ended(void *arg, const struct conntrack_flow *flow)
{
	struct traffic_meter *meter = arg;

	service_traffic_ended(meter->traffic, flow);
	meter->news = true;
}

static void on_lost(void *arg)
{
	struct traffic_meter *meter = arg;

	meter->work.overflows++;
}

/* -- telling */

static struct service_numbers numbers_of(const struct service_totals *totals, size_t tracked)
{
	return (struct service_numbers){
		.connections = totals->connections,
		.packets_to = totals->packets[CONNTRACK_ORIGINAL],
		.packets_from = totals->packets[CONNTRACK_REPLY],
		.bytes_to = totals->bytes[CONNTRACK_ORIGINAL],
		.bytes_from = totals->bytes[CONNTRACK_REPLY],
		.tracked = tracked,
	};
}

void traffic_meter_each(struct traffic_meter *meter,
			void (*each)(void *arg, const struct service_traffic_port *port), void *arg)
{
	const struct service_traffic_port *port;
	size_t at = 0;

	meter->times.looked_ns = clock_now_ns();
	hurry(meter);
	while ((port = service_traffic_next(meter->traffic, &at)))
		each(arg, port);
}

static void tell_ports(struct traffic_meter *meter)
{
	const struct service_traffic_port *port;
	size_t at = 0;

	service_metrics_clear(meter->metrics);
	while ((port = service_traffic_next(meter->traffic, &at))) {
		struct service_numbers numbers = numbers_of(&port->totals, port->tracked);

		numbers.ns = port->ns;
		numbers.service = port->service;
		numbers.port = port->port;
		numbers.protocol = protocol_name(port->protocol);
		service_metrics_set(meter->metrics, &numbers);
	}
}

/* The sum is told from the first time on that there is one. */
static void tell_other(struct traffic_meter *meter)
{
	struct service_totals totals = service_traffic_other(meter->traffic);
	struct service_numbers numbers;
	size_t tracked;

	meter->work.folded = service_traffic_folded(meter->traffic, &tracked);
	numbers = numbers_of(&totals, tracked);
	if (meter->work.folded > 0 || totals.connections > 0)
		service_metrics_set_other(meter->metrics, &numbers);
}

static void before_scrape(void *arg)
{
	struct traffic_meter *meter = arg;

	conntrack_listener_read(meter->listener);
	hurry(meter);
	if (meter->news) {
		tell_ports(meter);
		tell_other(meter);
	}
	meter->news = false;
	service_metrics_set_work(meter->metrics, &meter->work);
}

/* -- begin and end */

static void listen_to_ends(struct traffic_meter *meter)
{
	const struct conntrack_listener_events events = {on_ended, on_lost, meter};
	struct err err;

	if (conntrack_listener_open(meter->config.loop, &events, &meter->listener, &err) < 0)
		log_warning("Short connections to Services may not be counted",
			    KV("err", LOG_STR(err.text)));
}

struct traffic_meter *traffic_meter_new(const struct traffic_meter_config *config)
{
	struct traffic_meter *meter = xcalloc(1, sizeof(*meter));

	meter->config = *config;
	meter->changed = true;
	meter->traffic = service_traffic_new(config->limit);
	meter->metrics = service_metrics_new(config->metrics);
	meter->timer = loop_timer(config->loop, on_timer, meter);
	metrics_before_scrape(config->metrics, before_scrape, meter);
	listen_to_ends(meter);
	begin(meter);
	return meter;
}

struct traffic_meter *traffic_meter_free(struct traffic_meter *meter)
{
	if (!meter)
		return NULL;
	conntrack_listener_free(meter->listener);
	conntrack_walk_free(meter->walk);
	nfnetlink_conn_done(&meter->line);
	loop_free(meter->timer);
	service_metrics_free(meter->metrics);
	service_traffic_free(meter->traffic);
	free(meter->failure);
	free(meter);
	return NULL;
}
