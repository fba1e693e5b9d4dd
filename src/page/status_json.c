/* SPDX-License-Identifier: Apache-2.0 */

#include "page/status_json.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/backend.h"
#include "base/doc.h"
#include "inspect/overview.h"

/* The entries of one service port, as they are written. */
struct entries {
	struct doc *doc;
	size_t n;
};

static void put_entry(struct entries *entries, const char *address, enum entry kind,
		      const char *destination)
{
	if (entries->n++ >= STATUS_ENTRIES_MAX)
		return;
	doc_open_list(entries->doc, NULL);
	doc_string(entries->doc, NULL, address);
	doc_string(entries->doc, NULL, entry_words(kind));
	doc_string(entries->doc, NULL, destination);
	doc_close(entries->doc);
}

static void put_address(struct entries *entries, const struct addr *addr, uint16_t port,
			enum entry kind)
{
	char text[ADDR_PORT_TEXT_MAX];

	addr_port_print(addr, port, text);
	put_entry(entries, text, kind, text);
}

static void put_addresses(struct entries *entries, const struct addr *v, size_t n,
			  enum family family, uint16_t port, enum entry kind)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].family == family)
			put_address(entries, &v[i], port, kind);
}

/* A node port has no address of its own: the one that is explained is the node's. */
static void put_node_port(struct entries *entries, const struct settings *settings, uint16_t port)
{
	char destination[ADDR_PORT_TEXT_MAX];
	char address[ADDR_PORT_TEXT_MAX];

	addr_port_print(&settings->node_ip, port, destination);
	snprintf(address, sizeof(address), ":%u", port);
	put_entry(entries, address, ENTRY_NODE_PORT, destination);
}

static void put_entries(const struct status_source *source, const struct service *service,
			const struct service_port *port, struct doc *doc)
{
	struct entries entries = {.doc = doc};

	doc_open_list(doc, "entries");
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		const struct settings *settings = source->settings(source->arg, family);

		if (!settings || !service->has_cluster_ip[family])
			continue;
		put_address(&entries, &service->cluster_ip[family], port->port, ENTRY_CLUSTER_IP);
		if (settings->allow_external_ips)
			put_addresses(&entries, service->external_ips, service->n_external_ips,
				      family, port->port, ENTRY_EXTERNAL_IP);
		put_addresses(&entries, service->vips, service->n_vips, family, port->port,
			      ENTRY_LOAD_BALANCER_IP);
		if (port->node_port)
			put_node_port(&entries, settings, port->node_port);
	}
	doc_close(doc);
	if (entries.n > STATUS_ENTRIES_MAX)
		doc_number(doc, "more", entries.n - STATUS_ENTRIES_MAX);
}

static const struct port_plan *find_plan(const struct service_plan *plan,
					 const struct service_port *port)
{
	for (size_t i = 0; plan && i < plan->n_ports; i++)
		if (plan->ports[i].port->protocol == port->protocol &&
		    streq(plan->ports[i].port->name, port->name))
			return &plan->ports[i];
	return NULL;
}

static void put_port(const struct status_source *source, const struct service *service,
		     const struct service_plan *plan, const struct service_port *port,
		     struct doc *doc)
{
	const struct port_plan *planned = find_plan(plan, port);
	/* with the number where the port has no name */
	cleanup_free char *id = *port->name ? xasprintf("%s:%s", service->key, port->name)
					    : xasprintf("%s:%u", service->key, port->port);

	doc_open_map(doc, NULL);
	doc_string(doc, "id", id);
	doc_string(doc, "protocol", protocol_name(port->protocol));
	doc_number(doc, "used", planned ? planned->use.reachable.n : 0);
	doc_number(doc, "endpoints", planned && planned->endpoints ? planned->endpoints->n : 0);
	put_entries(source, service, port, doc);
	doc_close(doc);
}

static struct service_plan *first_plan(const struct status_source *source, const char *key)
{
	struct service_plan *plan = NULL;

	for (enum family family = 0; !plan && family < FAMILY_COUNT; family++) {
		const struct settings *settings = source->settings(source->arg, family);

		if (settings)
			plan = plan_service(settings, source->model, key);
	}
	return plan;
}

void status_json_service(const struct status_source *source, const struct service_log_item *item,
			 struct text *ret)
{
	const struct service *service = model_service(source->model, item->key);
	struct service_plan *plan = service ? first_plan(source, item->key) : NULL;
	struct doc doc;

	doc_init(&doc, ret, DOC_LINE);
	doc_open_map(&doc, NULL);
	doc_string(&doc, "service", item->key);
	doc_number(&doc, "changed", (uint64_t)item->changed_s);
	doc_string(&doc, "type", service ? service_type_name(service_type_of(service)) : "");
	doc_open_list(&doc, "ports");
	for (size_t i = 0; service && i < MIN(service->n_ports, STATUS_PORTS_MAX); i++)
		put_port(source, service, plan, &service->ports[i], &doc);
	doc_close(&doc);
	doc_close(&doc);
	service_plan_unref(plan);
}

void status_json_hello(const struct status_source *source, struct text *ret)
{
	struct doc doc;

	doc_init(&doc, ret, DOC_LINE);
	doc_open_map(&doc, NULL);
	doc_string(&doc, "node", source->node_name);
	doc_string(&doc, "mode", source->backend->name);
	doc_string(&doc, "version", source->version);
	doc_string(&doc, "kubernetes", source->kubernetes);
	doc_bool(&doc, "rates", source->metered);
	doc_close(&doc);
}

void status_json_gauges(const struct status_source *source, size_t services, uint64_t repairs,
			struct text *ret)
{
	struct status_gauges gauges = {0};
	size_t endpoints = 0;
	struct doc doc;

	source->gauges(source->arg, &gauges);
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (!model_ignores_family(source->model, family))
			endpoints += model_count_endpoints(source->model, family);
	doc_init(&doc, ret, DOC_LINE);
	doc_open_map(&doc, NULL);
	doc_number(&doc, "services", services);
	doc_number(&doc, "endpoints", endpoints);
	doc_number(&doc, "repairs", repairs);
	doc_number(&doc, "conntrack", gauges.conntrack);
	doc_number(&doc, "conntrack_max", gauges.conntrack_max);
	doc_bool(&doc, "healthy", gauges.healthy);
	doc_string(&doc, "reason", gauges.reason ? gauges.reason : "");
	doc_string(&doc, "degraded", gauges.degraded ? gauges.degraded : "");
	doc_close(&doc);
	free(gauges.reason);
	free(gauges.degraded);
}

static void put_traffic(void *arg, const char *ns, const char *service, const char *port,
			uint64_t connections)
{
	struct entries *ports = arg;
	cleanup_free char *id = xasprintf("%s/%s:%s", ns, service, port);

	if (ports->n++ < STATUS_TRAFFIC_MAX)
		doc_number(ports->doc, id, connections);
}

void status_json_traffic(const struct status_source *source, int64_t now_ms, struct text *ret)
{
	struct doc doc;
	struct entries ports = {.doc = &doc};

	doc_init(&doc, ret, DOC_LINE);
	doc_open_map(&doc, NULL);
	doc_number(&doc, "ms", (uint64_t)now_ms);
	doc_open_map(&doc, "connections");
	source->traffic(source->arg, put_traffic, &ports);
	doc_close(&doc);
	doc_close(&doc);
}
