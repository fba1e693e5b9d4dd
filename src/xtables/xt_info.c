/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/xt_info.h"

#include <arpa/inet.h>
#include <assert.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
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

#include "xtables/rule_text.h"

/* Room for any of the structures, zeros where it is not filled. */
union info {
	struct xt_comment_info comment;
	struct xt_conntrack_mtinfo3 conntrack;
	struct xt_addrtype_info_v1 addrtype;
	struct xt_statistic_info statistic;
	struct xt_recent_mtinfo_v1 recent;
	struct xt_nfacct_match_info_v1 nfacct;
	struct xt_tcp tcp;
	struct xt_udp udp;
	struct xt_sctp_info sctp;
	struct xt_mark_tginfo2 mark;
	struct ipt_reject_info reject;
	struct ip6t_reject_info reject6;
	struct nf_nat_ipv4_multi_range_compat masquerade;
	struct nf_nat_range masquerade6;
	struct nf_nat_range2 dnat;
};

/* -- matches */

static void fill_comment(union info *info, const struct match *match)
{
	static_assert(sizeof(info->comment.comment) > RULE_COMMENT_MAX, "a comment and its end");
	memcpy(info->comment.comment, match->text, strnlen(match->text, RULE_COMMENT_MAX));
}

static const uint16_t state_bits[] = {
	XT_CONNTRACK_STATE_INVALID,
	XT_CONNTRACK_STATE_BIT(IP_CT_NEW),
	XT_CONNTRACK_STATE_BIT(IP_CT_RELATED),
	XT_CONNTRACK_STATE_BIT(IP_CT_ESTABLISHED),
	XT_CONNTRACK_STATE_DNAT,
};

static_assert(1 << (ARRAY_SIZE(state_bits) - 1) == CTSTATE_DNAT, "one for each state");

static void fill_conntrack(union info *info, const struct match *match)
{
	info->conntrack.match_flags = XT_CONNTRACK_STATE;
	info->conntrack.invert_flags = match->invert ? XT_CONNTRACK_STATE : 0;
	for (size_t i = 0; i < ARRAY_SIZE(state_bits); i++)
		if (match->ctstate & 1U << i)
			info->conntrack.state_mask |= state_bits[i];
}

static void fill_addrtype(union info *info, const struct match *match)
{
	if (match->kind == MATCH_SOURCE_TYPE_LOCAL)
		info->addrtype.source = XT_ADDRTYPE_LOCAL;
	else
		info->addrtype.dest = XT_ADDRTYPE_LOCAL;
}

/* The number stands there twice: the tool fills the member of the other mode, too. */
static void fill_statistic(union info *info, const struct match *match)
{
	info->statistic.mode = XT_STATISTIC_MODE_RANDOM;
	info->statistic.u.random.probability = probability_value(match->one_in);
	info->statistic.u.nth.count = info->statistic.u.random.probability;
}

static void fill_recent(union info *info, const struct match *match)
{
	bool set = match->kind == MATCH_RECENT_SET;

	static_assert(sizeof(info->recent.name) > RULE_RECENT_MAX, "a name and its end");
	info->recent.seconds = set ? 0 : match->recent.seconds;
	info->recent.check_set = set ? XT_RECENT_SET : XT_RECENT_CHECK | XT_RECENT_REAP;
	info->recent.side = XT_RECENT_SOURCE;
	memcpy(info->recent.name, match->recent.name, strnlen(match->recent.name, RULE_RECENT_MAX));
	memset(&info->recent.mask, 0xff, sizeof(info->recent.mask));
}

static void fill_nfacct(union info *info, const struct match *match)
{
	static_assert(sizeof(info->nfacct.name) > RULE_NFACCT_MAX, "a name and its end");
	memcpy(info->nfacct.name, match->text, strnlen(match->text, RULE_NFACCT_MAX));
}

static void fill_tcp(union info *info, const struct match *match)
{
	info->tcp.spts[1] = UINT16_MAX;
	info->tcp.dpts[0] = match->port;
	info->tcp.dpts[1] = match->port ? match->port : UINT16_MAX;
}

static void fill_udp(union info *info, const struct match *match)
{
	info->udp.spts[1] = UINT16_MAX;
	info->udp.dpts[0] = match->port;
	info->udp.dpts[1] = match->port ? match->port : UINT16_MAX;
}

/* -m sctp takes any chunk: as many entries as there are say so. */
static void fill_sctp(union info *info, const struct match *match)
{
	for (size_t i = 0; i < ARRAY_SIZE(info->sctp.flag_info); i++)
		info->sctp.flag_info[i].chunktype = 0xff;
	info->sctp.dpts[0] = info->sctp.dpts[1] = match->port;
	info->sctp.flags = match->port ? XT_SCTP_DEST_PORTS : 0;
}

struct xt_match {
	const char *name;
	uint32_t revision;
	size_t size;
	void (*fill)(union info *info, const struct match *match);
};

