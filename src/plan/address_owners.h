/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who asks for which destination, and whose it is.
 *
 * Two Services may ask for the same address and port; only one can have it. A cluster IP goes before any external
 * IP, load balancer's IP and node port, because the API server gives it out and a tenant writes the others as
 * they like. Among equals the older Service goes first, then the one whose namespace and name come first.
 * The others wait, and have the destination when all before them are gone.
 *
 * One entry of 16 bytes for each, found by a digest of the destination: a cluster has ten thousands of them, and nearly
 * all are asked for once. Services are borrowed, so a plan is removed before its Service goes; each of a cluster's
 * Services is there as one object.
 */

#include "plan/destination.h"

struct address_owners {
	uint64_t key[2]; /* of digests */
	struct address_entry *v;
	size_t size;                /* of the table: a power of two, or 0 */
	size_t count;               /* destinations */
	struct address_move *moves; /* since address_owners_settle() */
	size_t n_moves, moves_capacity;
};

void address_owners_done(struct address_owners *owners); /* may be used again */
/* All that a Service asks for. */
void address_owners_add(struct address_owners *owners, const struct service_plan *plan);
void address_owners_remove(struct address_owners *owners, const struct service_plan *plan);

/* The Service whose it is; NULL: no Service asks for it. */
const struct service *address_owners_of(const struct address_owners *owners,
					const struct destination *destination, bool *ret_external);
/* Each that asks for it, the owner among them, in any order. One that names it twice comes twice. */
typedef void address_owners_fn(void *arg, const struct service *service, bool external,
			       bool balancer);
void address_owners_each(const struct address_owners *owners, const struct destination *destination,
			 address_owners_fn *fn, void *arg);

/*
 * Each destination that others may have got or lost by what came and went since address_owners_settle(): another Service
 * owns it now, or the same by another kind of address. So a caller that looks at the Services that came, and at all who ask
 * for these, has looked at all for whom anything is different. In the order in which they moved, each once.
 */
void address_owners_each_moved(struct address_owners *owners, destination_fn *fn, void *arg);
void address_owners_settle(struct address_owners *owners);

/* Who goes first? Negative: a. external: it asks by another address than its cluster IP. */
int address_owners_compare(const struct service *a, bool a_external, const struct service *b,
			   bool b_external);
