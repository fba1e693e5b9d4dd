/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much traffic went to each service port: connections, packets and bytes, from what connection
 * tracking counts for its flows anyway. The same for every proxy mode, because a flow knows where it
 * was going before it was translated. No socket and no clock; a caller that has a model and may read the
 * table can use it, a daemon or a command.
 *
 * The table is walked from time to time, in rounds (conntrack_walk.h, status IPS_DST_NAT):
 *
 *	service_traffic_begin(traffic, model);
 *	service_traffic_see(traffic, &flow);    for each
 *	service_traffic_end(traffic);
 *	while (service_traffic_sweep(traffic, SERVICE_TRAFFIC_SWEEP))
 *		;
 *
 * and flows that end are told whenever it happens (conntrack_listener.h):
 *
 *	service_traffic_ended(traffic, &flow);
 *
 * A flow counts as a connection when it is first met, and its packets and bytes from then on; so each
 * counts once, whether a round meets it, its end, or both, and totals never go back. Flows that the
 * first round finds began before anyone counted: only what comes on top counts.
 *
 * A service port that is gone from the model is forgotten once its flows are. At most `limit` ports,
 * those with the most traffic, have numbers of their own; the rest is one sum, `other`. What was
 * counted in the sum stays there when a port gets its own numbers, which then begin at 0: the numbers
 * of a port may vanish and begin again, but neither they nor the sum ever get smaller.
 *
 * Memory: about 100 bytes for each flow.
 */

#include "conntrack/service_fronts.h"
#include "kernel/conntrack.h"

#define SERVICE_TRAFFIC_SWEEP 8192 /* places to look at in one go: some 50 us */

struct service_traffic;

struct service_totals {
	uint64_t connections;
	/* of flows that are counted (nf_conntrack_acct), with IP headers: to the service, and back */
	uint64_t packets[CONNTRACK_DIR_COUNT];
	uint64_t bytes[CONNTRACK_DIR_COUNT];
};

struct service_traffic_port {
	const char *ns, *service;
	const char *port; /* its name, or the number if it has none */
	enum protocol protocol;
	struct service_totals totals;
	size_t tracked; /* flows that the table holds now, idle and closed ones too */
};

struct service_traffic *service_traffic_new(size_t limit);
struct service_traffic *service_traffic_free(struct service_traffic *traffic); /* accepts NULL */

/* A round begins; Services are those of the model now. NULL: they are as they were. */
void service_traffic_begin(struct service_traffic *traffic, const struct model *changed);
/* Flows that are not translated, or no Service's, do not count. */
void service_traffic_see(struct service_traffic *traffic, const struct conntrack_flow *flow);
/* The round is over: ports are ranked anew, and what was not seen any more may be swept away. */
void service_traffic_end(struct service_traffic *traffic);
/* The round failed half-way: nothing is concluded from what was not seen. */
void service_traffic_give_up(struct service_traffic *traffic);
/* Looks at so many places; false: that was all. Once before the next round. */
bool service_traffic_sweep(struct service_traffic *traffic, size_t places);

void service_traffic_ended(struct service_traffic *traffic, const struct conntrack_flow *flow);

/* Ports with numbers of their own, in no order, as map_next(). Borrowed, until the next change. */
const struct service_traffic_port *service_traffic_next(const struct service_traffic *traffic,
							size_t *at);
/* Likewise every port that flows were met of, also those without numbers. */
const struct service_traffic_port *service_traffic_next_met(const struct service_traffic *traffic,
							    size_t *at);
/* The others: their sum, how many they are, and how many of their flows the table holds. */
struct service_totals service_traffic_other(const struct service_traffic *traffic);
size_t service_traffic_folded(const struct service_traffic *traffic, size_t *ret_tracked);
