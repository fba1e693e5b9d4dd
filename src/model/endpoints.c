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
	const char *hints; /* in the slice; NULL: none */
	size_t rank;       /* order of arrival */
	char text[ADDR_PORT_TEXT_MAX];
};

struct candidates {
	struct candidate *v;
	size_t n, capacity;
};

static void destroy(struct endpoints *endpoints)
{
	arena_free(arena_of(endpoints));
}

DEFINE_REFS(endpoints, destroy)

/* A port of a slice: what the slice says about one port of the service. */
struct port_entry {
	const struct slice *slice;
	struct slice_port port;
	const char *endpoints; /* where the first of the slice stands */
	size_t rank;           /* order of the slices, and of the ports in each */
};

static void add_candidates(struct candidates *candidates, const struct port_entry *entry)
{
	const char *at = entry->endpoints;

	for (size_t i = 0; i < entry->slice->n_endpoints; i++) {
		struct slice_endpoint from = slice_next_endpoint(entry->slice, &at);
		struct candidate *to;

		array_grow(&candidates->v, &candidates->capacity, candidates->n, sizeof(*to));
		to = &candidates->v[candidates->n];
		to->endpoint = (struct endpoint){
			.addr = from.addr,
			.flags = from.flags,
			.port = entry->port.port,
		};
		to->hints = from.hints;
		to->rank = candidates->n++;
		addr_port_print(&from.addr, entry->port.port, to->text);
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
	struct {
		const char *hints;
		const struct endpoint_hints *copy;
	} recent[8];
	size_t next;
};

/* 1: it is there, and the copy is the one that was remembered with it. */
static bool find_hints(const struct hint_cache *cache, const char *hints,
		       const struct endpoint_hints **ret_copy)
{
	for (size_t i = 0; i < ARRAY_SIZE(cache->recent); i++) {
		const char *seen = cache->recent[i].hints;

		if (!seen || !slice_hints_equal(seen, hints))
			continue;
		*ret_copy = cache->recent[i].copy;
		return true;
	}
	return false;
}

static void remember_hints(struct hint_cache *cache, const char *hints,
			   const struct endpoint_hints *copy)
{
	size_t at = cache->next++ % ARRAY_SIZE(cache->recent);

	cache->recent[at].hints = hints;
	cache->recent[at].copy = copy;
}

/* What the copies of all hints will take, so that a list is one allocation; 0: there are none. */
static size_t hints_size(const struct candidates *from)
{
	const struct endpoint_hints *copy;
	struct hint_cache cache = {0};
	size_t size = 0;

	for (size_t i = 0; i < from->n; i++) {
		const char *hints = from->v[i].hints;

		if (!hints || find_hints(&cache, hints, &copy))
			continue;
		remember_hints(&cache, hints, NULL);
		size += slice_hints_size(hints);
	}
	return size > 0 ? size + from->n * sizeof(void *) : 0;
}

static void copy_hints(struct arena *arena, const struct candidates *from, struct endpoints *list)
{
	struct hint_cache cache = {0};

	list->hints = arena_array(arena, from->n, sizeof(*list->hints));
	for (size_t i = 0; i < from->n; i++) {
		const char *hints = from->v[i].hints;

		if (!hints || find_hints(&cache, hints, &list->hints[i]))
			continue;
		list->hints[i] = slice_hints_open(hints, arena);
		remember_hints(&cache, hints, list->hints[i]);
	}
}

static struct endpoints *make_list(const struct slice_port *port, const struct candidates *from)
{
	size_t entries = from->n * sizeof(struct endpoint);
	size_t name = strlen(port->name) + 1, hints = hints_size(from);
	struct arena *arena = arena_new(sizeof(struct endpoints) + entries + name + hints);
	struct endpoints *list = arena_alloc(arena, sizeof(*list));

	list->refs = 1;
	list->protocol = port->protocol;
	list->n = (uint32_t)from->n;
	list->v = arena_array(arena, from->n, sizeof(*list->v));
	list->port_name = arena_strdup(arena, port->name);
	for (size_t i = 0; i < from->n; i++)
		list->v[i] = from->v[i].endpoint;
	if (hints > 0)
		copy_hints(arena, from, list);
	return list;
}

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
	int order = compare_ports(x->port.name, x->port.protocol, y->port.name, y->port.protocol);

	return order ? order : x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int compare_slices(const void *a, const void *b)
{
	const struct slice *const *x = a, *const *y = b;

	return strcmp(slice_key(*x), slice_key(*y));
}

/* The chain as an array, by key; for the caller to free. */
static const struct slice **sort_slices(const struct slice *slices, size_t *ret_n,
					size_t *ret_n_ports)
{
	const struct slice **sorted = NULL;
	size_t n = 0, capacity = 0;

	*ret_n_ports = 0;
	for (; slices; slices = slices->next) {
		array_grow(&sorted, &capacity, n, sizeof(*sorted));
		sorted[n++] = slices;
		*ret_n_ports += slices->n_ports;
	}
	if (n > 0)
		qsort(sorted, n, sizeof(*sorted), compare_slices);
	*ret_n = n;
	return sorted;
}

/* Returns how many. */
static size_t read_ports(const struct slice *slice, size_t rank, struct port_entry *entries)
{
	const char *at = slice_read(slice);

	for (size_t i = 0; i < slice->n_ports; i++)
		entries[i] = (struct port_entry){
			.slice = slice, .port = slice_next_port(&at), .rank = rank + i};
	for (size_t i = 0; i < slice->n_ports; i++)
		entries[i].endpoints = at;
	return slice->n_ports;
}

/* All ports of all slices, those of one name and protocol together; for the caller to free. */
static struct port_entry *sort_ports(const struct slice *slices, size_t *ret_n)
{
	size_t n_slices, n_ports, n = 0;
	cleanup_free const struct slice **sorted = sort_slices(slices, &n_slices, &n_ports);
	struct port_entry *entries = xcalloc(n_ports, sizeof(*entries));

	for (size_t i = 0; i < n_slices; i++)
		n += read_ports(sorted[i], n, entries + n);
	qsort(entries, n, sizeof(*entries), compare_entries);
	*ret_n = n;
	return entries;
}

/* Entries of one name and protocol as a list; NULL when they have no endpoint. */
static struct endpoints *merge_port(const struct port_entry *entries, size_t n)
{
	struct candidates candidates = {0};
	struct endpoints *list = NULL;

	for (size_t i = 0; i < n; i++)
		add_candidates(&candidates, &entries[i]);
	resolve(&candidates);
	if (candidates.n > 0)
		list = make_list(&entries[0].port, &candidates);
	free(candidates.v);
	return list;
}

struct endpoints **endpoints_merge(const struct slice *slices, size_t *ret_n)
{
	size_t n_entries, n = 0, end;
	cleanup_free struct port_entry *entries = sort_ports(slices, &n_entries);
	struct endpoints **lists = xcalloc(n_entries, sizeof(*lists));

	for (size_t i = 0; i < n_entries; i = end) {
		end = i + 1;
		while (end < n_entries && same_port(&entries[end].port, &entries[i].port))
			end++;
		lists[n] = merge_port(entries + i, end - i);
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
