/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_expr.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/rtnetlink.h>

#include "kernel/nft_message.h"

#define BYTES_MAX 16 /* of a register */

uint32_t nft_expr_address_offset(enum family family, bool source)
{
	uint32_t offset = family == FAMILY_IPV4 ? 12 : 8; /* of the source in either header */

	return source ? offset : offset + (uint32_t)addr_bytes(family);
}

/* -- the frame of every expression: its name, and a nest for its attributes */

struct frame {
	struct nlattr *element, *data;
};

static struct frame begin(struct nlmsghdr *m, const char *name)
{
	struct frame frame = {.element = mnl_attr_nest_start(m, NFTA_LIST_ELEM)};

	mnl_attr_put_strz(m, NFTA_EXPR_NAME, name);
	frame.data = mnl_attr_nest_start(m, NFTA_EXPR_DATA);
	return frame;
}

static void end(struct nlmsghdr *m, struct frame frame)
{
	mnl_attr_nest_end(m, frame.data);
	mnl_attr_nest_end(m, frame.element);
}

/* -- loads */

/* @nh,128,32: [ payload load 4b @ network header + 16 => reg 1 ] */
void nft_expr_payload(struct nlmsghdr *m, uint32_t reg, uint32_t base, size_t offset, size_t n)
{
	struct frame frame = begin(m, "payload");

	nft_put_u32(m, NFTA_PAYLOAD_DREG, reg);
	nft_put_u32(m, NFTA_PAYLOAD_BASE, base);
	nft_put_u32(m, NFTA_PAYLOAD_OFFSET, (uint32_t)offset);
	nft_put_u32(m, NFTA_PAYLOAD_LEN, (uint32_t)n);
	end(m, frame);
}

/* ip saddr, ip6 daddr */
void nft_expr_address(struct nlmsghdr *m, uint32_t reg, enum family family, bool source)
{
	nft_expr_payload(m, reg, NFT_PAYLOAD_NETWORK_HEADER,
			 nft_expr_address_offset(family, source), addr_bytes(family));
}

/* th dport */
void nft_expr_dport(struct nlmsghdr *m, uint32_t reg)
{
	nft_expr_payload(m, reg, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(uint16_t));
}

/* meta mark: [ meta load mark => reg 1 ] */
void nft_expr_meta(struct nlmsghdr *m, uint32_t reg, uint32_t key)
{
	struct frame frame = begin(m, "meta");

	nft_put_u32(m, NFTA_META_KEY, key);
	nft_put_u32(m, NFTA_META_DREG, reg);
	end(m, frame);
}

/* ct status: [ ct load status => reg 1 ] */
void nft_expr_ct(struct nlmsghdr *m, uint32_t reg, uint32_t key)
{
	struct frame frame = begin(m, "ct");

	nft_put_u32(m, NFTA_CT_KEY, key);
	nft_put_u32(m, NFTA_CT_DREG, reg);
	end(m, frame);
}

/* ct original proto-dst: [ ct load proto_dst => reg 1 , dir original ] */
void nft_expr_ct_original(struct nlmsghdr *m, uint32_t reg, uint32_t key)
{
	struct frame frame = begin(m, "ct");

	nft_put_u32(m, NFTA_CT_KEY, key);
	nft_put_u32(m, NFTA_CT_DREG, reg);
	mnl_attr_put_u8(m, NFTA_CT_DIRECTION, IP_CT_DIR_ORIGINAL);
	end(m, frame);
}

/* numgen random mod 3: [ numgen reg 1 = random mod 3 ] */
void nft_expr_random(struct nlmsghdr *m, uint32_t reg, uint32_t modulus)
{
	struct frame frame = begin(m, "numgen");

	nft_put_u32(m, NFTA_NG_DREG, reg);
	nft_put_u32(m, NFTA_NG_MODULUS, modulus);
	nft_put_u32(m, NFTA_NG_TYPE, NFT_NG_RANDOM);
	nft_put_u32(m, NFTA_NG_OFFSET, 0);
	end(m, frame);
}

