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

static void arrange_list(struct arena *arena, const struct port_plan *port, struct index_list *list,
			 const struct port_plan *applied, const struct index_list *before)
{
	cleanup_free struct slot *wanted = NULL;
	cleanup_free struct slot *old = NULL;
	cleanup_free bool *taken = NULL;
	uint32_t *out;
	size_t n, left, at = 0;

	wanted = wanted_slots(port, list, &n);
	old = applied_slots(applied, before);
	taken = xcalloc(n + 1, sizeof(*taken));
	out = arena_array(arena, n, sizeof(*out));
	left = keep_places(wanted, n, old, before->n, out, taken);
	for (size_t i = 0; i < left; i++) {
		while (taken[at])
			at++;
		out[at++] = wanted[i].index;
	}
	*list = (struct index_list){.v = out, .n = n};
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

void slots_arrange(struct service_plan *plan, const struct service_plan *applied)
{
	static const struct port_plan nobody = {.endpoints = NULL};

	for (size_t i = 0; i < plan->n_ports; i++) {
		struct port_plan *port = &plan->ports[i];
		const struct port_plan *old = slots_find_port(applied, port);

		if (!old && !port->weights)
			continue;
		if (!old)
			old = &nobody;
		if (!in_place(port, &port->use.cluster, old, &old->use.cluster))
			arrange_list(arena_of(plan), port, &port->use.cluster, old,
				     &old->use.cluster);
		if (!in_place(port, &port->use.local, old, &old->use.local))
			arrange_list(arena_of(plan), port, &port->use.local, old, &old->use.local);
	}
}
