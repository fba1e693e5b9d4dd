/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which endpoint has which slot. Slots are dense from 0, and an endpoint has as many as its weight.
 *
 * A plan's lists say who is in a group, in an order that a new endpoint in the middle would shift
 * for all behind it. Here they are put in the order of slots, beside the plan, which is not ours: who had a slot
 * keeps it, who is new takes the place of who left, and only when a group shrinks does an endpoint move, from behind
 * the new end into a gap.
 */

#include "plan/plan.h"

/* A service port, and the endpoint in each slot as an index in plan->endpoints->v. */
struct slotted_port {
	const struct port_plan *plan;
	struct index_list cluster, local;
};

/* A plan and its slots, which are good as long as the plan is. */
struct slotted_plan {
	struct service_plan *plan;  /* NULL: none */
	struct slotted_port *slots; /* of each port; NULL: all lists are in the order of slots */
};

/* applied: what the endpoints had before; its plan may be NULL. */
struct slotted_port *slots_arrange(const struct service_plan *plan,
				   const struct slotted_plan *applied);
struct slotted_port *slots_free(struct slotted_port *slots); /* accepts NULL, returns NULL */
struct slotted_port slots_port(const struct slotted_plan *plan, size_t port);

/* The port of that name and protocol, or NULL. The plan may be NULL. */
const struct port_plan *slots_find_port(const struct service_plan *plan,
					const struct port_plan *like);
