/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/fixed_rules.h"

#include <assert.h>

#define NODE_PORTS_COMMENT \
	"kubernetes service nodeports; NOTE: this must be the last rule in this chain"

const struct prefix rule_loopback_ipv4 = {
	.addr = {.family = FAMILY_IPV4, .bytes = {127}},
	.length = 8,
};

static const struct prefix loopback_ipv6 = {
	.addr = {.family = FAMILY_IPV6, .bytes = {[15] = 1}},
	.length = 128,
};

static const char *const filter_chains[] = {
	CHAIN_SERVICES,  CHAIN_EXTERNAL_SERVICES, CHAIN_FORWARD,
	CHAIN_NODEPORTS, CHAIN_PROXY_FIREWALL,
};

static const char *const nat_chains[] = {
	CHAIN_SERVICES,
	CHAIN_NODEPORTS,
	CHAIN_POSTROUTING,
	CHAIN_MARK_MASQ,
};

bool fixed_rules_is_shared(const char *nat_chain)
{
	for (size_t i = 0; i < ARRAY_SIZE(nat_chains); i++)
		if (streq(nat_chains[i], nat_chain))
			return true;
	return false;
}

static void declare_chains(const struct rule_facts *facts, struct rule_list *list)
{
	for (size_t i = 0; i < ARRAY_SIZE(filter_chains); i++)
		rule_list_declare(list, TABLE_FILTER, filter_chains[i],
				  streq(filter_chains[i], CHAIN_FORWARD));
	/* kubelet's, too: left alone unless there is a rule for it */
	if (facts->localhost_node_ports)
		rule_list_declare(list, TABLE_FILTER, CHAIN_KUBELET_FIREWALL, true);
	for (size_t i = 0; i < ARRAY_SIZE(nat_chains); i++)
		rule_list_declare(list, TABLE_NAT, nat_chains[i],
				  streq(nat_chains[i], CHAIN_POSTROUTING) ||
					  streq(nat_chains[i], CHAIN_MARK_MASQ));
}

/*
 * With route_localnet the kernel no longer refuses packets to 127.0.0.0/8 from outside; this does,
 * but for those that were sent there by a NodePort.
 */
static void add_anti_martian(struct rule_list *list)
{
	struct rule rule;

	rule_init(&rule, TABLE_FILTER, CHAIN_KUBELET_FIREWALL);
	rule_comment(&rule, "block incoming localnet connections");
	rule_destination(&rule, false, &rule_loopback_ipv4);
	rule_source(&rule, true, &rule_loopback_ipv4);
	rule_ctstate(&rule, true, CTSTATE_RELATED | CTSTATE_ESTABLISHED | CTSTATE_DNAT);
	rule_verdict(&rule, TARGET_DROP);
	rule_list_add(list, &rule);
}

/* Marked packets lose their mark and get the node's address; all others leave as they are. */
static void add_postrouting(const struct rule_facts *facts, struct rule_list *list)
{
	uint32_t mark = facts->settings->masquerade_mark;
	struct rule rule;

	rule_init(&rule, TABLE_NAT, CHAIN_POSTROUTING);
	rule_mark(&rule, true, mark);
	rule_verdict(&rule, TARGET_RETURN);
	rule_list_add(list, &rule);

	rule_init(&rule, TABLE_NAT, CHAIN_POSTROUTING);
	rule_mark_xor(&rule, mark);
	rule_list_add(list, &rule);

	rule_init(&rule, TABLE_NAT, CHAIN_POSTROUTING);
	rule_comment(&rule, "kubernetes service traffic requiring SNAT");
	rule_masquerade(&rule, true);
	rule_list_add(list, &rule);
}

static void make_mark_masq(const struct settings *settings, struct rule *ret)
{
	rule_init(ret, TABLE_NAT, CHAIN_MARK_MASQ);
	rule_mark_or(ret, settings->masquerade_mark);
}

static void add_head(const struct rule_facts *facts, struct rule_list *list)
{
	struct rule rule;

	if (facts->localhost_node_ports)
		add_anti_martian(list);
	add_postrouting(facts, list);
	make_mark_masq(facts->settings, &rule);
	rule_list_add(list, &rule);
}

/* NodePorts on all of the node's addresses, but for a loopback that is not served. */
static void make_node_ports_all(enum family family, bool localhost_node_ports, struct rule *ret)
{
	rule_init(ret, TABLE_NAT, CHAIN_SERVICES);
	rule_comment(ret, NODE_PORTS_COMMENT);
	rule_destination_local(ret);
	if (family == FAMILY_IPV6)
		rule_destination(ret, true, &loopback_ipv6);
	else if (!localhost_node_ports)
		rule_destination(ret, true, &rule_loopback_ipv4);
	rule_jump(ret, CHAIN_NODEPORTS);
}

static void add_node_ports_all(const struct rule_facts *facts, struct rule_list *list)
{
	struct rule rule;

	make_node_ports_all(facts->settings->family, facts->localhost_node_ports, &rule);
	rule_list_add(list, &rule);
}

/* NodePorts on chosen addresses: a rule for each that some interface has. */
static void add_node_ports_selected(const struct rule_facts *facts, struct rule_list *list,
				    const struct ruleset_input *input)
{
	cleanup_free struct addr *selected = NULL;
	struct rule rule;
	size_t n;

	selected = node_ports_select(&facts->settings->node_ports, input->addresses,
				     input->n_addresses, &n);
	for (size_t i = 0; i < n; i++) {
		if (addr_is_loopback(&selected[i]) && !facts->localhost_node_ports)
			continue;
		rule_init(&rule, TABLE_NAT, CHAIN_SERVICES);
		rule_comment(&rule, NODE_PORTS_COMMENT);
		rule_destination_addr(&rule, &selected[i]);
		rule_jump(&rule, CHAIN_NODEPORTS);
		rule_list_add(list, &rule);
	}
}

