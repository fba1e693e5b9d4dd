/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/xt_comment.h>
#include <linux/netfilter/xt_nfacct.h>
#include <linux/netfilter/xt_recent.h>
#include <linux/netfilter/xt_statistic.h>
#include <stdlib.h>

#include "base/siphash.h"
#include "kernel/nft_expr.h"
#include "kernel/nft_message.h"
#include "xtables/nft_rule.h"

/*
 * What is hashed is a list of pieces, each with its kind and length before it, so that no two lists
 * read alike. An expression is its name, then its attributes by rising type; of those that the
 * tables below know, only what says something about the rule. Of an expression that they do not
 * know (a rule of another program) every byte counts. A rule of our own is written as a message and
 * read back the same way: nothing is said twice.
 *
 * Versions of iptables differ in how a rule begins: 1.8.9 has -i, -p, -s, -d and asks for the
 * protocol with `meta`, 1.8.11 has -s, -d, -i, -p and reads it from an IPv4 header. So the
 * comparisons that a rule begins with, each a load and what is done with the loaded value, are
 * hashed one by one and added up: their order does not count, and both ways to learn the protocol
 * are one.
 */

enum piece {
	PIECE_EXPRESSION = 0x100, /* above the attributes' own types */
	PIECE_RAW,
	PIECE_VERDICT,
	PIECE_CHAIN,
	PIECE_USER_DATA,
	PIECE_PROTOCOL,
	PIECE_BEGINNING,
};

/* In whole words, with zeros behind the last byte: the hash is fastest so. */
static void add_piece(struct siphash *hash, unsigned int kind, const void *data, size_t n)
{
	uint64_t word = (uint64_t)kind << 32 | n;
	size_t whole = n - n % sizeof(word);

	siphash_word(hash, word);
	for (size_t at = 0; at < whole; at += sizeof(word)) {
		memcpy(&word, (const uint8_t *)data + at, sizeof(word));
		siphash_word(hash, word);
	}
	if (n == whole)
		return;
	word = 0;
	memcpy(&word, (const uint8_t *)data + whole, n - whole);
	siphash_word(hash, word);
}

static void add_attr(struct siphash *hash, unsigned int kind, const struct nlattr *attr)
{
	add_piece(hash, kind, mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));
}

/* Attributes of types that nobody knows count in the order in which they come. */
static void add_higher(struct siphash *hash, const struct nlattr *nest, uint16_t max)
{
	struct nl_attrs attrs = nl_attr_nest(nest);
	const struct nlattr *attr;

	while (nl_attr_next(&attrs, &attr) > 0)
		if (nl_attr_type(attr) > max)
			add_attr(hash, nl_attr_type(attr), attr);
}

/* The attributes in a nest by type, up to max; the others are hashed. */
static int by_type(struct siphash *hash, const struct nlattr *nest, const struct nlattr *ret[],
		   uint16_t max)
{
	int r = nl_attr_by_type(nl_attr_nest(nest), ret, max);

	if (r > 0)
		add_higher(hash, nest, max);
	return r;
}

/* -- xt matches and targets */

struct field {
	size_t offset;
	size_t size;
	bool text; /* ends at its NUL */
};

#define FIELD(type, member)                                                \
	{                                                                  \
		offsetof(type, member), sizeof(((type *)0)->member), false \
	}
#define TEXT(type, member)                                                \
	{                                                                 \
		offsetof(type, member), sizeof(((type *)0)->member), true \
	}

/* Those in which not every byte counts: the kernel's own fields, and bytes that mean nothing. */
static const struct xt {
	const char *name;
	uint32_t revision;
	struct field fields[8];
} xts[] = {
	{"comment", 0, {TEXT(struct xt_comment_info, comment)}},
	{"nfacct", 0, {TEXT(struct xt_nfacct_match_info, name)}},
	{"nfacct", 1, {TEXT(struct xt_nfacct_match_info_v1, name)}},
	{"recent",
	 1,
	 {
		 FIELD(struct xt_recent_mtinfo_v1, seconds),
		 FIELD(struct xt_recent_mtinfo_v1, hit_count),
		 FIELD(struct xt_recent_mtinfo_v1, check_set),
		 FIELD(struct xt_recent_mtinfo_v1, invert),
		 TEXT(struct xt_recent_mtinfo_v1, name),
		 FIELD(struct xt_recent_mtinfo_v1, side),
		 FIELD(struct xt_recent_mtinfo_v1, mask),
	 }},
	{"statistic",
	 0,
	 {
		 FIELD(struct xt_statistic_info, mode),
		 FIELD(struct xt_statistic_info, flags),
		 FIELD(struct xt_statistic_info, u.nth.every), /* or the probability */
		 FIELD(struct xt_statistic_info, u.nth.packet),
	 }},
};

