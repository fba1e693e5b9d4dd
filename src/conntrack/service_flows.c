/* SPDX-License-Identifier: Apache-2.0 */
#include "conntrack/service_flows.h"

#include <linux/netfilter/nf_conntrack_common.h>
#include <stdio.h>
#include <stdlib.h>

struct backend {
	struct flow_backend pub;
	char key[]; /* of the map */
};

/* A place that clients may connect to. */
struct flow_front {
	struct conntrack_filter filter;
	const struct service_port *port;
	bool node_port;
};

/* An address where some Service, also this one, has the number of a node port for a port: not the node port is meant. */
struct flow_other {
	const struct service_port *port; /* the one with the node port */
	const struct addr *addr;
};

/* -- fronts */

static void add_front(struct service_flows *flows, const struct service_port *port,
		      const struct addr *addr, enum family family)
{
	array_grow(&flows->fronts, &flows->fronts_capacity, flows->n_fronts,
		   sizeof(*flows->fronts));
	flows->fronts[flows->n_fronts++] = (struct flow_front){
		.filter = {.family = family,
			   .protocol = protocol_number(port->protocol),
			   .dst = addr,
			   .dst_port = addr ? port->port : port->node_port,
			   .once = true},
		.port = port,
		.node_port = !addr,
	};
}

static void add_addresses(struct service_flows *flows, const struct service_port *port,
			  const struct addr *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_front(flows, port, &v[i], (enum family)v[i].family);
}

static void add_others(struct service_flows *flows, const struct service_port *port,
		       const struct addr *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		array_grow(&flows->others, &flows->others_capacity, flows->n_others,
			   sizeof(*flows->others));
		flows->others[flows->n_others++] = (struct flow_other){port, &v[i]};
	}
}

static bool has_port(const struct service *service, uint16_t number, enum protocol protocol)
{
	for (size_t i = 0; i < service->n_ports; i++)
		if (service->ports[i].port == number && service->ports[i].protocol == protocol)
			return true;
	return false;
}

static void find_others(struct service_flows *flows, const struct service_port *port)
{
	const struct service *other;
	size_t at = 0;

	while ((other = model_next_service(flows->model, &at))) {
		if (!has_port(other, port->node_port, port->protocol))
			continue;
		for (enum family family = 0; family < FAMILY_COUNT; family++)
			add_others(flows, port, &other->cluster_ip[family],
				   other->has_cluster_ip[family]);
		add_others(flows, port, other->external_ips, other->n_external_ips);
		add_others(flows, port, other->vips, other->n_vips);
	}
}

static void add_port(struct service_flows *flows, const struct service_port *port)
{
	const struct service *service = flows->service;

	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		if (!service->has_cluster_ip[family])
			continue;
		add_addresses(flows, port, &service->cluster_ip[family], 1);
		if (port->node_port)
			add_front(flows, port, NULL, family);
	}
	add_addresses(flows, port, service->external_ips, service->n_external_ips);
	add_addresses(flows, port, service->vips, service->n_vips);
	if (port->node_port)
		find_others(flows, port);
}

/* -- backends */

#define KEY_MAX (ADDR_PORT_TEXT_MAX + 24)

static struct flow_backend *find_backend(struct service_flows *flows,
					 const struct service_port *port, const struct addr *addr,
					 uint16_t number)
{
	char out[ADDR_PORT_TEXT_MAX], key[KEY_MAX];
	struct backend *backend;

	addr_port_print(addr, number, out);
	snprintf(key, sizeof(key), "%td %s", port - flows->service->ports, out);
	backend = map_get(&flows->by_key, key);
	if (backend)
		return &backend->pub;
	backend = map_ensure(&flows->by_key, key, sizeof(*backend), offsetof(struct backend, key));
	backend->pub.port = port;
	backend->pub.addr = *addr;
	backend->pub.number = number;
	array_grow(&flows->backends, &flows->backends_capacity, flows->n_backends,
		   sizeof(*flows->backends));
	flows->backends[flows->n_backends++] = &backend->pub;
	return &backend->pub;
}

