/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * NodePorts on localhost: for each TCP NodePort of a family that has endpoints a listening socket on 127.0.0.1 or ::1,
 * whose connections are carried to one of them (relay.h).
 *
 * After each good sync the owner tells what changed:
 *
 *	localhost_ports_begin(ports, full);
 *	localhost_ports_tell(ports, 30080, &plan->ports[0]);
 *	localhost_ports_end(ports);
 *
 * A port that cannot be bound is logged once until the reason changes, counted, and tried again at each end. A change
 * of endpoints touches no connection, nor does it when the last endpoint goes: only the socket closes then, so that
 * clients are refused. Connections end with their port.
 *
 * A connection goes to an endpoint that chance picks. If that one does not take it, one other is tried. With ClientIP
 * affinity all clients of this host are one client, as they have one address: they share a pin, which each connection renews
 * and which another endpoint replaces only when it is stale or its endpoint has gone. Then no other one is tried: the
 * client is not taken away from where its session is.
 *
 * What clients can take is bounded: connections of a port, connections of all, and with them descriptors. Who comes
 * when there is no room is reset at once, counted and, now and then, logged.
 */

#include "plan/plan.h"

struct event_base;
struct localhost_ports;

#define LOCALHOST_DIAL_NS        (5 * INT64_C(1000000000)) /* kube-proxy's */
#define LOCALHOST_HALF_CLOSED_NS (3600 * INT64_C(1000000000))

struct localhost_ports_config {
	struct event_base *loop;
	enum family family;
	size_t descriptors; /* for sockets and pipes together: localhost_ports_share() */
	int64_t dial_ns, half_closed_ns;
	int64_t (*now_ns)(void *arg);
	uint32_t (*random)(void *arg, uint32_t n); /* below n */
	void *arg;
};

/* Of all descriptors that the process may have, those that are for the NodePorts of one family. */
size_t localhost_ports_share(size_t descriptors);

struct localhost_ports *localhost_ports_new(const struct localhost_ports_config *config);
/* Closes all sockets and cuts all connections. Accepts NULL, returns NULL. */
struct localhost_ports *localhost_ports_free(struct localhost_ports *ports);

/* full: ports that are not told until the end are gone. */
void localhost_ports_begin(struct localhost_ports *ports, bool full);
/* The TCP NodePort is that service port's now; NULL: nobody's. The plan is borrowed for the call. */
void localhost_ports_tell(struct localhost_ports *ports, uint16_t node_port,
			  const struct port_plan *plan);
void localhost_ports_end(struct localhost_ports *ports);
/* Is there one that could not be bound? The owner sees to it that a sync comes. */
bool localhost_ports_wait(const struct localhost_ports *ports);

struct localhost_stats {
	size_t listeners;   /* bound now */
	uint64_t failures;  /* to bind one, so far */
	size_t connections; /* open now */
	uint64_t refused;   /* for lack of room, so far */
};

void localhost_ports_stats(const struct localhost_ports *ports, struct localhost_stats *ret);
