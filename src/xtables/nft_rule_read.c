/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>

#include "kernel/nft_message.h"
#include "xtables/nft_rule.h"
#include "xtables/rule_compare.h"
#include "xtables/xt_info.h"

/*
 * The way back from nft_rule_put(). A match is a load into the first register, perhaps a mask, and a
 * comparison; or an xt match. Whatever is not as we would have put it becomes MATCH_OTHER or
 * TARGET_OTHER, by its name.
 *
 * Versions of iptables differ in how a rule begins: 1.8.9 has -i, -p, -s, -d and asks for the protocol
 * with `meta`, 1.8.11 has -s, -d, -i, -p and reads it from an IPv4 header. So these come in any order,
 * but before all others. Before 1.8.8 the port of TCP and UDP and the mark are xt matches.
 */

enum load {
	LOAD_NONE = 0,
	LOAD_INTERFACE,
	LOAD_PROTOCOL,
	LOAD_SOURCE,
	LOAD_DESTINATION,
	LOAD_MARK,
	LOAD_PORT,
	LOAD_OTHER, /* what is compared with it is part of a match that is none of ours */
};

struct reading {
	enum family family;
	struct nft_rule_read *ret;
	struct match spare; /* for matches that have no room */
	enum load load;
	size_t width;              /* of an address: bytes loaded */
	const struct nlattr *mask; /* NULL: none */
	bool placed;               /* a match has come whose place counts */
	bool counted, ended;
	bool has_protocol, has_transport;
	enum protocol protocol;
};

/* -- what is put into the rule */

static struct match *add(struct reading *reading, enum match_kind kind, bool invert)
{
	struct rule *rule = &reading->ret->rule;
	struct match *match = &reading->spare;

	if (rule->n_matches < RULE_MATCH_MAX)
		match = &rule->matches[rule->n_matches++];
	else
		rule->matches[RULE_MATCH_MAX - 1] = (struct match){MATCH_OTHER, .text = "more"};
	*match = (struct match){.kind = kind, .invert = invert};
	return match;
}

static void add_other(struct reading *reading, const char *name)
{
	add(reading, MATCH_OTHER, false)->text = name;
	reading->load = LOAD_OTHER;
	reading->placed = true;
}

/* "-m tcp --dport N", where it stands. */
static bool add_transport(struct reading *reading, uint16_t port)
{
	if (!reading->has_protocol || reading->has_transport)
		return false;
	add(reading, MATCH_PROTOCOL, false)->protocol = reading->protocol;
	if (port)
		add(reading, MATCH_PORT, false)->port = port;
	return reading->has_transport = true;
}

/* -- expressions */

#define BIT(n) (1U << (n))

/* Has it these attributes and no others? */
static bool is_made_of(const struct nft_expr *expr, unsigned int types)
{
	for (unsigned int type = 0; type <= NFT_EXPR_ATTR_MAX; type++)
		if (!expr->v[type] != !(types & BIT(type)))
			return false;
	return true;
}

static bool is_register(const struct nlattr *attr)
{
	return nl_attr_u32(attr) == NFT_REG_1;
}

static const struct nlattr *value_of(const struct nlattr *data)
{
	return nl_attr_find(nl_attr_nest(data), NFTA_DATA_VALUE);
}

/* Something is loaded. An interface that is not compared is any: "-i +". */
static bool begin(struct reading *reading, enum load load)
{
	static const enum match_kind kinds[] = {
		[LOAD_INTERFACE] = MATCH_INTERFACE,
		[LOAD_SOURCE] = MATCH_SOURCE,
		[LOAD_DESTINATION] = MATCH_DESTINATION,
	};
	bool front = load < LOAD_MARK;

	if (reading->load == LOAD_INTERFACE)
		add(reading, MATCH_INTERFACE, false)->text = "+";
	else if (reading->load != LOAD_NONE && reading->load != LOAD_OTHER)
		return false;
	if (front && (reading->placed || (load == LOAD_PROTOCOL ? reading->has_protocol
								: rule_match(&reading->ret->rule,
									     kinds[load]) != NULL)))
		return false;
	reading->placed |= !front;
	reading->load = load;
	reading->mask = NULL;
	return true;
}

static bool read_meta(struct reading *reading, const struct nft_expr *expr)
{
	if (!is_made_of(expr, BIT(NFTA_META_DREG) | BIT(NFTA_META_KEY)) ||
	    !is_register(expr->v[NFTA_META_DREG]))
		return false;
	switch (nl_attr_u32(expr->v[NFTA_META_KEY])) {
	case NFT_META_IIFNAME:
		return begin(reading, LOAD_INTERFACE);
	case NFT_META_L4PROTO:
		return begin(reading, LOAD_PROTOCOL);
	case NFT_META_MARK:
		return begin(reading, LOAD_MARK);
	default:
		return false;
	}
}

