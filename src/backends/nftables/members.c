/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/members.h"

static const struct index_list *list_of(const struct port_plan *port, enum container container)
{
	return container == CONTAINER_AFFINITY ? &port->use.cluster : &port->use.local;
}

bool members_have(const struct port_plan *port, enum container container, const struct addr *addr,
		  uint16_t number)
{
	const struct index_list *list = list_of(port, container);

	for (size_t i = 0; i < list->n; i++) {
		const struct endpoint *endpoint = &port->endpoints->v[list->v[i]];

		if (endpoint->port == number && addr_equal(&endpoint->addr, addr))
			return true;
	}
	return false;
}

static bool list_lost(const struct port_plan *before, const struct port_plan *now,
		      enum container container)
{
	const struct index_list *list = list_of(before, container);

	for (size_t i = 0; i < list->n; i++) {
		const struct endpoint *endpoint = &before->endpoints->v[list->v[i]];

		if (!members_have(now, container, &endpoint->addr, endpoint->port))
			return true;
	}
	return false;
}

bool members_lost(const struct port_plan *before, const struct port_plan *now)
{
	return list_lost(before, now, CONTAINER_AFFINITY) ||
	       list_lost(before, now, CONTAINER_LOCAL_AFFINITY);
}
