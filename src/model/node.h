/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* This machine's Node as far as a proxy cares: plain data, immutable, shared by reference. */

#include "base/addr.h"
#include "base/arena.h"

struct node {
	unsigned int refs;
	struct arena *arena;
	const char *name;
	const char *zone;       /* label topology.kubernetes.io/zone; "" when absent */
	struct addr *addresses; /* all InternalIP in order, then all ExternalIP */
	size_t n_addresses;
	struct prefix *pod_cidrs;
	size_t n_pod_cidrs;
	bool being_deleted;    /* deletionTimestamp is set */
	bool autoscaler_taint; /* ToBeDeletedByClusterAutoscaler */
};

struct node *node_new(const char *name);
struct node *node_ref(struct node *object);
struct node *node_unref(struct node *object); /* accepts NULL, returns NULL */
bool node_equal(const struct node *a, const struct node *b);
/* The first address is primary, beside it counts the first of the other family. */
const struct addr *node_primary_address(const struct node *node, enum family family); /* or NULL */

#define NODE_IPS_TEXT_MAX (FAMILY_COUNT * ADDR_TEXT_MAX)
/* What kube-proxy calls the Node's IPs: the primary address and the first of the other family, in
 * this order, "192.0.2.5,2001:db8::5". "": there is none, or no Node. */
void node_print_ips(const struct node *node, char ret[NODE_IPS_TEXT_MAX]);
