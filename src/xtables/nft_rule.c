/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/nft_rule.h"

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

#include "kernel/nft_expr.h"
#include "kernel/nft_message.h"
#include "xtables/rule_text.h"

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

static void put_compare(struct nlmsghdr *message, bool invert, const void *bytes, size_t n)
{
	nft_expr_cmp(message, NFT_REG_1, invert ? NFT_CMP_NEQ : NFT_CMP_EQ, bytes, n);
}

/* -- the matches that come first */

/* A name without its end compares as a prefix; "! -i +" is a name that no interface has. */
static void put_interface(struct nlmsghdr *message, const struct match *match)
{
	static const char none[] = "INVAL/D";
	char name[16] = {0}; /* IFNAMSIZ */
	size_t n = strnlen(match->text, sizeof(name) - 1);

	memcpy(name, match->text, n);
	nft_expr_meta(message, NFT_REG_1, NFT_META_IIFNAME);
	if (n == 0 || name[n - 1] != '+')
		put_compare(message, match->invert, name, n + 1);
	else if (n > 1)
		put_compare(message, match->invert, name, n - 1);
	else if (match->invert)
		put_compare(message, false, none, sizeof(none));
}

/*
 * Whole bytes need no mask: fewer of them are loaded. None at all cannot be loaded, so "everything
 * but 0.0.0.0/0" is compared behind a mask of zeros.
 */
static void put_prefix(struct nlmsghdr *message, enum family family, const struct match *match)
{
	size_t offset = nft_expr_address_offset(family, match->kind == MATCH_SOURCE);
	uint8_t length = match->prefix.length;
	size_t n = addr_bytes(family);
	uint8_t mask[16], bytes[16];

	if (length == 0 && !match->invert)
		return;
	prefix_mask(length, mask);
	for (size_t i = 0; i < n; i++)
		bytes[i] = match->prefix.addr.bytes[i] & mask[i];
	if (length > 0 && length % 8 == 0)
		n = length / 8;
	nft_expr_payload(message, NFT_REG_1, NFT_PAYLOAD_NETWORK_HEADER, offset, n);
	if (length == 0 || length % 8)
		nft_expr_bitwise(message, NFT_REG_1, mask, NULL, n);
	put_compare(message, match->invert, bytes, n);
}

/* -- the others, in the order of the words */

static void put_comment(struct nlmsghdr *message, const struct match *match)
{
	struct xt_comment_info info = {0};

	static_assert(sizeof(info.comment) > RULE_COMMENT_MAX, "a comment and its end");
	memcpy(info.comment, match->text, strnlen(match->text, RULE_COMMENT_MAX));
	nft_expr_match(message, "comment", 0, &info, sizeof(info));
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
	nft_expr_match(message, "sctp", 0, &info, sizeof(info));
}

static void put_any_port(struct nlmsghdr *message, enum protocol protocol)
{
	static const struct xt_tcp tcp = {.spts = {0, 0xffff}, .dpts = {0, 0xffff}};
	static const struct xt_udp udp = {.spts = {0, 0xffff}, .dpts = {0, 0xffff}};

	if (protocol == PROTOCOL_TCP)
		nft_expr_match(message, "tcp", 0, &tcp, sizeof(tcp));
	else
		nft_expr_match(message, "udp", 0, &udp, sizeof(udp));
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
		nft_expr_dport(message, NFT_REG_1);
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
	nft_expr_match(message, "conntrack", 3, &info, sizeof(info));
}

static void put_mark(struct nlmsghdr *message, const struct match *match)
{
	nft_expr_meta(message, NFT_REG_1, NFT_META_MARK);
	if (match->mark != UINT32_MAX)
		nft_expr_bitwise(message, NFT_REG_1, &match->mark, NULL, sizeof(match->mark));
	put_compare(message, match->invert, &match->mark, sizeof(match->mark));
}

static void put_local(struct nlmsghdr *message, const struct match *match)
{
	struct xt_addrtype_info_v1 info = {0};

	if (match->kind == MATCH_SOURCE_TYPE_LOCAL)
		info.source = XT_ADDRTYPE_LOCAL;
	else
		info.dest = XT_ADDRTYPE_LOCAL;
	nft_expr_match(message, "addrtype", 1, &info, sizeof(info));
}

/* The number stands there twice: the tool fills the member of the other mode, too. */
static void put_statistic(struct nlmsghdr *message, const struct match *match)
{
	struct xt_statistic_info info = {.mode = XT_STATISTIC_MODE_RANDOM};

	info.u.random.probability = probability_value(match->one_in);
	info.u.nth.count = info.u.random.probability;
	nft_expr_match(message, "statistic", 0, &info, sizeof(info));
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
	nft_expr_match(message, "recent", 1, &info, sizeof(info));
}

static void put_nfacct(struct nlmsghdr *message, const struct match *match)
{
	struct xt_nfacct_match_info_v1 info = {0};

	memcpy(info.name, match->text, strnlen(match->text, sizeof(info.name) - 1));
	nft_expr_match(message, "nfacct", 1, &info, sizeof(info));
}

/* -- targets */

static void put_masquerade(struct nlmsghdr *message, enum family family, bool random_fully)
{
	uint32_t flags = random_fully ? NF_NAT_RANGE_PROTO_RANDOM_FULLY : 0;
	struct nf_nat_ipv4_multi_range_compat ipv4 = {.rangesize = 1, .range = {{.flags = flags}}};
	struct nf_nat_range ipv6 = {.flags = flags};

	if (family == FAMILY_IPV4)
		nft_expr_target(message, "MASQUERADE", 0, &ipv4, sizeof(ipv4));
	else
		nft_expr_target(message, "MASQUERADE", 0, &ipv6, sizeof(ipv6));
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
	nft_expr_target(message, "DNAT", 2, &info, sizeof(info));
}

static void put_reject(struct nlmsghdr *message, enum family family)
{
	static const struct ipt_reject_info ipv4 = {.with = IPT_ICMP_PORT_UNREACHABLE};
	static const struct ip6t_reject_info ipv6 = {.with = IP6T_ICMP6_PORT_UNREACH};

	if (family == FAMILY_IPV4)
		nft_expr_target(message, "REJECT", 0, &ipv4, sizeof(ipv4));
	else
		nft_expr_target(message, "REJECT", 0, &ipv6, sizeof(ipv6));
}

static void put_mark_target(struct nlmsghdr *message, const struct target *target)
{
	struct xt_mark_tginfo2 info = {
		.mark = target->mark,
		.mask = target->kind == TARGET_MARK_OR ? target->mark : 0,
	};

	nft_expr_target(message, "MARK", 2, &info, sizeof(info));
}

static void put_target(struct nlmsghdr *message, enum family family, const struct target *target)
{
	switch (target->kind) {
	case TARGET_CHAIN:
		nft_expr_verdict(message, NFT_JUMP, target->chain);
		break;
	case TARGET_ACCEPT:
		nft_expr_verdict(message, NF_ACCEPT, NULL);
		break;
	case TARGET_DROP:
		nft_expr_verdict(message, NF_DROP, NULL);
		break;
	case TARGET_RETURN:
		nft_expr_verdict(message, NFT_RETURN, NULL);
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
		nft_expr_protocol(message, NFT_REG_1, protocol_number(match->protocol));
	if ((match = find(rule, MATCH_SOURCE)))
		put_prefix(message, family, match);
	if ((match = find(rule, MATCH_DESTINATION)))
		put_prefix(message, family, match);
	for (size_t i = 0; i < rule->n_matches; i++)
		put_match(message, rule, &rule->matches[i]);
	nft_expr_counter(message);
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
