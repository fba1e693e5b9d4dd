/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/node_ports.h"

#include <stdlib.h>

/* The array always has a place to spare for the zero CIDR. */
void node_ports_init(struct node_ports *node_ports, enum family family, const struct prefix *cidrs,
		     size_t n_cidrs)
{
	*node_ports = (struct node_ports){.cidrs = xcalloc(n_cidrs + 1, sizeof(*cidrs))};
	for (size_t i = 0; i < n_cidrs; i++) {
		if (cidrs[i].addr.family != family)
			continue;
		node_ports->names_loopback |= addr_is_loopback(&cidrs[i].addr);
		if (node_ports->match_all)
			continue;
		node_ports->match_all = cidrs[i].length == 0;
		node_ports->cidrs[node_ports->n_cidrs++] = cidrs[i];
	}
	if (node_ports->match_all || node_ports->n_cidrs == 0) {
		node_ports->match_all = true;
		node_ports->cidrs[0] = (struct prefix){.addr.family = family};
		node_ports->n_cidrs = 1;
	}
}

void node_ports_done(struct node_ports *node_ports)
{
	free(node_ports->cidrs);
	*node_ports = (struct node_ports){0};
}

/* Do the prefix and the family's loopback block have an address in common? */
static bool touches_loopback(const struct prefix *cidr)
{
	struct addr loopback = {.family = cidr->addr.family};

	if (loopback.family == FAMILY_IPV4)
		loopback.bytes[0] = 127;
	else
		loopback.bytes[15] = 1;
	return addr_is_loopback(&cidr->addr) || prefix_contains(cidr, &loopback);
}

bool node_ports_contain_loopback(const struct node_ports *node_ports, enum family family)
{
	for (size_t i = 0; i < node_ports->n_cidrs; i++) {
		const struct prefix *cidr = &node_ports->cidrs[i];

		if (cidr->addr.family == family && touches_loopback(cidr))
			return true;
	}
	return false;
}

static bool matches(const struct node_ports *node_ports, const struct addr *addr)
{
	for (size_t i = 0; i < node_ports->n_cidrs; i++)
		if (prefix_contains(&node_ports->cidrs[i], addr))
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	return addr_compare(a, b);
}

struct addr *node_ports_select(const struct node_ports *node_ports, const struct addr *addresses,
			       size_t n_addresses, size_t *ret_n)
{
	struct addr *found = xcalloc(MAX(n_addresses, 1), sizeof(*found));
	size_t n = 0, distinct = 0;

	for (size_t i = 0; i < n_addresses; i++)
		if (matches(node_ports, &addresses[i]))
			found[n++] = addresses[i];
	qsort(found, n, sizeof(*found), compare);
	for (size_t i = 0; i < n; i++)
		if (distinct == 0 || !addr_equal(&found[i], &found[distinct - 1]))
			found[distinct++] = found[i];
	*ret_n = distinct;
	return found;
}
