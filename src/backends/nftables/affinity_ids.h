/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers of service ports with ClientIP affinity, by which clients are remembered. A number is
 * given once and never to another port, so that nobody inherits the clients of another. Those that
 * a former life left in the kernel are taken up again, and the clients with them.
 */

#include "base/map.h"
#include "plan/plan.h"

#define AFFINITY_ID_FIRST 0xf0000001u /* nft prints it as f000:1 */

struct affinity_ids {
	struct map by_port; /* "namespace/name:port/tcp" */
	/* of a former life, until all ports have asked for theirs: */
	struct map found; /* by destination */
	struct map taken; /* by number: a port has it again, and no other one gets it */
	uint32_t next;
};

void affinity_ids_init(struct affinity_ids *ids);
void affinity_ids_done(struct affinity_ids *ids);
/* A destination (destination_print()) had this number when we came. */
void affinity_ids_found(struct affinity_ids *ids, const char *destination, uint32_t id);
/* The port's number; a new one when it has none. */
uint32_t affinity_ids_get(struct affinity_ids *ids, const struct port_plan *port);
void affinity_ids_forget(struct affinity_ids *ids, const struct port_plan *port);
/* What has not been asked for between the two is forgotten. */
void affinity_ids_begin(struct affinity_ids *ids);
void affinity_ids_prune(struct affinity_ids *ids);