static enum load network_load(enum family family, uint32_t offset, uint32_t width)
{
	if (family == FAMILY_IPV4 && offset == 9 && width == 1)
		return LOAD_PROTOCOL;
	if (width == 0 || width > addr_bytes(family))
		return LOAD_OTHER;
	if (offset == nft_expr_address_offset(family, true))
		return LOAD_SOURCE;
	return offset == nft_expr_address_offset(family, false) ? LOAD_DESTINATION : LOAD_OTHER;
}

static bool read_payload(struct reading *reading, const struct nft_expr *expr)
{
	uint32_t base = nl_attr_u32(expr->v[NFTA_PAYLOAD_BASE]);
	uint32_t offset = nl_attr_u32(expr->v[NFTA_PAYLOAD_OFFSET]);
	uint32_t width = nl_attr_u32(expr->v[NFTA_PAYLOAD_LEN]);
	enum load load = LOAD_OTHER;

	if (!is_made_of(expr, BIT(NFTA_PAYLOAD_DREG) | BIT(NFTA_PAYLOAD_BASE) |
				      BIT(NFTA_PAYLOAD_OFFSET) | BIT(NFTA_PAYLOAD_LEN)) ||
	    !is_register(expr->v[NFTA_PAYLOAD_DREG]))
		return false;
	if (base == NFT_PAYLOAD_NETWORK_HEADER)
		load = network_load(reading->family, offset, width);
	else if (base == NFT_PAYLOAD_TRANSPORT_HEADER && offset == 2 && width == 2)
		load = LOAD_PORT;
	reading->width = width;
	return load != LOAD_OTHER && begin(reading, load);
}

/* A mask; kernels before 5.6 do not tell the operation. */
static bool read_bitwise(struct reading *reading, const struct nft_expr *expr)
{
	unsigned int types = BIT(NFTA_BITWISE_SREG) | BIT(NFTA_BITWISE_DREG) |
			     BIT(NFTA_BITWISE_LEN) | BIT(NFTA_BITWISE_MASK) | BIT(NFTA_BITWISE_XOR);

	if (reading->load == LOAD_OTHER)
		return true;
	if (expr->v[NFTA_BITWISE_OP])
		types |= BIT(NFTA_BITWISE_OP);
	if (!is_made_of(expr, types) || !is_register(expr->v[NFTA_BITWISE_SREG]) ||
	    !is_register(expr->v[NFTA_BITWISE_DREG]) ||
	    !nl_attr_is_zero(expr->v[NFTA_BITWISE_OP]) ||
	    !nl_attr_is_zero(value_of(expr->v[NFTA_BITWISE_XOR])) || reading->mask)
		return false;
	reading->mask = value_of(expr->v[NFTA_BITWISE_MASK]);
	return reading->mask;
}

/* -- comparisons */

/* With its end it is a name, without it the beginning of one. */
static bool compare_interface(struct reading *reading, const char *name, size_t n, bool invert)
{
	bool whole = name[n - 1] == '\0';
	size_t most = whole ? RULE_INTERFACE_MAX + 1 : RULE_INTERFACE_MAX - 1;
	char *text = reading->ret->interface;

	if (n > most || strnlen(name, n) != n - whole || reading->mask ||
	    (whole && n > 1 && name[n - 2] == '+'))
		return false;
	memcpy(text, name, n);
	if (!whole) {
		text[n] = '+';
		text[n + 1] = '\0';
	} else if (streq(text, "INVAL/D") && !invert) { /* how the tool says "! -i +" */
		strcpy(text, "+");
		invert = true;
	}
	add(reading, MATCH_INTERFACE, invert)->text = text;
	return true;
}

static bool compare_protocol(struct reading *reading, const uint8_t *value, size_t n, bool invert)
{
	if (n != 1 || invert || reading->mask)
		return false;
	for (enum protocol protocol = 0; protocol < PROTOCOL_COUNT; protocol++) {
		if (protocol_number(protocol) != value[0])
			continue;
		reading->protocol = protocol;
		return reading->has_protocol = true;
	}
	return false;
}

/* The length of a prefix whose mask this is; -1: it is none. */
static int mask_length(const uint8_t *mask, size_t n)
{
	uint8_t whole[16];
	int length = 0;

	while (length < (int)(8 * n) && mask[length / 8] & 0x80 >> length % 8)
		length++;
	prefix_mask((uint8_t)length, whole);
	return memcmp(mask, whole, n) == 0 ? length : -1;
}

