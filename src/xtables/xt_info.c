/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/xt_info.h"

#include <arpa/inet.h>
#include <assert.h>
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
	struct xt_sctp_info sctp;
	struct xt_mark_mtinfo1 marked;
	struct xt_mark_tginfo2 mark;
	struct ipt_reject_info reject;
	struct ip6t_reject_info reject6;
	struct nf_nat_ipv4_multi_range_compat masquerade;
	struct nf_nat_range masquerade6;
	struct nf_nat_range2 dnat;
};

/*
 * Of every structure a function fills it and a function takes the value out of it, as if it were one of
 * ours: what is not would be filled in another way, and that is found out by comparing. Structures to
 * be read lie in a message, whose address divides by 4 and no more. Texts are borrowed from there.
 */

/* -- matches */

static void fill_comment(union info *info, const struct match *match)
{
	static_assert(sizeof(info->comment.comment) > RULE_COMMENT_MAX, "a comment and its end");
	memcpy(info->comment.comment, match->text, strnlen(match->text, RULE_COMMENT_MAX));
}

static void get_comment(const void *info, struct match *ret)
{
	ret->kind = MATCH_COMMENT;
	ret->text = info;
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
	if (match->bare)
		info->conntrack.match_flags |= XT_CONNTRACK_STATE_ALIAS;
	info->conntrack.invert_flags = match->invert ? XT_CONNTRACK_STATE : 0;
	for (size_t i = 0; i < ARRAY_SIZE(state_bits); i++)
		if (match->ctstate & 1U << i)
			info->conntrack.state_mask |= state_bits[i];
}

static void get_conntrack(const void *info, struct match *ret)
{
	const struct xt_conntrack_mtinfo3 *conntrack = info;

	ret->kind = MATCH_CTSTATE;
	ret->invert = conntrack->invert_flags;
	ret->bare = conntrack->match_flags & XT_CONNTRACK_STATE_ALIAS;
	ret->ctstate = 0;
	for (size_t i = 0; i < ARRAY_SIZE(state_bits); i++)
		if (conntrack->state_mask & state_bits[i])
			ret->ctstate |= 1U << i;
}

static void fill_addrtype(union info *info, const struct match *match)
{
	if (match->kind == MATCH_SOURCE_TYPE_LOCAL)
		info->addrtype.source = XT_ADDRTYPE_LOCAL;
	else
		info->addrtype.dest = XT_ADDRTYPE_LOCAL;
}

static void get_addrtype(const void *info, struct match *ret)
{
	const struct xt_addrtype_info_v1 *addrtype = info;

	ret->kind = addrtype->source ? MATCH_SOURCE_TYPE_LOCAL : MATCH_DESTINATION_TYPE_LOCAL;
}

/* The number stands there twice: the tool fills the member of the other mode, too. */
static void fill_statistic(union info *info, const struct match *match)
{
	info->statistic.mode = XT_STATISTIC_MODE_RANDOM;
	info->statistic.u.random.probability = probability_value(match->one_in);
	info->statistic.u.nth.count = info->statistic.u.random.probability;
}

