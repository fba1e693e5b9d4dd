/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where traffic goes by a plan, as a backend would be told: the endpoints, REJECT or DROP. */

#include <stdio.h>

#include "plan_world.h"

#define REJECT "REJECT"
#define DROP   "DROP"

attr_unused static void print_list(const struct port_plan *port, const struct index_list *list,
				   char *out, size_t size)
{
	char one[ADDR_PORT_TEXT_MAX];
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < list->n; i++) {
		const struct endpoint *endpoint = &port->endpoints->v[list->v[i]];

		addr_port_print(&endpoint->addr, endpoint->port, one);
		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "", one);
	}
}

attr_unused static const char *fate(const struct port_plan *port, enum plan_refusal refusal,
				    bool local)
{
	static char text[512];

	if (refusal != PLAN_SERVED)
		return refusal == PLAN_DROP ? DROP : REJECT;
	assert_true(local ? port->use_local_group : port->use_cluster_group);
	print_list(port, local ? &port->use.local : &port->use.cluster, text, sizeof(text));
	return text;
}

/* Where traffic to the cluster IP goes. */
attr_unused static const char *internal(const struct port_plan *port)
{
	return fate(port, port->internal, port->service->internal_local);
}

/* Where traffic from outside to any external address goes. */
attr_unused static const char *external(const struct port_plan *port)
{
	return fate(port, port->external, port->service->external_local);
}

/* Where pods and the node itself get to by an external address: the short circuit. */
attr_unused static const char *inside_out(const struct port_plan *port)
{
	assert_true(port->use_external);
	return fate(port, PLAN_SERVED, false);
}

attr_unused static void assert_traffic(struct world *world, const char *to_cluster_ip,
				       const char *from_outside)
{
	struct service_plan *plan = make_plan(world);

	assert_int_equal(plan->n_ports, 1);
	assert_string_equal(internal(&plan->ports[0]), to_cluster_ip);
	assert_string_equal(external(&plan->ports[0]), from_outside);
	service_plan_unref(plan);
}

attr_unused static struct service *balanced_service(bool external_local)
{
	struct service *service = build_service(KEY, "172.30.0.41");

	build_port(service, "", PROTOCOL_TCP, 80, 3001);
	build_external_ip(service, "192.168.99.11");
	build_vip(service, "1.2.3.4");
	service->external_local = external_local;
	return service;
}

attr_unused static struct service_plan *plan_with_two_endpoints(struct world *world,
								bool external_local)
{
	struct draft *slice = new_slice();

	build_endpoint(slice, "10.180.0.1", NULL, BUILD_READY);
	build_endpoint(slice, "10.180.2.1", NODE, BUILD_READY);
	model_set_service(world->model, balanced_service(external_local));
	build_set_slice(world->model, slice);
	return make_plan(world);
}
