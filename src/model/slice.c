/* SPDX-License-Identifier: Apache-2.0 */
#include "model/slice.h"

#include <assert.h>

struct slice *slice_new(const char *ns, const char *name, const char *service_name,
			enum family family)
{
	struct arena *arena = arena_new(sizeof(struct slice) + 512);
	struct slice *slice = arena_alloc(arena, sizeof(*slice));

	slice->refs = 1;
	slice->arena = arena;
	slice->key = arena_printf(arena, "%s/%s", ns, name);
	slice->service_key = arena_printf(arena, "%s/%s", ns, service_name);
	slice->family = family;
	return slice;
}

struct slice *slice_ref(struct slice *slice)
{
	slice->refs++;
	return slice;
}

struct slice *slice_unref(struct slice *slice)
{
	if (!slice)
		return NULL;
	assert(slice->refs > 0);
	if (--slice->refs == 0)
		arena_free(slice->arena);
	return NULL;
}

static bool names_equal(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++)
		if (!streq(a[i], b[i]))
			return false;
	return true;
}

bool endpoint_hints_equal(const struct endpoint_hints *a, const struct endpoint_hints *b)
{
	return names_equal(a->zones, a->n_zones, b->zones, b->n_zones) &&
	       names_equal(a->nodes, a->n_nodes, b->nodes, b->n_nodes);
}

static bool ports_equal(const struct slice *a, const struct slice *b)
{
	if (a->n_ports != b->n_ports)
		return false;
	for (size_t i = 0; i < a->n_ports; i++) {
		const struct slice_port *x = &a->ports[i], *y = &b->ports[i];

		if (!streq(x->name, y->name) || x->protocol != y->protocol || x->port != y->port)
			return false;
	}
	return true;
}

static bool same_node(const char *a, const char *b)
{
	return a && b ? streq(a, b) : a == b;
}

static bool same_hints(const struct endpoint_hints *a, const struct endpoint_hints *b)
{
	return a && b ? endpoint_hints_equal(a, b) : a == b;
}

static bool endpoints_equal(const struct slice *a, const struct slice *b)
{
	if (a->n_endpoints != b->n_endpoints)
		return false;
	for (size_t i = 0; i < a->n_endpoints; i++) {
		const struct slice_endpoint *x = &a->endpoints[i], *y = &b->endpoints[i];

		if (!addr_equal(&x->addr, &y->addr) || x->flags != y->flags ||
		    !same_node(x->node, y->node) || !same_hints(x->hints, y->hints))
			return false;
	}
	return true;
}

bool slice_equal(const struct slice *a, const struct slice *b)
{
	if (a == b)
		return true; /* as nearly all of a folder are when one file has changed */
	return streq(a->key, b->key) && streq(a->service_key, b->service_key) &&
	       a->family == b->family && ports_equal(a, b) && endpoints_equal(a, b);
}
