/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the plan of a service port to elements: pure functions.
 *
 * All elements keyed by a destination belong to one service port, its owner (claims.h). What
 * is keyed by an affinity id belongs to the service port itself, and what is in cluster-ips and
 * hairpin-connections may be there for several at once.
 */

#include "backends/nftables/element.h"
#include "backends/nftables/slots.h"
#include "plan/destination.h"

struct affinity_ids;

/* All of a service port, each once: the cluster IP first. An array for the caller to free. */
struct destination *elements_destinations(const struct port_plan *port, size_t *ret_n);

bool elements_have_affinity(const struct port_plan *port);
/* Does it lead to endpoints of this node only, by some of its destinations, so that they have a memory of their own? */
bool elements_have_local_affinity(const struct port_plan *port);

/*
 * In the order of elements. The id is that of the service port (affinity_ids.h) and counts only where there is
 * affinity. Comments are borrowed from the plan. Without `slots` those of the four slot maps are left out.
 */
void elements_of_destination(const struct slotted_port *port, const struct destination *destination,
			     uint32_t id, bool slots, element_fn *fn, void *arg);
/* What settings alone make of it, behind the others in the order of elements: a NodePort is refused on localhost. */
void elements_of_localhost(const struct settings *settings, const struct destination *destination,
			   element_fn *fn, void *arg);
void elements_of_port(const struct port_plan *port, struct affinity_ids *ids, element_fn *fn,
		      void *arg);
/* Above all ids that were given: affinity_ids.h. */
void elements_of_mark(enum family family, uint32_t mark, element_fn *fn, void *arg);
/* The same element may come more than once. */
void elements_shared(const struct port_plan *port, element_fn *fn, void *arg);
