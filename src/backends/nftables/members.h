/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Endpoints of a service port that clients with affinity may keep: all, or those of this node. */

#include "backends/nftables/container.h"
#include "plan/plan.h"

/* container: CONTAINER_AFFINITY or CONTAINER_LOCAL_AFFINITY. */
bool members_have(const struct port_plan *port, enum container container, const struct addr *addr,
		  uint16_t number);
/* Is there one that the port had and has no longer? */
bool members_lost(const struct port_plan *before, const struct port_plan *now);
