/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which endpoints of a service port take traffic on this node: readiness, hints, traffic policies
 * and the fall-back to terminating endpoints. A pure function.
 */

#include "model/endpoints.h"

/* Which ready endpoints the cluster-wide list keeps; read from their hints alone. */
enum topology_mode {
	TOPOLOGY_NONE = 0,  /* all: a hint is missing, or none names this node or zone */
	TOPOLOGY_SAME_NODE, /* all have node hints: those that name this node */
	TOPOLOGY_SAME_ZONE, /* all have zone hints: those that name this zone */
	TOPOLOGY_COUNT,
};

/* What is known beside the endpoints themselves. */
struct topology_input {
	bool uses_cluster; /* cluster-wide endpoints are wanted */
	bool uses_local;   /* endpoints of this node are wanted */
	const char *node_name;
	const char *zone; /* "" when unknown */
};

/* Indexes into endpoints->v, in its order. Two lists of one result may share their memory. */
struct index_list {
	uint32_t *v;
	size_t n;
};

bool index_list_has(const struct index_list *list, size_t index);

struct topology_result {
	struct index_list cluster;   /* for cluster-wide policies */
	struct index_list local;     /* for policy Local */
	struct index_list reachable; /* union of both: all that this node may send to */
	bool has_endpoints;          /* a usable one somewhere, on this node or not */
	enum topology_mode mode;
};

/* The lists are allocated from `arena`. endpoints may be NULL: none. */
void topology_categorize(const struct topology_input *input, const struct endpoints *endpoints,
			 struct arena *arena, struct topology_result *ret);
