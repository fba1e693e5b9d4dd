/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/elements.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/nftables/affinity_ids.h"
#include "backends/nftables/localhost/localhost_policy.h"

/* -- destinations */

static void add_address(const struct port_plan *port, struct destination *ret,
			const struct addr *addr, bool external, bool firewalled)
{
	*ret = (struct destination){
		.external = external,
		.firewalled = firewalled,
		.protocol = port->port->protocol,
		.port = port->port->port,
		.addr = *addr,
	};
}

static int compare_addresses(const void *left, const void *right)
{
	const struct destination *const *a = left, *const *b = right;
	int r = addr_compare(&(*a)->addr, &(*b)->addr);

	return r != 0 ? r : (*a > *b) - (*a < *b);
}

/* Leaves the first of those with the same address, firewalled if one of them is. A tenant may name any number of them. */
static size_t drop_repeated(struct destination *v, size_t n)
{
	cleanup_free struct destination **sorted = xcalloc(n, sizeof(struct destination *));
	cleanup_free bool *repeated = xcalloc(n, sizeof(bool));
	struct destination *first;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		sorted[i] = &v[i];
	qsort(sorted, n, sizeof(struct destination *), compare_addresses);
	first = sorted[0];
	for (size_t i = 1; i < n; i++) {
		if (!addr_equal(&first->addr, &sorted[i]->addr)) {
			first = sorted[i];
			continue;
		}
		first->firewalled = first->firewalled || sorted[i]->firewalled;
		repeated[sorted[i] - v] = true;
	}
	for (size_t i = 0; i < n; i++)
		if (!repeated[i])
			v[kept++] = v[i];
	return kept;
}

struct destination *elements_destinations(const struct port_plan *port, size_t *ret_n)
{
	struct destination *v = xcalloc(2 + port->n_external_ips + port->n_vips, sizeof(*v));
	size_t n = 0;

	add_address(port, &v[n++], port->cluster_ip, false, false);
	for (size_t i = 0; i < port->n_external_ips; i++)
		add_address(port, &v[n++], &port->external_ips[i], true, false);
	for (size_t i = 0; i < port->n_vips; i++)
		add_address(port, &v[n++], &port->vips[i], true, port->n_source_ranges > 0);
	if (n > 1)
		n = drop_repeated(v, n);
	if (port->port->node_port)
		v[n++] = (struct destination){
			.node_port = true,
			.external = true,
			.protocol = port->port->protocol,
			.port = port->port->node_port,
		};
	*ret_n = n;
	return v;
}

bool elements_have_affinity(const struct port_plan *port)
{
	return port->service->sticky_seconds > 0 && port->use.has_endpoints;
}

bool elements_have_local_affinity(const struct port_plan *port)
{
	return elements_have_affinity(port) &&
	       (port->service->internal_local || port->service->external_local);
}

/* -- the decisions about one destination */

struct decision {
	bool first;          /* there is a first verdict */
	enum chain_id chain; /* its chain, and how many slots if it picks one */
	uint32_t number;
	bool cluster, local;           /* groups of slots that are needed */
	bool cluster_pick, local_pick; /* they are reached through a second step */
	enum plan_refusal refusal;
};

/* The cluster IP, and external destinations whose policy is Cluster. */
static struct decision decide_direct(const struct slotted_port *port, bool external, bool local)
{
	size_t n = local ? port->local.n : port->cluster.n;
	bool sticky = elements_have_affinity(port->plan);
	struct decision decision = {
		.refusal = external ? port->plan->external : port->plan->internal,
		.cluster = !local && n > 0,
		.local = local && n > 0,
		.number = (uint32_t)n,
	};

	decision.first = decision.refusal == PLAN_SERVED && n > 0;
	decision.cluster_pick = sticky && decision.cluster;
	decision.local_pick = sticky && decision.local;
	if (local)
		decision.chain = sticky ? CHAIN_STICKY_LOCAL : CHAIN_LOCAL_PICK;
	else if (external)
		decision.chain = sticky ? CHAIN_MASQ_STICKY : CHAIN_MASQ_PICK;
	else
		decision.chain = sticky ? CHAIN_STICKY : CHAIN_PICK;
	if (sticky)
		decision.number = 0;
	return decision;
}

