/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_tracer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernel/nfnetlink.h"
#include "kernel/nft_batch.h"
#include "kernel/nft_expr.h"
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"

#define RECEIVE_BUFFER      (4 << 20) /* some thousand messages */
#define BURST               5
#define TCP_FLAGS           13 /* the byte of the header */
#define TCP_FIN_SYN_RST_ACK 0x17
#define TCP_SYN             0x02

#define BEFORE_RAW      (-350) /* raw is at -300; fragments are put together at -400 */
#define AFTER_CONNTRACK (-199) /* which is at -200 */
#define BEFORE_DNAT     (-101) /* which is at -100 */
#define LAST            350    /* source addresses are translated at 100 */

struct nft_tracer {
	struct nft_socket *owner; /* the table lives as long as it is open */
	struct mnl_socket *ear;
	char *buffer; /* NFT_READ_SIZE */
	char table[64];
};

/* -- what the rule matches */

/* ip saddr 10.244.1.7, ip daddr 10.96.0.10 */
static void match_address(struct nlmsghdr *m, bool source, const struct addr *addr)
{
	nft_expr_address(m, NFT_REG_1, addr->family, source);
	nft_expr_cmp(m, NFT_REG_1, NFT_CMP_EQ, addr->bytes, addr_bytes(addr->family));
}

/* th dport 53 */
static void match_port(struct nlmsghdr *m, uint16_t port)
{
	uint16_t wire = htons(port);

	nft_expr_dport(m, NFT_REG_1);
	nft_expr_cmp(m, NFT_REG_1, NFT_CMP_EQ, &wire, sizeof(wire));
}

/* tcp flags & (fin | syn | rst | ack) == syn */
static void match_syn(struct nlmsghdr *m)
{
	uint8_t bits = TCP_FIN_SYN_RST_ACK, syn = TCP_SYN;

	nft_expr_payload(m, NFT_REG_1, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS, 1);
	nft_expr_bitwise(m, NFT_REG_1, &bits, NULL, 1);
	nft_expr_cmp(m, NFT_REG_1, NFT_CMP_EQ, &syn, 1);
}

/* ct state new */
static void match_new(struct nlmsghdr *m)
{
	nft_expr_ct(m, NFT_REG_1, NFT_CT_STATE);
	nft_expr_any_bit(m, NFT_REG_1, NFT_EXPR_CT_NEW);
}

/* meta nftrace set 1 */
static void set_trace(struct nlmsghdr *m)
{
	uint8_t on = 1;

	nft_expr_value(m, NFT_REG_1, &on, sizeof(on));
	nft_expr_meta_set(m, NFT_REG_1, NFT_META_NFTRACE);
}

/* -- the table */

/* nft add rule ip portolan-trace-4711 prerouting ... meta nftrace set 1 */
static void add_rule(const struct nft_tracer *tracer, struct nft_batch *batch,
		     const struct nft_tracer_spec *spec, const char *chain)
{
	struct nlmsghdr *m = nft_batch_message(batch, NFT_MSG_NEWRULE, spec->family,
					       NLM_F_CREATE | NLM_F_APPEND);
	struct nlattr *list;

	mnl_attr_put_strz(m, NFTA_RULE_TABLE, tracer->table);
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, chain);
	list = mnl_attr_nest_start(m, NFTA_RULE_EXPRESSIONS);
	nft_expr_protocol(m, NFT_REG_1, spec->protocol);
	if (spec->source)
		match_address(m, true, spec->source);
	if (spec->destination)
		match_address(m, false, spec->destination);
	else
		nft_expr_local(m, NFT_REG_1, NFTA_FIB_F_DADDR);
	match_port(m, spec->port);
	if (spec->protocol == IPPROTO_TCP)
		match_syn(m);
	else
		match_new(m);
	nft_expr_limit(m, NFT_TRACER_RATE, BURST);
	set_trace(m);
	mnl_attr_nest_end(m, list);
}

#define FIRST INT32_MIN /* BEFORE_RAW or AFTER_CONNTRACK */

static const struct chain {
	const char *name;
	const char *type;
	uint32_t hook;
	int32_t priority;
} chains[] = {
	{"prerouting", "filter", NF_INET_PRE_ROUTING, FIRST},
	{"output", "filter", NF_INET_LOCAL_OUT, FIRST},
	{NFT_TRACER_NEW "prerouting", "nat", NF_INET_PRE_ROUTING, BEFORE_DNAT},
	{NFT_TRACER_NEW "output", "nat", NF_INET_LOCAL_OUT, BEFORE_DNAT},
	{"input", "filter", NF_INET_LOCAL_IN, BEFORE_RAW},
	{"forward", "filter", NF_INET_FORWARD, BEFORE_RAW},
	{NFT_TRACER_DELIVERED, "filter", NF_INET_LOCAL_IN, LAST},
	{NFT_TRACER_LEFT, "filter", NF_INET_POST_ROUTING, LAST},
};