static const struct xt *find_xt(const char *name, uint32_t revision)
{
	for (size_t i = 0; i < ARRAY_SIZE(xts); i++)
		if (xts[i].revision == revision && streq(xts[i].name, name))
			return &xts[i];
	return NULL;
}

static int add_fields(struct siphash *hash, const struct xt *xt, const struct nlattr *attr)
{
	const uint8_t *info = mnl_attr_get_payload(attr);
	size_t size = mnl_attr_get_payload_len(attr);

	for (const struct field *f = xt->fields; f < xt->fields + ARRAY_SIZE(xt->fields); f++) {
		const void *at = info + f->offset;

		if (f->size == 0)
			break;
		if (f->offset + f->size > size)
			return -EBADMSG;
		add_piece(hash, PIECE_RAW, at, f->text ? strnlen(at, f->size) : f->size);
	}
	return 0;
}

/* Padding is zeros, and zeros at the end of a structure of fixed size may be left out. */
static void add_info(struct siphash *hash, const struct nlattr *attr)
{
	const uint8_t *info = mnl_attr_get_payload(attr);
	size_t n = mnl_attr_get_payload_len(attr);

	while (n > 0 && info[n - 1] == 0)
		n--;
	add_piece(hash, NFTA_MATCH_INFO, info, n);
}

/* Matches and targets have the same attributes. */
static int add_xt(struct siphash *hash, const struct nft_expr *expr)
{
	const char *name = nl_attr_text(expr->v[NFTA_MATCH_NAME]);
	const struct nlattr *info = expr->v[NFTA_MATCH_INFO];
	const struct xt *xt;
	uint32_t revision;

	if (expr->parsed < 0 || !name || !info ||
	    !nl_attr_copy(expr->v[NFTA_MATCH_REV], &revision, sizeof(revision)))
		return -EBADMSG;
	add_higher(hash, expr->data, NFTA_MATCH_MAX);
	add_piece(hash, NFTA_MATCH_NAME, name, strlen(name));
	add_piece(hash, NFTA_MATCH_REV, &revision, sizeof(revision));
	xt = find_xt(name, ntohl(revision));
	if (xt)
		return add_fields(hash, xt, info);
	add_info(hash, info);
	return 0;
}

/* -- nf_tables' own expressions */

static int add_verdict(struct siphash *hash, const struct nlattr *attr)
{
	const struct nlattr *tb[NFTA_VERDICT_MAX + 1];
	const char *chain = NULL;
	int r;

	r = by_type(hash, attr, tb, NFTA_VERDICT_MAX);
	if (r < 0)
		return r;
	if (tb[NFTA_VERDICT_CHAIN]) {
		chain = nl_attr_text(tb[NFTA_VERDICT_CHAIN]);
		if (!chain)
			return -EBADMSG;
	}
	if (tb[NFTA_VERDICT_CODE])
		add_attr(hash, PIECE_VERDICT, tb[NFTA_VERDICT_CODE]);
	if (chain)
		add_piece(hash, PIECE_CHAIN, chain, strlen(chain));
	return 0;
}

/* A value to compare with, or a verdict. */
static int add_value(struct siphash *hash, unsigned int type, const struct nlattr *attr)
{
	const struct nlattr *tb[NFTA_DATA_MAX + 1];
	int r;

	r = by_type(hash, attr, tb, NFTA_DATA_MAX);
	if (r < 0)
		return r;
	if (tb[NFTA_DATA_VALUE])
		add_attr(hash, type, tb[NFTA_DATA_VALUE]);
	if (tb[NFTA_DATA_VERDICT])
		return add_verdict(hash, tb[NFTA_DATA_VERDICT]);
	return 0;
}

static bool is_zero(const struct nlattr *attr)
{
	const uint8_t *bytes = mnl_attr_get_payload(attr);

	for (size_t i = 0; i < mnl_attr_get_payload_len(attr); i++)
		if (bytes[i])
			return false;
	return true;
}

#define BIT(n) (1U << (n))

