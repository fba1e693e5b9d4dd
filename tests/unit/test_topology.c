/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan/topology.h"

#define MAX_ENDPOINTS 8

/* An endpoint in short. state: r(eady), s(erving), t(erminating), l(ocal). Hints: words, or NULL.
 */
struct short_endpoint {
	const char *addr;
	const char *state;
	const char *zones;
	const char *nodes;
};

/* Which lists a service port asks for; see the derived booleans of a Service. */
static const struct topology_input cluster_only = {.uses_cluster = true};
static const struct topology_input local_only = {.uses_local = true};
static const struct topology_input both = {.uses_cluster = true, .uses_local = true};

static uint8_t parse_state(const char *state)
{
	return (strchr(state, 'r') ? ENDPOINT_READY : 0) |
	       (strchr(state, 's') ? ENDPOINT_SERVING : 0) |
	       (strchr(state, 't') ? ENDPOINT_TERMINATING : 0) |
	       (strchr(state, 'l') ? ENDPOINT_LOCAL : 0);
}

static const char **split(struct arena *arena, const char *words, size_t *ret_n)
{
	const char **v = arena_array(arena, MAX_ENDPOINTS, sizeof(*v));
	char *copy = words ? arena_strdup(arena, words) : NULL;
	char *save = NULL;

	for (char *word = copy ? strtok_r(copy, " ", &save) : NULL; word;
	     word = strtok_r(NULL, " ", &save))
		v[(*ret_n)++] = word;
	return v;
}

static struct endpoints make_endpoints(struct arena *arena, const struct short_endpoint *v,
				       size_t n)
{
	struct endpoints list = {.port_name = "", .n = (uint32_t)n};

	list.v = arena_array(arena, n, sizeof(*list.v));
	list.hints = arena_array(arena, n, sizeof(*list.hints));
	for (size_t i = 0; i < n; i++) {
		struct endpoint_hints *hints = arena_alloc(arena, sizeof(*hints));
		struct endpoint *endpoint = &list.v[i];

		assert_int_equal(addr_parse(v[i].addr, &endpoint->addr), 0);
		endpoint->port = 80;
		endpoint->flags = parse_state(v[i].state);
		hints->zones = split(arena, v[i].zones, &hints->n_zones);
		hints->nodes = split(arena, v[i].nodes, &hints->n_nodes);
		list.hints[i] = v[i].zones || v[i].nodes ? hints : NULL;
	}
	return list;
}

static void assert_list(const struct endpoints *endpoints, const struct index_list *list,
			const char *expected)
{
	char text[MAX_ENDPOINTS * ADDR_TEXT_MAX] = "", one[ADDR_TEXT_MAX];
	size_t used = 0;

	for (size_t i = 0; i < list->n; i++) {
		addr_print(&endpoints->v[list->v[i]].addr, one);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
					 one);
	}
	assert_string_equal(text, expected);
}

struct expected {
	const char *cluster, *local, *reachable;
	bool has;
	enum topology_mode mode;
};

static void check(struct topology_input input, const char *node, const char *zone,
		  const struct short_endpoint *v, size_t n, struct expected expected)
{
	cleanup_arena struct arena *arena = arena_new(4096);
	struct endpoints endpoints = make_endpoints(arena, v, n);
	struct topology_result result;

	input.node_name = node;
	input.zone = zone;
	topology_categorize(&input, &endpoints, arena, &result);
	assert_list(&endpoints, &result.cluster, expected.cluster);
	assert_list(&endpoints, &result.local, expected.local);
	assert_list(&endpoints, &result.reachable, expected.reachable);
	assert_int_equal(result.has_endpoints, expected.has);
	assert_int_equal(result.mode, expected.mode);
}

#define CHECK(input, node, zone, v, ...) \
	check(input, node, zone, v, ARRAY_SIZE(v), (struct expected){__VA_ARGS__})

static const struct short_endpoint three_zones[] = {
	{"10.1.2.3", "r", "zone-a", NULL},
	{"10.1.2.4", "r", "zone-b", NULL},
	{"10.1.2.5", "r", "zone-c", NULL},
	{"10.1.2.6", "r", "zone-a", NULL},
};