/* nft add chain ip portolan-trace-4711 left { type filter hook postrouting priority 350; } */
static void add_chain(const struct nft_tracer *tracer, struct nft_batch *batch,
		      const struct nft_tracer_spec *spec, const struct chain *chain)
{
	struct nlmsghdr *m = nft_batch_message(batch, NFT_MSG_NEWCHAIN, spec->family, NLM_F_CREATE);
	int32_t first = spec->protocol == IPPROTO_TCP ? BEFORE_RAW : AFTER_CONNTRACK;

	mnl_attr_put_strz(m, NFTA_CHAIN_TABLE, tracer->table);
	mnl_attr_put_strz(m, NFTA_CHAIN_NAME, chain->name);
	nft_put_hook(m, chain->hook, chain->priority == FIRST ? first : chain->priority);
	nft_put_u32(m, NFTA_CHAIN_POLICY, NF_ACCEPT);
	mnl_attr_put_strz(m, NFTA_CHAIN_TYPE, chain->type);
}

/* nft add table ip portolan-trace-4711 { flags owner; } */
static void add_table(const struct nft_tracer *tracer, struct nft_batch *batch,
		      const struct nft_tracer_spec *spec)
{
	struct nlmsghdr *m =
		nft_batch_message(batch, NFT_MSG_NEWTABLE, spec->family, NLM_F_CREATE | NLM_F_EXCL);

	mnl_attr_put_strz(m, NFTA_TABLE_NAME, tracer->table);
	nft_put_u32(m, NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);
	for (size_t i = 0; i < ARRAY_SIZE(chains); i++)
		add_chain(tracer, batch, spec, &chains[i]);
	add_rule(tracer, batch, spec, "prerouting");
	add_rule(tracer, batch, spec, "output");
}

static int arm(struct nft_tracer *tracer, const struct nft_tracer_spec *spec, struct err *err)
{
	cleanup_nft_batch struct nft_batch *batch = nft_batch_new();
	int r = nft_socket_open(&tracer->owner, err);

	if (r < 0)
		return r;
	add_table(tracer, batch, spec);
	r = nft_batch_commit(tracer->owner, batch, 0, NULL, NULL, err);
	return r < 0 ? r : 0;
}

/* -- listening */

static int listen_to(struct nft_tracer *tracer, struct err *err)
{
	int group = NFNLGRP_NFTRACE;
	int r = nfnetlink_open(RECEIVE_BUFFER, &tracer->ear, err);

	if (r < 0)
		return r;
	if (mnl_socket_setsockopt(tracer->ear, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
		return err_sys(err, -errno, "listening to the trace of nf_tables");
	return 0;
}

static void take_datagram(const void *data, size_t n, nft_tracer_fn *fn, void *arg)
{
	struct nft_datagram datagram = {data, n, false};
	const struct nlmsghdr *message;
	struct nft_trace trace;

	while ((message = nft_datagram_next(&datagram)))
		if (nft_trace_decode(message, &trace) == 0)
			fn(arg, &trace);
}

int nft_tracer_read(struct nft_tracer *tracer, nft_tracer_fn *fn, void *arg, struct err *err)
{
	bool lost = false;
	ssize_t n;

	while ((n = nfnetlink_read(tracer->ear, tracer->buffer, NFT_READ_SIZE)) != 0) {
		if (n > 0)
			take_datagram(tracer->buffer, (size_t)n, fn, arg);
		else if (n == -ENOBUFS || n == -EMSGSIZE)
			lost = true;
		else
			return err_sys(err, (int)n, "reading the trace of nf_tables");
	}
	return lost;
}

/* -- */

/* Listens before it arms: the first message must not be missed. */
int nft_tracer_open(const struct nft_tracer_spec *spec, struct nft_tracer **ret, struct err *err)
{
	cleanup_nft_tracer struct nft_tracer *tracer = xcalloc(1, sizeof(*tracer));
	int r;

	tracer->buffer = xmalloc(NFT_READ_SIZE);
	snprintf(tracer->table, sizeof(tracer->table), NFT_TRACER_PREFIX "%d", (int)getpid());
	r = listen_to(tracer, err);
	if (r == 0)
		r = arm(tracer, spec, err);
	if (r < 0)
		return r;
	*ret = take(tracer);
	return 0;
}

struct nft_tracer *nft_tracer_free(struct nft_tracer *tracer)
{
	if (!tracer)
		return NULL;
	nft_socket_free(tracer->owner);
	if (tracer->ear)
		mnl_socket_close(tracer->ear);
	free(tracer->buffer);
	free(tracer);
	return NULL;
}

int nft_tracer_fd(const struct nft_tracer *tracer)
{
	return mnl_socket_get_fd(tracer->ear);
}

const char *nft_tracer_table(const struct nft_tracer *tracer)
{
	return tracer->table;
}
