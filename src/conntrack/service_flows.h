/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The flows of one Service, by service port and backend: how many, in which states, with how many
 * packets and bytes. No socket: the caller reads the connection tracking table and tells what it finds,
 *
 *	flows = service_flows_new(model, service, NULL, false);
 *	for (i = 0; i < flows->n_fronts; i++)
 *		conntrack_dump(&line, service_flows_filter(flows, i), service_flows_see, flows, &err);
 *	service_flows_finish(flows);
 *
 * with a filter for each place that clients may connect to, so that the kernel leaves out all others.
 * Memory follows the backends; only who asks to keep flows has each of them.
 */

#include "base/map.h"
#include "kernel/conntrack_state.h"
#include "model/model.h"

struct flow_backend {
	const struct service_port *port;
	struct addr addr;
	uint16_t number;
	const struct endpoint *endpoint; /* of the Service; NULL: it has none there any more */
	size_t flows;
	size_t states[CONNTRACK_STATE_COUNT];
	bool counted; /* some flow has numbers (nf_conntrack_acct) */
	uint64_t packets[CONNTRACK_DIR_COUNT], bytes[CONNTRACK_DIR_COUNT];
};

struct kept_flow {
	struct conntrack_flow flow;
	const struct flow_backend *backend;
};

/* To be read; the rest of it is service_flows.c's own. */
struct service_flows {
	struct flow_backend **backends; /* sorted by service_flows_finish(), as the next */
	size_t n_backends, backends_capacity;
	struct kept_flow *kept;
	size_t n_kept, kept_capacity;
	size_t n_fronts, fronts_capacity; /* a filter for each */

	const struct model *model;
	const struct service *service;
	bool keep;
	struct flow_front *fronts;
	const struct flow_front *current;
	struct flow_other *others;
	size_t n_others, others_capacity;
	struct map by_key; /* of backends */
};

/* All is borrowed. wanted: a flag for each of the Service's ports; NULL: all of them. */
struct service_flows *service_flows_new(const struct model *model, const struct service *service,
					const bool *wanted, bool keep);
struct service_flows *service_flows_free(struct service_flows *flows); /* accepts NULL */

/* What is seen from now on fits this one. */
const struct conntrack_filter *service_flows_filter(struct service_flows *flows, size_t index);
/* A conntrack_flow_fn; arg: the flows. Those that are not translated do not count. */
void service_flows_see(void *arg, const struct conntrack_flow *flow);

/* All endpoints, and other addresses with flows: by port, then by address. Kept flows likewise. */
void service_flows_finish(struct service_flows *flows);
