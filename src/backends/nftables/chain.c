/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/chain.h"

#include <linux/netfilter.h>
#include <stdio.h>

/*
 * After conntrack (-200) and before DNAT (-100): source ranges are about the destination as the
 * client wrote it. Refusals come after DNAT, so that a translated packet no longer meets them.
 */
static const struct chain_hook hooks[CHAIN_BASE_COUNT] = {
	[CHAIN_FILTER_PREROUTING_PRE_DNAT] = {"filter", "prerouting", NF_INET_PRE_ROUTING, -110,
					      "-110"},
	[CHAIN_FILTER_OUTPUT_PRE_DNAT] = {"filter", "output", NF_INET_LOCAL_OUT, -110, "-110"},
	[CHAIN_FILTER_INPUT] = {"filter", "input", NF_INET_LOCAL_IN, 0, "0"},
	[CHAIN_FILTER_FORWARD] = {"filter", "forward", NF_INET_FORWARD, 0, "0"},
	[CHAIN_FILTER_OUTPUT] = {"filter", "output", NF_INET_LOCAL_OUT, 0, "0"},
	[CHAIN_NAT_PREROUTING] = {"nat", "prerouting", NF_INET_PRE_ROUTING, -100, "-100"},
	[CHAIN_NAT_OUTPUT] = {"nat", "output", NF_INET_LOCAL_OUT, -100, "-100"},
	[CHAIN_NAT_POSTROUTING] = {"nat", "postrouting", NF_INET_POST_ROUTING, 100, "100"},
};

static const char *const names[CHAIN_COUNT] = {
	[CHAIN_FILTER_PREROUTING_PRE_DNAT] = "filter-prerouting-pre-dnat",
	[CHAIN_FILTER_OUTPUT_PRE_DNAT] = "filter-output-pre-dnat",
	[CHAIN_FILTER_INPUT] = "filter-input",
	[CHAIN_FILTER_FORWARD] = "filter-forward",
	[CHAIN_FILTER_OUTPUT] = "filter-output",
	[CHAIN_NAT_PREROUTING] = "nat-prerouting",
	[CHAIN_NAT_OUTPUT] = "nat-output",
	[CHAIN_NAT_POSTROUTING] = "nat-postrouting",
	[CHAIN_SERVICES] = "services",
	[CHAIN_MASQUERADING] = "masquerading",
	[CHAIN_FIREWALL_CHECK] = "firewall-check",
	[CHAIN_SERVICE_ENDPOINTS_CHECK] = "service-endpoints-check",
	[CHAIN_NODEPORT_ENDPOINTS_CHECK] = "nodeport-endpoints-check",
	[CHAIN_CLUSTER_IPS_CHECK] = "cluster-ips-check",
	[CHAIN_REJECT] = "reject-chain",
	[CHAIN_REMEMBER] = "remember",
	[CHAIN_LOCALHOST_REJECT] = "localhost-nodeport-reject-tcp",
	[CHAIN_LOCALHOST_REJECT_UDP] = "localhost-nodeport-reject-udp",
	[CHAIN_LOCALHOST_REJECT_SCTP] = "localhost-nodeport-reject-sctp",
	[CHAIN_TO_CLUSTER] = "to-cluster",
	[CHAIN_NODEPORT_TO_CLUSTER] = "nodeport-to-cluster",
	[CHAIN_TO_LOCAL] = "to-local",
	[CHAIN_NODEPORT_TO_LOCAL] = "nodeport-to-local",
	[CHAIN_EXTERNAL_LOCAL] = "external-local",
	[CHAIN_NODEPORT_EXTERNAL_LOCAL] = "nodeport-external-local",
	[CHAIN_STICKY] = "sticky",
	[CHAIN_NODEPORT_STICKY] = "nodeport-sticky",
	[CHAIN_STICKY_LOCAL] = "sticky-local",
	[CHAIN_NODEPORT_STICKY_LOCAL] = "nodeport-sticky-local",
	[CHAIN_MASQ_STICKY] = "masq-sticky",
	[CHAIN_NODEPORT_MASQ_STICKY] = "nodeport-masq-sticky",
	[CHAIN_EXTERNAL_LOCAL_STICKY] = "external-local-sticky",
	[CHAIN_NODEPORT_EXTERNAL_LOCAL_STICKY] = "nodeport-external-local-sticky",
	[CHAIN_PICK] = "pick",
	[CHAIN_NODEPORT_PICK] = "nodeport-pick",
	[CHAIN_LOCAL_PICK] = "local-pick",
	[CHAIN_NODEPORT_LOCAL_PICK] = "nodeport-local-pick",
	[CHAIN_MASQ_PICK] = "masq-pick",
	[CHAIN_NODEPORT_MASQ_PICK] = "nodeport-masq-pick",
	[CHAIN_RECALL] = "recall",
	[CHAIN_LOCAL_RECALL] = "local-recall",
	[CHAIN_REMEMBER_PORT] = "remember",
};

