/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules of one Service. Two groups: entries in the shared chains, and the chains of its own.
 * Nothing but the plan is kept: a sync makes a list of the rules, those that stand or those that are
 * wanted, and drops it. What is withheld in the plan has no entries.
 */

#include "backends/iptables/rule_facts.h"
#include "xtables/rule_list.h"

struct service_rules {
	struct service_plan *plan; /* a reference */
	uint32_t index;            /* its place in a service_set.h */
	bool endpoint_comments;    /* rules about endpoints have one: not in a large cluster */
	/* rules, as its ruleset counted them: in shared chains, and in its own, which are all in nat */
	uint32_t n_leading[TABLE_COUNT];
	uint32_t n_following[TABLE_COUNT];
	uint32_t n_own_rules;
	/* for each port of the plan: its own hash, then one for each endpoint of use.reachable */
	struct chain_hash hashes[];
};

/* Hashes the names of all chains of the plan. */
struct service_rules *service_rules_new(struct service_plan *plan, bool endpoint_comments);
/* Accepts NULL, returns NULL. */
struct service_rules *service_rules_free(struct service_rules *service);

size_t service_rules_count_hashes(const struct service_rules *service);
/* Calls fn for each chain of its own, in the order in which they are declared. */
typedef void service_rules_chain_fn(void *arg, enum chain_kind kind, const struct chain_hash *hash);
void service_rules_each_chain(const struct service_rules *service, service_rules_chain_fn *fn,
			      void *arg);

/*
 * parts: of enum ruleset_part, in any set. Entries and own rules together come port by port; each port
 * is a group. The plan has to live as long as the list.
 */
void service_rules_make(const struct service_rules *service, const struct rule_facts *facts,
			unsigned int parts, struct rule_list *list);
