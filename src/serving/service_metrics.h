/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Traffic by service port, as metrics:
 *
 *	portolan_service_connections_total          namespace, port, protocol, service
 *	portolan_service_packets_total              direction and the same
 *	portolan_service_bytes_total                likewise
 *	portolan_service_tracked_connections        namespace, port, protocol, service
 *	portolan_service_ports_folded               none
 *	portolan_service_traffic_rounds_total       none
 *	portolan_service_traffic_seconds_total      none
 *	portolan_service_traffic_overflows_total    none
 *
 * direction is to_service or from_service; a port without a name is its number. The sum of ports without
 * numbers of their own has service="other" and no namespace, port and protocol.
 */

#include "serving/metrics.h"

struct service_metrics;

struct service_numbers {
	const char *ns, *service, *port, *protocol;
	uint64_t connections;
	uint64_t packets_to, packets_from;
	uint64_t bytes_to, bytes_from;
	uint64_t tracked;
};

/* Counting itself: how often the table was read, what that took, how often ends were lost. */
struct service_metrics_work {
	uint64_t folded; /* ports in the sum */
	uint64_t rounds, overflows;
	double seconds;
};

struct service_metrics *service_metrics_new(struct metrics *metrics); /* registers; borrowed */
struct service_metrics *service_metrics_free(struct service_metrics *service); /* accepts NULL */

/* Forgets the numbers of all ports. */
void service_metrics_clear(struct service_metrics *service);
void service_metrics_set(struct service_metrics *service, const struct service_numbers *numbers);
void service_metrics_set_other(struct service_metrics *service,
			       const struct service_numbers *sum); /* its names do not count */
void service_metrics_set_work(struct service_metrics *service,
			      const struct service_metrics_work *work);
