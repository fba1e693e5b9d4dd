/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What state.c (plans and their outcome), state_write.c (what they mean for the table) and
 * state_affinity.c (what service ports with affinity have of their own) share.
 */

#include "backends/nftables/pick_chains.h"
#include "backends/nftables/shared.h"
#include "backends/nftables/state.h"

struct state {
	const struct settings *settings;
	struct map services; /* struct served */
	struct served *dirty;
	struct claims claims;
	struct shared shared;
	struct affinity_ids ids;
	size_t n_affinity; /* service ports that have it */
	bool full;

	/* what the kernel has beside elements of Services */
	struct pick_chains pick_chains;
	bool affinity_written;
	uint32_t mark_written; /* affinity_ids.h; below 2: there is none */
	struct prefix *cidrs;  /* wanted: ServiceCIDRs of the family */
	size_t n_cidrs;
	bool cidrs_changed; /* since they were last written */
	struct element_list node_port_ips, next_node_port_ips;

	struct element_list removals, additions; /* of a sync that is not full */
};

/* Fills removals and additions. */
void state_collect_delta(struct state *state);
/* The port's id; 0 without affinity. */
uint32_t state_id_of(struct state *state, const struct port_plan *port);

/* state_affinity.c: what all such ports have of their own; the same for a difference, and for one chain. */
void state_write_affinity(struct state *state, struct writer *writer);
void state_write_affinity_delta(struct state *state, struct writer *writer,
				const struct state_delta_ops *ops);
void state_write_affinity_rules(struct state *state, struct writer *writer, struct chain chain);
/* Ids of what has gone: of members that were removed, and of ports that the service no longer has, or has without
 * affinity, now that it is what `next` says. */
void state_forget_members(struct state *state);
void state_forget_ports(struct state *state, const struct served *service);
