/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/summary.h"

#include <stdlib.h>

#include "backends/backend.h"
#include "base/text.h"
#include "inspect/inspect_ops.h"

static size_t count_left_out(const struct explanation *explanation, enum left_out_reason reason)
{
	size_t n = 0;

	for (size_t i = 0; i < explanation->n_left_out; i++)
		n += explanation->left_out[i].reason == reason;
	return n;
}

/* "; 2 endpoints are not ready, 1 is terminating" */
static void add_left_out(const struct explanation *explanation, struct text *text)
{
	const char *before = "; ";
	const char *what[] = {" endpoint", " endpoints"};

	for (enum left_out_reason reason = 0; reason < LEFT_OUT_COUNT; reason++) {
		size_t n = count_left_out(explanation, reason);

		if (n == 0)
			continue;
		text_printf(text, "%s%zu%s %s %s", before, n, what[n > 1], n > 1 ? "are" : "is",
			    left_out_words(reason));
		before = ", ";
		what[0] = what[1] = "";
	}
}

static const char *policy_field(const struct explanation *explanation)
{
	return explanation->entry == ENTRY_CLUSTER_IP ? "internalTrafficPolicy"
						      : "externalTrafficPolicy";
}

static void add_destination(const struct packet *packet, struct text *text)
{
	char out[ADDR_PORT_TEXT_MAX];

	addr_port_print(&packet->destination, packet->port, out);
	text_printf(text, "%s/%s", out, protocol_name(packet->protocol));
}

/* -- each end in words */

static bool same_shares(const struct packet_path *path)
{
	for (size_t i = 1; i < path->n_outcomes; i++)
		if (path->outcomes[i].share.of != path->outcomes[0].share.of ||
		    path->outcomes[i].share.in != path->outcomes[0].share.in)
			return false;
	return true;
}

static void add_backends(const struct packet_path *path, struct text *text)
{
	char out[ADDR_PORT_TEXT_MAX];

	if (path->n_outcomes == 1) {
		addr_port_print(&path->outcomes[0].backend, path->outcomes[0].backend_port, out);
		text_printf(text, "Connections reach the only backend, %s", out);
	} else if (same_shares(path)) {
		text_printf(text, "Connections reach one of %zu backends, %llu/%llu each",
			    path->n_outcomes, (unsigned long long)path->outcomes[0].share.of,
			    (unsigned long long)path->outcomes[0].share.in);
	} else {
		text_printf(text, "Connections reach one of %zu backends with different shares",
			    path->n_outcomes);
	}
}

static void reached(const struct explanation *explanation, struct text *text)
{
	const struct packet_path *path = explanation->path;
	size_t masqueraded = 0;

	for (size_t i = 0; i < path->n_outcomes; i++)
		masqueraded += path->outcomes[i].masquerade != MASQUERADE_NONE;
	add_backends(path, text);
	if (masqueraded == 0)
		text_str(text, ", and keep the client's address");
	else if (masqueraded == path->n_outcomes)
		text_str(text, ", with this node's address as their source");
	else
		text_printf(text,
			    "; to %zu of them with this node's address as their source, else "
			    "with the client's",
			    masqueraded);
	if (path->outcomes[0].affinity)
		text_printf(text, "; a client stays with its backend for %u s",
			    path->outcomes[0].affinity);
	text_str(text, ".");
}

static bool by_firewall(const struct explanation *explanation)
{
	const struct outcome *outcome = &explanation->path->outcomes[0];
	const struct step *last;

	if (outcome->n_steps == 0)
		return false;
	last = &outcome->steps[outcome->n_steps - 1];
	return streq(last->chain, "KUBE-PROXY-FIREWALL") || streq(last->chain, "firewall-check");
}

static void not_allowed(const struct explanation *explanation, struct text *text)
{
	const struct port_plan *port = explanation->port;
	char addr[ADDR_TEXT_MAX], prefix[PREFIX_TEXT_MAX];

	addr_print(&explanation->path->packet.source, addr);
	text_printf(text, "Connections are dropped: %s is not within loadBalancerSourceRanges",
		    addr);
	if (port)
		text_printf(text, " of service %s (", port->service->key);
	for (size_t i = 0; port && i < port->n_source_ranges; i++) {
		prefix_print(&port->source_ranges[i], prefix);
		text_printf(text, "%s%s", i > 0 ? ", " : "", prefix);
	}
	text_str(text, port ? ")." : ".");
}

