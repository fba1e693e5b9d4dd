/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which endpoints of a service port take traffic on this node: readiness, hints, traffic policies and
 * the fall-back to terminating endpoints. A pure function.
 */

#include "model/endpoints.h"

enum topology_mode {
	TOPOLOGY_NONE = 0,
	TOPOLOGY_SAME_NODE,
	TOPOLOGY_SAME_ZONE,
	TOPOLOGY_COUNT,
};

/* Why an endpoint is not used, for those who ask. */
struct topology_input {
	bool uses_cluster; /* cluster-wide endpoints are wanted */
	bool uses_local;   /* endpoints of this node are wanted */
	const char *node_name;
	const char *zone; /* "" when unknown */
};

/* Indexes into endpoints->v, in its order. */
struct index_list {
	uint32_t *v;
	size_t n;
};

struct topology_result {
	struct index_list cluster;   /* for cluster-wide policies */
	struct index_list local;     /* for policy Local */
	struct index_list reachable; /* union of both: all that this node may send to */
	bool has_endpoints;	     /* a usable one somewhere, on this node or not */
	enum topology_mode mode;
};

/* The lists are allocated from `arena`. endpoints may be NULL: none. */
void topology_categorize(const struct topology_input *input, const struct endpoints *endpoints,
			 struct arena *arena, struct topology_result *ret);
