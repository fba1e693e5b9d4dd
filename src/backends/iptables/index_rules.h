/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Between the services and service_index.h: which entries of nat KUBE-SERVICES a Service has, and
 * their rules for the chain that holds them.
 */

#include "backends/iptables/service_index.h"
#include "backends/iptables/service_set.h"

/* Notes how the entries change, if they do. Either service may be NULL. */
void index_rules_change(struct service_index *index, const struct service_rules *old,
			const struct service_rules *wanted, const struct rule_facts *facts);

struct index_rules {
	const struct service_set *services;
	const struct rule_facts *facts;
};

/* The rules of `rules`, which is borrowed, for the functions of service_index.h. */
struct service_index_rules index_rules_of(struct index_rules *rules);
