/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Between the services and service_index.h: which entries of nat KUBE-SERVICES a Service has, and
 * their rules said again for the chain that holds them.
 */

#include "backends/iptables/service_index.h"
#include "backends/iptables/service_set.h"

/*
 * Notes how the entries change, if they do. Either service may be NULL. `like`: settings and host;
 * nothing is written.
 */
void index_rules_change(struct service_index *index, struct service_rules *old,
			struct service_rules *wanted, const struct rule_output *like);
/* The functions of service_index.h, with the rules of `services`. */
void index_rules_write_chain(struct service_index *index, size_t number,
			     const struct service_set *services, struct rule_output *output);
void index_rules_write_root(const struct service_index *index, const struct service_set *services,
			    struct rule_output *output);
void index_rules_write(const struct service_index *index, const struct service_set *services,
		       struct rule_output *output);
