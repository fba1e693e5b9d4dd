/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/explain.h"

#include <assert.h>
#include <stdlib.h>

#include "backends/backend.h"
#include "inspect/inspect_ops.h"
#include "inspect/summary.h"

struct explain {
	struct explain_input input;
	void *rules; /* the mode's own */
};

static const struct {
	const char *name, *words;
} entries[] =
	{
		[ENTRY_NONE] = {"none", "no address of a Service"},
		[ENTRY_CLUSTER_IP] = {"clusterIP", "cluster IP"},
		[ENTRY_EXTERNAL_IP] = {"externalIP", "external IP"},
		[ENTRY_LOAD_BALANCER_IP] = {"loadBalancerIP", "load balancer IP"},
		[ENTRY_NODE_PORT] = {"nodePort", "node port"},
},
  reasons[] = {
	  [LEFT_OUT_NOT_READY] = {"notReady", "not ready"},
	  [LEFT_OUT_TERMINATING] = {"terminating", "terminating"},
	  [LEFT_OUT_OTHER_ZONE] = {"otherZone", "meant for another zone"},
	  [LEFT_OUT_OTHER_NODE] = {"otherNode", "meant for another node"},
	  [LEFT_OUT_NOT_LOCAL] = {"notOnThisNode", "not on this node"},
	  [LEFT_OUT_OTHER_FAMILY] = {"otherFamily", "of the other IP family"},
};

static const char *const kernel_names[] = {
	[KERNEL_NOT_COMPARED] = "notCompared",
	[KERNEL_SAME] = "same",
	[KERNEL_DIFFERS] = "differs",
};

static_assert(ARRAY_SIZE(entries) == ENTRY_COUNT, "one row for each entry");
static_assert(ARRAY_SIZE(reasons) == LEFT_OUT_COUNT, "one row for each reason");
static_assert(ARRAY_SIZE(kernel_names) == KERNEL_STATE_COUNT, "one name for each state");

const char *entry_name(enum entry entry)
{
	return entries[entry].name;
}

const char *entry_words(enum entry entry)
{
	return entries[entry].words;
}

const char *left_out_name(enum left_out_reason reason)
{
	return reasons[reason].name;
}

const char *left_out_words(enum left_out_reason reason)
{
	return reasons[reason].words;
}

const char *kernel_state_name(enum kernel_state state)
{
	return kernel_names[state];
}

/* -- the rules */

struct explain *explain_new(const struct explain_input *input)
{
	struct explain *explain = xcalloc(1, sizeof(*explain));
	cleanup_plan_once struct plan_once once;

	explain->input = *input;
	plan_once_take(&once, input->settings, input->model);
	explain->rules = input->backend->inspect->rules_new(input, once.delta);
	return explain;
}

struct explain *explain_free(struct explain *explain)
{
	if (!explain)
		return NULL;
	explain->input.backend->inspect->rules_free(explain->rules);
	free(explain);
	return NULL;
}

void *explain_rules(struct explain *explain)
{
	return explain->rules;
}

const struct explain_input *explain_input(const struct explain *explain)
{
	return &explain->input;
}

/* -- whose it is */

/* "namespace/name" of a port's id, which may have ":port" behind; the caller frees. */
static char *service_of_id(const char *id)
{
	return xasprintf("%.*s", (int)strcspn(id, ":"), id);
}

/* In the order in which rules are asked. */
static enum entry entry_of(const struct port_plan *port, const struct packet *packet)
{
	if (port->port->protocol != packet->protocol)
		return ENTRY_NONE;
	if (port->port->port == packet->port) {
		if (addr_equal(port->cluster_ip, &packet->destination))
			return ENTRY_CLUSTER_IP;
		if (addr_among(port->external_ips, port->n_external_ips, &packet->destination))
			return ENTRY_EXTERNAL_IP;
		if (addr_among(port->vips, port->n_vips, &packet->destination))
			return ENTRY_LOAD_BALANCER_IP;
	}
	return port->port->node_port == packet->port && packet->port ? ENTRY_NODE_PORT : ENTRY_NONE;
}

static void find_port(struct explanation *explanation)
{
	const struct service_plan *plan = explanation->plan;

	for (size_t i = 0; i < plan->n_ports && explanation->entry == ENTRY_NONE; i++) {
		explanation->entry = entry_of(&plan->ports[i], &explanation->path->packet);
		if (explanation->entry != ENTRY_NONE)
			explanation->port = &plan->ports[i];
	}
}

static bool try_service(struct explanation *explanation, const char *key)
{
	const struct explain_input *input = explanation->input;

	explanation->plan = plan_service(input->settings, input->model, key);
	if (explanation->plan)
		find_port(explanation);
	return explanation->port;
}

/* Who has the address, where the rule that ends the path does not say so. */
static void find_owner(struct explanation *explanation)
{
	const struct service *service;
	size_t at = 0;

	while ((service = model_next_service(explanation->input->model, &at))) {
		if (try_service(explanation, service->key))
			return;
		explanation->plan = service_plan_unref(explanation->plan);
	}
}

