/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/nft_rule.h"

#include <arpa/inet.h>
#include <assert.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/xt_addrtype.h>
#include <linux/netfilter/xt_comment.h>
#include <linux/netfilter/xt_conntrack.h>
#include <linux/netfilter/xt_mark.h>
#include <linux/netfilter/xt_nfacct.h>
#include <linux/netfilter/xt_recent.h>
#include <linux/netfilter/xt_sctp.h>
#include <linux/netfilter/xt_statistic.h>
#include <linux/netfilter/xt_tcpudp.h>
#include <linux/netfilter_ipv4/ipt_REJECT.h>
#include <linux/netfilter_ipv6/ip6t_REJECT.h>

#include "backends/iptables/rule_text.h"
#include "kernel/nft_message.h"

/*
 * iptables-nft says -i, -p, -s, -d and --dport of TCP and UDP, -m mark, jumps and verdicts in
 * nf_tables' own expressions, in an order of its own whatever the order of the words was; the
 * other matches follow in the order of the words, then a counter, then the target. What is
 * not an expression of nf_tables is an xt match or target: name, revision, and the structure of the
 * kernel's header, padded.
 *
 * A register holds what is loaded for the comparison behind it: always the first.
 */

static const struct match *find(const struct rule *rule, enum match_kind kind)
{
	for (size_t i = 0; i < rule->n_matches; i++)
		if (rule->matches[i].kind == kind)
			return &rule->matches[i];
	return NULL;
}

/* -- expressions */

static struct nlattr *begin(struct nlmsghdr *message, const char *name, struct nlattr **ret_data)
{
	struct nlattr *element = mnl_attr_nest_start(message, NFTA_LIST_ELEM);

	mnl_attr_put_strz(message, NFTA_EXPR_NAME, name);
	*ret_data = mnl_attr_nest_start(message, NFTA_EXPR_DATA);
	return element;
}

static void end(struct nlmsghdr *message, struct nlattr *element, struct nlattr *data)
{
	mnl_attr_nest_end(message, data);
	mnl_attr_nest_end(message, element);
}

static void put_meta(struct nlmsghdr *message, enum nft_meta_keys key)
{
	struct nlattr *data, *element = begin(message, "meta", &data);

	nft_put_u32(message, NFTA_META_KEY, key);
	nft_put_u32(message, NFTA_META_DREG, NFT_REG_1);
	end(message, element, data);
}

static void put_payload(struct nlmsghdr *message, enum nft_payload_bases base, size_t offset,
			size_t n)
{
	struct nlattr *data, *element = begin(message, "payload", &data);

	nft_put_u32(message, NFTA_PAYLOAD_DREG, NFT_REG_1);
	nft_put_u32(message, NFTA_PAYLOAD_BASE, base);
	nft_put_u32(message, NFTA_PAYLOAD_OFFSET, (uint32_t)offset);
	nft_put_u32(message, NFTA_PAYLOAD_LEN, (uint32_t)n);
	end(message, element, data);
}

static void put_bitwise(struct nlmsghdr *message, const void *mask, size_t n)
{
	static const uint8_t zeros[16];
	struct nlattr *data, *element = begin(message, "bitwise", &data);

	nft_put_u32(message, NFTA_BITWISE_SREG, NFT_REG_1);
	nft_put_u32(message, NFTA_BITWISE_DREG, NFT_REG_1);
	nft_put_u32(message, NFTA_BITWISE_LEN, (uint32_t)n);
	nft_put_value(message, NFTA_BITWISE_MASK, mask, n);
	nft_put_value(message, NFTA_BITWISE_XOR, zeros, n);
	end(message, element, data);
}

static void put_compare(struct nlmsghdr *message, bool invert, const void *bytes, size_t n)
{
	struct nlattr *data, *element = begin(message, "cmp", &data);

	nft_put_u32(message, NFTA_CMP_SREG, NFT_REG_1);
	nft_put_u32(message, NFTA_CMP_OP, invert ? NFT_CMP_NEQ : NFT_CMP_EQ);
	nft_put_value(message, NFTA_CMP_DATA, bytes, n);
	end(message, element, data);
}

