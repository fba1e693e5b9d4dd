/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/overview.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/doc.h"
#include "inspect/columns.h"

static const char *const type_names[] = {
	[SERVICE_CLUSTER_IP] = "ClusterIP",
	[SERVICE_NODE_PORT] = "NodePort",
	[SERVICE_LOAD_BALANCER] = "LoadBalancer",
};

static_assert(ARRAY_SIZE(type_names) == SERVICE_TYPE_COUNT, "one name for each type");

const char *service_type_name(enum service_type type)
{
	return type_names[type];
}

enum service_type service_type_of(const struct service *service)
{
	if (service->n_vips > 0)
		return SERVICE_LOAD_BALANCER;
	for (size_t i = 0; i < service->n_ports; i++)
		if (service->ports[i].node_port)
			return SERVICE_NODE_PORT;
	return SERVICE_CLUSTER_IP;
}

static enum family first_family(const struct service *service)
{
	return service->has_cluster_ip[FAMILY_IPV4] ? FAMILY_IPV4 : FAMILY_IPV6;
}

static struct endpoint_count count_port(const struct model *model, const struct service *service,
					const struct service_port *port)
{
	const struct endpoints *list = model_endpoints(model, first_family(service), service->key,
						       port->name, port->protocol);
	struct endpoint_count count = {0};

	for (size_t i = 0; list && i < list->n; i++) {
		count.total++;
		count.ready += (list->v[i].flags & ENDPOINT_READY) != 0;
		count.local += (list->v[i].flags & ENDPOINT_LOCAL) != 0;
	}
	return count;
}

/* Of the port that has most, in the first family: a pod counts once. */
static struct endpoint_count count_most(const struct model *model, const struct service *service)
{
	struct endpoint_count most = {0};

	for (size_t i = 0; i < service->n_ports; i++) {
		struct endpoint_count count = count_port(model, service, &service->ports[i]);

		if (count.total > most.total)
			most = count;
	}
	return most;
}

static int compare_services(const void *left, const void *right)
{
	const struct service *const *a = left, *const *b = right;
	int r = strcmp((*a)->ns, (*b)->ns);

	return r != 0 ? r : strcmp((*a)->name, (*b)->name);
}

struct service **overview_services(const struct model *model, const char *name_space, size_t *ret_n)
{
	struct service **v = NULL, *service;
	size_t n = 0, capacity = 0, at = 0;

	while ((service = model_next_service(model, &at))) {
		if (name_space && *name_space && !streq(service->ns, name_space))
			continue;
		array_grow(&v, &capacity, n, sizeof(struct service *));
		v[n++] = service;
	}
	if (n > 1)
		qsort(v, n, sizeof(struct service *), compare_services);
	*ret_n = n;
	return v;
}

/* -- services for people */

static void ports_text(const struct service *service, struct text *text)
{
	for (size_t i = 0; i < service->n_ports; i++) {
		const struct service_port *port = &service->ports[i];

		text_printf(text, "%s%u", i > 0 ? "," : "", port->port);
		if (port->node_port)
			text_printf(text, ":%u", port->node_port);
		text_printf(text, "/%s", protocol_name(port->protocol));
	}
}

static void addresses_text(const struct service *service, struct text *text)
{
	char out[ADDR_TEXT_MAX];
	const char *before = "";

	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		if (!service->has_cluster_ip[family])
			continue;
		addr_print(&service->cluster_ip[family], out);
		text_printf(text, "%s%s", before, out);
		before = ",";
	}
}

/* Only what is not the rule: most Services have none of it. */
static void policy_text(const struct service *service, struct text *text)
{
	if (service->internal_local)
		text_str(text, "internal-local,");
	if (service->external_local)
		text_str(text, "external-local,");
	if (service->sticky_seconds)
		text_printf(text, "affinity=%us,", service->sticky_seconds);
	if (service->n_source_ranges > 0)
		text_str(text, "source-ranges,");
}