/* Pods and the node get any endpoint, others one of this node or none. */
static struct decision decide_external_local(const struct slotted_port *port)
{
	bool sticky = elements_have_affinity(port->plan);

	return (struct decision){
		.first = port->plan->use.has_endpoints,
		.chain = sticky ? CHAIN_EXTERNAL_LOCAL_STICKY : CHAIN_EXTERNAL_LOCAL,
		.cluster = port->cluster.n > 0,
		.local = port->local.n > 0,
		.cluster_pick = port->cluster.n > 0,
		.local_pick = port->local.n > 0,
		.refusal = port->plan->external,
	};
}

static struct decision decide(const struct slotted_port *port,
			      const struct destination *destination)
{
	if (!destination->external)
		return decide_direct(port, false, port->plan->service->internal_local);
	if (!port->plan->service->external_local)
		return decide_direct(port, true, false);
	return decide_external_local(port);
}

/* -- elements keyed by a destination */

struct target {
	const struct destination *destination;
	element_fn *fn;
	void *arg;
};

static void begin_key(struct element *element, const struct target *target, enum container plain,
		      enum container node_port)
{
	const struct destination *destination = target->destination;

	element_begin(element, destination->node_port ? node_port : plain);
	if (!destination->node_port)
		element_key_addr(element, &destination->addr);
	element_key_protocol(element, destination->protocol);
	element_key_port(element, destination->port);
}

static void put_first(const struct target *target, const struct decision *decision,
		      const char *comment)
{
	struct element element;

	begin_key(&element, target, CONTAINER_SERVICE_IPS, CONTAINER_SERVICE_NODEPORTS);
	element_goto(&element, chain_for(target->destination->node_port, decision->chain),
		     decision->number);
	element.comment = comment;
	target->fn(target->arg, &element);
}

static void put_slots(const struct target *target, const struct endpoints *endpoints,
		      const struct index_list *list, enum container plain, enum container node_port)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct endpoint *endpoint = &endpoints->v[list->v[i]];
		struct element element;

		begin_key(&element, target, plain, node_port);
		element_key_number(&element, (uint32_t)i);
		element_data_endpoint(&element, &endpoint->addr, endpoint->port);
		target->fn(target->arg, &element);
	}
}

static void put_pick(const struct target *target, enum chain_id id, size_t n, enum container plain,
		     enum container node_port)
{
	struct element element;

	begin_key(&element, target, plain, node_port);
	element_goto(&element, chain_for(target->destination->node_port, id), (uint32_t)n);
	target->fn(target->arg, &element);
}

static void put_refusal(const struct target *target, enum plan_refusal refusal, const char *comment)
{
	struct element element;

	begin_key(&element, target, CONTAINER_NO_ENDPOINT_SERVICES,
		  CONTAINER_NO_ENDPOINT_NODEPORTS);
	if (refusal == PLAN_DROP)
		element.verdict = VERDICT_DROP;
	else
		element_goto(&element, CHAIN_REJECT, 0);
	element.comment = comment;
	target->fn(target->arg, &element);
}

static void put_affinity_id(const struct target *target, uint32_t id)
{
	struct element element;

	begin_key(&element, target, CONTAINER_AFFINITY_IDS, CONTAINER_NODEPORT_AFFINITY_IDS);
	element_data_id(&element, id);
	target->fn(target->arg, &element);
}

/* -- source ranges */

static int compare_prefixes(const void *left, const void *right)
{
	const struct prefix *a = left, *b = right;
	int r = addr_compare(&a->addr, &b->addr);

	return r != 0 ? r : (int)a->length - (int)b->length;
}

/*
 * Sorted, and without what another one contains: kernels differ in what they make of ranges that
 * overlap. The load balancer's own addresses are allowed where this node's is: a request from the
 * node may come back with that source. An array for the caller to free.
 */