/* Known expressions; bits are types of attributes. Types without a bit count byte by byte. */
static const struct native {
	const char *name;
	unsigned int values;  /* hold a value or verdict */
	unsigned int ignored; /* say nothing about the rule */
	unsigned int
		defaults; /* zero is the same as absent: older kernels have no such attribute */
} natives[] = {
	{"meta", 0, 0, 0},
	{"payload", 0, 0, 0},
	{"cmp", BIT(NFTA_CMP_DATA), 0, 0},
	{"bitwise", BIT(NFTA_BITWISE_MASK) | BIT(NFTA_BITWISE_XOR), 0, BIT(NFTA_BITWISE_OP)},
	{"counter", 0, BIT(NFTA_COUNTER_BYTES) | BIT(NFTA_COUNTER_PACKETS) | BIT(NFTA_COUNTER_PAD),
	 0},
	{"immediate", BIT(NFTA_IMMEDIATE_DATA), 0, 0},
};

static const struct native *find_native(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(natives); i++)
		if (streq(natives[i].name, name))
			return &natives[i];
	return NULL;
}

static int add_native(struct siphash *hash, const struct native *native,
		      const struct nft_expr *expr)
{
	int r = expr->parsed;

	if (r < 0)
		return r;
	if (r > 0)
		add_higher(hash, expr->data, NFT_EXPR_ATTR_MAX);
	for (unsigned int type = 0; type <= NFT_EXPR_ATTR_MAX; type++) {
		const struct nlattr *attr = expr->v[type];

		if (!attr || native->ignored & BIT(type) ||
		    (native->defaults & BIT(type) && is_zero(attr)))
			continue;
		if (!(native->values & BIT(type))) {
			add_attr(hash, type, attr);
			continue;
		}
		r = add_value(hash, type, attr);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_expression(struct siphash *hash, const struct nft_expr *expr)
{
	const struct native *native;

	add_piece(hash, PIECE_EXPRESSION, expr->name, strlen(expr->name));
	if (!expr->data)
		return 0;
	native = find_native(expr->name);
	if (native)
		return add_native(hash, native, expr);
	if (streq(expr->name, "match") || streq(expr->name, "target"))
		return add_xt(hash, expr);
	add_attr(hash, PIECE_RAW, expr->data);
	return 0;
}

/* -- how a rule begins */

enum role {
	ROLE_OTHER = 0,
	ROLE_LOAD,     /* of an interface or an address */
	ROLE_PROTOCOL, /* a load of the transport protocol */
	ROLE_COMPARE,  /* of what was loaded, or its mask */
};

static enum role meta_role(const struct nft_expr *expr)
{
	uint32_t key = nl_attr_u32(expr->v[NFTA_META_KEY]);

	if (key == NFT_META_IIFNAME)
		return ROLE_LOAD;
	if (key == NFT_META_L4PROTO && nl_attr_u32(expr->v[NFTA_META_DREG]) == NFT_REG_1)
		return ROLE_PROTOCOL;
	return ROLE_OTHER;
}

static enum role payload_role(enum family family, const struct nft_expr *expr)
{
	if (nl_attr_u32(expr->v[NFTA_PAYLOAD_BASE]) != NFT_PAYLOAD_NETWORK_HEADER)
		return ROLE_OTHER;
	if (family == FAMILY_IPV4 && nl_attr_u32(expr->v[NFTA_PAYLOAD_OFFSET]) == 9 &&
	    nl_attr_u32(expr->v[NFTA_PAYLOAD_LEN]) == 1 &&
	    nl_attr_u32(expr->v[NFTA_PAYLOAD_DREG]) == NFT_REG_1)
		return ROLE_PROTOCOL;
	return ROLE_LOAD;
}

static enum role find_role(enum family family, const struct nft_expr *expr)
{
	if (streq(expr->name, "cmp") || streq(expr->name, "bitwise"))
		return ROLE_COMPARE;
	if (streq(expr->name, "meta"))
		return meta_role(expr);
	return streq(expr->name, "payload") ? payload_role(family, expr) : ROLE_OTHER;
}

/* -- a list of expressions */

struct digest {
	enum family family;
	struct siphash hash;
	bool begun; /* what a rule begins with is over, and in the hash */
	bool open;  /* a comparison is under way: */
	struct siphash comparison;
	uint64_t comparisons;
};

static const uint64_t *digest_key(void)
{
	static uint64_t key[2];
	static bool drawn;

	if (!drawn)
		arc4random_buf(key, sizeof(key));
	drawn = true;
	return key;
}

static void digest_init(struct digest *digest, enum family family)
{
	*digest = (struct digest){.family = family};
	siphash_init(&digest->hash, digest_key());
}

static void end_comparison(struct digest *digest)
{
	if (digest->open)
		digest->comparisons += siphash_end(&digest->comparison);
	digest->open = false;
}

static void end_beginning(struct digest *digest)
{
	end_comparison(digest);
	if (!digest->begun)
		add_piece(&digest->hash, PIECE_BEGINNING, &digest->comparisons,
			  sizeof(digest->comparisons));
	digest->begun = true;
}

static struct siphash *begin_comparison(struct digest *digest)
{
	end_comparison(digest);
	siphash_init(&digest->comparison, digest_key());
	digest->open = true;
	return &digest->comparison;
}

static int digest_expression(struct digest *digest, const struct nft_expr *expr)
{
	enum role role = find_role(digest->family, expr);

	if (role == ROLE_COMPARE && digest->open)
		return add_expression(&digest->comparison, expr);
	if (role == ROLE_LOAD && !digest->begun)
		return add_expression(begin_comparison(digest), expr);
	if (role == ROLE_PROTOCOL && !digest->begun) {
		add_piece(begin_comparison(digest), PIECE_PROTOCOL, NULL, 0);
		return MIN(expr->parsed, 0);
	}
	end_beginning(digest);
	return add_expression(&digest->hash, expr);
}

/* -- rules */

/* Either attribute may be NULL. */
static int digest_rule(enum family family, const struct nlattr *expressions,
		       const struct nlattr *user_data, uint64_t *ret)
{
	struct nl_attrs list = nl_attr_nest(expressions);
	struct digest digest;
	struct nft_expr expr;
	int r;

	digest_init(&digest, family);
	while ((r = nft_expr_next(&list, &expr)) > 0) {
		r = digest_expression(&digest, &expr);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	end_beginning(&digest);
	if (user_data)
		add_attr(&digest.hash, PIECE_USER_DATA, user_data);
	*ret = siphash_end(&digest.hash);
	return 0;
}

static int read_family(const struct nlmsghdr *message, enum family *ret)
{
	int type = nft_message_type(message);
	uint8_t nfproto = nft_message_family(message);

	if (type != NFT_MSG_NEWRULE && type != NFT_MSG_DELRULE)
		return -EBADMSG;
	if (nfproto != NFPROTO_IPV4 && nfproto != NFPROTO_IPV6)
		return -EAFNOSUPPORT;
	*ret = nfproto == NFPROTO_IPV4 ? FAMILY_IPV4 : FAMILY_IPV6;
	return 0;
}

int nft_rule_digest_message(const struct nlmsghdr *message, struct nft_rule_seen *ret)
{
	const struct nlattr *tb[NFTA_RULE_MAX + 1];
	struct nft_rule_seen seen = {0};
	int r;

	r = read_family(message, &seen.family);
	if (r < 0)
		return r;
	r = nl_attr_by_type(nl_attr_message(message, sizeof(struct nfgenmsg)), tb, NFTA_RULE_MAX);
	if (r < 0)
		return r;
	seen.table = nl_attr_text(tb[NFTA_RULE_TABLE]);
	seen.chain = nl_attr_text(tb[NFTA_RULE_CHAIN]);
	if (!seen.table || !seen.chain ||
	    !nl_attr_copy(tb[NFTA_RULE_HANDLE], &seen.handle, sizeof(seen.handle)))
		return -EBADMSG;
	seen.handle = be64toh(seen.handle);
	if (!tb[NFTA_RULE_EXPRESSIONS] && nft_message_type(message) == NFT_MSG_NEWRULE)
		return -EBADMSG;
	r = digest_rule(seen.family, tb[NFTA_RULE_EXPRESSIONS], tb[NFTA_RULE_USERDATA],
			&seen.digest);
	if (r == 0)
		*ret = seen;
	return r;
}

uint64_t nft_rule_digest(enum family family, const struct rule *rule)
{
	_Alignas(struct nlmsghdr) uint8_t room[NFT_RULE_MESSAGE_MAX];
	struct nlmsghdr *message = mnl_nlmsg_put_header(room);
	uint64_t ret = 0;
	int r;

	nft_rule_put(message, family, rule);
	r = digest_rule(family, nl_attr_find(nl_attr_message(message, 0), NFTA_RULE_EXPRESSIONS),
			NULL, &ret);
	assert(r == 0);
	return ret;
}
