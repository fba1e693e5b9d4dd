/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Hears of translated flows that end (status IPS_DST_NAT), with what was counted of them until then,
 * in this network namespace.
 *
 * The kernel tells it when it forgets a flow: as a rule from its garbage collection, some time after
 * the last packet and not while packets pass. Flows that began before there was any listener may end
 * unheard. Other flows are left out by a socket filter and cost no turn of the loop. Ends are read
 * together, some 20 ms after the first of them.
 */

#include "kernel/conntrack.h"

struct conntrack_listener;
struct event_base;

/* Neither may free the listener. */
struct conntrack_listener_events {
	conntrack_flow_fn *ended;
	void (*lost)(void *arg); /* the queue overflowed: some were not heard */
	void *arg;
};

int conntrack_listener_open(struct event_base *loop, const struct conntrack_listener_events *events,
			    struct conntrack_listener **ret, struct err *err);
/* Reads now what is there: of very many ends not all, the loop goes on with them. Accepts NULL. */
void conntrack_listener_read(struct conntrack_listener *listener);
struct conntrack_listener *
conntrack_listener_free(struct conntrack_listener *listener); /* accepts NULL, returns NULL */