static void topology_same_zone_all_hinted(void **state attr_unused)
{
	CHECK(cluster_only, "node-1", "zone-a", three_zones, "10.1.2.3 10.1.2.6", "",
	      "10.1.2.3 10.1.2.6", true, TOPOLOGY_SAME_ZONE);
}

static void topology_same_zone_several_zones_per_endpoint(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.1.2.3", "r", "zone-a zone-b zone-c", NULL},
		{"10.1.2.4", "r", "zone-b zone-c", NULL},
		{"10.1.2.5", "r", "zone-b zone-d", NULL},
		{"10.1.2.6", "r", "zone-c", NULL},
	};

	CHECK(cluster_only, "node-1", "zone-c", v, "10.1.2.3 10.1.2.4 10.1.2.6", "",
	      "10.1.2.3 10.1.2.4 10.1.2.6", true, TOPOLOGY_SAME_ZONE);
}

/* ETP Local with a node port, and ITP Local with one, ask for the same two lists. */
static void topology_external_or_internal_local_ignores_hints(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.1.2.3", "rl", "zone-a", NULL},
		{"10.1.2.4", "rl", "zone-b", NULL},
		{"10.1.2.5", "r", "zone-c", NULL},
		{"10.1.2.6", "r", "zone-a", NULL},
	};

	CHECK(both, "node-1", "zone-a", v, "10.1.2.3 10.1.2.6", "10.1.2.3 10.1.2.4",
	      "10.1.2.3 10.1.2.4 10.1.2.6", true, TOPOLOGY_SAME_ZONE);
}

static void topology_conflicting_hints_reach_the_union(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "rl", "zone-a", NULL},
		{"10.0.0.1", "rl", "zone-b", NULL},
		{"10.0.0.2", "r", "zone-a", NULL},
		{"10.0.0.3", "r", "zone-b", NULL},
	};

	CHECK(both, "node-1", "zone-a", v, "10.0.0.0 10.0.0.2", "10.0.0.0 10.0.0.1",
	      "10.0.0.0 10.0.0.1 10.0.0.2", true, TOPOLOGY_SAME_ZONE);
}

/* The union follows the order of the list, whichever part an endpoint comes from. */
static void topology_union_is_in_list_order(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.1", "rl", "zone-b", NULL},
		{"10.0.0.2", "r", "zone-a", NULL},
		{"10.0.0.3", "rl", "zone-b", NULL},
		{"10.0.0.4", "r", "zone-a", NULL},
	};

	CHECK(both, "node-1", "zone-a", v, "10.0.0.2 10.0.0.4", "10.0.0.1 10.0.0.3",
	      "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4", true, TOPOLOGY_SAME_ZONE);
}

static const struct short_endpoint one_hinted[] = {{"10.1.2.3", "r", "zone-a", NULL}};

/* A Node without labels and one with an empty zone label look the same: no zone. */
static void topology_no_labels_or_empty_zone_label(void **state attr_unused)
{
	CHECK(cluster_only, "node-1", "", one_hinted, "10.1.2.3", "", "10.1.2.3", true,
	      TOPOLOGY_NONE);
}

static void topology_zone_not_named(void **state attr_unused)
{
	CHECK(cluster_only, "node-1", "zone-b", one_hinted, "10.1.2.3", "", "10.1.2.3", true,
	      TOPOLOGY_NONE);
}

static void topology_unready_endpoint_left_out(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.1.2.3", "r", "zone-a", NULL},
		{"10.1.2.4", "r", "zone-b", NULL},
		{"10.1.2.5", "r", "zone-c", NULL},
		{"10.1.2.6", "", "zone-a", NULL},
	};

	CHECK(cluster_only, "node-1", "zone-a", v, "10.1.2.3", "", "10.1.2.3", true,
	      TOPOLOGY_SAME_ZONE);
}