static void add_text(struct columns *columns, struct text *text)
{
	cleanup_free char *cell = text_dup(text);
	size_t n = strlen(cell);

	if (n > 0 && cell[n - 1] == ',')
		cell[n - 1] = '\0';
	columns_add(columns, cell[0] ? cell : "-");
	text_consume(text, text->size);
}

static void add_service(const struct model *model, const struct service *service,
			struct columns *columns)
{
	struct endpoint_count count = count_most(model, service);
	cleanup_text struct text text = {0};

	columns_add(columns, service->ns);
	columns_add(columns, service->name);
	columns_add(columns, service_type_name(service_type_of(service)));
	addresses_text(service, &text);
	add_text(columns, &text);
	ports_text(service, &text);
	add_text(columns, &text);
	policy_text(service, &text);
	add_text(columns, &text);
	text_printf(&text, "%zu/%zu", count.ready, count.total);
	add_text(columns, &text);
}

void overview_services_human(const struct model *model, const char *name_space, struct text *ret)
{
	static const char *const titles[] = {"NAMESPACE", "NAME",     "TYPE", "CLUSTER-IP",
					     "PORTS",     "POLICIES", "READY"};
	size_t n;
	cleanup_free struct service **services = overview_services(model, name_space, &n);
	cleanup_columns struct columns columns;

	columns_init(&columns, titles, ARRAY_SIZE(titles));
	for (size_t i = 0; i < n; i++)
		add_service(model, services[i], &columns);
	columns_print(&columns, ret);
}

/* -- services for programs */

static void put_addresses(struct doc *doc, const char *key, const struct addr *v, size_t n)
{
	char out[ADDR_TEXT_MAX];

	doc_open_list(doc, key);
	for (size_t i = 0; i < n; i++) {
		addr_print(&v[i], out);
		doc_string(doc, NULL, out);
	}
	doc_close(doc);
}

static void put_ports(struct doc *doc, const struct service *service)
{
	doc_open_list(doc, "ports");
	for (size_t i = 0; i < service->n_ports; i++) {
		const struct service_port *port = &service->ports[i];

		doc_open_map(doc, NULL);
		doc_string(doc, "name", port->name);
		doc_string(doc, "protocol", protocol_name(port->protocol));
		doc_number(doc, "port", port->port);
		doc_number(doc, "nodePort", port->node_port);
		doc_close(doc);
	}
	doc_close(doc);
}

static void put_source_ranges(struct doc *doc, const struct service *service)
{
	char out[PREFIX_TEXT_MAX];

	doc_open_list(doc, "loadBalancerSourceRanges");
	for (size_t i = 0; i < service->n_source_ranges; i++) {
		prefix_print(&service->source_ranges[i], out);
		doc_string(doc, NULL, out);
	}
	doc_close(doc);
}

static void put_service(const struct model *model, const struct service *service, struct doc *doc)
{
	struct endpoint_count count = count_most(model, service);
	struct addr ips[FAMILY_COUNT];
	size_t n = 0;

	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (service->has_cluster_ip[family])
			ips[n++] = service->cluster_ip[family];
	doc_open_map(doc, NULL);
	doc_string(doc, "namespace", service->ns);
	doc_string(doc, "name", service->name);
	doc_string(doc, "type", service_type_name(service_type_of(service)));
	put_addresses(doc, "clusterIPs", ips, n);
	put_addresses(doc, "externalIPs", service->external_ips, service->n_external_ips);
	put_addresses(doc, "loadBalancerIPs", service->vips, service->n_vips);
	put_ports(doc, service);
	doc_string(doc, "internalTrafficPolicy", service->internal_local ? "Local" : "Cluster");
	doc_string(doc, "externalTrafficPolicy", service->external_local ? "Local" : "Cluster");
	doc_number(doc, "affinitySeconds", service->sticky_seconds);
	put_source_ranges(doc, service);
	doc_open_map(doc, "endpoints");
	doc_number(doc, "ready", count.ready);
	doc_number(doc, "total", count.total);
	doc_number(doc, "local", count.local);
	doc_close(doc);
	doc_close(doc);
}

