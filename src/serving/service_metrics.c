/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/service_metrics.h"

#include <assert.h>
#include <stdlib.h>

#define TO   "to_service"
#define FROM "from_service"

enum {
	CONNECTIONS = 0,
	PACKETS,
	BYTES,
	TRACKED,
	FOLDED,
	ROUNDS,
	SECONDS,
	OVERFLOWS,
	COUNT,
};

#define PORT_LABELS "namespace", "port", "protocol", "service"

static const struct metric_desc table[] = {
	[CONNECTIONS] = {.name = "portolan_service_connections_total",
			 .help = "Connections to a service port that began, UDP conversations too.",
			 .kind = METRIC_COUNTER,
			 .labels = {PORT_LABELS}},
	[PACKETS] = {.name = "portolan_service_packets_total",
		     .help = "Packets of connections to a service port.",
		     .kind = METRIC_COUNTER,
		     .labels = {"direction", PORT_LABELS}},
	[BYTES] = {.name = "portolan_service_bytes_total",
		   .help = "Bytes of connections to a service port, IP headers included.",
		   .kind = METRIC_COUNTER,
		   .labels = {"direction", PORT_LABELS}},
	[TRACKED] =
		{.name = "portolan_service_tracked_connections",
		 .help = "Connections to a service port that the kernel tracks now, closed ones "
			 "that it still remembers too.",
		 .kind = METRIC_GAUGE,
		 .labels = {PORT_LABELS}},
	[FOLDED] = {.name = "portolan_service_ports_folded",
		    .help = "Service ports with traffic that have no numbers of their own and are "
			    "summed up with service=\"other\": see --service-metrics-limit.",
		    .kind = METRIC_GAUGE},
	[ROUNDS] = {.name = "portolan_service_traffic_rounds_total",
		    .help = "Times that the connection tracking table was read for these numbers.",
		    .kind = METRIC_COUNTER},
	[SECONDS] = {.name = "portolan_service_traffic_seconds_total",
		     .help = "CPU time spent on reading the connection tracking table for them.",
		     .kind = METRIC_COUNTER},
	[OVERFLOWS] = {.name = "portolan_service_traffic_overflows_total",
		       .help = "Times that connections ended faster than could be counted: some "
			       "short ones are missing.",
		       .kind = METRIC_COUNTER},
};
static_assert(ARRAY_SIZE(table) == COUNT, "a description for each metric");

struct service_metrics {
	struct metric *v[COUNT];
};

struct service_metrics *service_metrics_new(struct metrics *metrics)
{
	struct service_metrics *service = xcalloc(1, sizeof(*service));

	for (size_t i = 0; i < COUNT; i++)
		service->v[i] = metrics_add(metrics, &table[i]);
	return service;
}

struct service_metrics *service_metrics_free(struct service_metrics *service)
{
	free(service);
	return NULL;
}

void service_metrics_clear(struct service_metrics *service)
{
	for (size_t i = CONNECTIONS; i <= TRACKED; i++)
		metric_clear(service->v[i]);
}

static void set_one(struct service_metrics *service, size_t id, const char *const *labels,
		    uint64_t value)
{
	series_set(metric_series(service->v[id], labels), (double)value);
}

void service_metrics_set(struct service_metrics *service, const struct service_numbers *numbers)
{
	const char *const to[] = {TO, numbers->ns, numbers->port, numbers->protocol,
				  numbers->service};
	const char *const from[] = {FROM, numbers->ns, numbers->port, numbers->protocol,
				    numbers->service};
	const char *const *plain = to + 1;

	set_one(service, CONNECTIONS, plain, numbers->connections);
	set_one(service, PACKETS, to, numbers->packets_to);
	set_one(service, PACKETS, from, numbers->packets_from);
	set_one(service, BYTES, to, numbers->bytes_to);
	set_one(service, BYTES, from, numbers->bytes_from);
	set_one(service, TRACKED, plain, numbers->tracked);
}

void service_metrics_set_other(struct service_metrics *service, const struct service_numbers *sum)
{
	struct service_numbers other = *sum;

	other.service = "other";
	other.ns = other.port = other.protocol = "";
	service_metrics_set(service, &other);
}

void service_metrics_set_work(struct service_metrics *service,
			      const struct service_metrics_work *work)
{
	const double values[] = {
		[FOLDED] = (double)work->folded,
		[ROUNDS] = (double)work->rounds,
		[SECONDS] = work->seconds,
		[OVERFLOWS] = (double)work->overflows,
	};

	for (size_t i = FOLDED; i < COUNT; i++)
		series_set(metric_series1(service->v[i], NULL), values[i]);
}
