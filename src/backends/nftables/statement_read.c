/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/statement_read.h"

#include <assert.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "backends/nftables/named_counter.h"
#include "backends/nftables/statement_put.h"
#include "backends/nftables/user_data.h"
#include "kernel/nft_expr.h"
#include "kernel/nft_message.h"

/*
 * A statement is read by writing it. From the expressions up to the first that does more than load a register all
 * parts are taken that they could mean; of the kinds that end so, each is tried with the parts that it needs. What
 * makes the same expressions when it is written is what they mean. So whatever is read is what we would write, and
 * how our statements look is known in one place (statement_put.c). An interpreter of registers would have to know
 * it again, and be as strict.
 */

#define GROUP_MAX \
	8 /* expressions of one statement: a key of five, a lookup, what is done with it */
#define WRITTEN_MAX 2048

struct reading {
	enum family family;
	struct arena *arena;
	struct nft_rule *rule;
	struct nft_expr group[GROUP_MAX]; /* since the last statement */
	size_t n;
	const char *from; /* where they begin */
	const char *last; /* where the last statement began */
};

/* -- what expressions say */

struct bytes {
	uint8_t v[16];
	size_t n;
};

static uint32_t number(const struct nft_expr *expr, uint16_t type)
{
	return nl_attr_u32(expr->v[type]);
}

static struct bytes bytes_of(const struct nft_expr *expr, uint16_t type)
{
	const struct nlattr *value = nl_attr_find(nl_attr_nest(expr->v[type]), NFTA_DATA_VALUE);
	struct bytes bytes = {.n = 0};
	const void *data = nl_attr_bytes(value, &bytes.n);

	bytes.n = MIN(bytes.n, sizeof(bytes.v));
	if (data)
		memcpy(bytes.v, data, bytes.n);
	return bytes;
}

static uint32_t host_number(const struct bytes *bytes)
{
	uint32_t n;

	memcpy(&n, bytes->v, sizeof(n));
	return n;
}

static bool loads(const struct nft_expr *expr)
{
	static const char *const names[] = {"payload", "ct", "numgen", "fib", "bitwise"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(expr->name, names[i]))
			return true;
	return (streq(expr->name, "meta") && expr->v[NFTA_META_DREG]) ||
	       (streq(expr->name, "lookup") && number(expr, NFTA_LOOKUP_DREG)) ||
	       (streq(expr->name, "immediate") && number(expr, NFTA_IMMEDIATE_DREG));
}

static_assert(NFT_REG_VERDICT == 0, "what leads to a verdict loads nothing");

/* -- parts */

/* All that a statement may be made of. */
struct parts {
	struct statement any; /* what needs no more than to be copied */
	size_t n_key;
	bool has_container, has_chain, has_counter;
	struct bytes mask, xor, value; /* of a bitwise; of a constant or comparison */
	uint32_t modulus, seconds;
};

static enum operand operand_of(enum family family, const struct nft_expr *expr)
{
	if (streq(expr->name, "numgen"))
		return OPERAND_RANDOM;
	if (streq(expr->name, "meta"))
		return number(expr, NFTA_META_KEY) == NFT_META_PRIORITY ? OPERAND_PRIORITY
									: OPERAND_PROTOCOL;
	if (streq(expr->name, "ct"))
		return number(expr, NFTA_CT_KEY) == NFT_CT_PROTO_DST ? OPERAND_ORIGINAL_DPORT
								     : OPERAND_ORIGINAL_DADDR;
	if (!streq(expr->name, "payload"))
		return OPERAND_END;
	if (number(expr, NFTA_PAYLOAD_BASE) == NFT_PAYLOAD_TRANSPORT_HEADER)
		return OPERAND_DPORT;
	return number(expr, NFTA_PAYLOAD_OFFSET) == nft_expr_address_offset(family, true)
		       ? OPERAND_SADDR
		       : OPERAND_DADDR;
}

static void take_container(struct parts *parts, const struct nlattr *attribute)
{
	const char *name = nl_attr_text(attribute);

	parts->has_container =
		name && container_parse(name, &parts->any.container, &parts->any.map);
}

static void take_chain(struct parts *parts, const struct nlattr *data)
{
	const struct nlattr *nest = nl_attr_find(nl_attr_nest(data), NFTA_DATA_VERDICT);
	struct nft_verdict verdict = nft_verdict_of(nest);

	parts->has_chain = verdict.chain && chain_parse(verdict.chain, &parts->any.chain);
}

static void take_counter(struct parts *parts, const struct nlattr *attribute)
{
	const char *name = nl_attr_text(attribute);

	parts->has_counter = name && named_counter_parse(name, &parts->any.protocol);
}

