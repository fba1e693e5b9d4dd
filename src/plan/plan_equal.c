/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"
#include "plan/withheld.h"

/*
 * Plans are compared by what they decide, not by what they were made from: two endpoint lists that
 * differ in an endpoint that neither plan uses ask for the same rules.
 */

/* For arrays of struct addr and struct prefix, which are bytes without gaps. */
static bool bytes_equal(const void *a, size_t n_a, const void *b, size_t n_b, size_t size)
{
	_Static_assert(sizeof(struct addr) == 17 && sizeof(struct prefix) == 18, "no gaps");

	return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * size) == 0);
}

/* Address and port make the rules; a backend that lists hairpin addresses cares who is local. */
static bool endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
	return addr_equal(&a->addr, &b->addr) && a->port == b->port &&
	       (a->flags & ENDPOINT_LOCAL) == (b->flags & ENDPOINT_LOCAL);
}

static bool list_equal(const struct endpoints *from_a, const struct index_list *a,
		       const struct endpoints *from_b, const struct index_list *b)
{
	if (a->n != b->n)
		return false;
	if (from_a == from_b)
		return a->n == 0 || memcmp(a->v, b->v, a->n * sizeof(*a->v)) == 0;
	for (size_t i = 0; i < a->n; i++)
		if (!endpoint_equal(&from_a->v[a->v[i]], &from_b->v[b->v[i]]))
			return false;
	return true;
}

static bool weights_equal(const struct port_plan *a, const struct port_plan *b)
{
	if (!a->weights || !b->weights || a->endpoints != b->endpoints)
		return !a->weights && !b->weights;
	return memcmp(a->weights, b->weights, a->endpoints->n) == 0;
}

static bool lists_equal(const struct port_plan *a, const struct port_plan *b)
{
	return weights_equal(a, b) &&
	       list_equal(a->endpoints, &a->use.cluster, b->endpoints, &b->use.cluster) &&
	       list_equal(a->endpoints, &a->use.local, b->endpoints, &b->use.local) &&
	       list_equal(a->endpoints, &a->use.reachable, b->endpoints, &b->use.reachable);
}

static bool service_fields_equal(const struct service *a, const struct service *b)
{
	return a == b ||
	       (a->sticky_seconds == b->sticky_seconds &&
		a->health_check_node_port == b->health_check_node_port &&
		a->external_local == b->external_local && a->internal_local == b->internal_local);
}

static bool ports_equal(const struct service_port *a, const struct service_port *b)
{
	return a == b || (streq(a->name, b->name) && a->protocol == b->protocol &&
			  a->port == b->port && a->node_port == b->node_port);
}

static bool addresses_equal(const struct port_plan *a, const struct port_plan *b)
{
	return addr_equal(a->cluster_ip, b->cluster_ip) &&
	       bytes_equal(a->external_ips, a->n_external_ips, b->external_ips, b->n_external_ips,
			   sizeof(*a->external_ips)) &&
	       bytes_equal(a->vips, a->n_vips, b->vips, b->n_vips, sizeof(*a->vips)) &&
	       bytes_equal(a->source_ranges, a->n_source_ranges, b->source_ranges,
			   b->n_source_ranges, sizeof(*a->source_ranges));
}

static bool decisions_equal(const struct port_plan *a, const struct port_plan *b)
{
	return a->use.has_endpoints == b->use.has_endpoints &&
	       a->externally_accessible == b->externally_accessible &&
	       a->node_in_ranges == b->node_in_ranges && a->internal == b->internal &&
	       a->external == b->external && a->use_cluster_group == b->use_cluster_group &&
	       a->use_local_group == b->use_local_group && a->use_external == b->use_external &&
	       a->use_firewall == b->use_firewall;
}

bool service_plan_equal(const struct service_plan *a, const struct service_plan *b)
{
	if (a == b)
		return true;
	if (!a || !b || a->n_ports != b->n_ports || !streq(a->key, b->key) ||
	    !service_fields_equal(a->service, b->service) ||
	    !withheld_equal(a->withheld, b->withheld))
		return false;
	for (size_t i = 0; i < a->n_ports; i++) {
		const struct port_plan *p = &a->ports[i], *q = &b->ports[i];

		if (!ports_equal(p->port, q->port) || !addresses_equal(p, q) ||
		    !decisions_equal(p, q) || !lists_equal(p, q))
			return false;
	}
	return true;
}