/* The rules know: iptables' by the Service they were written for, nftables' by their comments. */
static void find_service(struct explanation *explanation)
{
	const struct outcome *outcome = &explanation->path->outcomes[0];
	cleanup_free char *key = NULL;

	if (outcome->service)
		key = xstrdup(outcome->service);
	else if (outcome->port_id)
		key = service_of_id(outcome->port_id);
	if (key)
		try_service(explanation, key);
	else if (outcome->verdict == PACKET_VERDICT_DROPPED)
		find_owner(explanation);
}

/* -- who is left out */

static bool is_backend(const struct packet_path *path, const struct endpoint *endpoint)
{
	for (size_t i = 0; i < path->n_outcomes; i++)
		if (path->outcomes[i].verdict == PACKET_VERDICT_BACKEND &&
		    path->outcomes[i].backend_port == endpoint->port &&
		    addr_equal(&path->outcomes[i].backend, &endpoint->addr))
			return true;
	return false;
}

/* The packet took the list of this node if an endpoint of the other list is not reached. */
static bool took_local_list(const struct explanation *explanation)
{
	const struct port_plan *port = explanation->port;

	for (size_t i = 0; i < port->use.cluster.n; i++)
		if (!is_backend(explanation->path, &port->endpoints->v[port->use.cluster.v[i]]))
			return true;
	return port->use.cluster.n == 0;
}

static enum left_out_reason reason_of(const struct explanation *explanation, size_t index,
				      bool local_list)
{
	const struct port_plan *port = explanation->port;
	const struct endpoint *endpoint = &port->endpoints->v[index];

	if (!(endpoint->flags & ENDPOINT_READY))
		return endpoint->flags & ENDPOINT_TERMINATING ? LEFT_OUT_TERMINATING
							      : LEFT_OUT_NOT_READY;
	if (local_list || index_list_has(&port->use.cluster, index))
		return LEFT_OUT_NOT_LOCAL;
	return port->use.mode == TOPOLOGY_SAME_NODE ? LEFT_OUT_OTHER_NODE : LEFT_OUT_OTHER_ZONE;
}

static void leave_out(struct explanation *explanation, size_t *capacity,
		      const struct endpoint *endpoint, enum left_out_reason reason)
{
	array_grow(&explanation->left_out, capacity, explanation->n_left_out,
		   sizeof(*explanation->left_out));
	explanation->left_out[explanation->n_left_out++] = (struct left_out){
		.addr = endpoint->addr,
		.port = endpoint->port,
		.reason = reason,
	};
}

/* A packet that was refused for its sender's sake says nothing about endpoints. */
static bool refused_by_plan(const struct explanation *explanation)
{
	const struct port_plan *port = explanation->port;
	bool internal = explanation->entry == ENTRY_CLUSTER_IP;

	return (internal ? port->internal : port->external) != PLAN_SERVED;
}

static void find_left_out(struct explanation *explanation)
{
	const struct port_plan *port = explanation->port;
	const struct settings *settings = explanation->input->settings;
	enum family other = settings->family == FAMILY_IPV4 ? FAMILY_IPV6 : FAMILY_IPV4;
	const struct endpoints *others = NULL;
	bool local_list;
	size_t capacity = 0;

	if (!port || (!explanation_reaches(explanation) && !refused_by_plan(explanation)))
		return;
	local_list = took_local_list(explanation);
	for (size_t i = 0; port->endpoints && i < port->endpoints->n; i++)
		if (!is_backend(explanation->path, &port->endpoints->v[i]))
			leave_out(explanation, &capacity, &port->endpoints->v[i],
				  reason_of(explanation, i, local_list));
	if (!model_ignores_family(explanation->input->model, other))
		others = model_endpoints(explanation->input->model, other, port->service->key,
					 port->port->name, port->port->protocol);
	for (size_t i = 0; others && i < others->n; i++)
		leave_out(explanation, &capacity, &others->v[i], LEFT_OUT_OTHER_FAMILY);
}

/* -- */

enum packet_verdict explanation_verdict(const struct explanation *explanation)
{
	const struct packet_path *path = explanation->path;
	enum packet_verdict verdict = path->outcomes[0].verdict;

	for (size_t i = 1; i < path->n_outcomes; i++)
		if (path->outcomes[i].verdict != PACKET_VERDICT_BACKEND)
			verdict = path->outcomes[i].verdict;
	return verdict;
}

bool explanation_reaches(const struct explanation *explanation)
{
	return explanation_verdict(explanation) == PACKET_VERDICT_BACKEND;
}

struct explanation *explain_packet(struct explain *explain, const struct packet *packet)
{
	struct explanation *explanation = xcalloc(1, sizeof(*explanation));

	explanation->input = &explain->input;
	explanation->path =
		explain->input.backend->inspect->walk(explain->rules, packet, &explain->input.host);
	find_service(explanation);
	find_left_out(explanation);
	explanation->summary = summary_make(explanation);
	return explanation;
}

struct explanation *explanation_free(struct explanation *explanation)
{
	if (!explanation)
		return NULL;
	packet_path_free(explanation->path);
	service_plan_unref(explanation->plan);
	free(explanation->left_out);
	for (size_t i = 0; i < explanation->n_kernel_notes; i++)
		free(explanation->kernel_notes[i]);
	free(explanation->kernel_notes);
	free(explanation->summary);
	free(explanation);
	return NULL;
}
