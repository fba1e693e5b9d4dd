/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What state.c (plans and their outcome) and state_write.c (what they mean for the table) share. */

#include "backends/nftables/numbered.h"
#include "backends/nftables/shared.h"
#include "backends/nftables/state.h"
#include "backends/nftables/waiting.h"

struct state {
	const struct settings *settings;
	struct map services; /* struct served */
	struct served *dirty;
	struct claims claims;
	struct shared shared;
	struct waiting waiting;
	struct affinity_ids ids;
	size_t n_affinity; /* service ports that have it */
	size_t n_no_local_internal, n_no_local_external;
	bool lost_members;
	bool full;

	/* what the kernel has beside elements of Services */
	struct numbered numbered;
	bool affinity_written;
	struct prefix *cidrs; /* wanted: ServiceCIDRs of the family */
	size_t n_cidrs;
	bool cidrs_changed; /* since they were last written */
	struct element_list node_port_ips, next_node_port_ips;

	struct element_list removals, additions; /* of a sync that is not full */
	bool members_removed; /* of removals those of members have been written */
};

/* Fills removals and additions. */
void state_collect_delta(struct state *state);
/* The port's id; 0 without affinity. */
uint32_t state_id_of(struct state *state, const struct port_plan *port);
