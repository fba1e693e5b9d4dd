/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What nf_tables tells of a traced packet (NFT_MSG_TRACE): one message for each rule that it matches
 * and for each chain that it leaves by its end. The bytes are the kernel's, and inside them those of
 * a packet that any host may have sent: no length is trusted.
 *
 * A message does not say at which hook it was made. But the first one of each base chain carries the
 * packet's headers, as they are at that point, and names the base chain itself.
 */

#include "base/addr.h"

struct nlmsghdr;

/* Headers as far as a proxy cares. */
struct nft_trace_packet {
	uint8_t protocol; /* IPPROTO_*; of IPv6 the first header's */
	struct addr source, destination;
	bool has_ports;
	uint16_t source_port, port;
};

/* Why there is a message. */
enum nft_trace_kind {
	NFT_TRACE_RULE = 0, /* a rule matched: handle and verdict; without handle the chain ended */
	NFT_TRACE_RETURN, /* back to the chain before; which of the two, kernels see differently */
	NFT_TRACE_POLICY, /* the end of a base chain: the verdict is its policy */
	NFT_TRACE_KIND_COUNT,
};

/* Texts are borrowed from the message. */
struct nft_trace {
	uint32_t id;     /* the same for one packet, until the kernel copies it */
	uint8_t nfproto; /* the table's: NFPROTO_IPV4, NFPROTO_INET, ... */
	enum nft_trace_kind kind;
	const char *table, *chain;
	uint64_t handle;    /* of the rule; 0: none */
	int32_t verdict;    /* NF_ACCEPT, NF_DROP, NFT_JUMP, ... */
	const char *target; /* the chain that a jump or goto leads to; NULL: none */
	bool has_packet;    /* a base chain begins */
	struct nft_trace_packet packet;
	uint32_t iif, oif; /* indexes of interfaces; 0: not told */
};

/* 0, or -EBADMSG when it is no such message. *ret is untouched on failure. */
int nft_trace_decode(const struct nlmsghdr *message, struct nft_trace *ret);
