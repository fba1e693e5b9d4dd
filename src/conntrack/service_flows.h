/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The flows of one Service, by service port and backend: how many, in which states, with how many
 * packets and bytes. No socket: the caller reads the connection tracking table and tells what it finds,
 *
 *	flows = service_flows_new(model, service, NULL, false);
 *	for (i = 0; i < service_flows_n_filters(flows); i++)
 *		conntrack_dump(&line, service_flows_filter(flows, i), service_flows_see, flows, &err);
 *	service_flows_finish(flows);
 *
 * with a filter for each place that clients may connect to, so that the kernel leaves out all others.
 * Memory follows the backends; only who asks to keep flows has each of them.
 */

#include "kernel/conntrack_state.h"
#include "model/model.h"

struct service_flows;

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

/* All is borrowed. wanted: a flag for each of the Service's ports; NULL: all of them. */
struct service_flows *service_flows_new(const struct model *model, const struct service *service,
					const bool *wanted, bool keep);
struct service_flows *service_flows_free(struct service_flows *flows); /* accepts NULL */

size_t service_flows_n_filters(const struct service_flows *flows);
/* What is seen from now on fits this one. */
const struct conntrack_filter *service_flows_filter(struct service_flows *flows, size_t index);
/* A conntrack_flow_fn; arg: the flows. Those that are not translated do not count. */
void service_flows_see(void *arg, const struct conntrack_flow *flow);

/* All endpoints, and other addresses with flows: by port, then by address. Kept flows likewise. */
void service_flows_finish(struct service_flows *flows);
size_t service_flows_n_backends(const struct service_flows *flows);
const struct flow_backend *service_flows_backend(const struct service_flows *flows, size_t index);
size_t service_flows_n_kept(const struct service_flows *flows);
const struct kept_flow *service_flows_kept(const struct service_flows *flows, size_t index);