static void add_endpoints(struct service_flows *flows, const struct service_port *port)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		const struct endpoints *list = model_endpoints(
			flows->model, family, flows->service->key, port->name, port->protocol);

		for (size_t i = 0; list && i < list->n; i++)
			find_backend(flows, port, &list->v[i].addr, list->v[i].port)->endpoint =
				&list->v[i];
	}
}

struct service_flows *service_flows_new(const struct model *model, const struct service *service,
					const bool *wanted, bool keep)
{
	struct service_flows *flows = xcalloc(1, sizeof(*flows));

	flows->model = model;
	flows->service = service;
	flows->keep = keep;
	for (size_t i = 0; i < service->n_ports; i++) {
		if (wanted && !wanted[i])
			continue;
		add_port(flows, &service->ports[i]);
		add_endpoints(flows, &service->ports[i]);
	}
	return flows;
}

struct service_flows *service_flows_free(struct service_flows *flows)
{
	if (!flows)
		return NULL;
	map_free_values(&flows->by_key);
	free(flows->fronts);
	free(flows->others);
	free(flows->backends);
	free(flows->kept);
	free(flows);
	return NULL;
}

/* -- seeing */

const struct conntrack_filter *service_flows_filter(struct service_flows *flows, size_t index)
{
	flows->current = &flows->fronts[index];
	return &flows->current->filter;
}

static bool is_for_other(const struct service_flows *flows, const struct addr *dst)
{
	for (size_t i = 0; i < flows->n_others; i++)
		if (flows->others[i].port == flows->current->port &&
		    addr_equal(flows->others[i].addr, dst))
			return true;
	return false;
}

static void count(struct flow_backend *backend, const struct conntrack_flow *flow)
{
	backend->flows++;
	backend->states[conntrack_state_of(flow)]++;
	backend->counted = backend->counted || flow->counted;
	for (size_t i = 0; i < CONNTRACK_DIR_COUNT; i++) {
		backend->packets[i] += flow->packets[i];
		backend->bytes[i] += flow->bytes[i];
	}
}

static void keep(struct service_flows *flows, const struct conntrack_flow *flow,
		 const struct flow_backend *backend)
{
	array_grow(&flows->kept, &flows->kept_capacity, flows->n_kept, sizeof(*flows->kept));
	flows->kept[flows->n_kept++] = (struct kept_flow){*flow, backend};
}

/* An old kernel has no filter, so all of it is asked once more. */
void service_flows_see(void *arg, const struct conntrack_flow *flow)
{
	struct service_flows *flows = arg;
	const struct flow_front *front = flows->current;
	struct flow_backend *backend;

	if (!(flow->status & IPS_DST_NAT) || flow->protocol != front->filter.protocol ||
	    flow->original.dst_port != front->filter.dst_port ||
	    (front->node_port && is_for_other(flows, &flow->original.dst)))
		return;
	backend = find_backend(flows, front->port, &flow->reply.src, flow->reply.src_port);
	count(backend, flow);
	if (flows->keep)
		keep(flows, flow, backend);
}

/* -- the end */

static int compare_pub(const struct flow_backend *a, const struct flow_backend *b)
{
	int r = (a->port > b->port) - (a->port < b->port);

	if (r == 0)
		r = addr_compare(&a->addr, &b->addr);
	return r != 0 ? r : (int)a->number - (int)b->number;
}

static int compare_backends(const void *left, const void *right)
{
	return compare_pub(*(struct flow_backend *const *)left,
			   *(struct flow_backend *const *)right);
}

static int compare_kept(const void *left, const void *right)
{
	const struct kept_flow *a = left, *b = right;
	int r = compare_pub(a->backend, b->backend);

	if (r == 0)
		r = addr_compare(&a->flow.original.src, &b->flow.original.src);
	return r != 0 ? r : (int)a->flow.original.src_port - (int)b->flow.original.src_port;
}

void service_flows_finish(struct service_flows *flows)
{
	if (flows->n_backends > 1)
		qsort(flows->backends, flows->n_backends, sizeof(*flows->backends),
		      compare_backends);
	if (flows->n_kept > 1)
		qsort(flows->kept, flows->n_kept, sizeof(*flows->kept), compare_kept);
}