#define ADDRTYPE                                                                 \
	{                                                                        \
		"addrtype", 1, sizeof(struct xt_addrtype_info_v1), fill_addrtype \
	}
#define RECENT                                                               \
	{                                                                    \
		"recent", 1, sizeof(struct xt_recent_mtinfo_v1), fill_recent \
	}

static const struct xt_match matches[MATCH_COUNT] = {
	[MATCH_COMMENT] = {"comment", 0, sizeof(struct xt_comment_info), fill_comment},
	[MATCH_CTSTATE] = {"conntrack", 3, sizeof(struct xt_conntrack_mtinfo3), fill_conntrack},
	[MATCH_SOURCE_TYPE_LOCAL] = ADDRTYPE,
	[MATCH_DESTINATION_TYPE_LOCAL] = ADDRTYPE,
	[MATCH_STATISTIC] = {"statistic", 0, sizeof(struct xt_statistic_info), fill_statistic},
	[MATCH_RECENT_CHECK] = RECENT,
	[MATCH_RECENT_SET] = RECENT,
	[MATCH_NFACCT] = {"nfacct", 1, sizeof(struct xt_nfacct_match_info_v1), fill_nfacct},
};

static const struct xt_match ports[] = {
	[PROTOCOL_TCP] = {"tcp", 0, sizeof(struct xt_tcp), fill_tcp},
	[PROTOCOL_UDP] = {"udp", 0, sizeof(struct xt_udp), fill_udp},
	[PROTOCOL_SCTP] = {"sctp", 0, sizeof(struct xt_sctp_info), fill_sctp},
};

static void put_match(struct nlmsghdr *message, const struct xt_match *xt,
		      const struct match *match)
{
	union info info;

	memset(&info, 0, xt->size);
	xt->fill(&info, match);
	nft_expr_match(message, xt->name, xt->revision, &info, xt->size);
}

void xt_put_match(struct nlmsghdr *message, const struct match *match)
{
	assert(matches[match->kind].name);
	put_match(message, &matches[match->kind], match);
}

void xt_put_port(struct nlmsghdr *message, enum protocol protocol, uint16_t port)
{
	const struct match match = {.kind = MATCH_PORT, .port = port};

	put_match(message, &ports[protocol], &match);
}

/* -- targets */

static size_t fill_reject(union info *info, enum family family,
			  const struct target *target attr_unused)
{
	static_assert(sizeof(info->reject) == sizeof(info->reject6), "one number");
	if (family == FAMILY_IPV4)
		info->reject.with = IPT_ICMP_PORT_UNREACHABLE;
	else
		info->reject6.with = IP6T_ICMP6_PORT_UNREACH;
	return sizeof(info->reject);
}

static size_t fill_mark(union info *info, enum family family attr_unused,
			const struct target *target)
{
	info->mark.mark = target->mark;
	info->mark.mask = target->kind == TARGET_MARK_OR ? target->mark : 0;
	return sizeof(info->mark);
}

static size_t fill_masquerade(union info *info, enum family family, const struct target *target)
{
	uint32_t flags = target->random_fully ? NF_NAT_RANGE_PROTO_RANDOM_FULLY : 0;

	if (family == FAMILY_IPV6) {
		info->masquerade6.flags = flags;
		return sizeof(info->masquerade6);
	}
	info->masquerade.rangesize = 1;
	info->masquerade.range[0].flags = flags;
	return sizeof(info->masquerade);
}

static size_t fill_dnat(union info *info, enum family family, const struct target *target)
{
	static_assert(sizeof(info->dnat.min_addr) == sizeof(target->dnat.addr.bytes), "16 bytes");
	info->dnat.flags = NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED;
	memcpy(&info->dnat.min_addr, target->dnat.addr.bytes, addr_bytes(family));
	info->dnat.max_addr = info->dnat.min_addr;
	info->dnat.min_proto.all = info->dnat.max_proto.all = htons(target->dnat.port);
	return sizeof(info->dnat);
}

static const struct xt_target {
	const char *name;
	uint32_t revision;
	size_t (*fill)(union info *info, enum family family, const struct target *target);
} targets[TARGET_COUNT] = {
	[TARGET_REJECT] = {"REJECT", 0, fill_reject},
	[TARGET_MARK_XOR] = {"MARK", 2, fill_mark},
	[TARGET_MARK_OR] = {"MARK", 2, fill_mark},
	[TARGET_MASQUERADE] = {"MASQUERADE", 0, fill_masquerade},
	[TARGET_DNAT] = {"DNAT", 2, fill_dnat},
};

void xt_put_target(struct nlmsghdr *message, enum family family, const struct target *target)
{
	const struct xt_target *xt = &targets[target->kind];
	union info info = {0};
	size_t size = xt->fill(&info, family, target);

	nft_expr_target(message, xt->name, xt->revision, &info, size);
}
