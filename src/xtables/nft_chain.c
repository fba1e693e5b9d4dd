/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/nft_chain.h"

#include <assert.h>
#include <endian.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "kernel/nft_message.h"

struct base_chain {
	enum table table;
	const char *name;
	const char *type;
	uint32_t hook;
	int32_t priority;
};

/* Both families have the same ones. Table by table, each in the order of the packet's way. */
static const struct base_chain base_chains[] = {
	{TABLE_FILTER, "INPUT", "filter", NF_INET_LOCAL_IN, 0},
	{TABLE_FILTER, "FORWARD", "filter", NF_INET_FORWARD, 0},
	{TABLE_FILTER, "OUTPUT", "filter", NF_INET_LOCAL_OUT, 0},
	{TABLE_NAT, "PREROUTING", "nat", NF_INET_PRE_ROUTING, -100},
	{TABLE_NAT, "INPUT", "nat", NF_INET_LOCAL_IN, 100},
	{TABLE_NAT, "OUTPUT", "nat", NF_INET_LOCAL_OUT, -100},
	{TABLE_NAT, "POSTROUTING", "nat", NF_INET_POST_ROUTING, 100},
	{TABLE_MANGLE, "PREROUTING", "filter", NF_INET_PRE_ROUTING, -150},
	{TABLE_MANGLE, "INPUT", "filter", NF_INET_LOCAL_IN, -150},
	{TABLE_MANGLE, "FORWARD", "filter", NF_INET_FORWARD, -150},
	{TABLE_MANGLE, "OUTPUT", "route", NF_INET_LOCAL_OUT, -150},
	{TABLE_MANGLE, "POSTROUTING", "filter", NF_INET_POST_ROUTING, -150},
};

static const struct base_chain *find(enum table table, const char *chain)
{
	for (size_t i = 0; i < ARRAY_SIZE(base_chains); i++)
		if (base_chains[i].table == table && streq(base_chains[i].name, chain))
			return &base_chains[i];
	return NULL;
}

bool nft_chain_is_base(enum table table, const char *chain)
{
	return find(table, chain);
}

const char *nft_chain_base(enum table table, size_t index)
{
	size_t first = 0;

	while (base_chains[first].table != table)
		first++;
	index += first;
	return index < ARRAY_SIZE(base_chains) && base_chains[index].table == table
		       ? base_chains[index].name
		       : NULL;
}

/* nft add table ip nat */
void nft_table_put(struct nlmsghdr *message, enum table table)
{
	mnl_attr_put_strz(message, NFTA_TABLE_NAME, table_name(table));
}

/* nft add chain ip nat KUBE-SVC-... */
void nft_chain_put(struct nlmsghdr *message, enum table table, const char *chain)
{
	mnl_attr_put_strz(message, NFTA_CHAIN_TABLE, table_name(table));
	mnl_attr_put_strz(message, NFTA_CHAIN_NAME, chain);
}

/* nft add chain ip nat OUTPUT { type nat hook output priority -100; } */
void nft_base_chain_put(struct nlmsghdr *message, enum table table, const char *chain)
{
	const struct base_chain *base = find(table, chain);

	assert(base);
	nft_chain_put(message, table, chain);
	nft_put_hook(message, base->hook, base->priority);
	mnl_attr_put_strz(message, NFTA_CHAIN_TYPE, base->type);
}

/* nft flush chain ip nat KUBE-SVC-... */
void nft_flush_put(struct nlmsghdr *message, enum table table, const char *chain)
{
	mnl_attr_put_strz(message, NFTA_RULE_TABLE, table_name(table));
	mnl_attr_put_strz(message, NFTA_RULE_CHAIN, chain);
}

/* nft delete rule ip nat KUBE-SERVICES handle 42 */
void nft_delete_rule_put(struct nlmsghdr *message, enum table table, const char *chain,
			 uint64_t handle)
{
	nft_flush_put(message, table, chain);
	mnl_attr_put_u64(message, NFTA_RULE_HANDLE, htobe64(handle));
}
