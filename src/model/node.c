/* SPDX-License-Identifier: Apache-2.0 */
#include "model/node.h"

#include <assert.h>

struct node *node_new(const char *name)
{
	struct arena *arena = arena_new(512); /* there is one Node: no need to be stingy */
	struct node *node = arena_alloc(arena, sizeof(*node));

	node->refs = 1;
	node->arena = arena;
	node->name = arena_strdup(arena, name);
	node->zone = "";
	return node;
}

static void destroy(struct node *node)
{
	arena_free(node->arena);
}

DEFINE_REFS(node, destroy)

static bool lists_equal(const struct node *a, const struct node *b)
{
	if (a->n_addresses != b->n_addresses || a->n_pod_cidrs != b->n_pod_cidrs)
		return false;
	for (size_t i = 0; i < a->n_addresses; i++)
		if (!addr_equal(&a->addresses[i], &b->addresses[i]))
			return false;
	for (size_t i = 0; i < a->n_pod_cidrs; i++)
		if (!prefix_equal(&a->pod_cidrs[i], &b->pod_cidrs[i]))
			return false;
	return true;
}

bool node_equal(const struct node *a, const struct node *b)
{
	return streq(a->name, b->name) && streq(a->zone, b->zone) && lists_equal(a, b) &&
	       a->being_deleted == b->being_deleted && a->autoscaler_taint == b->autoscaler_taint;
}

/* The first address of a family is the primary one, or the first of the other family beside it. */
const struct addr *node_primary_address(const struct node *node, enum family family)
{
	for (size_t i = 0; i < node->n_addresses; i++)
		if (node->addresses[i].family == family)
			return &node->addresses[i];
	return NULL;
}

void node_print_ips(const struct node *node, char ret[NODE_IPS_TEXT_MAX])
{
	const struct addr *primary = node && node->n_addresses ? &node->addresses[0] : NULL;
	const struct addr *other;
	size_t n;

	*ret = '\0';
	if (!primary)
		return;
	n = addr_print(primary, ret);
	other = node_primary_address(node,
				     primary->family == FAMILY_IPV4 ? FAMILY_IPV6 : FAMILY_IPV4);
	if (!other)
		return;
	ret[n] = ',';
	addr_print(other, ret + n + 1);
}
