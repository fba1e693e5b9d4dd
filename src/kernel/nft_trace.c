/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "kernel/nft_message.h"

/* Where things are in the two headers. */
#define IPV4_HEADER      20
#define IPV4_PROTOCOL    9
#define IPV4_SOURCE      12
#define IPV4_DESTINATION 16
#define IPV6_HEADER      40
#define IPV6_NEXT        6
#define IPV6_SOURCE      8
#define IPV6_DESTINATION 24

/* -- the packet */

static struct addr read_addr(const uint8_t *bytes, enum family family)
{
	struct addr addr = {.family = (uint8_t)family};

	memcpy(addr.bytes, bytes, addr_bytes(family));
	return addr;
}

static bool has_ports(uint8_t protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP;
}

static bool read_network(const uint8_t *header, size_t n, struct nft_trace_packet *ret)
{
	if (n >= IPV4_HEADER && header[0] >> 4 == 4) {
		ret->protocol = header[IPV4_PROTOCOL];
		ret->source = read_addr(header + IPV4_SOURCE, FAMILY_IPV4);
		ret->destination = read_addr(header + IPV4_DESTINATION, FAMILY_IPV4);
		return true;
	}
	if (n >= IPV6_HEADER && header[0] >> 4 == 6) {
		ret->protocol = header[IPV6_NEXT];
		ret->source = read_addr(header + IPV6_SOURCE, FAMILY_IPV6);
		ret->destination = read_addr(header + IPV6_DESTINATION, FAMILY_IPV6);
		return true;
	}
	return false;
}

/* The headers lie apart; all protocols that have ports begin with them. */
static void read_packet(const struct nlmsghdr *message, struct nft_trace *trace)
{
	size_t n;
	const uint8_t *header =
		nl_attr_bytes(nft_message_attr(message, NFTA_TRACE_NETWORK_HEADER), &n);

	if (!header || !read_network(header, n, &trace->packet))
		return;
	trace->has_packet = true;
	header = nl_attr_bytes(nft_message_attr(message, NFTA_TRACE_TRANSPORT_HEADER), &n);
	if (!header || n < 4 || !has_ports(trace->packet.protocol))
		return;
	trace->packet.has_ports = true;
	trace->packet.source_port = (uint16_t)(header[0] << 8 | header[1]);
	trace->packet.port = (uint16_t)(header[2] << 8 | header[3]);
}

/* -- verdicts */

static bool read_verdict(const struct nlmsghdr *message, struct nft_trace *trace)
{
	struct nft_verdict verdict = nft_verdict_of(nft_message_attr(message, NFTA_TRACE_VERDICT));

	trace->verdict = verdict.code;
	trace->target = verdict.chain;
	return verdict.known &&
	       ((verdict.code != NFT_JUMP && verdict.code != NFT_GOTO) || verdict.chain);
}

static bool read_policy(const struct nlmsghdr *message, struct nft_trace *trace)
{
	uint32_t policy;

	if (!nft_message_u32(message, NFTA_TRACE_POLICY, &policy))
		return false;
	trace->verdict = (int32_t)policy;
	return true;
}

static bool read_decision(const struct nlmsghdr *message, struct nft_trace *trace)
{
	uint32_t type;

	if (!nft_message_u32(message, NFTA_TRACE_TYPE, &type))
		return false;
	switch (type) {
	case NFT_TRACETYPE_RULE:
	case NFT_TRACETYPE_RETURN:
		trace->kind = type == NFT_TRACETYPE_RULE ? NFT_TRACE_RULE : NFT_TRACE_RETURN;
		return read_verdict(message, trace);
	case NFT_TRACETYPE_POLICY:
		trace->kind = NFT_TRACE_POLICY;
		return read_policy(message, trace);
	default:
		return false;
	}
}

int nft_trace_decode(const struct nlmsghdr *message, struct nft_trace *ret)
{
	struct nft_trace trace = {0};

	if (nft_message_type(message) != NFT_MSG_TRACE)
		return -EBADMSG;
	trace.nfproto = nft_message_family(message);
	trace.table = nft_message_string(message, NFTA_TRACE_TABLE);
	trace.chain = nft_message_string(message, NFTA_TRACE_CHAIN);
	nft_message_u64(message, NFTA_TRACE_RULE_HANDLE, &trace.handle);
	if (!trace.table || !trace.chain || !nft_message_u32(message, NFTA_TRACE_ID, &trace.id) ||
	    !read_decision(message, &trace))
		return -EBADMSG;
	nft_message_u32(message, NFTA_TRACE_IIF, &trace.iif);
	nft_message_u32(message, NFTA_TRACE_OIF, &trace.oif);
	read_packet(message, &trace);
	*ret = trace;
	return 0;
}
