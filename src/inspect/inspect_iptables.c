/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "backends/iptables/host.h"
#include "inspect/diff_iptables.h"
#include "inspect/inspect_ops.h"
#include "inspect/iptables_rules.h"

static void *rules_new(const struct explain_input *input, const struct plan_delta *delta)
{
	struct rule_store *rules = rule_store_new(input->settings->family);

	iptables_rules_plan(rules, input->settings, delta, &input->host, NULL);
	return rules;
}

static void rules_free(void *rules)
{
	rule_store_free(rules);
}

static struct packet_path *walk(void *rules, const struct packet *packet, const struct host *host)
{
	return iptables_rules_walk(rules, packet, host);
}

/* Rules of the other variant are not in nf_tables, which is what can be traced. */
static int traceable(const struct backend_host *host, struct err *err)
{
	if (host->variant != IPTABLES_VARIANT_LEGACY)
		return 1;
	err_set(err, -EOPNOTSUPP,
		"this node has the legacy variant of iptables, whose rules cannot be traced here; "
		"\"portolan explain\" tells the same from the rules (or -j TRACE in table raw, for "
		"the kernel's log)");
	return 0;
}

/* Chains that are planned: kubelet has chains with such names too. */
static bool is_planned_chain(const struct rule_store *rules, const char *table, const char *chain)
{
	if (!has_prefix(chain, "KUBE-"))
		return false;
	for (enum table i = 0; i < TABLE_COUNT; i++)
		if (streq(table_name(i), table))
			return rule_store_chain(rules, i, chain);
	return false;
}

static bool is_ours(void *rules, const struct step *step)
{
	return is_planned_chain(rules, step->table, step->chain) ||
	       (step->effect == EFFECT_JUMP && is_planned_chain(rules, step->table, step->target));
}

const struct inspect_ops inspect_iptables = {
	.rules_new = rules_new,
	.rules_free = rules_free,
	.walk = walk,
	.diff = diff_iptables,
	.traceable = traceable,
	.is_ours = is_ours,
};
