/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/slots.h"

#include <stdlib.h>

/* A slot, old or wanted, with what is in it. */
struct slot {
	const struct endpoint *endpoint;
	uint32_t index; /* in endpoints->v */
	uint32_t at;    /* the slot's number, if it has one */
};

static int compare_endpoints(const struct endpoint *a, const struct endpoint *b)
{
	int r = addr_compare(&a->addr, &b->addr);

	return r != 0 ? r : (int)a->port - (int)b->port;
}

static int compare_slots(const void *left, const void *right)
{
	const struct slot *a = left, *b = right;
	int r = compare_endpoints(a->endpoint, b->endpoint);

	return r != 0 ? r : (a->at > b->at) - (a->at < b->at);
}

static size_t weight_of(const struct port_plan *port, uint32_t index)
{
	return port->weights ? port->weights[index] : 1;
}

/* One for each slot wanted, by endpoint; the caller frees. */
static struct slot *wanted_slots(const struct port_plan *port, const struct index_list *list,
				 size_t *ret_n)
{
	struct slot *v;
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		n += weight_of(port, list->v[i]);
	v = xcalloc(n + 1, sizeof(*v));
	*ret_n = n;
	n = 0;
	for (size_t i = 0; i < list->n; i++)
		for (size_t j = weight_of(port, list->v[i]); j > 0; j--, n++)
			v[n] = (struct slot){&port->endpoints->v[list->v[i]], list->v[i],
					     (uint32_t)n};
	qsort(v, n, sizeof(*v), compare_slots);
	return v;
}

static struct slot *applied_slots(const struct port_plan *port, const struct index_list *list)
{
	struct slot *v = xcalloc(list->n + 1, sizeof(*v));

	for (size_t i = 0; i < list->n; i++)
		v[i] = (struct slot){&port->endpoints->v[list->v[i]], list->v[i], (uint32_t)i};
	qsort(v, list->n, sizeof(*v), compare_slots);
	return v;
}

/* Wanted ones that may stay where they are are put there; the others come back, in front of v. */
static size_t keep_places(struct slot *wanted, size_t n, const struct slot *old, size_t n_old,
			  uint32_t *out, bool *taken)
{
	size_t left = 0;

	for (size_t i = 0, j = 0; i < n; i++) {
		while (j < n_old && compare_endpoints(old[j].endpoint, wanted[i].endpoint) < 0)
			j++;
		if (j < n_old && compare_endpoints(old[j].endpoint, wanted[i].endpoint) == 0 &&
		    old[j].at < n) {
			out[old[j].at] = wanted[i].index;
			taken[old[j++].at] = true;
		} else {
			if (j < n_old &&
			    compare_endpoints(old[j].endpoint, wanted[i].endpoint) == 0)
				j++; /* its place is behind the end */
			wanted[left++] = wanted[i];
		}
	}
	return left;
}

static struct index_list arrange_list(struct arena *arena, const struct index_list *list,
				      const struct port_plan *port,
				      const struct slotted_port *old_port,
				      const struct index_list *before)
{
	cleanup_free struct slot *wanted = NULL;
	cleanup_free struct slot *old = NULL;
	cleanup_free bool *taken = NULL;
	uint32_t *out;
	size_t n, left, at = 0;

	wanted = wanted_slots(port, list, &n);
	old = applied_slots(old_port->plan, before);
	taken = xcalloc(n + 1, sizeof(*taken));
	out = arena_array(arena, n, sizeof(*out));
	left = keep_places(wanted, n, old, before->n, out, taken);
	for (size_t i = 0; i < left; i++) {
		while (taken[at])
			at++;
		out[at++] = wanted[i].index;
	}
	return (struct index_list){.v = out, .n = n};
}

/* Are the slots those of before, each in its place? Then nothing needs to be arranged. */
static bool in_place(const struct port_plan *port, const struct index_list *list,
		     const struct port_plan *applied, const struct index_list *before)
{
	if (list->n != before->n || port->weights)
		return false;
	for (size_t i = 0; i < list->n; i++)
		if (compare_endpoints(&port->endpoints->v[list->v[i]],
				      &applied->endpoints->v[before->v[i]]) != 0)
			return false;
	return true;
}

const struct port_plan *slots_find_port(const struct service_plan *plan,
					const struct port_plan *like)
{
	for (size_t i = 0; plan && i < plan->n_ports; i++)
		if (streq(plan->ports[i].port->name, like->port->name) &&
		    plan->ports[i].port->protocol == like->port->protocol)
			return &plan->ports[i];
	return NULL;
}

static struct slotted_port own_order(const struct port_plan *port)
{
	return (struct slotted_port){port, port->use.cluster, port->use.local};
}

struct slotted_port slots_port(const struct slotted_plan *plan, size_t port)
{
	return plan->slots ? plan->slots[port] : own_order(&plan->plan->ports[port]);
}

static bool is_in_place(const struct port_plan *port, const struct slotted_port *old)
{
	return in_place(port, &port->use.cluster, old->plan, &old->cluster) &&
	       in_place(port, &port->use.local, old->plan, &old->local);
}

static struct slotted_port *new_slots(const struct service_plan *plan)
{
	struct slotted_port *slots;
	size_t size = plan->n_ports * sizeof(*slots);

	for (size_t i = 0; i < plan->n_ports; i++)
		size += (plan->ports[i].use.cluster.n + plan->ports[i].use.local.n) *
			sizeof(uint32_t);
	slots = arena_alloc(arena_new(size), plan->n_ports * sizeof(*slots));
	for (size_t i = 0; i < plan->n_ports; i++)
		slots[i] = own_order(&plan->ports[i]);
	return slots;
}

struct slotted_port *slots_arrange(const struct service_plan *plan,
				   const struct slotted_plan *applied)
{
	static const struct port_plan nobody = {.endpoints = NULL};
	struct slotted_port *slots = NULL;

	for (size_t i = 0; i < plan->n_ports; i++) {
		const struct port_plan *port = &plan->ports[i];
		const struct port_plan *found = slots_find_port(applied->plan, port);
		struct slotted_port old = {.plan = &nobody};

		if (found)
			old = slots_port(applied, (size_t)(found - applied->plan->ports));
		if ((!found && !port->weights) || is_in_place(port, &old))
			continue;
		if (!slots)
			slots = new_slots(plan);
		slots[i].cluster =
			arrange_list(arena_of(slots), &slots[i].cluster, port, &old, &old.cluster);
		slots[i].local =
			arrange_list(arena_of(slots), &slots[i].local, port, &old, &old.local);
	}
	return slots;
}

struct slotted_port *slots_free(struct slotted_port *slots)
{
	if (slots)
		arena_free(arena_of(slots));
	return NULL;
}
