/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/flows_print.h"

#include <stdio.h>

#include "base/doc.h"
#include "inspect/columns.h"

#define PORT_MAX 80 /* "http/tcp" */

static void port_text(const struct service_port *port, char out[static PORT_MAX])
{
	if (port->name[0])
		snprintf(out, PORT_MAX, "%s/%s", port->name, protocol_name(port->protocol));
	else
		snprintf(out, PORT_MAX, "%u/%s", port->port, protocol_name(port->protocol));
}

/* Why no new connection goes there, or "". */
static const char *note_of(const struct flow_backend *backend)
{
	if (!backend->endpoint)
		return "not an endpoint any more";
	if (backend->endpoint->flags & ENDPOINT_READY)
		return "";
	return backend->endpoint->flags & ENDPOINT_TERMINATING ? "terminating" : "not ready";
}

static uint64_t both(const uint64_t v[CONNTRACK_DIR_COUNT])
{
	return v[CONNTRACK_ORIGINAL] + v[CONNTRACK_REPLY];
}

/* Sums over all backends. */
static struct flow_backend total_of(const struct service_flows *flows)
{
	struct flow_backend total = {0};

	for (size_t i = 0; i < flows->n_backends; i++) {
		const struct flow_backend *backend = flows->backends[i];

		total.flows += backend->flows;
		total.counted = total.counted || backend->counted;
		for (size_t s = 0; s < CONNTRACK_STATE_COUNT; s++)
			total.states[s] += backend->states[s];
		for (size_t d = 0; d < CONNTRACK_DIR_COUNT; d++) {
			total.packets[d] += backend->packets[d];
			total.bytes[d] += backend->bytes[d];
		}
	}
	return total;
}

size_t flows_print_strays(const struct service_flows *flows)
{
	size_t n = 0;

	for (size_t i = 0; i < flows->n_backends; i++)
		if (!flows->backends[i]->endpoint)
			n += flows->backends[i]->flows;
	return n;
}

/* -- for people */

static void add_number(struct columns *columns, uint64_t number)
{
	char out[24];

	snprintf(out, sizeof(out), "%llu", (unsigned long long)number);
	columns_add(columns, out);
}

static void add_counters(struct columns *columns, bool counted,
			 const uint64_t packets[CONNTRACK_DIR_COUNT],
			 const uint64_t bytes[CONNTRACK_DIR_COUNT])
{
	if (!counted) {
		columns_add(columns, "-");
		columns_add(columns, "-");
		return;
	}
	add_number(columns, both(packets));
	add_number(columns, both(bytes));
}

/* A table: columns only for states that some flow is in, and for notes if there are any. */
struct table {
	struct columns columns;
	struct flow_backend total;
	bool notes;
};

static bool has_notes(const struct service_flows *flows)
{
	for (size_t i = 0; i < flows->n_backends; i++)
		if (*note_of(flows->backends[i]))
			return true;
	return false;
}

static void add_backend(struct table *table, const struct flow_backend *backend, const char *port,
			const char *name, const char *note)
{
	struct columns *columns = &table->columns;

	columns_add(columns, port);
	columns_add(columns, name);
	add_number(columns, backend->flows);
	for (size_t s = 0; s < CONNTRACK_STATE_COUNT; s++)
		if (table->total.states[s] > 0)
			add_number(columns, backend->states[s]);
	add_counters(columns, backend->counted, backend->packets, backend->bytes);
	if (table->notes)
		columns_add(columns, note);
}

static void print_backends(const struct service_flows *flows, struct text *ret)
{
	const char *titles[CONNTRACK_STATE_COUNT + 6] = {"PORT", "BACKEND", "FLOWS"};
	struct table table = {.total = total_of(flows), .notes = has_notes(flows)};
	char out[ADDR_PORT_TEXT_MAX], port[PORT_MAX];
	size_t n = 3;

	for (size_t s = 0; s < CONNTRACK_STATE_COUNT; s++)
		if (table.total.states[s] > 0)
			titles[n++] = conntrack_state_name((enum conntrack_state)s);
	titles[n++] = "PACKETS";
	titles[n++] = "BYTES";
	if (table.notes)
		titles[n++] = "NOTE";
	columns_init(&table.columns, titles, n);
	for (size_t i = 0; i < flows->n_backends; i++) {
		const struct flow_backend *backend = flows->backends[i];

		port_text(backend->port, port);
		addr_port_print(&backend->addr, backend->number, out);
		add_backend(&table, backend, port, out, note_of(backend));
	}
	add_backend(&table, &table.total, "total", "", "");
	columns_print(&table.columns, ret);
	columns_done(&table.columns);
}