/* fib daddr type: [ fib daddr type => reg 1 ] */
static void put_fib_type(struct nlmsghdr *m, uint32_t reg, uint32_t flag)
{
	struct frame frame = begin(m, "fib");

	nft_put_u32(m, NFTA_FIB_DREG, reg);
	nft_put_u32(m, NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
	nft_put_u32(m, NFTA_FIB_FLAGS, flag);
	end(m, frame);
}

/* [ immediate reg 1 0x00000001 ], which `meta nftrace set 1` begins with */
void nft_expr_value(struct nlmsghdr *m, uint32_t reg, const void *bytes, size_t n)
{
	struct frame frame = begin(m, "immediate");

	nft_put_u32(m, NFTA_IMMEDIATE_DREG, reg);
	nft_put_value(m, NFTA_IMMEDIATE_DATA, bytes, n);
	end(m, frame);
}

/* meta mark | 0x4000: [ bitwise reg 1 = ( reg 1 & 0xffffbfff ) ^ 0x00004000 ] */
void nft_expr_bitwise(struct nlmsghdr *m, uint32_t reg, const void *mask, const void * xor,
		      size_t n)
{
	static const uint8_t zeros[BYTES_MAX];
	struct frame frame = begin(m, "bitwise");

	assert(n <= sizeof(zeros));
	nft_put_u32(m, NFTA_BITWISE_SREG, reg);
	nft_put_u32(m, NFTA_BITWISE_DREG, reg);
	nft_put_u32(m, NFTA_BITWISE_LEN, (uint32_t)n);
	nft_put_value(m, NFTA_BITWISE_MASK, mask, n);
	nft_put_value(m, NFTA_BITWISE_XOR, xor? xor : zeros, n);
	end(m, frame);
}

/* -- conditions */

/* != 10.96.0.10: [ cmp neq reg 1 0x0a60000a ] */
void nft_expr_cmp(struct nlmsghdr *m, uint32_t reg, uint32_t op, const void *bytes, size_t n)
{
	struct frame frame = begin(m, "cmp");

	nft_put_u32(m, NFTA_CMP_SREG, reg);
	nft_put_u32(m, NFTA_CMP_OP, op);
	nft_put_value(m, NFTA_CMP_DATA, bytes, n);
	end(m, frame);
}

/* meta l4proto tcp, -p tcp: [ meta load l4proto => reg 1 ] [ cmp eq reg 1 0x06 ] */
void nft_expr_protocol(struct nlmsghdr *m, uint32_t reg, uint8_t number)
{
	nft_expr_meta(m, reg, NFT_META_L4PROTO);
	nft_expr_cmp(m, reg, NFT_CMP_EQ, &number, sizeof(number));
}

/* fib daddr type local: [ fib daddr type => reg 1 ] [ cmp eq reg 1 0x00000002 ] */
void nft_expr_local(struct nlmsghdr *m, uint32_t reg, uint32_t flag)
{
	uint32_t local = RTN_LOCAL;

	put_fib_type(m, reg, flag);
	nft_expr_cmp(m, reg, NFT_CMP_EQ, &local, sizeof(local));
}

/* & 0x4000 != 0: [ bitwise reg 1 = ( reg 1 & 0x00004000 ) ^ 0x00000000 ] [ cmp neq reg 1 0x00000000 ] */
void nft_expr_any_bit(struct nlmsghdr *m, uint32_t reg, uint32_t mask)
{
	uint32_t zero = 0;

	nft_expr_bitwise(m, reg, &mask, NULL, sizeof(mask));
	nft_expr_cmp(m, reg, NFT_CMP_NEQ, &zero, sizeof(zero));
}

/* != @set: [ lookup reg 1 set NAME 0x1 ] */
void nft_expr_lookup(struct nlmsghdr *m, uint32_t reg, const char *set, bool invert)
{
	struct frame frame = begin(m, "lookup");

	mnl_attr_put_strz(m, NFTA_LOOKUP_SET, set);
	nft_put_u32(m, NFTA_LOOKUP_SREG, reg);
	if (invert)
		nft_put_u32(m, NFTA_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
	end(m, frame);
}

/* limit rate 10/second burst 5 packets: [ limit rate 10/second burst 5 type packets flags 0x0 ] */
void nft_expr_limit(struct nlmsghdr *m, uint64_t rate, uint32_t burst)
{
	struct frame frame = begin(m, "limit");

	mnl_attr_put_u64(m, NFTA_LIMIT_RATE, htobe64(rate));
	mnl_attr_put_u64(m, NFTA_LIMIT_UNIT, htobe64(1));
	nft_put_u32(m, NFTA_LIMIT_BURST, burst);
	nft_put_u32(m, NFTA_LIMIT_TYPE, NFT_LIMIT_PKTS);
	end(m, frame);
}

/* -- matches and targets of xtables */

static_assert(NFTA_MATCH_NAME == (int)NFTA_TARGET_NAME && NFTA_MATCH_REV == (int)NFTA_TARGET_REV &&
		      NFTA_MATCH_INFO == (int)NFTA_TARGET_INFO,
	      "matches and targets have the same attributes");

/* The structure, with zeros up to a multiple of eight, which is what XT_ALIGN comes to. */
static void put_info(struct nlmsghdr *m, const void *info, size_t size)
{
	struct nlattr *attr = mnl_nlmsg_get_payload_tail(m);
	size_t padded = (size + 7) & ~(size_t)7;
	uint8_t *at = mnl_attr_get_payload(attr);

	attr->nla_type = NFTA_MATCH_INFO;
	attr->nla_len = (uint16_t)(MNL_ATTR_HDRLEN + padded);
	memcpy(at, info, size);
	memset(at + size, 0, padded - size);
	m->nlmsg_len += attr->nla_len;
}

static void put_xt(struct nlmsghdr *m, const char *kind, const char *name, uint32_t revision,
		   const void *info, size_t size)
{
	struct frame frame = begin(m, kind);

	mnl_attr_put_strz(m, NFTA_MATCH_NAME, name);
	nft_put_u32(m, NFTA_MATCH_REV, revision);
	put_info(m, info, size);
	end(m, frame);
}

/* iptables -m comment: [ match name comment rev 0 ] */
void nft_expr_match(struct nlmsghdr *m, const char *name, uint32_t revision, const void *info,
		    size_t size)
{
	put_xt(m, "match", name, revision, info, size);
}

/* iptables -j DNAT: [ target name DNAT rev 2 ] */
void nft_expr_target(struct nlmsghdr *m, const char *name, uint32_t revision, const void *info,
		     size_t size)
{
	put_xt(m, "target", name, revision, info, size);
}

/* -- what happens */

/* map @NAME: [ lookup reg 1 set NAME dreg 1 ]; vmap @NAME: [ lookup reg 1 set NAME dreg 0 ] */
void nft_expr_lookup_map(struct nlmsghdr *m, uint32_t reg, const char *map, uint32_t to)
{
	struct frame frame = begin(m, "lookup");

	mnl_attr_put_strz(m, NFTA_LOOKUP_SET, map);
	nft_put_u32(m, NFTA_LOOKUP_SREG, reg);
	nft_put_u32(m, NFTA_LOOKUP_DREG, to);
	end(m, frame);
}

/* meta mark set: [ meta set mark with reg 1 ] */
void nft_expr_meta_set(struct nlmsghdr *m, uint32_t reg, uint32_t key)
{
	struct frame frame = begin(m, "meta");

	nft_put_u32(m, NFTA_META_KEY, key);
	nft_put_u32(m, NFTA_META_SREG, reg);
	end(m, frame);
}

/* dnat ip to: [ nat dnat ip addr_min reg 1 proto_min reg 9 flags 0x3 ], of which the kernel lists both ends */
void nft_expr_dnat(struct nlmsghdr *m, enum family family, uint32_t addr, uint32_t port)
{
	struct frame frame = begin(m, "nat");

	nft_put_u32(m, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	nft_put_u32(m, NFTA_NAT_FAMILY, nft_family(family));
	nft_put_u32(m, NFTA_NAT_REG_ADDR_MIN, addr);
	nft_put_u32(m, NFTA_NAT_REG_ADDR_MAX, addr);
	nft_put_u32(m, NFTA_NAT_REG_PROTO_MIN, port);
	nft_put_u32(m, NFTA_NAT_REG_PROTO_MAX, port);
	nft_put_u32(m, NFTA_NAT_FLAGS, NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED);
	end(m, frame);
}

/* masquerade fully-random: [ masq flags 0x10 ] */
void nft_expr_masquerade(struct nlmsghdr *m, uint32_t flags)
{
	struct frame frame = begin(m, "masq");

	nft_put_u32(m, NFTA_MASQ_FLAGS, flags);
	end(m, frame);
}

/* counter packets 0 bytes 0: [ counter pkts 0 bytes 0 ] */
void nft_expr_counter(struct nlmsghdr *m)
{
	struct frame frame = begin(m, "counter");

	mnl_attr_put_u64(m, NFTA_COUNTER_BYTES, 0);
	mnl_attr_put_u64(m, NFTA_COUNTER_PACKETS, 0);
	end(m, frame);
}

/* counter name "X": [ objref type 1 name X ] */
void nft_expr_named_counter(struct nlmsghdr *m, const char *name)
{
	struct frame frame = begin(m, "objref");

	nft_put_u32(m, NFTA_OBJREF_IMM_TYPE, NFT_OBJECT_COUNTER);
	mnl_attr_put_strz(m, NFTA_OBJREF_IMM_NAME, name);
	end(m, frame);
}

/* update @NAME { ip saddr timeout 3h : meta priority }:
 * [ dynset update reg_key 1 set NAME timeout 10800000ms sreg_data 9 ] */
void nft_expr_dynset(struct nlmsghdr *m, const struct nft_expr_update *update)
{
	struct frame frame = begin(m, "dynset");

	mnl_attr_put_strz(m, NFTA_DYNSET_SET_NAME, update->set);
	nft_put_u32(m, NFTA_DYNSET_OP, update->op);
	nft_put_u32(m, NFTA_DYNSET_SREG_KEY, update->key);
	if (update->data)
		nft_put_u32(m, NFTA_DYNSET_SREG_DATA, update->data);
	if (update->timeout_ms > 0)
		mnl_attr_put_u64(m, NFTA_DYNSET_TIMEOUT, htobe64(update->timeout_ms));
	end(m, frame);
}

/* -- how a rule ends */

/* jump NAME, -j NAME: [ immediate reg 0 jump -> NAME ]; drop: [ immediate reg 0 drop ] */
void nft_expr_verdict(struct nlmsghdr *m, int code, const char *chain)
{
	struct frame frame = begin(m, "immediate");

	nft_put_u32(m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	nft_put_verdict(m, NFTA_IMMEDIATE_DATA, code, chain);
	end(m, frame);
}

/* reject: [ reject type 0 code 3 ] */
void nft_expr_reject(struct nlmsghdr *m, enum family family)
{
	struct frame frame = begin(m, "reject");

	nft_put_u32(m, NFTA_REJECT_TYPE, NFT_REJECT_ICMP_UNREACH);
	mnl_attr_put_u8(m, NFTA_REJECT_ICMP_CODE,
			family == FAMILY_IPV4 ? ICMP_PORT_UNREACH : ICMPV6_PORT_UNREACH);
	end(m, frame);
}

/* reject with tcp reset: [ reject type 1 ] */
void nft_expr_reset(struct nlmsghdr *m)
{
	struct frame frame = begin(m, "reject");

	nft_put_u32(m, NFTA_REJECT_TYPE, NFT_REJECT_TCP_RST);
	end(m, frame);
}

/* -- reading */

int nft_expr_next(struct nl_attrs *list, struct nft_expr *ret)
{
	const struct nlattr *element, *v[NFTA_EXPR_DATA + 1];
	int r = nl_attr_next(list, &element);

	if (r <= 0)
		return r;
	r = nl_attr_by_type(nl_attr_nest(element), v, NFTA_EXPR_DATA);
	ret->name = nl_attr_text(v[NFTA_EXPR_NAME]);
	if (r < 0 || !ret->name)
		return -EBADMSG;
	ret->data = v[NFTA_EXPR_DATA];
	ret->parsed = nl_attr_by_type(nl_attr_nest(ret->data), ret->v, NFT_EXPR_ATTR_MAX);
	return 1;
}