static bool compare_address(struct reading *reading, enum match_kind kind, const uint8_t *value,
			    size_t n, bool invert)
{
	struct prefix prefix = {.addr.family = reading->family};
	size_t n_mask;
	const uint8_t *mask = nl_attr_bytes(reading->mask, &n_mask);
	int length = (int)(8 * n);

	if (n != reading->width || (mask && n_mask != n))
		return false;
	if (mask)
		length = n == addr_bytes(reading->family) ? mask_length(mask, n) : -1;
	if (length < 0)
		return false;
	for (size_t i = 0; mask && i < n; i++)
		if (value[i] & ~mask[i])
			return false;
	memcpy(prefix.addr.bytes, value, n);
	prefix.length = (uint8_t)length;
	add(reading, kind, invert)->prefix = prefix;
	return true;
}

/* "--mark V/V", which has no mask where it would be all ones. */
static bool compare_mark(struct reading *reading, const uint8_t *value, size_t n, bool invert)
{
	uint32_t mark, mask = UINT32_MAX;

	if (n != sizeof(mark) ||
	    (reading->mask && !nl_attr_copy(reading->mask, &mask, sizeof(mask))))
		return false;
	memcpy(&mark, value, sizeof(mark));
	if (mark != mask)
		return false;
	add(reading, MATCH_MARK, invert)->mark = mark;
	return true;
}

/* Of SCTP we put another expression. */
static bool compare_port(struct reading *reading, const uint8_t *value, size_t n, bool invert)
{
	uint16_t port;

	if (n != sizeof(port) || invert || reading->mask || reading->protocol == PROTOCOL_SCTP)
		return false;
	memcpy(&port, value, sizeof(port));
	return port && add_transport(reading, ntohs(port));
}

static bool compare(struct reading *reading, const uint8_t *value, size_t n, bool invert)
{
	switch (reading->load) {
	case LOAD_INTERFACE:
		return compare_interface(reading, (const char *)value, n, invert);
	case LOAD_PROTOCOL:
		return compare_protocol(reading, value, n, invert);
	case LOAD_SOURCE:
		return compare_address(reading, MATCH_SOURCE, value, n, invert);
	case LOAD_DESTINATION:
		return compare_address(reading, MATCH_DESTINATION, value, n, invert);
	case LOAD_MARK:
		return compare_mark(reading, value, n, invert);
	case LOAD_PORT:
		return compare_port(reading, value, n, invert);
	default:
		return false;
	}
}

static bool read_cmp(struct reading *reading, const struct nft_expr *expr)
{
	uint32_t op = nl_attr_u32(expr->v[NFTA_CMP_OP]);
	size_t n;
	const uint8_t *value = nl_attr_bytes(value_of(expr->v[NFTA_CMP_DATA]), &n);

	if (reading->load == LOAD_OTHER)
		return true;
	if (!is_made_of(expr, BIT(NFTA_CMP_SREG) | BIT(NFTA_CMP_OP) | BIT(NFTA_CMP_DATA)) ||
	    !is_register(expr->v[NFTA_CMP_SREG]) || (op != NFT_CMP_EQ && op != NFT_CMP_NEQ) ||
	    n == 0 || !compare(reading, value, n, op == NFT_CMP_NEQ))
		return false;
	reading->load = LOAD_NONE;
	return true;
}

/* -- the others */

static bool read_match(struct reading *reading, const struct nft_expr *expr)
{
	struct match match;
	uint16_t port;

	if (!begin(reading, LOAD_OTHER))
		return false;
	reading->load = LOAD_NONE;
	if (reading->has_protocol && xt_read_port(expr, reading->protocol, &port))
		return add_transport(reading, port);
	if (!xt_read_match(expr, &match))
		return false;
	*add(reading, match.kind, match.invert) = match;
	return true;
}

static bool read_counter(struct reading *reading, const struct nft_expr *expr attr_unused)
{
	bool first = !reading->counted && begin(reading, LOAD_OTHER);

	reading->load = LOAD_NONE;
	reading->counted = true;
	return first;
}

static enum target_kind target_of(int32_t code)
{
	switch (code) {
	case NFT_JUMP:
		return TARGET_CHAIN;
	case NFT_GOTO:
		return TARGET_GOTO;
	case NF_ACCEPT:
		return TARGET_ACCEPT;
	case NF_DROP:
		return TARGET_DROP;
	case NFT_RETURN:
		return TARGET_RETURN;
	default:
		return TARGET_OTHER;
	}
}

static bool read_immediate(struct reading *reading, const struct nft_expr *expr)
{
	const struct nlattr *data = expr->v[NFTA_IMMEDIATE_DATA];
	struct nft_verdict verdict =
		nft_verdict_of(nl_attr_find(nl_attr_nest(data), NFTA_DATA_VERDICT));
	enum target_kind kind = target_of(verdict.code);

	if (!is_made_of(expr, BIT(NFTA_IMMEDIATE_DREG) | BIT(NFTA_IMMEDIATE_DATA)) ||
	    nl_attr_u32(expr->v[NFTA_IMMEDIATE_DREG]) != NFT_REG_VERDICT || !verdict.known ||
	    ((kind == TARGET_CHAIN || kind == TARGET_GOTO) && !verdict.chain))
		return false;
	reading->ret->rule.target = (struct target){
		.kind = kind,
		.chain = kind == TARGET_OTHER ? "QUEUE" : verdict.chain, /* the only other one */
	};
	reading->ended = true;
	return true;
}

