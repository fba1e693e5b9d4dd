/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who owns which destination.
 *
 * Two Services may ask for the same external IP and port, and a second element with the same key
 * would make the kernel refuse all that is written with it. So each destination has a line of
 * claims, in the order of address_owners_compare(): who is first owns it; the others wait, and the next
 * in line takes over when the owner goes.
 *
 * Plans say the same (plan/withheld.h), but only of what is wanted. A Service that the kernel refused stays with the plan
 * that it had (state.h), and may so keep what the next owner's plan has already; who of the two is first is decided here.
 * One Service may also name a destination with two of its ports.
 *
 * A sync changes the claims of services first, and then goes through the destinations touched:
 * `owner` is what the kernel has, the first claim is what it is to have. claims_settle() makes the
 * one the other, once the kernel has agreed.
 */

#include "backends/nftables/elements.h"
#include "base/map.h"

/* A Service that has, had, or asks for elements. Each plan is a reference; slots may be those of both. */
struct served {
	struct slotted_plan applied; /* what the kernel has */
	struct slotted_plan next;    /* what it is to have; the same when nothing changes */
	struct service_plan
		*wanted; /* what was asked for: not `next` after the kernel refused it */
	struct served *next_dirty;
	char key[];
};

struct claim {
	struct claim *behind;
	struct served *service;
	size_t port; /* index in service->next.plan, or for an owner in service->applied.plan */
	struct destination destination;
};

struct claimed_destination {
	struct claim *first;
	struct claim owner; /* service NULL: none */
	struct claimed_destination *next_touched;
	bool touched;
	char text[]; /* of the destination: the key */
};

struct claims {
	struct map destinations;
	struct claimed_destination *touched;
};

void claims_done(struct claims *claims);
/* All claims of a service that its plan makes, or has made; touches each. */
void claims_add(struct claims *claims, struct served *service, const struct service_plan *plan);
void claims_remove(struct claims *claims, struct served *service, const struct service_plan *plan);
void claims_settle(struct claims *claims);
