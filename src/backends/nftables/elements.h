/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the plan of a service port to elements: pure functions.
 *
 * A destination is what a client writes into a packet: an address, protocol and port, or a node
 * port. All elements keyed by a destination belong to one service port, its owner (claims.h). What
 * is keyed by an affinity id belongs to the service port itself, and what is in cluster-ips and
 * hairpin-connections may be there for several at once.
 */

#include "backends/nftables/element.h"
#include "plan/plan.h"

struct destination {
	bool node_port;  /* the address does not count */
	bool external;   /* any but the cluster IP */
	bool firewalled; /* a load balancer's IP with source ranges */
	enum protocol protocol;
	uint16_t port;
	struct addr addr;
};

#define DESTINATION_TEXT_MAX 64

/* "10.96.0.1:80/tcp", "NodePort 30080/tcp": destinations are equal when their texts are. */
void destination_print(const struct destination *destination,
		       char out[static DESTINATION_TEXT_MAX]);

/* All of a service port, each once: the cluster IP first. An array for the caller to free. */
struct destination *elements_destinations(const struct port_plan *port, size_t *ret_n);

/* The id of a service port that has affinity: any number that no other one has had. */
bool elements_have_affinity(const struct port_plan *port);

/*
 * In the order of elements. id counts only where there is affinity. Comments are borrowed from the
 * plan. Without `slots` those of the four slot maps are left out.
 */
void elements_of_destination(const struct port_plan *port, const struct destination *destination,
			     uint32_t id, bool slots, element_fn *fn, void *arg);
void elements_of_port(const struct port_plan *port, uint32_t id, element_fn *fn, void *arg);
/* The same element may come more than once. */
void elements_shared(const struct port_plan *port, element_fn *fn, void *arg);