void overview_services_doc(const struct model *model, const char *name_space, struct doc *doc)
{
	size_t n;
	cleanup_free struct service **services = overview_services(model, name_space, &n);

	doc_open_map(doc, NULL);
	doc_string(doc, "kind", "ServiceList");
	doc_number(doc, "version", 1);
	doc_open_list(doc, "services");
	for (size_t i = 0; i < n; i++)
		put_service(model, services[i], doc);
	doc_close(doc);
	doc_close(doc);
}

/* -- endpoints */

typedef void endpoint_fn(void *arg, const struct service *service, const struct service_port *port,
			 const struct endpoint *endpoint);

static void each_endpoint(const struct model *model, const char *name_space, endpoint_fn *fn,
			  void *arg)
{
	size_t n;
	cleanup_free struct service **services = overview_services(model, name_space, &n);

	for (size_t i = 0; i < n; i++) {
		const struct service *service = services[i];

		for (size_t p = 0; p < service->n_ports * FAMILY_COUNT; p++) {
			const struct service_port *port = &service->ports[p / FAMILY_COUNT];
			const struct endpoints *list =
				model_endpoints(model, (enum family)(p % FAMILY_COUNT),
						service->key, port->name, port->protocol);

			for (size_t e = 0; list && e < list->n; e++)
				fn(arg, service, port, &list->v[e]);
		}
	}
}

static const char *condition(const struct endpoint *endpoint)
{
	if (endpoint->flags & ENDPOINT_READY)
		return "ready";
	if (!(endpoint->flags & ENDPOINT_TERMINATING))
		return "notReady";
	return endpoint->flags & ENDPOINT_SERVING ? "terminating" : "terminated";
}

static void add_endpoint(void *arg, const struct service *service, const struct service_port *port,
			 const struct endpoint *endpoint)
{
	struct columns *columns = arg;
	char out[ADDR_PORT_TEXT_MAX], name[32];

	snprintf(name, sizeof(name), "%u/%s", port->port, protocol_name(port->protocol));
	columns_add(columns, service->ns);
	columns_add(columns, service->name);
	columns_add(columns, name);
	addr_port_print(&endpoint->addr, endpoint->port, out);
	columns_add(columns, out);
	columns_add(columns, condition(endpoint));
	columns_add(columns, endpoint->flags & ENDPOINT_LOCAL ? "yes" : "no");
}

void overview_endpoints_human(const struct model *model, const char *name_space, struct text *ret)
{
	static const char *const titles[] = {"NAMESPACE", "NAME",      "PORT",
					     "ENDPOINT",  "CONDITION", "LOCAL"};
	cleanup_columns struct columns columns;

	columns_init(&columns, titles, ARRAY_SIZE(titles));
	each_endpoint(model, name_space, add_endpoint, &columns);
	columns_print(&columns, ret);
}

static void put_endpoint(void *arg, const struct service *service, const struct service_port *port,
			 const struct endpoint *endpoint)
{
	struct doc *doc = arg;
	char out[ADDR_PORT_TEXT_MAX];

	addr_port_print(&endpoint->addr, endpoint->port, out);
	doc_open_map(doc, NULL);
	doc_string(doc, "namespace", service->ns);
	doc_string(doc, "name", service->name);
	doc_string(doc, "portName", port->name);
	doc_string(doc, "protocol", protocol_name(port->protocol));
	doc_number(doc, "port", port->port);
	doc_string(doc, "endpoint", out);
	doc_string(doc, "condition", condition(endpoint));
	doc_bool(doc, "local", endpoint->flags & ENDPOINT_LOCAL);
	doc_close(doc);
}

void overview_endpoints_doc(const struct model *model, const char *name_space, struct doc *doc)
{
	doc_open_map(doc, NULL);
	doc_string(doc, "kind", "EndpointList");
	doc_number(doc, "version", 1);
	doc_open_list(doc, "endpoints");
	each_endpoint(model, name_space, put_endpoint, doc);
	doc_close(doc);
	doc_close(doc);
}
