/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <assert.h>
#include <stdlib.h>

#include "plan/withheld.h"

/*
 * Ten thousand plans live as long as the daemon, so a plan copies as little as it can: it keeps
 * references to the Service and to the endpoint lists and points into them. What is its own
 * (decisions, index lists, names with a port) lies in one arena, usually one block, as its size is
 * guessed beforehand.
 */

/* A port that is to be planned, with what the model knows about it. */
struct candidate {
	const struct service_port *port;
	struct endpoints *endpoints; /* borrowed; NULL: none */
};

/* What a Service has of one family, the same for all its ports. */
struct family_part {
	const struct addr *external_ips;
	const struct addr *vips;
	const struct prefix *source_ranges;
	uint32_t n_external_ips; /* hidden ones included */
	uint32_t n_vips, n_source_ranges;
	bool node_in_ranges;
};

/* By name, then protocol; among equals, as the Service lists them. */
static int compare_candidates(const void *left, const void *right)
{
	const struct service_port *a = ((const struct candidate *)left)->port;
	const struct service_port *b = ((const struct candidate *)right)->port;
	int r = strcmp(a->name, b->name);

	if (r == 0)
		r = (int)a->protocol - (int)b->protocol;
	if (r == 0)
		r = (a > b) - (a < b);
	return r;
}

static bool same_port_key(const struct service_port *a, const struct service_port *b)
{
	return streq(a->name, b->name) && a->protocol == b->protocol;
}

/*
 * Sorted, for the caller to free. Name and protocol are a port's key: of two that share it, which
 * the API server would not have accepted, the later one counts.
 */
static struct candidate *collect(const struct settings *settings, const struct model *model,
				 const struct service *service, size_t *ret_n)
{
	struct candidate *v = xcalloc(MAX(service->n_ports, 1), sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < service->n_ports; i++)
		v[i].port = &service->ports[i];
	qsort(v, service->n_ports, sizeof(*v), compare_candidates);
	for (size_t i = 0; i < service->n_ports; i++) {
		if (n > 0 && same_port_key(v[n - 1].port, v[i].port))
			n--;
		v[n++] = v[i];
	}
	for (size_t i = 0; i < n; i++)
		v[i].endpoints = model_endpoints(model, settings->family, service->key,
						 v[i].port->name, v[i].port->protocol);
	*ret_n = n;
	return v;
}

/* Bytes that the plan will need; a little too much rather than a second block. */
static size_t guess_size(const struct service *service, const struct candidate *v, size_t n)
{
	size_t lists = service->internal_local || service->external_local ? 2 : 1;
	size_t size = sizeof(struct service_plan) + n * sizeof(struct port_plan);

	for (size_t i = 0; i < n; i++) {
		if (*v[i].port->name)
			size += strlen(service->key) + strlen(v[i].port->name) + sizeof(":");
		if (v[i].endpoints)
			size += lists * (v[i].endpoints->n * sizeof(uint32_t) + 8); /* alignment */
	}
	return size;
}

/*
 * The elements of one family, in order. Each begins with its struct addr. They are borrowed when
 * they stand together, as they nearly always do, and copied when the other family's stand between
 * them.
 */
static const void *pick_family(struct arena *arena, const void *array, size_t n, size_t size,
			       enum family family, uint32_t *ret_n)
{
	const unsigned char *from = array;
	size_t first = 0, last = 0, found = 0;
	unsigned char *copy;

	for (size_t i = 0; i < n; i++) {
		if (((const struct addr *)(from + i * size))->family != family)
			continue;
		first = found == 0 ? i : first;
		last = i;
		found++;
	}
	*ret_n = (uint32_t)found;
	if (found == 0)
		return NULL;
	if (last - first + 1 == found)
		return from + first * size;
	copy = arena_array(arena, found, size);
	for (size_t i = first, at = 0; i <= last; i++)
		if (((const struct addr *)(from + i * size))->family == family)
			memcpy(copy + at++ * size, from + i * size, size);
	return copy;
}