/*
 * Packets that conntrack does not recognise would pass untranslated and reset the connection that
 * they belong to; a liberal conntrack recognises them.
 */
static void add_drop_invalid(const struct rule_facts *facts, struct rule_list *list)
{
	struct rule rule;

	rule_init(&rule, TABLE_FILTER, CHAIN_FORWARD);
	rule_ctstate(&rule, false, CTSTATE_INVALID);
	if (facts->host->nfacct_invalid)
		rule_nfacct(&rule, NFACCT_INVALID);
	rule_verdict(&rule, TARGET_DROP);
	rule_list_add(list, &rule);
}

/* Traffic that is masqueraded, and its answers, pass whatever the policy of FORWARD is. */
static void add_forward(const struct rule_facts *facts, struct rule_list *list)
{
	struct rule rule;

	rule_init(&rule, TABLE_FILTER, CHAIN_FORWARD);
	rule_comment(&rule, "kubernetes forwarding rules");
	rule_mark(&rule, false, facts->settings->masquerade_mark);
	rule_verdict(&rule, TARGET_ACCEPT);
	rule_list_add(list, &rule);

	rule_init(&rule, TABLE_FILTER, CHAIN_FORWARD);
	rule_comment(&rule, "kubernetes forwarding conntrack rule");
	rule_ctstate(&rule, false, CTSTATE_RELATED | CTSTATE_ESTABLISHED);
	rule_verdict(&rule, TARGET_ACCEPT);
	rule_list_add(list, &rule);
}

static void add_tail(const struct rule_facts *facts, const struct ruleset_input *input,
		     struct rule_list *list)
{
	if (facts->settings->node_ports.match_all)
		add_node_ports_all(facts, list);
	else if (input->addresses_known)
		add_node_ports_selected(facts, list, input);
	if (!facts->host->be_liberal)
		add_drop_invalid(facts, list);
	add_forward(facts, list);
}

void fixed_rules_make(const struct rule_facts *facts, const struct ruleset_input *input,
		      struct rule_list *list)
{
	list->subject = NULL;
	declare_chains(facts, list);
	list->group = FIXED_RULES_HEAD;
	add_head(facts, list);
	list->group = FIXED_RULES_TAIL;
	add_tail(facts, input, list);
}

#define EXTERNALLY_VISIBLE "kubernetes externally-visible service portals"
#define HEALTH_CHECKS      "kubernetes health check service ports"
#define SERVICE_PORTALS    "kubernetes service portals"
#define FORWARDING         "kubernetes forwarding rules"
#define FIREWALL           "kubernetes load balancer firewall"
#define POSTROUTING        "kubernetes postrouting rules"

static const struct {
	enum table table;
	const char *from;
	const char *to;
	bool only_new; /* the first packet of a connection */
	const char *comment;
} jumps[] = {
	{TABLE_FILTER, "INPUT", CHAIN_EXTERNAL_SERVICES, true, EXTERNALLY_VISIBLE},
	{TABLE_FILTER, "FORWARD", CHAIN_EXTERNAL_SERVICES, true, EXTERNALLY_VISIBLE},
	{TABLE_FILTER, "INPUT", CHAIN_NODEPORTS, false, HEALTH_CHECKS},
	{TABLE_FILTER, "FORWARD", CHAIN_SERVICES, true, SERVICE_PORTALS},
	{TABLE_FILTER, "OUTPUT", CHAIN_SERVICES, true, SERVICE_PORTALS},
	{TABLE_FILTER, "FORWARD", CHAIN_FORWARD, false, FORWARDING},
	{TABLE_FILTER, "INPUT", CHAIN_PROXY_FIREWALL, true, FIREWALL},
	{TABLE_FILTER, "OUTPUT", CHAIN_PROXY_FIREWALL, true, FIREWALL},
	{TABLE_FILTER, "FORWARD", CHAIN_PROXY_FIREWALL, true, FIREWALL},
	{TABLE_NAT, "OUTPUT", CHAIN_SERVICES, false, SERVICE_PORTALS},
	{TABLE_NAT, "PREROUTING", CHAIN_SERVICES, false, SERVICE_PORTALS},
	{TABLE_NAT, "POSTROUTING", CHAIN_POSTROUTING, false, POSTROUTING},
	/* kubelet has these two as well, so cleanup leaves them */
	{TABLE_FILTER, "INPUT", CHAIN_KUBELET_FIREWALL, false, NULL},
	{TABLE_FILTER, "OUTPUT", CHAIN_KUBELET_FIREWALL, false, NULL},
};

static_assert(ARRAY_SIZE(jumps) == RULESET_JUMPS, "the number is part of the interface");

void ruleset_jump(size_t index, struct rule *ret)
{
	assert(index < ARRAY_SIZE(jumps));
	rule_init(ret, jumps[index].table, jumps[index].from);
	if (jumps[index].only_new)
		rule_ctstate(ret, false, CTSTATE_NEW);
	if (jumps[index].comment)
		rule_comment(ret, jumps[index].comment);
	rule_jump(ret, jumps[index].to);
}

bool fixed_rules_sample(const struct settings *settings, size_t index, struct rule *ret)
{
	if (index == 0)
		make_mark_masq(settings, ret);
	else if (index == 1 && settings->node_ports.match_all)
		make_node_ports_all(settings->family, settings_localhost_node_ports(settings), ret);
	else
		return false;
	return true;
}
