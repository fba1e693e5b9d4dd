/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/rates.h"

#include <stdlib.h>

#include "base/clock.h"

struct sums {
	uint64_t connections, packets, bytes;
	char name[];
};

static uint64_t both(const uint64_t v[CONNTRACK_DIR_COUNT])
{
	return v[CONNTRACK_ORIGINAL] + v[CONNTRACK_REPLY];
}

static struct sums sums_of(const struct service_totals *totals)
{
	return (struct sums){
		.connections = totals->connections,
		.packets = both(totals->packets),
		.bytes = both(totals->bytes),
	};
}

/* A sum that became smaller began anew. */
static double rate(uint64_t now, uint64_t before, double seconds)
{
	return (double)(now >= before ? now - before : now) / seconds;
}

static void free_rows(struct rates *rates)
{
	for (size_t i = 0; i < rates->n; i++)
		free((char *)rates->v[i].name);
	free(rates->v);
	rates->v = NULL;
	rates->n = 0;
}

static void add_row(struct rates *rates, const struct rate_row *row)
{
	rates->v[rates->n++] = *row;
	rates->total.connections += row->connections;
	rates->total.packets += row->packets;
	rates->total.bytes += row->bytes;
	rates->total.flows += row->flows;
}

/* One port: its rates since the last look, and its sums for the next. */
static void take_port(struct rates *rates, struct map *next,
		      const struct service_traffic_port *port, double seconds)
{
	const struct sums now = sums_of(&port->totals);
	struct rate_row row = {
		.name = xasprintf("%s/%s:%s/%s", port->ns, port->service, port->port,
				  protocol_name(port->protocol)),
		.flows = port->tracked,
	};
	const struct sums *old = map_get(&rates->sums, row.name);
	struct sums *kept = map_ensure(next, row.name, sizeof(*kept), offsetof(struct sums, name));

	if (seconds > 0) {
		row.connections = rate(now.connections, old ? old->connections : 0, seconds);
		row.packets = rate(now.packets, old ? old->packets : 0, seconds);
		row.bytes = rate(now.bytes, old ? old->bytes : 0, seconds);
	}
	kept->connections = now.connections;
	kept->packets = now.packets;
	kept->bytes = now.bytes;
	add_row(rates, &row);
}

static size_t count_ports(const struct service_traffic *traffic)
{
	size_t n = 0, at = 0;

	while (service_traffic_next_met(traffic, &at))
		n++;
	return n;
}

void rates_take(struct rates *rates, const struct service_traffic *traffic, int64_t now_ns)
{
	double seconds =
		rates->at_ns ? (double)(now_ns - rates->at_ns) / (double)CLOCK_NS_PER_SECOND : 0;
	const struct service_traffic_port *port;
	struct map next = {0};
	size_t at = 0;

	free_rows(rates);
	rates->v = xcalloc(count_ports(traffic) + 1, sizeof(*rates->v));
	rates->total = (struct rate_row){0};
	while ((port = service_traffic_next_met(traffic, &at)))
		take_port(rates, &next, port, seconds);
	map_free_values(&rates->sums);
	rates->sums = next;
	rates->measured = rates->at_ns != 0;
	rates->at_ns = now_ns;
}

void rates_done(struct rates *rates)
{
	free_rows(rates);
	map_free_values(&rates->sums);
	*rates = (struct rates){0};
}
