/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/topology.h"

/*
 * Two questions are answered apart: where may cluster-wide traffic go, and where traffic that must
 * stay on this node. Each prefers ready endpoints and falls back, by itself, to those that are
 * terminating but still serve; hints narrow only the first, and only among ready endpoints.
 *
 * The mode is chosen so that the filter never leaves nothing: same-node and same-zone both need a
 * ready endpoint that passes. So an empty cluster list before the fall-back means that nothing at
 * all is ready.
 */

static bool is_ready(const struct endpoint *endpoint)
{
	return endpoint->flags & ENDPOINT_READY;
}

/* Not ready any more, but good enough when nothing better is left. */
static bool is_last_resort(const struct endpoint *endpoint)
{
	uint8_t both = ENDPOINT_SERVING | ENDPOINT_TERMINATING;

	return (endpoint->flags & both) == both;
}

static bool is_local(const struct endpoint *endpoint)
{
	return endpoint->flags & ENDPOINT_LOCAL;
}

static bool hinted_for_node(const struct endpoint_hints *hints, const char *node)
{
	return hints && util_find_word(node, hints->nodes, hints->n_nodes) >= 0;
}

static bool hinted_for_zone(const struct endpoint_hints *hints, const char *zone)
{
	return hints && util_find_word(zone, hints->zones, hints->n_zones) >= 0;
}

/* What the hints of the ready endpoints allow; without a ready endpoint both "some" stay false. */
static enum topology_mode mode_from_hints(const struct topology_input *input,
					  const struct endpoints *endpoints)
{
	bool all_nodes = true, all_zones = true, some_node = false, some_zone = false;

	for (size_t i = 0; i < endpoints->n; i++) {
		const struct endpoint_hints *hints = endpoints_hints(endpoints, i);

		if (!is_ready(&endpoints->v[i]))
			continue;
		all_nodes = all_nodes && hints && hints->n_nodes > 0;
		all_zones = all_zones && hints && hints->n_zones > 0;
		some_node = some_node || hinted_for_node(hints, input->node_name);
		some_zone = some_zone || hinted_for_zone(hints, input->zone);
	}
	if (all_nodes && some_node)
		return TOPOLOGY_SAME_NODE;
	if (all_zones && some_zone)
		return TOPOLOGY_SAME_ZONE;
	return TOPOLOGY_NONE;
}

static bool passes(const struct topology_input *input, enum topology_mode mode,
		   const struct endpoint_hints *hints)
{
	switch (mode) {
	case TOPOLOGY_SAME_NODE:
		return hinted_for_node(hints, input->node_name);
	case TOPOLOGY_SAME_ZONE:
		return hinted_for_zone(hints, input->zone);
	default:
		return true;
	}
}

/* The lists to choose from. */
enum choice {
	CHOICE_READY_IN_MODE = 0,
	CHOICE_LAST_RESORT,
	CHOICE_LOCAL_READY,
	CHOICE_LOCAL_LAST_RESORT,
	CHOICE_COUNT,
};

static bool chosen(const struct topology_input *input, enum topology_mode mode, enum choice choice,
		   const struct endpoints *endpoints, size_t i)
{
	const struct endpoint *endpoint = &endpoints->v[i];

	switch (choice) {
	case CHOICE_READY_IN_MODE:
		return is_ready(endpoint) && passes(input, mode, endpoints_hints(endpoints, i));
	case CHOICE_LAST_RESORT:
		return is_last_resort(endpoint);
	case CHOICE_LOCAL_READY:
		return is_local(endpoint) && is_ready(endpoint);
	case CHOICE_LOCAL_LAST_RESORT:
		return is_local(endpoint) && is_last_resort(endpoint);
	default:
		return false;
	}
}

/* Counts before it allocates: plans live as long as the daemon. */
static struct index_list choose(const struct topology_input *input, enum topology_mode mode,
				enum choice choice, const struct endpoints *endpoints,
				struct arena *arena)
{
	struct index_list list = {0};
	size_t n = 0;

	for (size_t i = 0; i < endpoints->n; i++)
		n += chosen(input, mode, choice, endpoints, i);
	if (n == 0)
		return list;
	list.v = arena_array(arena, n, sizeof(*list.v));
	for (size_t i = 0; i < endpoints->n; i++)
		if (chosen(input, mode, choice, endpoints, i))
			list.v[list.n++] = (uint32_t)i;
	return list;
}

/* Walks both sorted lists once; `out` has room for all, or is NULL to count only. */
static size_t merge(const struct index_list *a, const struct index_list *b, uint32_t *out)
{
	size_t i = 0, j = 0, n = 0;

	while (i < a->n || j < b->n) {
		bool from_a = i < a->n && (j == b->n || a->v[i] <= b->v[j]);
		uint32_t index = from_a ? a->v[i] : b->v[j];

		if (out)
			out[n] = index;
		n++;
		i += i < a->n && a->v[i] == index;
		j += j < b->n && b->v[j] == index;
	}
	return n;
}

/* A union that equals one of its parts shares that part's memory. */
static struct index_list unite(const struct index_list *a, const struct index_list *b,
			       struct arena *arena)
{
	struct index_list list = {.n = merge(a, b, NULL)};

	if (list.n == a->n)
		return *a;
	if (list.n == b->n)
		return *b;
	list.v = arena_array(arena, list.n, sizeof(*list.v));
	merge(a, b, list.v);
	return list;
}

static bool any_usable(const struct endpoints *endpoints)
{
	for (size_t i = 0; i < endpoints->n; i++)
		if (is_ready(&endpoints->v[i]) || is_last_resort(&endpoints->v[i]))
			return true;
	return false;
}

static void choose_cluster(const struct topology_input *input, const struct endpoints *endpoints,
			   struct arena *arena, struct topology_result *ret)
{
	ret->mode = mode_from_hints(input, endpoints);
	ret->cluster = choose(input, ret->mode, CHOICE_READY_IN_MODE, endpoints, arena);
	if (ret->cluster.n == 0)
		ret->cluster = choose(input, ret->mode, CHOICE_LAST_RESORT, endpoints, arena);
}

static void choose_local(const struct topology_input *input, const struct endpoints *endpoints,
			 struct arena *arena, struct topology_result *ret)
{
	ret->local = choose(input, ret->mode, CHOICE_LOCAL_READY, endpoints, arena);
	if (ret->local.n == 0)
		ret->local = choose(input, ret->mode, CHOICE_LOCAL_LAST_RESORT, endpoints, arena);
}

void topology_categorize(const struct topology_input *input, const struct endpoints *endpoints,
			 struct arena *arena, struct topology_result *ret)
{
	*ret = (struct topology_result){0};
	if (!endpoints || endpoints->n == 0)
		return;
	if (input->uses_cluster)
		choose_cluster(input, endpoints, arena, ret);
	if (input->uses_local)
		choose_local(input, endpoints, arena, ret);
	ret->reachable = unite(&ret->cluster, &ret->local, arena);
	ret->has_endpoints = ret->cluster.n > 0 || (input->uses_local && any_usable(endpoints));
}

/* In rising order, as endpoints->v is walked. */
bool index_list_has(const struct index_list *list, size_t index)
{
	size_t low = 0;
	size_t high = list->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (list->v[middle] == index)
			return true;
		if (list->v[middle] < index)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}