static void get_statistic(const void *info, struct match *ret)
{
	uint32_t share;

	memcpy(&share, (const uint8_t *)info + offsetof(struct xt_statistic_info, u.random),
	       sizeof(share));
	ret->kind = MATCH_STATISTIC;
	ret->one_in = probability_one_in(share / 2147483648.0);
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

static void get_recent(const void *info, struct match *ret)
{
	const struct xt_recent_mtinfo_v1 *recent = info;

	ret->kind = recent->check_set == XT_RECENT_SET ? MATCH_RECENT_SET : MATCH_RECENT_CHECK;
	ret->recent.name = recent->name;
	ret->recent.seconds = recent->seconds;
}

static void fill_nfacct(union info *info, const struct match *match)
{
	static_assert(sizeof(info->nfacct.name) > RULE_NFACCT_MAX, "a name and its end");
	memcpy(info->nfacct.name, match->text, strnlen(match->text, RULE_NFACCT_MAX));
}

static void get_nfacct(const void *info, struct match *ret)
{
	static_assert(offsetof(struct xt_nfacct_match_info_v1, name) == 0, "the name comes first");
	ret->kind = MATCH_NFACCT;
	ret->text = info;
}

/* iptables before 1.8.8 has no expressions of nf_tables for it. */
static void fill_marked(union info *info, const struct match *match)
{
	info->marked.mark = info->marked.mask = match->mark;
	info->marked.invert = match->invert;
}

static void get_marked(const void *info, struct match *ret)
{
	const struct xt_mark_mtinfo1 *marked = info;

	ret->kind = MATCH_MARK;
	ret->invert = marked->invert;
	ret->mark = marked->mark;
}

/* Of UDP, too: its structure begins so, and the rest is zeros. */
static void fill_tcp(union info *info, const struct match *match)
{
	info->tcp.spts[1] = UINT16_MAX;
	info->tcp.dpts[0] = match->port;
	info->tcp.dpts[1] = match->port ? match->port : UINT16_MAX;
}

static void get_tcp(const void *info, struct match *ret)
{
	ret->port = ((const struct xt_tcp *)info)->dpts[0];
}

/* -m sctp takes any chunk: as many entries as there are say so. */
static void fill_sctp(union info *info, const struct match *match)
{
	for (size_t i = 0; i < ARRAY_SIZE(info->sctp.flag_info); i++)
		info->sctp.flag_info[i].chunktype = 0xff;
	info->sctp.dpts[0] = info->sctp.dpts[1] = match->port;
	info->sctp.flags = match->port ? XT_SCTP_DEST_PORTS : 0;
}

static void get_sctp(const void *info, struct match *ret)
{
	ret->port = ((const struct xt_sctp_info *)info)->dpts[0];
}

static_assert(offsetof(struct xt_tcp, spts) == offsetof(struct xt_udp, spts) &&
		      offsetof(struct xt_tcp, dpts) == offsetof(struct xt_udp, dpts),
	      "ports are in the same place");

struct xt_match {
	const char *name;
	uint32_t revision;
	size_t size;
	size_t counts; /* bytes that say something; those behind are the kernel's or mean nothing */
	void (*fill)(union info *info, const struct match *match);
	void (*get)(const void *info, struct match *ret); /* which is zeros */
};

#define ROW(name, revision, type, what)                                             \
	{                                                                           \
		name, revision, sizeof(type), sizeof(type), fill_##what, get_##what \
	}
#define ROW_UP_TO(name, revision, type, member, what)                                         \
	{                                                                                     \
		name, revision, sizeof(type), offsetof(type, member), fill_##what, get_##what \
	}

static const struct xt_match matches[MATCH_COUNT] = {
	[MATCH_COMMENT] = ROW("comment", 0, struct xt_comment_info, comment),
	[MATCH_CTSTATE] = ROW("conntrack", 3, struct xt_conntrack_mtinfo3, conntrack),
	[MATCH_MARK] = ROW("mark", 1, struct xt_mark_mtinfo1, marked),
	[MATCH_SOURCE_TYPE_LOCAL] = ROW("addrtype", 1, struct xt_addrtype_info_v1, addrtype),
	[MATCH_DESTINATION_TYPE_LOCAL] = ROW("addrtype", 1, struct xt_addrtype_info_v1, addrtype),
	[MATCH_STATISTIC] =
		ROW_UP_TO("statistic", 0, struct xt_statistic_info, u.nth.count, statistic),
	[MATCH_RECENT_CHECK] = ROW("recent", 1, struct xt_recent_mtinfo_v1, recent),
	[MATCH_RECENT_SET] = ROW("recent", 1, struct xt_recent_mtinfo_v1, recent),
	[MATCH_NFACCT] = ROW_UP_TO("nfacct", 1, struct xt_nfacct_match_info_v1, nfacct, nfacct),
};

static const struct xt_match ports[] = {
	[PROTOCOL_TCP] = ROW("tcp", 0, struct xt_tcp, tcp),
	[PROTOCOL_UDP] = ROW("udp", 0, struct xt_udp, tcp),
	[PROTOCOL_SCTP] = ROW("sctp", 0, struct xt_sctp_info, sctp),
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

/* Does an expression name this one? Then *ret_info has its structure, of n bytes at least. */
static bool is_named(const struct nft_expr *expr, const char *name, uint32_t revision, size_t n,
		     const void **ret_info)
{
	const char *named = nl_attr_text(expr->v[NFTA_MATCH_NAME]);
	uint32_t wire = ~htonl(revision);
	size_t size;

	nl_attr_copy(expr->v[NFTA_MATCH_REV], &wire, sizeof(wire));
	*ret_info = nl_attr_bytes(expr->v[NFTA_MATCH_INFO], &size);
	return named && streq(named, name) && wire == htonl(revision) && size >= n;
}

static bool read_match(const struct nft_expr *expr, const struct xt_match *xt, struct match *ret)
{
	struct match match = {0};
	const void *info;
	union info ours;

	if (!is_named(expr, xt->name, xt->revision, xt->counts, &info))
		return false;
	xt->get(info, &match);
	memset(&ours, 0, xt->size);
	xt->fill(&ours, &match);
	if (memcmp(&ours, info, xt->counts) != 0)
		return false;
	*ret = match;
	return true;
}

bool xt_read_match(const struct nft_expr *expr, struct match *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(matches); i++)
		if (matches[i].name && read_match(expr, &matches[i], ret))
			return true;
	return false;
}

bool xt_read_port(const struct nft_expr *expr, enum protocol protocol, uint16_t *ret)
{
	struct match match;

	if (!read_match(expr, &ports[protocol], &match))
		return false;
	*ret = match.port;
	return true;
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

static void get_mark(const void *info, enum family family attr_unused, struct target *ret)
{
	const struct xt_mark_tginfo2 *mark = info;

	ret->kind = mark->mask ? TARGET_MARK_OR : TARGET_MARK_XOR;
	ret->mark = mark->mark;
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

static void get_masquerade(const void *info, enum family family, struct target *ret)
{
	const struct nf_nat_ipv4_multi_range_compat *ipv4 = info;
	const struct nf_nat_range *ipv6 = info;

	ret->random_fully = family == FAMILY_IPV4 ? ipv4->range[0].flags : ipv6->flags;
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

static void get_dnat(const void *info, enum family family, struct target *ret)
{
	const struct nf_nat_range2 *range = info;

	ret->dnat.addr.family = family;
	memcpy(ret->dnat.addr.bytes, &range->min_addr, addr_bytes(family));
	ret->dnat.port = ntohs(range->min_proto.all);
}

static const struct xt_target {
	const char *name;
	uint32_t revision;
	size_t (*fill)(union info *info, enum family family, const struct target *target);
	void (*get)(const void *info, enum family family, struct target *ret); /* NULL: all said */
} targets[TARGET_COUNT] = {
	[TARGET_REJECT] = {"REJECT", 0, fill_reject, NULL},
	[TARGET_MARK_XOR] = {"MARK", 2, fill_mark, get_mark},
	[TARGET_MARK_OR] = {"MARK", 2, fill_mark, get_mark},
	[TARGET_MASQUERADE] = {"MASQUERADE", 0, fill_masquerade, get_masquerade},
	[TARGET_DNAT] = {"DNAT", 2, fill_dnat, get_dnat},
};

void xt_put_target(struct nlmsghdr *message, enum family family, const struct target *target)
{
	const struct xt_target *xt = &targets[target->kind];
	union info info = {0};
	size_t size = xt->fill(&info, family, target);

	nft_expr_target(message, xt->name, xt->revision, &info, size);
}

static bool read_target(const struct nft_expr *expr, enum family family, enum target_kind kind,
			struct target *ret)
{
	const struct xt_target *xt = &targets[kind];
	struct target target = {.kind = kind};
	union info ours = {0};
	const void *info;
	size_t size = xt->fill(&ours, family, &target);

	if (!is_named(expr, xt->name, xt->revision, size, &info))
		return false;
	if (xt->get)
		xt->get(info, family, &target);
	memset(&ours, 0, size);
	xt->fill(&ours, family, &target);
	if (memcmp(&ours, info, size) != 0)
		return false;
	*ret = target;
	return true;
}

bool xt_read_target(const struct nft_expr *expr, enum family family, struct target *ret)
{
	for (enum target_kind kind = 0; kind < TARGET_COUNT; kind++)
		if (targets[kind].name && read_target(expr, family, kind, ret))
			return true;
	return false;
}