static void take_parts(struct parts *parts, enum family family, const struct nft_expr *expr)
{
	enum operand operand = operand_of(family, expr);

	if (operand && loads(expr) && parts->n_key < STATEMENT_KEY)
		parts->any.key[parts->n_key++] = operand;
	if (streq(expr->name, "numgen")) {
		parts->modulus = number(expr, NFTA_NG_MODULUS);
	} else if (streq(expr->name, "bitwise")) {
		parts->mask = bytes_of(expr, NFTA_BITWISE_MASK);
		parts->xor = bytes_of(expr, NFTA_BITWISE_XOR);
	} else if (streq(expr->name, "cmp")) {
		parts->value = bytes_of(expr, NFTA_CMP_DATA);
		parts->any.not = number(expr, NFTA_CMP_OP) == NFT_CMP_NEQ;
	} else if (streq(expr->name, "lookup")) {
		take_container(parts, expr->v[NFTA_LOOKUP_SET]);
		parts->any.not = number(expr, NFTA_LOOKUP_FLAGS) == NFT_LOOKUP_F_INV;
	} else if (streq(expr->name, "immediate")) {
		parts->value = bytes_of(expr, NFTA_IMMEDIATE_DATA);
		take_chain(parts, expr->v[NFTA_IMMEDIATE_DATA]);
	} else if (streq(expr->name, "objref")) {
		take_counter(parts, expr->v[NFTA_OBJREF_IMM_NAME]);
	} else if (streq(expr->name, "dynset")) {
		take_container(parts, expr->v[NFTA_DYNSET_SET_NAME]);
		parts->seconds = (uint32_t)(nl_attr_u64(expr->v[NFTA_DYNSET_TIMEOUT]) / 1000);
	}
}

/* -- kinds */

/* False: it is none of ours. */
static bool find_protocol(uint8_t wanted, enum protocol *ret)
{
	for (*ret = 0; *ret < PROTOCOL_COUNT; ++*ret)
		if (protocol_number(*ret) == wanted)
			return true;
	return false;
}

static struct prefix prefix_of(const struct parts *parts, enum family family)
{
	struct prefix prefix = {.addr.family = (uint8_t)family};
	uint8_t bits = parts->mask.n > 0 ? 0 : addr_bits(family);

	while (bits < parts->mask.n * 8 && parts->mask.v[bits / 8] & 0x80 >> bits % 8)
		bits++;
	memcpy(prefix.addr.bytes, parts->value.v, MIN(parts->value.n, addr_bytes(family)));
	prefix.length = bits;
	return prefix;
}

/* A part of a form, as statement_types have them; false: it is missing. */
static bool add_part(const struct reading *reading, const struct parts *parts, char part,
		     struct statement *to)
{
	uint32_t value = host_number(&parts->value), xor = host_number(&parts->xor);

	switch (part) {
	case '!':
		to->not = parts->any.not ;
		return true;
	case 'c':
		to->chain = parts->any.chain;
		return parts->has_chain;
	case 'i':
		to->number = value || to->kind != STATEMENT_SET_ID ? value - CONTAINER_ID_BASE : 0;
		return true;
	case 'k':
		memcpy(to->key, parts->any.key, sizeof(to->key));
		to->number = parts->modulus;
		return true;
	case 'l':
		return find_protocol(parts->value.v[0], &to->protocol);
	case 'm':
		to->container = parts->any.container;
		to->map = parts->any.map;
		return parts->has_container;
	case 'n':
		to->is_prefix = parts->value.n < sizeof(parts->value.v);
		to->interface = arena_printf(reading->arena, "%.*s", (int)parts->value.n,
					     (const char *)parts->value.v);
		return true;
	case 'o':
		to->protocol = parts->any.protocol;
		return parts->has_counter;
	case 'p':
		to->prefix = prefix_of(parts, reading->family);
		return true;
	case 't':
		to->number = parts->seconds;
		return true;
	case 'x':
		to->number = xor? xor : host_number(&parts->mask);
		return true;
	default: /* the family */
		return true;
	}
}

/* A statement of the kind; false: some part is missing. */
static bool make(const struct reading *reading, const struct parts *parts, enum statement_kind kind,
		 struct statement *ret)
{
	const char *at = strchr(statement_types[kind].form, '%');

	*ret = (struct statement){.kind = kind};
	for (; at; at = strchr(at + 2, '%'))
		if (!add_part(reading, parts, at[1], ret))
			return false;
	return true;
}

/* -- proofs */