static void topology_only_unready_in_zone_no_filtering(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.1.2.3", "", "zone-a", NULL},
		{"10.1.2.4", "r", "zone-b", NULL},
		{"10.1.2.5", "r", "zone-c", NULL},
		{"10.1.2.6", "", "zone-a", NULL},
	};

	CHECK(cluster_only, "node-1", "zone-a", v, "10.1.2.4 10.1.2.5", "", "10.1.2.4 10.1.2.5",
	      true, TOPOLOGY_NONE);
}

static void topology_one_ready_without_hint_no_filtering(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.1.2.3", "r", "zone-a", NULL},
		{"10.1.2.4", "r", "zone-b", NULL},
		{"10.1.2.5", "r", NULL, NULL},
		{"10.1.2.6", "r", "zone-a", NULL},
	};

	CHECK(cluster_only, "node-1", "zone-a", v, "10.1.2.3 10.1.2.4 10.1.2.5 10.1.2.6", "",
	      "10.1.2.3 10.1.2.4 10.1.2.5 10.1.2.6", true, TOPOLOGY_NONE);
}

/* Only ready endpoints are asked for hints. */
static void topology_unready_without_hint_does_not_matter(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.1.2.3", "r", "zone-a", NULL},
		{"10.1.2.4", "r", "zone-b", NULL},
		{"10.1.2.5", "st", NULL, NULL},
	};

	CHECK(cluster_only, "node-1", "zone-a", v, "10.1.2.3", "", "10.1.2.3", true,
	      TOPOLOGY_SAME_ZONE);
}

static const struct short_endpoint node_hinted[] = {
	{"10.1.2.3", "r", "zone-a", "node-1"},
	{"10.1.2.4", "r", "zone-b", "node-2"},
	{"10.1.2.5", "r", "zone-c", "node-3"},
	{"10.1.2.6", "r", "zone-a", "node-4"},
};

static void topology_same_node_all_hinted(void **state attr_unused)
{
	CHECK(cluster_only, "node-1", "zone-a", node_hinted, "10.1.2.3", "", "10.1.2.3", true,
	      TOPOLOGY_SAME_NODE);
}

static void topology_same_node_ignored_when_one_is_unhinted(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.1.2.3", "r", "zone-a", "node-1"},
		{"10.1.2.4", "r", NULL, NULL},
		{"10.1.2.5", "r", "zone-c", "node-3"},
		{"10.1.2.6", "r", "zone-a", "node-4"},
	};

	CHECK(cluster_only, "node-1", "zone-a", v, "10.1.2.3 10.1.2.4 10.1.2.5 10.1.2.6", "",
	      "10.1.2.3 10.1.2.4 10.1.2.5 10.1.2.6", true, TOPOLOGY_NONE);
}

static void topology_same_node_falls_back_to_zone(void **state attr_unused)
{
	CHECK(cluster_only, "node-0", "zone-a", node_hinted, "10.1.2.3 10.1.2.6", "",
	      "10.1.2.3 10.1.2.6", true, TOPOLOGY_SAME_ZONE);
}

/* One endpoint lacks the node hint only: zones still work, as if node hints were not known at all.
 */
static void topology_same_node_one_node_hint_missing_means_zone(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.1.2.3", "r", "zone-a", "node-1"},
		{"10.1.2.4", "r", "zone-b", NULL},
		{"10.1.2.6", "r", "zone-a", "node-4"},
	};

	CHECK(cluster_only, "node-1", "zone-a", v, "10.1.2.3 10.1.2.6", "", "10.1.2.3 10.1.2.6",
	      true, TOPOLOGY_SAME_ZONE);
}

static void topology_internal_local_no_endpoints(void **state attr_unused)
{
	check(local_only, "node-1", "", NULL, 0,
	      (struct expected){"", "", "", false, TOPOLOGY_NONE});
}

static void topology_internal_local_only_remote(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "r", NULL, NULL},
		{"10.0.0.1", "r", NULL, NULL},
	};

	CHECK(local_only, "node-1", "", v, "", "", "", true, TOPOLOGY_NONE);
}