static struct family_part family_part(const struct settings *settings,
				      const struct service *service, struct arena *arena)
{
	enum family family = settings->family;
	struct family_part part = {0};

	part.external_ips =
		pick_family(arena, service->external_ips, service->n_external_ips,
			    sizeof(*service->external_ips), family, &part.n_external_ips);
	part.vips = pick_family(arena, service->vips, service->n_vips, sizeof(*service->vips),
				family, &part.n_vips);
	part.source_ranges =
		pick_family(arena, service->source_ranges, service->n_source_ranges,
			    sizeof(*service->source_ranges), family, &part.n_source_ranges);
	for (size_t i = 0; i < part.n_source_ranges && !part.node_in_ranges; i++)
		part.node_in_ranges = prefix_contains(&part.source_ranges[i], &settings->node_ip);
	return part;
}

static enum plan_refusal refusal(const struct topology_result *use, bool policy_local)
{
	if (!use->has_endpoints)
		return PLAN_REJECT;
	return policy_local && use->local.n == 0 ? PLAN_DROP : PLAN_SERVED;
}

static void fill_addresses(const struct settings *settings, const struct family_part *part,
			   struct port_plan *plan)
{
	plan->cluster_ip = &plan->service->cluster_ip[settings->family];
	if (settings->allow_external_ips) {
		plan->external_ips = part->external_ips;
		plan->n_external_ips = part->n_external_ips;
	}
	plan->vips = part->vips;
	plan->n_vips = part->n_vips;
	plan->source_ranges = part->source_ranges;
	plan->n_source_ranges = part->n_source_ranges;
	plan->node_in_ranges = part->node_in_ranges;
	plan->externally_accessible =
		plan->port->node_port || part->n_vips > 0 || part->n_external_ips > 0;
}

static void decide(const struct settings *settings, const char *zone, struct arena *arena,
		   struct port_plan *plan)
{
	const struct service *service = plan->service;
	bool outside = plan->externally_accessible;
	struct topology_input input = {
		.uses_cluster = !service->internal_local || outside,
		.uses_local = service->internal_local || (service->external_local && outside),
		.node_name = settings->node_name,
		.zone = zone,
	};

	topology_categorize(&input, plan->endpoints, arena, &plan->use);
	plan->internal = refusal(&plan->use, service->internal_local);
	plan->external = refusal(&plan->use, service->external_local);
	plan->use_cluster_group = plan->use.cluster.n > 0;
	plan->use_local_group = plan->use.local.n > 0;
	plan->use_external = plan->use.has_endpoints && outside;
	plan->use_firewall =
		plan->use.has_endpoints && plan->n_vips > 0 && plan->n_source_ranges > 0;
}

static const char *port_id(struct arena *arena, const struct service *service,
			   const struct service_port *port)
{
	return *port->name ? arena_printf(arena, "%s:%s", service->key, port->name) : service->key;
}

struct service_plan *plan_service(const struct settings *settings, const struct model *model,
				  const char *key)
{
	return plan_service_object(settings, model, model_service(model, key));
}

struct service_plan *plan_service_object(const struct settings *settings, const struct model *model,
					 struct service *service)
{
	cleanup_free struct candidate *candidates = NULL;
	struct service_plan *plan;
	struct family_part part;
	struct arena *arena;
	size_t n;

	if (!service_in_family(service, settings->family))
		return NULL;
	candidates = collect(settings, model, service, &n);
	arena = arena_new(guess_size(service, candidates, n));
	plan = arena_alloc(arena, sizeof(*plan));
	plan->service = service_ref(service);
	plan->key = service->key;
	plan->ports = arena_array(arena, n, sizeof(*plan->ports));
	plan->n_ports = (uint32_t)n;
	plan->refs = 1;
	part = family_part(settings, service, arena);
	for (size_t i = 0; i < n; i++) {
		struct port_plan *port = &plan->ports[i];

		port->service = service;
		port->port = candidates[i].port;
		port->id = port_id(arena, service, port->port);
		if (candidates[i].endpoints)
			port->endpoints = endpoints_ref(candidates[i].endpoints);
		fill_addresses(settings, &part, port);
		decide(settings, model_zone(model), arena, port);
	}
	return plan;
}

struct service_plan *service_plan_ref(struct service_plan *plan)
{
	if (plan)
		plan->refs++;
	return plan;
}

struct service_plan *service_plan_unref(struct service_plan *plan)
{
	if (!plan)
		return NULL;
	assert(plan->refs > 0);
	if (--plan->refs > 0)
		return NULL;
	withheld_free(plan->withheld);
	for (size_t i = 0; i < plan->n_ports; i++)
		endpoints_unref(plan->ports[i].endpoints);
	service_unref(plan->service);
	arena_free(arena_of(plan));
	return NULL;
}