static void put_counter(struct nlmsghdr *message)
{
	struct nlattr *data, *element = begin(message, "counter", &data);

	mnl_attr_put_u64(message, NFTA_COUNTER_BYTES, 0);
	mnl_attr_put_u64(message, NFTA_COUNTER_PACKETS, 0);
	end(message, element, data);
}

static void put_verdict(struct nlmsghdr *message, int code, const char *chain)
{
	struct nlattr *data, *element = begin(message, "immediate", &data);
	struct nlattr *value, *verdict;

	nft_put_u32(message, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	value = mnl_attr_nest_start(message, NFTA_IMMEDIATE_DATA);
	verdict = mnl_attr_nest_start(message, NFTA_DATA_VERDICT);
	nft_put_u32(message, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain)
		mnl_attr_put_strz(message, NFTA_VERDICT_CHAIN, chain);
	mnl_attr_nest_end(message, verdict);
	mnl_attr_nest_end(message, value);
	end(message, element, data);
}

/* The structure, with zeros up to a multiple of eight, which is what XT_ALIGN comes to. */
static void put_info(struct nlmsghdr *message, uint16_t type, const void *info, size_t size)
{
	struct nlattr *attr = mnl_nlmsg_get_payload_tail(message);
	size_t padded = (size + 7) & ~(size_t)7;
	uint8_t *at = mnl_attr_get_payload(attr);

	attr->nla_type = type;
	attr->nla_len = (uint16_t)(MNL_ATTR_HDRLEN + padded);
	memcpy(at, info, size);
	memset(at + size, 0, padded - size);
	message->nlmsg_len += attr->nla_len;
}

static void put_xt_match(struct nlmsghdr *message, const char *name, uint32_t revision,
			 const void *info, size_t size)
{
	struct nlattr *data, *element = begin(message, "match", &data);

	mnl_attr_put_strz(message, NFTA_MATCH_NAME, name);
	nft_put_u32(message, NFTA_MATCH_REV, revision);
	put_info(message, NFTA_MATCH_INFO, info, size);
	end(message, element, data);
}

static void put_xt_target(struct nlmsghdr *message, const char *name, uint32_t revision,
			  const void *info, size_t size)
{
	struct nlattr *data, *element = begin(message, "target", &data);

	mnl_attr_put_strz(message, NFTA_TARGET_NAME, name);
	nft_put_u32(message, NFTA_TARGET_REV, revision);
	put_info(message, NFTA_TARGET_INFO, info, size);
	end(message, element, data);
}

/* -- the matches that come first */

/* A name without its end compares as a prefix; "! -i +" is a name that no interface has. */
static void put_interface(struct nlmsghdr *message, const struct match *match)
{
	static const char none[] = "INVAL/D";
	char name[16] = {0}; /* IFNAMSIZ */
	size_t n = strnlen(match->text, sizeof(name) - 1);

	memcpy(name, match->text, n);
	put_meta(message, NFT_META_IIFNAME);
	if (n == 0 || name[n - 1] != '+')
		put_compare(message, match->invert, name, n + 1);
	else if (n > 1)
		put_compare(message, match->invert, name, n - 1);
	else if (match->invert)
		put_compare(message, false, none, sizeof(none));
}

static uint8_t protocol_number(enum protocol protocol)
{
	switch (protocol) {
	case PROTOCOL_TCP:
		return IPPROTO_TCP;
	case PROTOCOL_UDP:
		return IPPROTO_UDP;
	default:
		assert(protocol == PROTOCOL_SCTP);
		return IPPROTO_SCTP;
	}
}

static void put_protocol(struct nlmsghdr *message, const struct match *match)
{
	uint8_t number = protocol_number(match->protocol);

	put_meta(message, NFT_META_L4PROTO);
	put_compare(message, false, &number, sizeof(number));
}

static void make_mask(uint8_t length, uint8_t ret_mask[16])
{
	memset(ret_mask, 0, 16);
	memset(ret_mask, 0xff, length / 8);
	if (length % 8)
		ret_mask[length / 8] = (uint8_t)(0xff << (8 - length % 8));
}

/*
 * Whole bytes need no mask: fewer of them are loaded. None at all cannot be loaded, so "everything
 * but 0.0.0.0/0" is compared behind a mask of zeros.
 */
static void put_prefix(struct nlmsghdr *message, enum family family, const struct match *match)
{
	bool source = match->kind == MATCH_SOURCE;
	size_t offset = family == FAMILY_IPV4 ? (source ? 12 : 16) : (source ? 8 : 24);
	uint8_t length = match->prefix.length;
	size_t n = addr_bytes(family);
	uint8_t mask[16], bytes[16];

	if (length == 0 && !match->invert)
		return;
	make_mask(length, mask);
	for (size_t i = 0; i < n; i++)
		bytes[i] = match->prefix.addr.bytes[i] & mask[i];
	if (length > 0 && length % 8 == 0)
		n = length / 8;
	put_payload(message, NFT_PAYLOAD_NETWORK_HEADER, offset, n);
	if (length == 0 || length % 8)
		put_bitwise(message, mask, n);
	put_compare(message, match->invert, bytes, n);
}

/* -- the others, in the order of the words */

static void put_comment(struct nlmsghdr *message, const struct match *match)
{
	struct xt_comment_info info = {0};

	static_assert(sizeof(info.comment) > RULE_COMMENT_MAX, "a comment and its end");
	memcpy(info.comment, match->text, strnlen(match->text, RULE_COMMENT_MAX));
	put_xt_match(message, "comment", 0, &info, sizeof(info));
}

/* -m sctp takes any chunk: as many entries as there are say so. */
static void put_sctp(struct nlmsghdr *message, uint16_t port)
{
	struct xt_sctp_info info = {0};

	for (size_t i = 0; i < ARRAY_SIZE(info.flag_info); i++)
		info.flag_info[i].chunktype = 0xff;
	if (port) {
		info.dpts[0] = info.dpts[1] = port;
		info.flags = XT_SCTP_DEST_PORTS;
	}
	put_xt_match(message, "sctp", 0, &info, sizeof(info));
}

static void put_any_port(struct nlmsghdr *message, enum protocol protocol)
{
	static const struct xt_tcp tcp = {.spts = {0, 0xffff}, .dpts = {0, 0xffff}};
	static const struct xt_udp udp = {.spts = {0, 0xffff}, .dpts = {0, 0xffff}};

	if (protocol == PROTOCOL_TCP)
		put_xt_match(message, "tcp", 0, &tcp, sizeof(tcp));
	else
		put_xt_match(message, "udp", 0, &udp, sizeof(udp));
}

/* What "-m tcp" stands for, with the port that is said further on. */
static void put_transport(struct nlmsghdr *message, const struct rule *rule, enum protocol protocol)
{
	const struct match *match = find(rule, MATCH_PORT);
	uint16_t port = match ? match->port : 0;
	uint16_t wire = htons(port);

	if (protocol == PROTOCOL_SCTP) {
		put_sctp(message, port);
	} else if (port == 0) {
		put_any_port(message, protocol);
	} else {
		put_payload(message, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(wire));
		put_compare(message, false, &wire, sizeof(wire));
	}
}

static void put_ctstate(struct nlmsghdr *message, const struct match *match)
{
	static const uint16_t bits[] = {
		XT_CONNTRACK_STATE_INVALID,
		XT_CONNTRACK_STATE_BIT(IP_CT_NEW),
		XT_CONNTRACK_STATE_BIT(IP_CT_RELATED),
		XT_CONNTRACK_STATE_BIT(IP_CT_ESTABLISHED),
		XT_CONNTRACK_STATE_DNAT,
	};
	struct xt_conntrack_mtinfo3 info = {
		.match_flags = XT_CONNTRACK_STATE,
		.invert_flags = match->invert ? XT_CONNTRACK_STATE : 0,
	};

	static_assert(1 << (ARRAY_SIZE(bits) - 1) == CTSTATE_DNAT, "one for each state");
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
		if (match->ctstate & 1U << i)
			info.state_mask |= bits[i];
	put_xt_match(message, "conntrack", 3, &info, sizeof(info));
}

static void put_mark(struct nlmsghdr *message, const struct match *match)
{
	put_meta(message, NFT_META_MARK);
	if (match->mark != UINT32_MAX)
		put_bitwise(message, &match->mark, sizeof(match->mark));
	put_compare(message, match->invert, &match->mark, sizeof(match->mark));
}

static void put_local(struct nlmsghdr *message, const struct match *match)
{
	struct xt_addrtype_info_v1 info = {0};

	if (match->kind == MATCH_SOURCE_TYPE_LOCAL)
		info.source = XT_ADDRTYPE_LOCAL;
	else
		info.dest = XT_ADDRTYPE_LOCAL;
	put_xt_match(message, "addrtype", 1, &info, sizeof(info));
}

/* The number stands there twice: the tool fills the member of the other mode, too. */
static void put_statistic(struct nlmsghdr *message, const struct match *match)
{
	struct xt_statistic_info info = {.mode = XT_STATISTIC_MODE_RANDOM};

	info.u.random.probability = probability_value(match->one_in);
	info.u.nth.count = info.u.random.probability;
	put_xt_match(message, "statistic", 0, &info, sizeof(info));
}

static void put_recent(struct nlmsghdr *message, const struct match *match)
{
	bool set = match->kind == MATCH_RECENT_SET;
	struct xt_recent_mtinfo_v1 info = {
		.seconds = set ? 0 : match->recent.seconds,
		.check_set = set ? XT_RECENT_SET : XT_RECENT_CHECK | XT_RECENT_REAP,
		.side = XT_RECENT_SOURCE,
	};
	size_t n = strnlen(match->recent.name, sizeof(info.name) - 1);

	memcpy(info.name, match->recent.name, n);
	memset(&info.mask, 0xff, sizeof(info.mask));
	put_xt_match(message, "recent", 1, &info, sizeof(info));
}

static void put_nfacct(struct nlmsghdr *message, const struct match *match)
{
	struct xt_nfacct_match_info_v1 info = {0};

	memcpy(info.name, match->text, strnlen(match->text, sizeof(info.name) - 1));
	put_xt_match(message, "nfacct", 1, &info, sizeof(info));
}

/* -- targets */

static void put_masquerade(struct nlmsghdr *message, enum family family, bool random_fully)
{
	uint32_t flags = random_fully ? NF_NAT_RANGE_PROTO_RANDOM_FULLY : 0;
	struct nf_nat_ipv4_multi_range_compat ipv4 = {.rangesize = 1, .range = {{.flags = flags}}};
	struct nf_nat_range ipv6 = {.flags = flags};

	if (family == FAMILY_IPV4)
		put_xt_target(message, "MASQUERADE", 0, &ipv4, sizeof(ipv4));
	else
		put_xt_target(message, "MASQUERADE", 0, &ipv6, sizeof(ipv6));
}

static void put_dnat(struct nlmsghdr *message, const struct target *target)
{
	struct nf_nat_range2 info = {
		.flags = NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED,
	};

	static_assert(sizeof(info.min_addr) == sizeof(target->dnat.addr.bytes), "16 bytes");
	memcpy(&info.min_addr, target->dnat.addr.bytes, addr_bytes(target->dnat.addr.family));
	info.max_addr = info.min_addr;
	info.min_proto.all = info.max_proto.all = htons(target->dnat.port);
	put_xt_target(message, "DNAT", 2, &info, sizeof(info));
}

static void put_reject(struct nlmsghdr *message, enum family family)
{
	static const struct ipt_reject_info ipv4 = {.with = IPT_ICMP_PORT_UNREACHABLE};
	static const struct ip6t_reject_info ipv6 = {.with = IP6T_ICMP6_PORT_UNREACH};

	if (family == FAMILY_IPV4)
		put_xt_target(message, "REJECT", 0, &ipv4, sizeof(ipv4));
	else
		put_xt_target(message, "REJECT", 0, &ipv6, sizeof(ipv6));
}

static void put_mark_target(struct nlmsghdr *message, const struct target *target)
{
	struct xt_mark_tginfo2 info = {
		.mark = target->mark,
		.mask = target->kind == TARGET_MARK_OR ? target->mark : 0,
	};

	put_xt_target(message, "MARK", 2, &info, sizeof(info));
}

static void put_target(struct nlmsghdr *message, enum family family, const struct target *target)
{
	switch (target->kind) {
	case TARGET_CHAIN:
		put_verdict(message, NFT_JUMP, target->chain);
		break;
	case TARGET_ACCEPT:
		put_verdict(message, NF_ACCEPT, NULL);
		break;
	case TARGET_DROP:
		put_verdict(message, NF_DROP, NULL);
		break;
	case TARGET_RETURN:
		put_verdict(message, NFT_RETURN, NULL);
		break;
	case TARGET_REJECT:
		put_reject(message, family);
		break;
	case TARGET_MARK_XOR:
	case TARGET_MARK_OR:
		put_mark_target(message, target);
		break;
	case TARGET_MASQUERADE:
		put_masquerade(message, family, target->random_fully);
		break;
	case TARGET_DNAT:
		put_dnat(message, target);
		break;
	default:
		assert(target->kind == TARGET_NONE);
	}
}

/* -- the whole rule */

static void put_match(struct nlmsghdr *message, const struct rule *rule, const struct match *match)
{
	switch (match->kind) {
	case MATCH_COMMENT:
		put_comment(message, match);
		break;
	case MATCH_PROTOCOL:
		put_transport(message, rule, match->protocol);
		break;
	case MATCH_CTSTATE:
		put_ctstate(message, match);
		break;
	case MATCH_MARK:
		put_mark(message, match);
		break;
	case MATCH_SOURCE_TYPE_LOCAL:
	case MATCH_DESTINATION_TYPE_LOCAL:
		put_local(message, match);
		break;
	case MATCH_STATISTIC:
		put_statistic(message, match);
		break;
	case MATCH_RECENT_CHECK:
	case MATCH_RECENT_SET:
		put_recent(message, match);
		break;
	case MATCH_NFACCT:
		put_nfacct(message, match);
		break;
	default: /* it came first, or with the protocol */
		break;
	}
}

static void put_expressions(struct nlmsghdr *message, enum family family, const struct rule *rule)
{
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);
	const struct match *match;

	if ((match = find(rule, MATCH_INTERFACE)))
		put_interface(message, match);
	if ((match = find(rule, MATCH_PROTOCOL)))
		put_protocol(message, match);
	if ((match = find(rule, MATCH_SOURCE)))
		put_prefix(message, family, match);
	if ((match = find(rule, MATCH_DESTINATION)))
		put_prefix(message, family, match);
	for (size_t i = 0; i < rule->n_matches; i++)
		put_match(message, rule, &rule->matches[i]);
	put_counter(message);
	put_target(message, family, &rule->target);
	mnl_attr_nest_end(message, list);
}

/* The kernel checks xt matches of a protocol against this, and forgets it. */
static void put_compat(struct nlmsghdr *message, const struct rule *rule)
{
	const struct match *match = find(rule, MATCH_PROTOCOL);
	struct nlattr *nest = mnl_attr_nest_start(message, NFTA_RULE_COMPAT);

	nft_put_u32(message, NFTA_RULE_COMPAT_PROTO, match ? protocol_number(match->protocol) : 0);
	nft_put_u32(message, NFTA_RULE_COMPAT_FLAGS, 0);
	mnl_attr_nest_end(message, nest);
}

void nft_rule_put(struct nlmsghdr *message, enum family family, const struct rule *rule)
{
	mnl_attr_put_strz(message, NFTA_RULE_TABLE, table_name(rule->table));
	mnl_attr_put_strz(message, NFTA_RULE_CHAIN, rule->chain);
	put_expressions(message, family, rule);
	put_compat(message, rule);
}