static void refused(const struct explanation *explanation, const char *what, struct text *text)
{
	const struct port_plan *port = explanation->port;
	bool local = explanation->entry == ENTRY_CLUSTER_IP ? port->service->internal_local
							    : port->service->external_local;

	text_printf(text, "Connections are %s: ", what);
	if (port->use.has_endpoints && local)
		text_printf(text,
			    "%s of service %s is Local, and it has no ready endpoint on this node "
			    "(%s)",
			    policy_field(explanation), port->service->key,
			    explanation->input->settings->node_name);
	else
		text_printf(text, "service %s has no ready endpoint", port->id);
	if (!port->endpoints || port->endpoints->n == 0)
		text_str(text, "; it has none at all: look whether its selector names any pod, and "
			       "whether its targetPort does");
	add_left_out(explanation, text);
	text_str(text, ".");
}

/* -- addresses of Services with another port */

static const struct service *owner_of(const struct explanation *explanation)
{
	const struct packet *packet = &explanation->path->packet;
	const struct service *service;
	size_t at = 0;

	while ((service = model_next_service(explanation->input->model, &at)))
		if (service->has_cluster_ip[packet->family] &&
		    addr_equal(&service->cluster_ip[packet->family], &packet->destination))
			return service;
	return NULL;
}

static void add_ports(const struct service *service, struct text *text)
{
	for (size_t i = 0; i < service->n_ports; i++)
		text_printf(text, "%s%u/%s", i > 0 ? ", " : "", service->ports[i].port,
			    protocol_name(service->ports[i].protocol));
}

static void no_service(const struct explanation *explanation, enum packet_verdict verdict,
		       struct text *text)
{
	const struct packet *packet = &explanation->path->packet;
	const struct service *owner = owner_of(explanation);

	if (verdict == PACKET_VERDICT_PASSED)
		text_str(text, "No rule concerns ");
	else
		text_printf(text, "Connections are %s: no service has ",
			    verdict == PACKET_VERDICT_REJECTED ? "refused" : "dropped");
	add_destination(packet, text);
	if (owner) {
		text_printf(text, "; service %s has this cluster IP, with ", owner->key);
		add_ports(owner, text);
	}
	if (verdict == PACKET_VERDICT_PASSED)
		text_str(text, ": the packet goes on as it is, to where routes lead");
	text_str(text, ".");
}

static const struct service *node_port_owner(const struct explanation *explanation)
{
	const struct packet *packet = &explanation->path->packet;
	const struct service *service;
	size_t at = 0;

	while ((service = model_next_service(explanation->input->model, &at)))
		for (size_t i = 0;
		     service_in_family(service, packet->family) && i < service->n_ports; i++)
			if (service->ports[i].node_port == packet->port &&
			    service->ports[i].protocol == packet->protocol)
				return service;
	return NULL;
}

/* False: it is no NodePort, or nothing is done about it there. */
static bool on_localhost(const struct explanation *explanation, enum packet_verdict verdict,
			 struct text *text)
{
	const struct explain_input *input = explanation->input;
	const struct inspect_ops *ops = input->backend->inspect;
	const struct packet *packet = &explanation->path->packet;
	const struct service *service =
		addr_is_loopback(&packet->destination) ? node_port_owner(explanation) : NULL;
	bool refused = verdict == PACKET_VERDICT_REJECTED;

	if (!service || (!refused && !(ops->carries && ops->carries(input->settings, packet))))
		return false;
	if (refused)
		text_printf(text,
			    "Connections are refused: NodePort %u/%s of service %s is not "
			    "served on localhost.",
			    packet->port, protocol_name(packet->protocol), service->key);
	else
		text_printf(text,
			    "Connections are taken by the daemon itself, which carries them to an "
			    "endpoint of service %s: it listens there while the service has any.",
			    service->key);
	return true;
}

char *summary_make(const struct explanation *explanation)
{
	enum packet_verdict verdict = explanation_verdict(explanation);
	cleanup_text struct text text = {0};

	if (verdict == PACKET_VERDICT_BACKEND)
		reached(explanation, &text);
	else if (verdict == PACKET_VERDICT_DROPPED && by_firewall(explanation))
		not_allowed(explanation, &text);
	else if (!explanation->port && on_localhost(explanation, verdict, &text))
		return text_dup(&text);
	else if (verdict == PACKET_VERDICT_PASSED || !explanation->port)
		no_service(explanation, verdict, &text);
	else
		refused(explanation, verdict == PACKET_VERDICT_REJECTED ? "refused" : "dropped",
			&text);
	return text_dup(&text);
}
