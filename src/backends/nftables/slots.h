/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which endpoint has which slot. Slots are dense from 0, and an endpoint has as many as its weight.
 *
 * A plan's lists say who is in a group, in an order that a new endpoint in the middle would shift
 * for all behind it. Here they are put in the order of slots: who had a slot keeps it, who is new
 * takes the place of who left, and only when a group shrinks does an endpoint move, from behind the
 * new end into a gap.
 */

#include "plan/plan.h"

/* Reorders use.cluster and use.local of each port. applied: arranged before, or NULL. */
void slots_arrange(struct service_plan *plan, const struct service_plan *applied);

/* The port of that name and protocol, or NULL. The plan may be NULL. */
const struct port_plan *slots_find_port(const struct service_plan *plan,
					const struct port_plan *like);