static struct prefix *allowed_ranges(const struct port_plan *port, size_t *ret_n)
{
	struct prefix *v = xcalloc(port->n_source_ranges + port->n_vips, sizeof(*v));
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < port->n_source_ranges; i++)
		v[n++] = port->source_ranges[i];
	for (size_t i = 0; port->node_in_ranges && i < port->n_vips; i++)
		v[n++] = (struct prefix){port->vips[i], addr_bits(port->vips[i].family)};
	qsort(v, n, sizeof(*v), compare_prefixes);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || !prefix_contains(&v[kept - 1], &v[i].addr))
			v[kept++] = v[i];
	*ret_n = kept;
	return v;
}

static void put_firewall(const struct target *target, const struct port_plan *port)
{
	size_t n;
	cleanup_free struct prefix *ranges = allowed_ranges(port, &n);
	struct element element;

	begin_key(&element, target, CONTAINER_FIREWALLED, CONTAINER_FIREWALLED);
	target->fn(target->arg, &element);
	for (size_t i = 0; i < n; i++) {
		begin_key(&element, target, CONTAINER_SOURCE_RANGES, CONTAINER_SOURCE_RANGES);
		element_key_addr(&element, &ranges[i].addr);
		element.prefix = ranges[i].length;
		target->fn(target->arg, &element);
	}
}

void elements_of_destination(const struct slotted_port *port, const struct destination *destination,
			     uint32_t id, bool slots, element_fn *fn, void *arg)
{
	const struct target target = {.destination = destination, .fn = fn, .arg = arg};
	const struct decision decision = decide(port, destination);

	if (decision.first)
		put_first(&target, &decision, port->plan->id);
	if (slots && decision.cluster)
		put_slots(&target, port->plan->endpoints, &port->cluster, CONTAINER_ENDPOINTS,
			  CONTAINER_NODEPORT_ENDPOINTS);
	if (slots && decision.local)
		put_slots(&target, port->plan->endpoints, &port->local, CONTAINER_LOCAL_ENDPOINTS,
			  CONTAINER_NODEPORT_LOCAL_ENDPOINTS);
	if (decision.cluster_pick)
		put_pick(&target, CHAIN_PICK, port->cluster.n, CONTAINER_CLUSTER_PICKS,
			 CONTAINER_NODEPORT_CLUSTER_PICKS);
	if (decision.local_pick)
		put_pick(&target, CHAIN_LOCAL_PICK, port->local.n, CONTAINER_LOCAL_PICKS,
			 CONTAINER_NODEPORT_LOCAL_PICKS);
	if (decision.refusal != PLAN_SERVED)
		put_refusal(&target, decision.refusal, port->plan->id);
	if (destination->firewalled)
		put_firewall(&target, port->plan);
	if (decision.first && elements_have_affinity(port->plan))
		put_affinity_id(&target, id);
}

void elements_of_localhost(const struct settings *settings, const struct destination *destination,
			   element_fn *fn, void *arg)
{
	const struct target target = {.destination = destination, .fn = fn, .arg = arg};
	enum protocol protocol = destination->protocol;
	struct element element;

	if (!destination->node_port || !localhost_is_refused(settings, protocol))
		return;
	begin_key(&element, &target, CONTAINER_LOCALHOST_REJECTS, CONTAINER_LOCALHOST_REJECTS);
	element_goto(&element, (enum chain_id)(CHAIN_LOCALHOST_REJECT + protocol), 0);
	fn(arg, &element);
}

/* -- elements of a service port, and shared ones */

struct member {
	const struct endpoint *endpoint;
	uint32_t port, id;
};

typedef void member_fn(struct element *element, const struct member *member);

static void make_member(struct element *element, const struct member *member)
{
	element_begin(element, CONTAINER_AFFINITY_MEMBERS);
	element_key_id(element, member->port);
	element_key_addr(element, &member->endpoint->addr);
	element_key_port(element, member->endpoint->port);
	element_data_id(element, member->id);
}

