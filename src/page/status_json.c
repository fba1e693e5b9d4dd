/* SPDX-License-Identifier: Apache-2.0 */

#include "page/status_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/backend.h"
#include "base/doc.h"
#include "inspect/overview.h"

/* The entries of one service port, as they are written. */
struct entries {
	struct text *text;
	size_t n;
};

static void put_entry(struct entries *entries, const char *address, enum entry kind,
		      const char *destination)
{
	if (entries->n++ >= STATUS_ENTRIES_MAX)
		return;
	text_printf(entries->text, "%s[\"%s\",\"%s\",\"%s\"]", entries->n > 1 ? "," : "", address,
		    entry_words(kind), destination);
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
			const struct service_port *port, struct text *ret)
{
	struct entries entries = {.text = ret};

	text_str(ret, "\"entries\":[");
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
	text_str(ret, "]");
	if (entries.n > STATUS_ENTRIES_MAX)
		text_printf(ret, ",\"more\":%zu", entries.n - STATUS_ENTRIES_MAX);
}

/* "namespace/name:port", with the number where the port has no name. */
static void put_id(const char *key, const char *name, uint16_t number, struct text *ret)
{
	cleanup_free char *id =
		*name ? xasprintf("%s:%s", key, name) : xasprintf("%s:%u", key, number);

	doc_quote(ret, id);
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
		     struct text *ret)
{
	const struct port_plan *planned = find_plan(plan, port);
	size_t used = planned ? planned->use.reachable.n : 0;
	size_t all = planned && planned->endpoints ? planned->endpoints->n : 0;

	text_str(ret, "{\"id\":");
	put_id(service->key, port->name, port->port, ret);
	text_printf(ret, ",\"protocol\":\"%s\",\"used\":%zu,\"endpoints\":%zu,",
		    protocol_name(port->protocol), used, all);
	put_entries(source, service, port, ret);
	text_str(ret, "}");
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

	text_str(ret, "{\"service\":");
	doc_quote(ret, item->key);
	text_printf(ret, ",\"changed\":%" PRId64 ",\"type\":\"%s\",\"ports\":[", item->changed_s,
		    service ? service_type_name(service_type_of(service)) : "");
	for (size_t i = 0; service && i < MIN(service->n_ports, STATUS_PORTS_MAX); i++) {
		text_str(ret, i > 0 ? "," : "");
		put_port(source, service, plan, &service->ports[i], ret);
	}
	text_str(ret, "]}");
	service_plan_unref(plan);
}

void status_json_hello(const struct status_source *source, struct text *ret)
{
	text_str(ret, "{\"node\":");
	doc_quote(ret, source->node_name);
	text_printf(ret, ",\"mode\":\"%s\",\"version\":\"%s\",\"kubernetes\":\"%s\",\"rates\":%s}",
		    source->backend->name, source->version, source->kubernetes,
		    source->metered ? "true" : "false");
}

void status_json_gauges(const struct status_source *source, size_t services, uint64_t repairs,
			struct text *ret)
{
	struct status_gauges gauges = {0};
	size_t endpoints = 0;

	source->gauges(source->arg, &gauges);
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (!model_ignores_family(source->model, family))
			endpoints += model_count_endpoints(source->model, family);
	text_printf(ret,
		    "{\"services\":%zu,\"endpoints\":%zu,\"repairs\":%" PRIu64
		    ",\"conntrack\":%" PRIu64 ",\"conntrack_max\":%" PRIu64 ",\"healthy\":%s",
		    services, endpoints, repairs, gauges.conntrack, gauges.conntrack_max,
		    gauges.healthy ? "true" : "false");
	text_str(ret, ",\"reason\":");
	doc_quote(ret, gauges.reason ? gauges.reason : "");
	text_str(ret, ",\"degraded\":");
	doc_quote(ret, gauges.degraded ? gauges.degraded : "");
	text_str(ret, "}");
	free(gauges.reason);
	free(gauges.degraded);
}

static void put_traffic(void *arg, const char *ns, const char *service, const char *port,
			uint64_t connections)
{
	struct entries *ports = arg;
	cleanup_free char *id = xasprintf("%s/%s:%s", ns, service, port);

	if (ports->n >= STATUS_TRAFFIC_MAX)
		return;
	text_str(ports->text, ports->n++ > 0 ? "," : "");
	doc_quote(ports->text, id);
	text_printf(ports->text, ":%" PRIu64, connections);
}

void status_json_traffic(const struct status_source *source, int64_t now_ms, struct text *ret)
{
	struct entries ports = {.text = ret};

	text_printf(ret, "{\"ms\":%" PRId64 ",\"connections\":{", now_ms);
	source->traffic(source->arg, put_traffic, &ports);
	text_str(ret, "}}");
}
