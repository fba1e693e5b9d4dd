/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What table kube-proxy of one family holds and is to hold: plans, owners, counts and ids, but no
 * netlink and no clock. What a sync does with it:
 *
 *	state_begin()   takes a delta of plans; a full sync is about all that were ever taken
 *	state_write_*() says to a writer what has to be written; as often as need be
 *	state_end()     what was wanted is now applied; or, after a failure, the next one must be full
 *
 * Nothing but a repair walks all services in a sync that is not full.
 */

#include "backends/nftables/affinity_ids.h"
#include "backends/nftables/claims.h"
#include "backends/nftables/layout.h"
#include "backends/nftables/pick_chains.h"
#include "backends/refused_services.h"
#include "plan/plan_store.h"

struct state;

struct state *state_new(const struct settings *settings); /* borrowed */
struct state *state_free(struct state *state);            /* accepts NULL, returns NULL */

/* Ids that the kernel still knows clients by go there before the first state_begin(). */
struct affinity_ids *state_affinity_ids(struct state *state);

struct state_input {
	const struct plan_delta *delta;
	bool full; /* whatever the delta is: all is to be written. A full delta is for a full sync */
	const struct addr *addresses; /* of this node's interfaces */
	size_t n_addresses;
	const struct refused_services *refused; /* left as they are, or out; NULL: none */
};

void state_begin(struct state *state, const struct state_input *input);
/* A full sync: chains and their rules; then, containers being empty, all elements. */
void state_write_chains(struct state *state, struct writer *writer);
void state_write_elements(struct state *state, struct writer *writer);
/*
 * Any other. Removals come first; flush_chain() empties a chain whose rules follow. Once all of that has been said, what
 * service ports had of their own is deleted.
 */
struct state_delta_ops {
	void (*flush_chain)(struct writer *writer, struct chain chain);
	void (*delete_chain)(struct writer *writer, struct chain chain);
	void (*delete_clients)(struct writer *writer, enum container container, uint32_t number);
};

void state_write_delta(struct state *state, struct writer *writer,
		       const struct state_delta_ops *ops);
void state_write_departed(struct state *state, struct writer *writer,
			  const struct state_delta_ops *ops);
/*
 * Between two syncs, for a repair: the rules of a chain (state_has_chain()) that is there and empty, and each
 * element that was written; without `slots` those of the four slot maps are left out.
 */
void state_write_rules(struct state *state, struct writer *writer, struct chain chain);
void state_each_element(struct state *state, bool slots, element_fn *fn, void *arg);
/*
 * Between state_begin() and state_end(): whose each NodePort is to be that this sync is about, which in a full one are all
 * that there are. owner NULL: nobody's any more.
 */
typedef void state_node_port_fn(void *arg, const struct destination *node_port,
				const struct port_plan *owner);
void state_each_node_port(const struct state *state, state_node_port_fn *fn, void *arg);
void state_end(struct state *state, bool success);

/* Removes what no Service has used for a while: a round of pick_chains_age() and of shared_age(). */
void state_age(struct state *state, pick_chains_remove_fn *chain, element_fn *element, void *arg);
bool state_has_idle(const struct state *state);
size_t state_count_services(const struct state *state); /* that are to have elements */
/* Has the kernel a version of it, which can stay if another is refused? */
bool state_can_keep(const struct state *state, const char *key);
/* Is a chain of that name wanted, as of the last state_write_*()? */
bool state_has_chain(const struct state *state, const char *name);
/* Is that the map of clients of a service port that has affinity? */
bool state_has_clients(const struct state *state, enum container container, uint32_t number);
size_t state_count_affinity(const struct state *state); /* such service ports */
/* Each service port that is to have affinity, or after state_end() has it, and its id, in the order of ids. */
typedef void state_affinity_fn(void *arg, uint32_t id, const struct port_plan *port);
void state_each_affinity(struct state *state, state_affinity_fn *fn, void *arg);