static void make_target(struct element *element, enum container container,
			const struct member *member)
{
	element_begin(element, container);
	element_key_id(element, member->id);
	element_data_endpoint(element, &member->endpoint->addr, member->endpoint->port);
}

static void make_cluster_target(struct element *element, const struct member *member)
{
	make_target(element, CONTAINER_AFFINITY_ENDPOINTS, member);
}

static void make_local_target(struct element *element, const struct member *member)
{
	make_target(element, CONTAINER_LOCAL_AFFINITY_ENDPOINTS, member);
}

static void add_members(const struct port_plan *port, const struct index_list *list,
			struct affinity_ids *ids, member_fn *make, struct element_list *ret)
{
	struct member member = {.port = affinity_ids_port(ids, port)};

	for (size_t i = 0; i < list->n; i++) {
		struct element element;

		member.endpoint = &port->endpoints->v[list->v[i]];
		member.id = affinity_ids_endpoint(ids, member.port, member.endpoint);
		make(&element, &member);
		element_list_add(ret, &element);
	}
}

static void put_members(const struct port_plan *port, struct affinity_ids *ids, element_fn *fn,
			void *arg)
{
	bool local = elements_have_local_affinity(port);
	struct element_list members = {0};

	add_members(port, &port->use.cluster, ids, make_member, &members);
	add_members(port, &port->use.cluster, ids, make_cluster_target, &members);
	if (local) {
		add_members(port, &port->use.local, ids, make_member, &members);
		add_members(port, &port->use.local, ids, make_local_target, &members);
	}
	element_list_sort(&members);
	for (size_t i = 0; i < members.n; i++)
		fn(arg, &members.v[i]);
	element_list_done(&members);
}

static void put_affinity_chain(enum container container, bool jump, enum chain_id id,
			       uint32_t number, element_fn *fn, void *arg)
{
	struct element element;

	element_begin(&element, container);
	element_key_id(&element, number);
	if (jump)
		element_jump(&element, id, number);
	else
		element_goto(&element, id, number);
	fn(arg, &element);
}

void elements_of_port(const struct port_plan *port, struct affinity_ids *ids, element_fn *fn,
		      void *arg)
{
	uint32_t number;

	if (!elements_have_affinity(port))
		return;
	number = affinity_ids_port(ids, port);
	put_affinity_chain(CONTAINER_RECALLS, true, CHAIN_RECALL, number, fn, arg);
	if (elements_have_local_affinity(port))
		put_affinity_chain(CONTAINER_LOCAL_RECALLS, true, CHAIN_LOCAL_RECALL, number, fn,
				   arg);
	put_affinity_chain(CONTAINER_REMEMBERS, false, CHAIN_REMEMBER_PORT, number, fn, arg);
	put_members(port, ids, fn, arg);
}

/* A member of no service port, at no address. */
void elements_of_mark(enum family family, uint32_t mark, element_fn *fn, void *arg)
{
	const struct addr none = {.family = (uint8_t)family};
	struct element element;

	element_begin(&element, CONTAINER_AFFINITY_MEMBERS);
	element_key_id(&element, 0);
	element_key_addr(&element, &none);
	element_key_port(&element, 0);
	element_data_id(&element, mark);
	fn(arg, &element);
}

void elements_shared(const struct port_plan *port, element_fn *fn, void *arg)
{
	struct element element;

	element_begin(&element, CONTAINER_CLUSTER_IPS);
	element_key_addr(&element, port->cluster_ip);
	fn(arg, &element);
	for (size_t i = 0; i < port->use.reachable.n; i++) {
		const struct endpoint *endpoint = &port->endpoints->v[port->use.reachable.v[i]];

		if (!(endpoint->flags & ENDPOINT_LOCAL))
			continue;
		element_begin(&element, CONTAINER_HAIRPIN_CONNECTIONS);
		element_key_addr(&element, &endpoint->addr);
		element_key_addr(&element, &endpoint->addr);
		element_key_protocol(&element, port->port->protocol);
		element_key_port(&element, endpoint->port);
		fn(arg, &element);
	}
}
