/* SPDX-License-Identifier: Apache-2.0 */
#include "model/endpoints.h"

#include <assert.h>
#include <stdlib.h>

/*
 * Slices are taken in the order of their keys, so that the outcome does not depend on when they
 * came. Of several entries with the same address and port the last that is not terminating wins: a
 * pod's address may be in use again while the pod that had it is still going, or stand in two
 * slices while it moves. If all are terminating the first one stays.
 */

/* An entry before duplicates are resolved. */
struct candidate {
	struct endpoint endpoint;
	const struct endpoint_hints *hints;
	size_t rank; /* order of arrival */
	char text[ADDR_PORT_TEXT_MAX];
};

struct candidates {
	struct candidate *v;
	size_t n, capacity;
};

struct endpoints *endpoints_ref(struct endpoints *endpoints)
{
	endpoints->refs++;
	return endpoints;
}

struct endpoints *endpoints_unref(struct endpoints *endpoints)
{
	if (!endpoints)
		return NULL;
	assert(endpoints->refs > 0);
	if (--endpoints->refs == 0)
		arena_free(arena_of(endpoints));
	return NULL;
}

static void add_candidates(struct candidates *candidates, const struct slice *slice, uint16_t port,
			   const char *node_name)
{
	for (size_t i = 0; i < slice->n_endpoints; i++) {
		const struct slice_endpoint *from = &slice->endpoints[i];
		struct candidate *to;

		if (from->addr.family != slice->family)
			continue;
		array_grow(&candidates->v, &candidates->capacity, candidates->n, sizeof(*to));
		to = &candidates->v[candidates->n];
		to->endpoint = (struct endpoint){
			.addr = from->addr,
			.flags = from->flags,
			.port = port,
		};
		to->hints = from->hints;
		if (from->node && node_name[0] && streq(from->node, node_name))
			to->endpoint.flags |= ENDPOINT_LOCAL;
		to->rank = candidates->n++;
		addr_port_print(&from->addr, port, to->text);
	}
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = strcmp(x->text, y->text);

	return order ? order : x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Sorts, and leaves one entry for each address and port. */
static void resolve(struct candidates *candidates)
{
	size_t kept = 0;

	if (candidates->n == 0)
		return;
	qsort(candidates->v, candidates->n, sizeof(*candidates->v), compare_candidates);
	for (size_t i = 1; i < candidates->n; i++) {
		const struct candidate *next = &candidates->v[i];

		if (!streq(next->text, candidates->v[kept].text))
			candidates->v[++kept] = *next;
		else if (!(next->endpoint.flags & ENDPOINT_TERMINATING))
			candidates->v[kept] = *next;
	}
	candidates->n = kept + 1;
}

/* Zones are few, so most hints are found among the last few that were seen: one copy serves all. */
struct hint_cache {
	const struct endpoint_hints *recent[8];
	size_t next;
};

static const struct endpoint_hints *find_hints(const struct hint_cache *cache,
					       const struct endpoint_hints *hints)
{
	for (size_t i = 0; i < ARRAY_SIZE(cache->recent); i++)
		if (cache->recent[i] && endpoint_hints_equal(cache->recent[i], hints))
			return cache->recent[i];
	return NULL;
}

static void remember_hints(struct hint_cache *cache, const struct endpoint_hints *hints)
{
	cache->recent[cache->next++ % ARRAY_SIZE(cache->recent)] = hints;
}

static bool no_hints(const struct endpoint_hints *hints)
{
	return !hints || hints->n_zones + hints->n_nodes == 0;
}

static size_t names_size(const char *const *names, size_t n)
{
	size_t size = n * sizeof(*names);

	for (size_t i = 0; i < n; i++)
		size += strlen(names[i]) + 1;
	return size;
}

/* What the copies of all hints will take, so that a list is one allocation. */
static size_t hints_size(const struct candidates *from)
{
	struct hint_cache cache = {0};
	size_t size = 0;

	for (size_t i = 0; i < from->n; i++) {
		const struct endpoint_hints *hints = from->v[i].hints;

		if (no_hints(hints) || find_hints(&cache, hints))
			continue;
		remember_hints(&cache, hints);
		size += sizeof(*hints) + names_size(hints->zones, hints->n_zones) +
			names_size(hints->nodes, hints->n_nodes) + 2 * sizeof(void *);
	}
	return size > 0 ? size + from->n * sizeof(void *) : 0;
}

static const char *const *copy_names(struct arena *arena, const char *const *names, size_t n)
{
	const char **copy = arena_array(arena, n, sizeof(*copy));

	for (size_t i = 0; i < n; i++)
		copy[i] = arena_strdup(arena, names[i]);
	return copy;
}

static const struct endpoint_hints *copy_hints(struct arena *arena, struct hint_cache *cache,
					       const struct endpoint_hints *hints)
{
	const struct endpoint_hints *found;
	struct endpoint_hints *copy;

	if (no_hints(hints))
		return NULL;
	found = find_hints(cache, hints);
	if (found)
		return found;
	copy = arena_alloc(arena, sizeof(*copy));
	copy->zones = copy_names(arena, hints->zones, hints->n_zones);
	copy->n_zones = hints->n_zones;
	copy->nodes = copy_names(arena, hints->nodes, hints->n_nodes);
	copy->n_nodes = hints->n_nodes;
	remember_hints(cache, copy);
	return copy;
}

static bool any_hints(const struct candidates *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (!no_hints(from->v[i].hints))
			return true;
	return false;
}

static void copy_all_hints(struct arena *arena, const struct candidates *from,
			   struct endpoints *list)
{
	struct hint_cache cache = {0};

	list->hints = arena_array(arena, from->n, sizeof(*list->hints));
	for (size_t i = 0; i < from->n; i++)
		list->hints[i] = copy_hints(arena, &cache, from->v[i].hints);
}

static struct endpoints *make_list(const struct slice_port *port, const struct candidates *from)
{
	size_t entries = from->n * sizeof(struct endpoint);
	size_t name = strlen(port->name) + 1;
	struct arena *arena =
		arena_new(sizeof(struct endpoints) + entries + name + hints_size(from));
	struct endpoints *list = arena_alloc(arena, sizeof(*list));

	list->refs = 1;
	list->protocol = port->protocol;
	list->n = (uint32_t)from->n;
	list->v = arena_array(arena, from->n, sizeof(*list->v));
	list->port_name = arena_strdup(arena, port->name);
	for (size_t i = 0; i < from->n; i++)
		list->v[i] = from->v[i].endpoint;
	if (any_hints(from))
		copy_all_hints(arena, from, list);
	return list;
}

/* A port of a slice: what the slice says about one port of the service. */
struct port_entry {
	const struct slice *slice;
	const struct slice_port *port;
	size_t rank; /* order of the slices, and of the ports in each */
};

/* By name, then protocol. */
static int compare_ports(const char *name_a, enum protocol a, const char *name_b, enum protocol b)
{
	int order = strcmp(name_a, name_b);

	return order ? order : (int)a - (int)b;
}

static bool same_port(const struct slice_port *a, const struct slice_port *b)
{
	return compare_ports(a->name, a->protocol, b->name, b->protocol) == 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct port_entry *x = a, *y = b;
	int order =
		compare_ports(x->port->name, x->port->protocol, y->port->name, y->port->protocol);

	return order ? order : x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int compare_slices(const void *a, const void *b)
{
	const struct slice *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

/* All ports of all slices, those of one name and protocol together; for the caller to free. */
static struct port_entry *sort_ports(struct slice *const *slices, size_t n_slices, size_t *ret_n)
{
	cleanup_free struct slice **sorted = xcalloc(n_slices, sizeof(*sorted));
	struct port_entry *entries;
	size_t n = 0;

	for (size_t i = 0; i < n_slices; i++) {
		sorted[i] = slices[i];
		n += slices[i]->n_ports;
	}
	qsort(sorted, n_slices, sizeof(*sorted), compare_slices);
	entries = xcalloc(n, sizeof(*entries));
	n = 0;
	for (size_t i = 0; i < n_slices; i++)
		for (size_t j = 0; j < sorted[i]->n_ports; j++, n++)
			entries[n] = (struct port_entry){sorted[i], &sorted[i]->ports[j], n};
	qsort(entries, n, sizeof(*entries), compare_entries);
	*ret_n = n;
	return entries;
}

/* Entries of one name and protocol as a list; NULL when they have no endpoint. */
static struct endpoints *merge_port(const struct port_entry *entries, size_t n,
				    const char *node_name)
{
	struct candidates candidates = {0};
	struct endpoints *list = NULL;

	for (size_t i = 0; i < n; i++)
		add_candidates(&candidates, entries[i].slice, entries[i].port->port, node_name);
	resolve(&candidates);
	if (candidates.n > 0)
		list = make_list(entries[0].port, &candidates);
	free(candidates.v);
	return list;
}

struct endpoints **endpoints_merge(struct slice *const *slices, size_t n_slices,
				   const char *node_name, size_t *ret_n)
{
	size_t n_entries, n = 0, end;
	cleanup_free struct port_entry *entries = sort_ports(slices, n_slices, &n_entries);
	struct endpoints **lists = xcalloc(n_entries, sizeof(*lists));

	for (size_t i = 0; i < n_entries; i = end) {
		end = i + 1;
		while (end < n_entries && same_port(entries[end].port, entries[i].port))
			end++;
		lists[n] = merge_port(entries + i, end - i, node_name);
		if (lists[n])
			n++;
	}
	*ret_n = n;
	return xrealloc(lists, n * sizeof(*lists));
}

struct endpoints *endpoints_find(struct endpoints *const *lists, size_t n, const char *port_name,
				 enum protocol protocol)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct endpoints *list = lists[middle];
		int order = compare_ports(list->port_name, list->protocol, port_name, protocol);

		if (order == 0)
			return list;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