static void topology_internal_local_all_local(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "rl", NULL, NULL},
		{"10.0.0.1", "rl", NULL, NULL},
	};

	CHECK(local_only, "node-1", "", v, "", "10.0.0.0 10.0.0.1", "10.0.0.0 10.0.0.1", true,
	      TOPOLOGY_NONE);
}

static const struct short_endpoint some_local[] = {
	{"10.0.0.0", "rl", NULL, NULL},
	{"10.0.0.1", "r", NULL, NULL},
};

static void topology_internal_local_some_local(void **state attr_unused)
{
	CHECK(local_only, "node-1", "", some_local, "", "10.0.0.0", "10.0.0.0", true,
	      TOPOLOGY_NONE);
}

static void topology_cluster_none_ready(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "", NULL, NULL},
		{"10.0.0.1", "", NULL, NULL},
	};

	CHECK(cluster_only, "node-1", "", v, "", "", "", false, TOPOLOGY_NONE);
}

static void topology_cluster_some_ready(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "", NULL, NULL},
		{"10.0.0.1", "r", NULL, NULL},
	};

	CHECK(cluster_only, "node-1", "", v, "10.0.0.1", "", "10.0.0.1", true, TOPOLOGY_NONE);
}

static void topology_cluster_all_terminating(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "stl", NULL, NULL},
		{"10.0.0.1", "st", NULL, NULL},
	};

	CHECK(cluster_only, "node-1", "", v, "10.0.0.0 10.0.0.1", "", "10.0.0.0 10.0.0.1", true,
	      TOPOLOGY_NONE);
}

/* Hints do not narrow the fall-back. */
static void topology_cluster_all_terminating_ignores_hints(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "st", "zone-a", "node-1"},
		{"10.0.0.1", "st", "zone-b", "node-2"},
	};

	CHECK(cluster_only, "node-1", "zone-a", v, "10.0.0.0 10.0.0.1", "", "10.0.0.0 10.0.0.1",
	      true, TOPOLOGY_NONE);
}

/* With a node port: ITP Local/ETP Cluster, ITP Cluster/ETP Local and both Local ask for both lists.
 */
static void topology_mixed_policies_some_local(void **state attr_unused)
{
	CHECK(both, "node-1", "", some_local, "10.0.0.0 10.0.0.1", "10.0.0.0", "10.0.0.0 10.0.0.1",
	      true, TOPOLOGY_NONE);
}

static void topology_both_local_all_remote(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "r", NULL, NULL},
		{"10.0.0.1", "r", NULL, NULL},
	};

	CHECK(both, "node-1", "", v, "10.0.0.0 10.0.0.1", "", "10.0.0.0 10.0.0.1", true,
	      TOPOLOGY_NONE);
}

static void topology_both_local_all_remote_terminating(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "st", NULL, NULL},
		{"10.0.0.1", "st", NULL, NULL},
	};

	CHECK(both, "node-1", "", v, "10.0.0.0 10.0.0.1", "", "10.0.0.0 10.0.0.1", true,
	      TOPOLOGY_NONE);
}

static void topology_external_local_with_terminating(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "r", NULL, NULL},
		{"10.0.0.1", "l", NULL, NULL},
		{"10.0.0.2", "stl", NULL, NULL},
		{"10.0.0.3", "st", NULL, NULL},
	};

	CHECK(both, "node-1", "", v, "10.0.0.0", "10.0.0.2", "10.0.0.0 10.0.0.2", true,
	      TOPOLOGY_NONE);
}

/* ETP Local without an external address asks for the cluster list alone. */
static void topology_external_local_without_external_address(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "r", NULL, NULL},
		{"10.0.0.1", "rl", NULL, NULL},
	};

	CHECK(cluster_only, "node-1", "", v, "10.0.0.0 10.0.0.1", "", "10.0.0.0 10.0.0.1", true,
	      TOPOLOGY_NONE);
}

static void topology_internal_local_internal_only(void **state attr_unused)
{
	static const struct short_endpoint v[] = {
		{"10.0.0.0", "r", NULL, NULL},
		{"10.0.0.1", "rl", NULL, NULL},
	};

	CHECK(local_only, "node-1", "", v, "", "10.0.0.1", "10.0.0.1", true, TOPOLOGY_NONE);
}