static const char *const comments[CHAIN_COUNT] = {
	[CHAIN_SERVICES] = "every new connection",
	[CHAIN_MASQUERADING] = "connections whose source becomes this node",
	[CHAIN_FIREWALL_CHECK] = "LoadBalancerSourceRanges",
	[CHAIN_SERVICE_ENDPOINTS_CHECK] = "destinations that nobody serves",
	[CHAIN_NODEPORT_ENDPOINTS_CHECK] = "NodePorts that nobody serves",
	[CHAIN_CLUSTER_IPS_CHECK] = "ports and addresses of the service network that nobody has",
	[CHAIN_REJECT] = "helper for @no-endpoint-services / @no-endpoint-nodeports",
	[CHAIN_REMEMBER] = "translated connections, to note the endpoint of clients with affinity",
	[CHAIN_LOCALHOST_REJECT] = "helper for @localhost-nodeport-reject-ports",
	[CHAIN_LOCALHOST_REJECT_UDP] = "helper for @localhost-nodeport-reject-ports",
	[CHAIN_LOCALHOST_REJECT_SCTP] = "helper for @localhost-nodeport-reject-ports",
	[CHAIN_TO_CLUSTER] = "any endpoint",
	[CHAIN_TO_LOCAL] = "endpoints of this node only",
	[CHAIN_EXTERNAL_LOCAL] = "externalTrafficPolicy Local",
	[CHAIN_STICKY] = "ClientIP affinity: the endpoint that the client had, or any",
	[CHAIN_STICKY_LOCAL] = "the same among endpoints of this node",
	[CHAIN_MASQ_STICKY] = "externalTrafficPolicy Cluster with affinity",
	[CHAIN_EXTERNAL_LOCAL_STICKY] = "externalTrafficPolicy Local with affinity",
	[CHAIN_NODEPORT_TO_CLUSTER] = "as to-cluster, for NodePorts",
	[CHAIN_NODEPORT_TO_LOCAL] = "as to-local, for NodePorts",
	[CHAIN_NODEPORT_EXTERNAL_LOCAL] = "as external-local, for NodePorts",
	[CHAIN_NODEPORT_STICKY] = "as sticky, for NodePorts",
	[CHAIN_NODEPORT_STICKY_LOCAL] = "as sticky-local, for NodePorts",
	[CHAIN_NODEPORT_MASQ_STICKY] = "as masq-sticky, for NodePorts",
	[CHAIN_NODEPORT_EXTERNAL_LOCAL_STICKY] = "as external-local-sticky, for NodePorts",
	[CHAIN_PICK] = "destinations with slots: ",
	[CHAIN_NODEPORT_PICK] = "NodePorts with slots: ",
	[CHAIN_LOCAL_PICK] = "destinations with slots of this node: ",
	[CHAIN_NODEPORT_LOCAL_PICK] = "NodePorts with slots of this node: ",
	[CHAIN_MASQ_PICK] = "external destinations with slots: ",
	[CHAIN_NODEPORT_MASQ_PICK] = "NodePorts with slots, masqueraded: ",
	[CHAIN_RECALL] = "affinity, the endpoint that the client had, of @clients-",
	[CHAIN_LOCAL_RECALL] =
		"affinity, the endpoint of this node that the client had, of @local-clients-",
	[CHAIN_REMEMBER_PORT] = "affinity, notes the endpoint of the client in @clients-",
};

const struct chain_hook *chain_hook(enum chain_id id)
{
	return id < CHAIN_BASE_COUNT ? &hooks[id] : NULL;
}

void chain_name(struct chain chain, char out[static CHAIN_NAME_MAX])
{
	if (chain.id >= CHAIN_FIXED_COUNT)
		snprintf(out, CHAIN_NAME_MAX, "%s-%u", names[chain.id], chain.number);
	else
		snprintf(out, CHAIN_NAME_MAX, "%s", names[chain.id]);
}

bool chain_parse_number(const char *text, uint32_t *ret)
{
	uint64_t number = 0;

	if (*text < '1' || *text > '9' || strlen(text) > 10)
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		number = number * 10 + (uint64_t)(*text - '0');
	*ret = (uint32_t)number;
	return !*text && number <= UINT32_MAX;
}

bool chain_parse(const char *name, struct chain *ret)
{
	for (enum chain_id id = 0; id < CHAIN_COUNT; id++) {
		size_t n = strlen(names[id]);
		uint32_t number = 0;

		if (strncmp(name, names[id], n) != 0)
			continue;
		if (id < CHAIN_FIXED_COUNT
			    ? name[n] != '\0'
			    : name[n] != '-' || !chain_parse_number(name + n + 1, &number))
			continue;
		*ret = (struct chain){id, number};
		return true;
	}
	return false;
}

void chain_comment(struct chain chain, char out[static 128])
{
	const char *comment = comments[chain.id];

	if (chain.id >= CHAIN_FIXED_COUNT)
		snprintf(out, 128, "%s%u", comment, chain.number);
	else
		snprintf(out, 128, "%s", comment ? comment : "");
}
