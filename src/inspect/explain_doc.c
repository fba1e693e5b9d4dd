/* SPDX-License-Identifier: Apache-2.0 */

/* An explanation as a document. What is here is promised by portolan.8: members are added, not changed. */

#include "inspect/explain_doc.h"

#include <stdio.h>

#include "backends/backend.h"
#include "inspect/explain.h"

void explain_doc_endpoint(struct doc *doc, const char *key, const struct addr *addr, uint16_t port)
{
	char out[ADDR_PORT_TEXT_MAX];

	addr_port_print(addr, port, out);
	doc_string(doc, key, out);
}

void explain_doc_packet(struct doc *doc, const struct packet *packet)
{
	char out[ADDR_TEXT_MAX];

	doc_open_map(doc, "packet");
	doc_string(doc, "family", family_name(packet->family));
	doc_string(doc, "protocol", protocol_name(packet->protocol));
	addr_print(&packet->source, out);
	doc_string(doc, "source", out);
	doc_string(doc, "from", origin_name(packet->origin));
	addr_print(&packet->destination, out);
	doc_string(doc, "destination", out);
	doc_number(doc, "port", packet->port);
	doc_close(doc);
}

void explain_doc_service(struct doc *doc, const struct explanation *explanation)
{
	const struct port_plan *port = explanation ? explanation->port : NULL;
	const struct service *service;

	if (!port) {
		doc_string(doc, "service", NULL);
		return;
	}
	service = port->service;
	doc_open_map(doc, "service");
	doc_string(doc, "namespace", service->ns);
	doc_string(doc, "name", service->name);
	doc_string(doc, "port", port->port->name);
	doc_string(doc, "entry", entry_name(explanation->entry));
	doc_string(doc, "internalTrafficPolicy", service->internal_local ? "Local" : "Cluster");
	doc_string(doc, "externalTrafficPolicy", service->external_local ? "Local" : "Cluster");
	doc_number(doc, "affinitySeconds", service->sticky_seconds);
	doc_close(doc);
}

static void put_optional(struct doc *doc, const char *key, const char *value)
{
	if (value)
		doc_string(doc, key, value);
}

static void put_step(struct doc *doc, const struct step *step)
{
	doc_open_map(doc, NULL);
	doc_string(doc, "hook", hook_name(step->hook));
	doc_string(doc, "table", step->table);
	doc_string(doc, "chain", step->chain);
	if (step->position) {
		doc_number(doc, "position", step->position);
		doc_number(doc, "of", step->length);
	}
	if (step->handle)
		doc_number(doc, "handle", step->handle);
	doc_string(doc, "rule", step->rule);
	doc_string(doc, "effect", effect_name(step->effect));
	put_optional(doc, "target", step->target);
	put_optional(doc, "map", step->map);
	put_optional(doc, "element", step->element);
	put_optional(doc, "note", step->note);
	put_optional(doc, "kernel", step->kernel);
	doc_close(doc);
}

void explain_doc_steps(struct doc *doc, const struct step *steps, size_t n)
{
	doc_open_list(doc, "steps");
	for (size_t i = 0; i < n; i++)
		put_step(doc, &steps[i]);
	doc_close(doc);
}

void explain_doc_share(struct doc *doc, struct share share)
{
	char out[48];

	snprintf(out, sizeof(out), "%llu/%llu", (unsigned long long)share.of,
		 (unsigned long long)share.in);
	doc_string(doc, "share", out);
	doc_real(doc, "percent", share_percent(share));
}

static void put_outcome(struct doc *doc, const struct packet_path *path,
			const struct outcome *outcome)
{
	size_t from = MIN(path->n_common, outcome->n_steps);

	doc_open_map(doc, NULL);
	doc_string(doc, "verdict", packet_verdict_name(outcome->verdict));
	if (outcome->verdict == PACKET_VERDICT_BACKEND)
		explain_doc_endpoint(doc, "endpoint", &outcome->backend, outcome->backend_port);
	explain_doc_share(doc, outcome->share);
	doc_bool(doc, "masquerade", outcome->masquerade != MASQUERADE_NONE);
	if (outcome->masquerade != MASQUERADE_NONE)
		doc_string(doc, "masqueradeReason", masquerade_name(outcome->masquerade));
	explain_doc_steps(doc, outcome->steps + from, outcome->n_steps - from);
	doc_close(doc);
}

static void put_left_out(struct doc *doc, const struct explanation *explanation)
{
	doc_open_list(doc, "leftOut");
	for (size_t i = 0; i < explanation->n_left_out; i++) {
		const struct left_out *left_out = &explanation->left_out[i];

		doc_open_map(doc, NULL);
		explain_doc_endpoint(doc, "endpoint", &left_out->addr, left_out->port);
		doc_string(doc, "reason", left_out_name(left_out->reason));
		doc_close(doc);
	}
	doc_close(doc);
}

static void put_kernel(struct doc *doc, const struct explanation *explanation)
{
	doc_open_map(doc, "kernel");
	doc_string(doc, "state", kernel_state_name(explanation->kernel));
	doc_open_list(doc, "notes");
	for (size_t i = 0; i < explanation->n_kernel_notes; i++)
		doc_string(doc, NULL, explanation->kernel_notes[i]);
	doc_close(doc);
	doc_close(doc);
}

void explanation_doc(const struct explanation *explanation, struct doc *doc, const char *key)
{
	const struct packet_path *path = explanation->path;

	doc_open_map(doc, key);
	doc_string(doc, "kind", "Explanation");
	doc_number(doc, "version", 1);
	doc_string(doc, "mode", explanation->input->backend->name);
	doc_string(doc, "node", explanation->input->settings->node_name);
	explain_doc_packet(doc, &path->packet);
	explain_doc_service(doc, explanation);
	doc_string(doc, "verdict", packet_verdict_name(explanation_verdict(explanation)));
	explain_doc_steps(doc, path->outcomes[0].steps, path->n_common);
	doc_open_list(doc, "outcomes");
	for (size_t i = 0; i < path->n_outcomes; i++)
		put_outcome(doc, path, &path->outcomes[i]);
	doc_close(doc);
	put_left_out(doc, explanation);
	put_kernel(doc, explanation);
	doc_string(doc, "summary", explanation->summary);
	doc_close(doc);
}