static void topology_no_endpoints_everything_empty(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(64);
	struct topology_input input = both;
	struct topology_result result;

	check(cluster_only, "node-1", "", NULL, 0,
	      (struct expected){"", "", "", false, TOPOLOGY_NONE});
	input.node_name = "node-1";
	input.zone = "";
	topology_categorize(&input, NULL, arena, &result);
	assert_int_equal(result.cluster.n + result.local.n + result.reachable.n, 0);
	assert_false(result.has_endpoints);
}

static void topology_neither_ready_serving_nor_terminating(void **state attr_unused)
{
	static const struct short_endpoint v[] = {{"10.0.0.0", "", NULL, NULL}};

	CHECK(cluster_only, "node-1", "zone-a", v, "", "", "", false, TOPOLOGY_NONE);
}

/* Serving but neither ready nor terminating: not used by any policy. */
static void topology_serving_alone_is_not_usable(void **state attr_unused)
{
	static const struct short_endpoint v[] = {{"10.0.0.0", "sl", NULL, NULL}};

	CHECK(both, "node-1", "", v, "", "", "", false, TOPOLOGY_NONE);
}

/* What equals a list that is there already takes no memory of its own. */
static void topology_reachable_shares_memory(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(4096);
	struct endpoints endpoints = make_endpoints(arena, some_local, ARRAY_SIZE(some_local));
	struct topology_input input = both;
	struct topology_result result;

	input.node_name = "node-1";
	input.zone = "";
	topology_categorize(&input, &endpoints, arena, &result);
	assert_ptr_equal(result.reachable.v, result.cluster.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(topology_same_zone_all_hinted),
		cmocka_unit_test(topology_same_zone_several_zones_per_endpoint),
		cmocka_unit_test(topology_external_or_internal_local_ignores_hints),
		cmocka_unit_test(topology_conflicting_hints_reach_the_union),
		cmocka_unit_test(topology_union_is_in_list_order),
		cmocka_unit_test(topology_no_labels_or_empty_zone_label),
		cmocka_unit_test(topology_zone_not_named),
		cmocka_unit_test(topology_unready_endpoint_left_out),
		cmocka_unit_test(topology_only_unready_in_zone_no_filtering),
		cmocka_unit_test(topology_one_ready_without_hint_no_filtering),
		cmocka_unit_test(topology_unready_without_hint_does_not_matter),
		cmocka_unit_test(topology_same_node_all_hinted),
		cmocka_unit_test(topology_same_node_ignored_when_one_is_unhinted),
		cmocka_unit_test(topology_same_node_falls_back_to_zone),
		cmocka_unit_test(topology_same_node_one_node_hint_missing_means_zone),
		cmocka_unit_test(topology_internal_local_no_endpoints),
		cmocka_unit_test(topology_internal_local_only_remote),
		cmocka_unit_test(topology_internal_local_all_local),
		cmocka_unit_test(topology_internal_local_some_local),
		cmocka_unit_test(topology_cluster_none_ready),
		cmocka_unit_test(topology_cluster_some_ready),
		cmocka_unit_test(topology_cluster_all_terminating),
		cmocka_unit_test(topology_cluster_all_terminating_ignores_hints),
		cmocka_unit_test(topology_mixed_policies_some_local),
		cmocka_unit_test(topology_both_local_all_remote),
		cmocka_unit_test(topology_both_local_all_remote_terminating),
		cmocka_unit_test(topology_external_local_with_terminating),
		cmocka_unit_test(topology_external_local_without_external_address),
		cmocka_unit_test(topology_internal_local_internal_only),
		cmocka_unit_test(topology_no_endpoints_everything_empty),
		cmocka_unit_test(topology_neither_ready_serving_nor_terminating),
		cmocka_unit_test(topology_serving_alone_is_not_usable),
		cmocka_unit_test(topology_reachable_shares_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
