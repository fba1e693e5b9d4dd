/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules of one Service. Two groups: entries in the shared chains, which every sync writes anew
 * (declaring those chains empties them), and the chains of its own, which stand until it changes.
 */

#include "backends/iptables/rule_output.h"

struct service_rules {
	struct service_plan *plan; /* owned */
	bool changed;              /* since its own chains were last written */
	uint32_t n_own_rules;      /* in its own chains, when they were last written */
	/* for each port of the plan: its own hash, then one for each endpoint of use.reachable */
	struct chain_hash hashes[];
};

/* Takes the plan over and hashes the names of all its chains. */
struct service_rules *service_rules_new(struct service_plan *plan);
/* Accepts NULL, returns NULL. */
struct service_rules *service_rules_free(struct service_rules *service);

size_t service_rules_count_hashes(const struct service_rules *service);
/* Calls fn for each chain of its own, in the order in which they are declared. */
typedef void service_rules_chain_fn(void *arg, enum chain_kind kind, const struct chain_hash *hash);
void service_rules_each_chain(const struct service_rules *service, service_rules_chain_fn *fn,
			      void *arg);

enum service_rules_part {
	SERVICE_RULES_ENTRIES = 1 << 0, /* in the shared chains */
	SERVICE_RULES_OWN = 1 << 1,     /* its own chains: declares them all, then their rules */
};

/* parts: of enum service_rules_part. Own chains: n_own_rules is counted, `changed` cleared. */
void service_rules_write(struct service_rules *service, struct rule_output *output,
			 unsigned int parts);
