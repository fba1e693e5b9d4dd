/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/destination.h"

#include <stdio.h>

void destination_print(const struct destination *destination, char out[static DESTINATION_TEXT_MAX])
{
	const char *protocol = protocol_name(destination->protocol);
	char text[ADDR_PORT_TEXT_MAX];

	if (destination->whole) {
		addr_print(&destination->addr, out);
		return;
	}
	if (destination->node_port) {
		snprintf(out, DESTINATION_TEXT_MAX, "NodePort %u/%s", destination->port, protocol);
		return;
	}
	addr_port_print(&destination->addr, destination->port, text);
	snprintf(out, DESTINATION_TEXT_MAX, "%s/%s", text, protocol);
}

/* The addresses of one port; like: what they have in common. */
static void each_address(const struct port_plan *port, const struct destination *like,
			 destination_fn *fn, void *arg)
{
	struct destination destination = *like;

	destination.addr = *port->cluster_ip;
	fn(arg, &destination);
	destination.external = true;
	for (size_t i = 0; i < port->n_external_ips; i++) {
		destination.addr = port->external_ips[i];
		fn(arg, &destination);
	}
	destination.balancer = true;
	destination.firewalled = port->n_source_ranges > 0;
	for (size_t i = 0; i < port->n_vips; i++) {
		destination.addr = port->vips[i];
		fn(arg, &destination);
	}
}

static void each_of_port(const struct port_plan *port, destination_fn *fn, void *arg)
{
	struct destination destination = {
		.protocol = port->port->protocol,
		.port = port->port->port,
	};

	each_address(port, &destination, fn, arg);
	if (!port->port->node_port)
		return;
	destination.node_port = destination.external = true;
	destination.port = port->port->node_port;
	fn(arg, &destination);
}

void destination_each(const struct service_plan *plan, destination_fn *fn, void *arg)
{
	for (size_t i = 0; i < plan->n_ports; i++)
		each_of_port(&plan->ports[i], fn, arg);
}

void destination_each_address(const struct service_plan *plan, destination_fn *fn, void *arg)
{
	/* a plan has a port, and all have the same addresses */
	each_address(&plan->ports[0], &(struct destination){.whole = true}, fn, arg);
}
