/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Services that ask for what is not theirs, and who has been told so: each is told once, and again after it had
 * stopped.
 *
 *	CONFLICT_DESTINATION    waits for an address and port, or a node port, that another Service owns
 *	CONFLICT_CLUSTER_IP     names another one's cluster IP as external IP or load balancer's IP: it has those of
 *	                        its ports that the owner does not use
 *	CONFLICT_NODE_ADDRESS   names an address of this node as external IP, and has it: what listens there on the
 *	                        same port gets no more connections by it. (In a load balancer's status nodes are
 *	                        a usual thing, and no tenant writes that.)
 */

#include "base/map.h"
#include "plan/address_owners.h"

enum conflict_kind {
	CONFLICT_DESTINATION = 0,
	CONFLICT_CLUSTER_IP,
	CONFLICT_NODE_ADDRESS,
	CONFLICT_KIND_COUNT,
};

/* "destination", "cluster_ip", "node_address": as metrics and logs have them. */
const char *conflict_kind_name(enum conflict_kind kind);

/* Texts are borrowed. */
struct conflict {
	enum conflict_kind kind;
	const char *destination; /* "198.51.100.1:80/tcp", "NodePort 30080/tcp", "10.96.0.10" */
	const char *service;     /* "namespace/name" of the one that asks */
	const char *owner;       /* NULL: this node */
};

typedef void conflict_fn(void *arg, const struct conflict *conflict);

struct conflicts {
	struct map told;
	struct map before;                  /* while all is looked at: who had been told */
	size_t counts[CONFLICT_KIND_COUNT]; /* as of now */
	uint64_t look;                      /* its number */
};

/* What a look needs; borrowed. */
struct conflicts_view {
	struct address_owners *owners;
	const struct addr *node_addresses;
	size_t n_node_addresses;
	conflict_fn *fn; /* hears of new ones; NULL: they are only counted */
	void *arg;
};

void conflicts_done(struct conflicts *conflicts);
/*
 * After a change of some: conflicts_look() for each that asks now (new), or did until now (old), and then
 * conflicts_look_moved() for those who ask for a destination that is no longer the same one's. NULL: none.
 */
void conflicts_look(struct conflicts *conflicts, const struct conflicts_view *view,
		    const struct service_plan *old, const struct service_plan *new);
void conflicts_look_moved(struct conflicts *conflicts, const struct conflicts_view *view);
/* Looks at all Services: conflicts_begin_all(), conflicts_look_own() for each, conflicts_end_all(). */
void conflicts_begin_all(struct conflicts *conflicts);
void conflicts_look_own(struct conflicts *conflicts, const struct conflicts_view *view,
			const struct service_plan *plan);
void conflicts_end_all(struct conflicts *conflicts);