/* What is zero we leave out and the kernel lists. ours: well formed, and says what is a nest. */
static bool same_attributes(struct nl_attrs ours, struct nl_attrs listed)
{
	const struct nlattr *a[NFT_EXPR_ATTR_MAX + 1], *b[NFT_EXPR_ATTR_MAX + 1];

	if (nl_attr_by_type(ours, a, NFT_EXPR_ATTR_MAX) ||
	    nl_attr_by_type(listed, b, NFT_EXPR_ATTR_MAX))
		return false;
	for (size_t i = 0; i <= NFT_EXPR_ATTR_MAX; i++) {
		if (!a[i] || !b[i]) {
			if (a[i] || !nl_attr_is_zero(b[i]))
				return false;
		} else if (a[i]->nla_type & NLA_F_NESTED) {
			if (!same_attributes(nl_attr_nest(a[i]), nl_attr_nest(b[i])))
				return false;
		} else if (a[i]->nla_len != b[i]->nla_len ||
			   memcmp(a[i] + 1, b[i] + 1, a[i]->nla_len - sizeof(*a[i])) != 0) {
			return false;
		}
	}
	return true;
}

static bool same_expression(const struct nft_expr *ours, const struct nft_expr *listed)
{
	if (!streq(ours->name, listed->name))
		return false;
	return streq(ours->name, "counter") || /* whatever it has counted */
	       same_attributes(nl_attr_nest(ours->data), nl_attr_nest(listed->data));
}

/* Are the expressions what we would write for it? */
static bool is_proven(const struct reading *reading, const struct statement *statement)
{
	_Alignas(struct nlmsghdr) char buffer[WRITTEN_MAX];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct nft_expr expr;
	struct nl_attrs list;
	size_t n = 0;

	statement_put(message, reading->family, statement);
	list = nl_attr_message(message, 0);
	while (nft_expr_next(&list, &expr) > 0)
		if (n == reading->n || !same_expression(&expr, &reading->group[n++]))
			return false;
	return n == reading->n;
}

/* False: it is none of ours. */
static bool read_statement(const struct reading *reading, struct statement *ret)
{
	struct parts parts = {.n_key = 0};

	for (size_t i = 0; i < reading->n; i++)
		take_parts(&parts, reading->family, &reading->group[i]);
	for (enum statement_kind kind = STATEMENT_NEW; kind < STATEMENT_RAW; kind++)
		if (streq(statement_types[kind].end, reading->group[reading->n - 1].name) &&
		    make(reading, &parts, kind, ret) && is_proven(reading, ret))
			return true;
	return false;
}

/* -- rules */

static struct statement raw(const char *from, const char *to)
{
	return (struct statement){
		.kind = STATEMENT_RAW, .raw = from, .raw_size = (size_t)(to - from)};
}

/* What is raw goes on in the raw statement before, and so does what a rule of ours has no room for. */
static void end_statement(struct reading *reading, const char *to)
{
	struct nft_rule *rule = reading->rule;
	struct statement statement;
	bool known = read_statement(reading, &statement);

	if (rule->n == STATEMENTS_MAX ||
	    (!known && rule->n > 0 && rule->v[rule->n - 1].kind == STATEMENT_RAW)) {
		rule->v[rule->n - 1] = raw(reading->last, to);
	} else {
		rule->v[rule->n++] = known ? statement : raw(reading->from, to);
		reading->last = reading->from;
	}
	reading->n = 0;
	reading->from = to;
}

static void read_expressions(struct reading *reading, struct nl_attrs list)
{
	const char *end;

	if (!list.at) /* there is none */
		return;
	end = list.at + list.left;
	reading->from = list.at;
	while (nft_expr_next(&list, &reading->group[reading->n]) > 0)
		if (!loads(&reading->group[reading->n++]) || reading->n == GROUP_MAX)
			end_statement(reading, list.at);
	if (reading->from < end) { /* without an end, or no expression at all */
		reading->group[0].name = "";
		reading->n = 1;
		end_statement(reading, end);
	}
}

/* What is raw lies in the message so far. */
static void keep_raw(struct arena *arena, struct nft_rule *rule)
{
	for (size_t i = 0; i < rule->n; i++) {
		struct statement *statement = &rule->v[i];

		if (statement->kind == STATEMENT_RAW)
			statement->raw = memcpy(arena_alloc(arena, statement->raw_size),
						statement->raw, statement->raw_size);
	}
}

void statement_read_rule(struct arena *arena, enum family family, const struct nlmsghdr *message,
			 struct nft_rule *ret)
{
	const char *chain = nft_message_string(message, NFTA_RULE_CHAIN);
	struct reading reading = {.family = family, .arena = arena, .rule = ret};
	char comment[USER_DATA_COMMENT_MAX];

	*ret = (struct nft_rule){.n = 0};
	if (chain)
		(void)chain_parse(chain, &ret->chain);
	read_expressions(&reading, nl_attr_nest(nft_message_attr(message, NFTA_RULE_EXPRESSIONS)));
	keep_raw(arena, ret);
	if (user_data_read_comment(nft_message_attr(message, NFTA_RULE_USERDATA), comment))
		ret->comment = arena_strdup(arena, comment);
}