static bool read_target(struct reading *reading, const struct nft_expr *expr)
{
	struct target *target = &reading->ret->rule.target;
	const char *name = nl_attr_text(expr->v[NFTA_TARGET_NAME]);

	reading->ended = true;
	if (xt_read_target(expr, reading->family, target))
		return true;
	*target = (struct target){TARGET_OTHER, .chain = name ? name : expr->name};
	return true;
}

/* A statement of nft that ends a packet's way through the chain. */
static bool read_end(struct reading *reading, const struct nft_expr *expr)
{
	reading->ret->rule.target = (struct target){TARGET_OTHER, .chain = expr->name};
	reading->ended = true;
	return true;
}

static const struct row {
	const char *name;
	bool (*read)(struct reading *reading, const struct nft_expr *expr); /* false: not ours */
	bool last; /* stands behind the counter */
} rows[] = {
	{"meta", read_meta, false},       {"cmp", read_cmp, false},
	{"payload", read_payload, false}, {"match", read_match, false},
	{"counter", read_counter, false}, {"immediate", read_immediate, true},
	{"bitwise", read_bitwise, false}, {"target", read_target, true},
	{"nat", read_end, true},          {"masq", read_end, true},
	{"redir", read_end, true},        {"reject", read_end, true},
	{"queue", read_end, true},
};

static const struct row *find_row(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (streq(rows[i].name, name))
			return &rows[i];
	return NULL;
}

/* An xt match is named by what it matches. */
static const char *other_name(const struct nft_expr *expr)
{
	const char *name = nl_attr_text(expr->v[NFTA_MATCH_NAME]);

	return streq(expr->name, "match") && name ? name : expr->name;
}

static void read_expression(struct reading *reading, const struct nft_expr *expr)
{
	const struct row *row = expr->parsed == 0 ? find_row(expr->name) : NULL;

	if (!row || reading->ended || (reading->counted && !row->last) || !row->read(reading, expr))
		add_other(reading, other_name(expr));
}

/* -- rules */

static int read_expressions(struct reading *reading, const struct nlattr *expressions)
{
	struct nl_attrs list = nl_attr_nest(expressions);
	struct nft_expr expr;
	int r;

	while ((r = nft_expr_next(&list, &expr)) > 0)
		read_expression(reading, &expr);
	if (!reading->counted)
		add_other(reading, "no counter");
	if (reading->has_protocol && !reading->has_transport)
		*add(reading, MATCH_PROTOCOL, false) =
			(struct match){MATCH_PROTOCOL, .bare = true, .protocol = reading->protocol};
	return r;
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

int nft_rule_read(const struct nlmsghdr *message, struct nft_rule_read *ret)
{
	const struct nlattr *tb[NFTA_RULE_MAX + 1];
	struct reading reading = {.ret = ret};
	int r = read_family(message, &ret->family);

	if (r < 0)
		return r;
	r = nl_attr_by_type(nl_attr_message(message, sizeof(struct nfgenmsg)), tb, NFTA_RULE_MAX);
	if (r < 0)
		return r;
	reading.family = ret->family;
	ret->table = nl_attr_text(tb[NFTA_RULE_TABLE]);
	ret->handle = nl_attr_u64(tb[NFTA_RULE_HANDLE]);
	rule_init(&ret->rule, TABLE_COUNT, nl_attr_text(tb[NFTA_RULE_CHAIN]));
	if (!ret->table || !ret->rule.chain || !ret->handle ||
	    (!tb[NFTA_RULE_EXPRESSIONS] && nft_message_type(message) == NFT_MSG_NEWRULE))
		return -EBADMSG;
	table_parse(ret->table, &ret->rule.table);
	if (tb[NFTA_RULE_USERDATA])
		add_other(&reading, "user data");
	return read_expressions(&reading, tb[NFTA_RULE_EXPRESSIONS]);
}

int nft_rule_digest_message(const struct nlmsghdr *message, struct nft_rule_seen *ret)
{
	struct nft_rule_read read;
	int r = nft_rule_read(message, &read);

	if (r < 0)
		return r;
	*ret = (struct nft_rule_seen){
		.family = read.family,
		.table = read.table,
		.chain = read.rule.chain,
		.handle = read.handle,
		.digest = rule_hash(&read.rule),
	};
	return 0;
}
