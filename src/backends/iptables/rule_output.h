/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the parts of a ruleset put their rules during one sync, and what decides on them. */

#include "backends/iptables/ruleset.h"

struct rule_output {
	const struct settings *settings;
	const struct ruleset_host *host;
	bool localhost_node_ports;
	bool indexed; /* entries of nat KUBE-SERVICES belong to an index and are left out */
	struct txn *txn;
	size_t written[TABLE_COUNT]; /* rules so far */
};

static inline bool rule_output_takes(const struct rule_output *output, const struct rule *rule)
{
	return !output->indexed || rule->table != TABLE_NAT || !streq(rule->chain, CHAIN_SERVICES);
}

static inline void rule_output_add(struct rule_output *output, const struct rule *rule)
{
	if (!rule_output_takes(output, rule))
		return;
	txn_rule(output->txn, rule);
	output->written[rule->table]++;
}

/* Into a chain that stands: a leading rule goes to its head. */
static inline void rule_output_enter(struct rule_output *output, const struct rule *rule)
{
	if (!rule_output_takes(output, rule))
		return;
	if (rule->leading)
		txn_insert_rule(output->txn, rule);
	else
		txn_rule(output->txn, rule);
	output->written[rule->table]++;
}

/* 127.0.0.0/8 */
extern const struct prefix rule_loopback_ipv4;