static void add_flow(struct columns *columns, const struct kept_flow *kept, bool notes)
{
	const struct conntrack_flow *flow = &kept->flow;
	char out[ADDR_PORT_TEXT_MAX], port[PORT_MAX], timeout[16];

	port_text(kept->backend->port, port);
	columns_add(columns, port);
	addr_port_print(&flow->original.src, flow->original.src_port, out);
	columns_add(columns, out);
	addr_port_print(&flow->original.dst, flow->original.dst_port, out);
	columns_add(columns, out);
	addr_port_print(&kept->backend->addr, kept->backend->number, out);
	columns_add(columns, out);
	columns_add(columns, conntrack_state_name(conntrack_state_of(flow)));
	snprintf(timeout, sizeof(timeout), "%us", flow->timeout_s);
	columns_add(columns, timeout);
	add_counters(columns, flow->counted, flow->packets, flow->bytes);
	if (notes)
		columns_add(columns, note_of(kept->backend));
}

static void print_flows(const struct service_flows *flows, struct text *ret)
{
	static const char *const titles[] = {"PORT",    "CLIENT",  "FRONT", "BACKEND", "STATE",
					     "TIMEOUT", "PACKETS", "BYTES", "NOTE"};
	cleanup_columns struct columns columns;
	bool notes = has_notes(flows);

	columns_init(&columns, titles, ARRAY_SIZE(titles) - !notes);
	for (size_t i = 0; i < flows->n_kept; i++)
		add_flow(&columns, &flows->kept[i], notes);
	columns_print(&columns, ret);
}

void flows_print_human(const struct service_flows *flows, bool each, struct text *ret)
{
	print_backends(flows, ret);
	if (!each)
		return;
	text_str(ret, "\n");
	print_flows(flows, ret);
}

/* -- for programs */

static void put_directions(struct doc *doc, const char *key, bool counted,
			   const uint64_t v[CONNTRACK_DIR_COUNT])
{
	if (!counted) {
		doc_string(doc, key, NULL);
		return;
	}
	doc_open_map(doc, key);
	doc_number(doc, "to", v[CONNTRACK_ORIGINAL]);
	doc_number(doc, "from", v[CONNTRACK_REPLY]);
	doc_close(doc);
}

static void put_counts(struct doc *doc, const struct flow_backend *backend)
{
	doc_number(doc, "flows", backend->flows);
	doc_open_map(doc, "states");
	for (size_t s = 0; s < CONNTRACK_STATE_COUNT; s++)
		if (backend->states[s] > 0)
			doc_number(doc, conntrack_state_name((enum conntrack_state)s),
				   backend->states[s]);
	doc_close(doc);
	put_directions(doc, "packets", backend->counted, backend->packets);
	put_directions(doc, "bytes", backend->counted, backend->bytes);
}

static void put_port(struct doc *doc, const struct service_port *port)
{
	doc_string(doc, "portName", port->name);
	doc_number(doc, "port", port->port);
	doc_string(doc, "protocol", protocol_name(port->protocol));
}

static void put_address(struct doc *doc, const char *key, const struct addr *addr, uint16_t port)
{
	char out[ADDR_PORT_TEXT_MAX];

	addr_port_print(addr, port, out);
	doc_string(doc, key, out);
}

static void put_backend(struct doc *doc, const struct flow_backend *backend)
{
	doc_open_map(doc, NULL);
	put_port(doc, backend->port);
	put_address(doc, "backend", &backend->addr, backend->number);
	doc_bool(doc, "endpoint", backend->endpoint);
	doc_bool(doc, "ready", backend->endpoint && backend->endpoint->flags & ENDPOINT_READY);
	put_counts(doc, backend);
	doc_close(doc);
}

static void put_flow(struct doc *doc, const struct kept_flow *kept)
{
	const struct conntrack_flow *flow = &kept->flow;

	doc_open_map(doc, NULL);
	put_port(doc, kept->backend->port);
	put_address(doc, "client", &flow->original.src, flow->original.src_port);
	put_address(doc, "front", &flow->original.dst, flow->original.dst_port);
	put_address(doc, "backend", &kept->backend->addr, kept->backend->number);
	doc_bool(doc, "endpoint", kept->backend->endpoint);
	doc_string(doc, "state", conntrack_state_name(conntrack_state_of(flow)));
	doc_number(doc, "timeoutSeconds", flow->timeout_s);
	put_directions(doc, "packets", flow->counted, flow->packets);
	put_directions(doc, "bytes", flow->counted, flow->bytes);
	doc_close(doc);
}

void flows_print_doc(const struct service_flows *flows, bool each, struct doc *doc)
{
	const struct flow_backend total = total_of(flows);

	doc_open_list(doc, "backends");
	for (size_t i = 0; i < flows->n_backends; i++)
		put_backend(doc, flows->backends[i]);
	doc_close(doc);
	if (each) {
		doc_open_list(doc, "flows");
		for (size_t i = 0; i < flows->n_kept; i++)
			put_flow(doc, &flows->kept[i]);
		doc_close(doc);
	}
	doc_open_map(doc, "total");
	put_counts(doc, &total);
	doc_close(doc);
}
