/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/nft_rule.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>

#include "kernel/nft_expr.h"
#include "kernel/nft_message.h"
#include "xtables/xt_info.h"

/*
 * iptables-nft says -i, -p, -s, -d and --dport of TCP and UDP, -m mark, jumps and verdicts in
 * nf_tables' own expressions, in an order of its own whatever the order of the words was; the
 * other matches follow in the order of the words, then a counter, then the target. What is
 * not an expression of nf_tables is an xt match or target (xt_info.h).
 *
 * A register holds what is loaded for the comparison behind it: always the first.
 */

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

/* What "-m tcp" stands for, with the port that is said further on. */
static void put_transport(struct nlmsghdr *message, const struct rule *rule, enum protocol protocol)
{
	const struct match *match = rule_match(rule, MATCH_PORT);
	uint16_t port = match ? match->port : 0;
	uint16_t wire = htons(port);

	if (protocol == PROTOCOL_SCTP || port == 0) {
		xt_put_port(message, protocol, port);
	} else {
		nft_expr_dport(message, NFT_REG_1);
		put_compare(message, false, &wire, sizeof(wire));
	}
}

static void put_mark(struct nlmsghdr *message, const struct match *match)
{
	nft_expr_meta(message, NFT_REG_1, NFT_META_MARK);
	if (match->mark != UINT32_MAX)
		nft_expr_bitwise(message, NFT_REG_1, &match->mark, NULL, sizeof(match->mark));
	put_compare(message, match->invert, &match->mark, sizeof(match->mark));
}

/* -- targets */

static void put_target(struct nlmsghdr *message, enum family family, const struct target *target)
{
	switch (target->kind) {
	case TARGET_NONE:
		break;
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
	default:
		xt_put_target(message, family, target);
	}
}

/* -- the whole rule */

static void put_match(struct nlmsghdr *message, const struct rule *rule, const struct match *match)
{
	switch (match->kind) {
	case MATCH_PROTOCOL:
		put_transport(message, rule, match->protocol);
		break;
	case MATCH_MARK:
		put_mark(message, match);
		break;
	case MATCH_INTERFACE:
	case MATCH_SOURCE:
	case MATCH_DESTINATION:
	case MATCH_PORT: /* it came first, or with the protocol */
		break;
	default:
		xt_put_match(message, match);
	}
}

static void put_expressions(struct nlmsghdr *message, enum family family, const struct rule *rule)
{
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);
	const struct match *match;

	if ((match = rule_match(rule, MATCH_INTERFACE)))
		put_interface(message, match);
	if ((match = rule_match(rule, MATCH_PROTOCOL)))
		nft_expr_protocol(message, NFT_REG_1, protocol_number(match->protocol));
	if ((match = rule_match(rule, MATCH_SOURCE)))
		put_prefix(message, family, match);
	if ((match = rule_match(rule, MATCH_DESTINATION)))
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
	const struct match *match = rule_match(rule, MATCH_PROTOCOL);
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
