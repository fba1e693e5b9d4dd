/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/layout.h"
#include "backends/nftables/localhost/localhost_policy.h"
#include "inspect/diff_nftables.h"
#include "inspect/inspect_ops.h"
#include "inspect/nftables_rules.h"

static void *rules_new(const struct explain_input *input, const struct plan_delta *delta)
{
	struct nftables_rules *rules = nftables_rules_new(input->settings->family);

	nftables_rules_plan(rules, input->settings, delta, &input->host, input->live);
	return rules;
}

static void rules_free(void *rules)
{
	nftables_rules_free(rules);
}

static struct packet_path *walk(void *rules, const struct packet *packet, const struct host *host)
{
	return nftables_rules_walk(rules, packet, host);
}

static int diff(struct diff *diff, const struct inspect_question *question, struct err *err)
{
	return diff_nftables(diff, question->settings, question->delta, question->host,
			     question->packet, err);
}

static bool carries(const struct settings *settings, const struct packet *packet)
{
	const struct addr address = localhost_address(settings->family);

	return localhost_is_carried(settings) && packet->protocol == PROTOCOL_TCP &&
	       addr_equal(&packet->destination, &address);
}

static bool is_ours(void *rules attr_unused, const struct step *step)
{
	return streq(step->table, LAYOUT_TABLE);
}

/* Slots of endpoints and ids of affinity are each process's own: the kernel may have others. */
static bool is_certain(const struct step *planned)
{
	const struct element *element = planned->element_identity;

	return element &&
	       (element->container < CONTAINER_AFFINITY_IDS ||
		element->container == CONTAINER_LOCALHOST_REJECTS) &&
	       !container_has_slots((enum container)element->container);
}

const struct inspect_ops inspect_nftables = {
	.rules_new = rules_new,
	.rules_free = rules_free,
	.walk = walk,
	.diff = diff,
	.carries = carries,
	.is_ours = is_ours,
	.is_certain = is_certain,
};
