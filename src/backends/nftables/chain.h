/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The chains of table kube-proxy. Some thirty are always there, whatever the cluster; others have
 * a number and are shared by all destinations with that many slots. Only service ports with ClientIP affinity have
 * chains of their own.
 */

#include "base/util.h"

enum chain_id {
	CHAIN_FILTER_PREROUTING_PRE_DNAT = 0,
	CHAIN_FILTER_OUTPUT_PRE_DNAT,
	CHAIN_FILTER_INPUT,
	CHAIN_FILTER_FORWARD,
	CHAIN_FILTER_OUTPUT,
	CHAIN_NAT_PREROUTING,
	CHAIN_NAT_OUTPUT,
	CHAIN_NAT_POSTROUTING,
	CHAIN_BASE_COUNT, /* those above hang at hooks */
	CHAIN_SERVICES = CHAIN_BASE_COUNT,
	CHAIN_MASQUERADING,
	CHAIN_FIREWALL_CHECK,
	CHAIN_SERVICE_ENDPOINTS_CHECK,
	CHAIN_NODEPORT_ENDPOINTS_CHECK,
	CHAIN_CLUSTER_IPS_CHECK,
	CHAIN_REJECT,
	CHAIN_REMEMBER,
	CHAIN_LOCALHOST_REJECT, /* and the protocol; while the layout has them: layout_has_chain() */
	CHAIN_LOCALHOST_REJECT_UDP,
	CHAIN_LOCALHOST_REJECT_SCTP,
	/* the ways of a packet, keyed by destination, and once more by node port: see chain_for() */
	CHAIN_TO_CLUSTER,
	CHAIN_NODEPORT_TO_CLUSTER,
	CHAIN_TO_LOCAL,
	CHAIN_NODEPORT_TO_LOCAL,
	CHAIN_EXTERNAL_LOCAL,
	CHAIN_NODEPORT_EXTERNAL_LOCAL,
	CHAIN_STICKY,
	CHAIN_NODEPORT_STICKY,
	CHAIN_STICKY_LOCAL,
	CHAIN_NODEPORT_STICKY_LOCAL,
	CHAIN_MASQ_STICKY,
	CHAIN_NODEPORT_MASQ_STICKY,
	CHAIN_EXTERNAL_LOCAL_STICKY,
	CHAIN_NODEPORT_EXTERNAL_LOCAL_STICKY,
	CHAIN_FIXED_COUNT,
	/* with a number */
	CHAIN_PICK = CHAIN_FIXED_COUNT,
	CHAIN_NODEPORT_PICK,
	CHAIN_LOCAL_PICK,
	CHAIN_NODEPORT_LOCAL_PICK,
	CHAIN_MASQ_PICK,
	CHAIN_NODEPORT_MASQ_PICK,
	CHAIN_PICKS_END,
	/* of a service port with affinity, whose number it is (layout_affinity()) */
	CHAIN_RECALL = CHAIN_PICKS_END,
	CHAIN_LOCAL_RECALL,
	CHAIN_REMEMBER_PORT, /* "remember-" and the number */
	CHAIN_COUNT,
};

struct chain {
	enum chain_id id;
	uint32_t number; /* 0: the chain has none */
};

#define CHAIN_NAME_MAX 64

/* Where a base chain hangs. */
struct chain_hook {
	const char *type;
	const char *hook;
	uint32_t hook_number; /* NF_INET_* */
	int32_t priority;
	const char *priority_text; /* as nft writes it */
};

const struct chain_hook *chain_hook(enum chain_id id); /* NULL: no base chain */
void chain_name(struct chain chain, char out[static CHAIN_NAME_MAX]);
/* The way back; false: it is none of ours. */
bool chain_parse(const char *name, struct chain *ret);
/* A number as names end with: from 1, without zeroes in front. */
bool chain_parse_number(const char *text, uint32_t *ret);
void chain_comment(struct chain chain, char out[static 128]);

/* A chain of the pairs above: as it is, or its twin for node ports. */
static inline enum chain_id chain_for(bool node_port, enum chain_id id)
{
	return (enum chain_id)(id + (node_port ? 1 : 0));
}
