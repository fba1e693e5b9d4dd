/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers of service ports with ClientIP affinity, and of each endpoint that they may remember. Packets write the
 * number of an endpoint into the map of clients of its service port, and what a number means is looked up when the
 * client comes again: so an endpoint that goes takes nothing but its number along, however many
 * clients it had.
 *
 * A number is given once, and never again while the table stands: not to another endpoint, nor after a restart.
 * Else a client that was remembered long ago would be led to an endpoint of another Service. Therefore the table
 * holds a mark above all numbers that were given, which moves in steps of AFFINITY_IDS_STEP. Numbers that a former
 * life left in the kernel are taken up again, and the clients with them.
 */

#include "base/map.h"
#include "plan/plan.h"

#define AFFINITY_IDS_STEP     1024
#define AFFINITY_IDS_NAME_MAX 256

struct affinity_ids {
	struct map ports;     /* by name */
	struct map endpoints; /* "NUMBER ADDRESS:PORT" */
	struct map numbers;   /* both, by number */
	/* of a former life, until all ports have asked for theirs: */
	struct map found_ports, found_endpoints;
	uint32_t next;
	uint32_t mark; /* no number from here on was given */
};

void affinity_ids_init(struct affinity_ids *ids);
void affinity_ids_done(struct affinity_ids *ids);

/*
 * "10.96.0.1 default/web:http/tcp", which is the comment of the port's map too: so much of it as a comment can hold,
 * and that says at least whose it is. A Service that is deleted and made again is another.
 */
void affinity_ids_name(const struct port_plan *port, char out[static AFFINITY_IDS_NAME_MAX]);

/* What the table held when we came: a map with that comment, a member, the mark. */
void affinity_ids_found_port(struct affinity_ids *ids, const char *name, uint32_t number);
void affinity_ids_found_endpoint(struct affinity_ids *ids, uint32_t port, const struct addr *addr,
				 uint16_t number, uint32_t id);
void affinity_ids_found_mark(struct affinity_ids *ids, uint32_t mark);

/* The number; a new one when there is none. */
uint32_t affinity_ids_port(struct affinity_ids *ids, const struct port_plan *port);
uint32_t affinity_ids_endpoint(struct affinity_ids *ids, uint32_t port,
			       const struct endpoint *endpoint);
void affinity_ids_forget_port(struct affinity_ids *ids, const struct port_plan *port);
void affinity_ids_forget_endpoint(struct affinity_ids *ids, uint32_t port,
				  const struct endpoint *endpoint);
/* Does a port that was asked for have this number, and with `local` a memory of its own for endpoints of this node? */
bool affinity_ids_has(const struct affinity_ids *ids, uint32_t number, bool local);
/* What has not been asked for between the two is forgotten. */
void affinity_ids_begin(struct affinity_ids *ids);
void affinity_ids_prune(struct affinity_ids *ids);
/* Moves the mark above all numbers, if need be. */
void affinity_ids_raise_mark(struct affinity_ids *ids);
