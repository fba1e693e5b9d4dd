/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/expression_text.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>

#include "backends/nftables/user_data.h"
#include "kernel/nft_expr.h"
#include "kernel/nft_message.h"
#include "model/service.h"

/*
 * What a rule loads is kept in words, register by register, until an expression makes use of it and a
 * statement is complete; then all registers are empty again, because our rules load anew for each
 * statement. Registers are counted in words of four bytes.
 */

#define REGISTERS 16
#define WORDS_MAX 256
#define DATA_MAX  16

struct data {
	uint8_t bytes[DATA_MAX];
	size_t n;
};

/* What a register holds. */
struct value {
	char words[WORDS_MAX]; /* "": nothing */
	bool masked;           /* & mask ^ xor, since */
	struct data mask, xor;
	bool constant;
	uint32_t number; /* of a constant */
};

struct listing {
	struct text *text;
	enum family family;
	bool begun; /* something has been said */
	struct value registers[REGISTERS];
};

/* -- reading */

static uint32_t number(const struct nft_expr *expr, uint16_t type)
{
	return nl_attr_u32(expr->v[type]);
}

static const char *string(const struct nlattr *attribute)
{
	const char *text = nl_attr_text(attribute);

	return text ? text : "?";
}

static struct data data_of(const struct nft_expr *expr, uint16_t type)
{
	const struct nlattr *value = nl_attr_find(nl_attr_nest(expr->v[type]), NFTA_DATA_VALUE);
	struct data data = {0};
	const uint8_t *bytes = nl_attr_bytes(value, &data.n);

	data.n = MIN(data.n, sizeof(data.bytes));
	if (bytes)
		memcpy(data.bytes, bytes, data.n);
	return data;
}

/* REGISTERS: it is none. The kernel calls every fourth by its old name. */
static size_t register_of(const struct nft_expr *expr, uint16_t type)
{
	uint32_t n = number(expr, type);

	if (n >= NFT_REG32_00 && n <= NFT_REG32_15)
		return n - NFT_REG32_00;
	return n >= NFT_REG_1 && n <= NFT_REG_4 ? (n - NFT_REG_1) * 4 : REGISTERS;
}

static bool is_all(const struct data *data, uint8_t what)
{
	for (size_t i = 0; i < data->n; i++)
		if (data->bytes[i] != what)
			return false;
	return true;
}

static uint32_t host_number(const struct data *data)
{
	uint32_t n = 0;

	memcpy(&n, data->bytes, MIN(data->n, sizeof(n)));
	return n;
}

/* -- registers and statements */

static void load(struct listing *listing, size_t reg, const char *fmt, ...) attr_printf(3, 4);

static void load(struct listing *listing, size_t reg, const char *fmt, ...)
{
	va_list args;

	if (reg >= REGISTERS)
		return;
	listing->registers[reg] = (struct value){0};
	va_start(args, fmt);
	vsnprintf(listing->registers[reg].words, WORDS_MAX, fmt, args);
	va_end(args);
}

static void say(struct listing *listing, const char *fmt, ...) attr_printf(2, 3);

static void say(struct listing *listing, const char *fmt, ...)
{
	char words[2 * WORDS_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	for (char *at = words; *at; at++)
		if ((unsigned char)*at < ' ' || *at == '\177')
			*at = '?';
	text_printf(listing->text, "%s%s", listing->begun ? " " : "", words);
	listing->begun = true;
	memset(listing->registers, 0, sizeof(listing->registers));
}

/* What lies from one register on, up to another: "ip daddr . meta l4proto". */
static void key(const struct listing *listing, size_t from, size_t to, char out[static WORDS_MAX])
{
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = from; i < to && i < REGISTERS && n < WORDS_MAX; i++)
		if (listing->registers[i].words[0])
			n += (size_t)snprintf(out + n, WORDS_MAX - n, "%s%s", n > 0 ? " . " : "",
					      listing->registers[i].words);
}

static const char *ip(enum family family)
{
	return family == FAMILY_IPV4 ? "ip" : "ip6";
}

/* -- what is loaded */

static void read_payload(struct listing *listing, const struct nft_expr *expr)
{
	size_t reg = register_of(expr, NFTA_PAYLOAD_DREG);
	uint32_t base = number(expr, NFTA_PAYLOAD_BASE), offset = number(expr, NFTA_PAYLOAD_OFFSET);
	uint32_t n = number(expr, NFTA_PAYLOAD_LEN);
	bool address = base == NFT_PAYLOAD_NETWORK_HEADER && n == addr_bytes(listing->family);

	if (address && offset == nft_expr_address_offset(listing->family, true))
		load(listing, reg, "%s saddr", ip(listing->family));
	else if (address && offset == nft_expr_address_offset(listing->family, false))
		load(listing, reg, "%s daddr", ip(listing->family));
	else if (base == NFT_PAYLOAD_TRANSPORT_HEADER && n == 2 && offset <= 2)
		load(listing, reg, "th %s", offset == 0 ? "sport" : "dport");
	else
		load(listing, reg, "@%s,%u,%u",
		     base == NFT_PAYLOAD_NETWORK_HEADER     ? "nh"
		     : base == NFT_PAYLOAD_TRANSPORT_HEADER ? "th"
							    : "ll",
		     offset * 8, n * 8);
}

static const char *meta_key(uint32_t what)
{
	switch (what) {
	case NFT_META_L4PROTO:
		return "meta l4proto";
	case NFT_META_MARK:
		return "meta mark";
	case NFT_META_PRIORITY:
		return "meta priority";
	case NFT_META_IIFNAME:
		return "iifname";
	case NFT_META_OIFNAME:
		return "oifname";
	default:
		return NULL;
	}
}

/* "meta mark set meta mark | 0x00004000" and the like */
static void say_meta_set(struct listing *listing, const char *name, const struct value *value)
{
	struct value copy = *value;
	uint32_t mask = host_number(&copy.mask), xor = host_number(&copy.xor);

	if (copy.masked && mask == ~xor)
		say(listing, "%s set %s | 0x%08x", name, copy.words, xor);
	else if (copy.masked && mask == UINT32_MAX)
		say(listing, "%s set %s ^ 0x%08x", name, copy.words, xor);
	else if (copy.masked)
		say(listing, "%s set %s & 0x%08x ^ 0x%08x", name, copy.words, mask, xor);
	else if (copy.constant && copy.number == 0 && streq(name, "meta priority"))
		say(listing, "%s set none", name);
	else if (copy.constant && streq(name, "meta priority"))
		say(listing, "%s set %x:%x", name, copy.number >> 16, copy.number & 0xffff);
	else
		say(listing, "%s set %s", name, copy.words);
}

static void read_meta(struct listing *listing, const struct nft_expr *expr)
{
	const char *name = meta_key(number(expr, NFTA_META_KEY));
	size_t from = register_of(expr, NFTA_META_SREG);
	char other[32];

	snprintf(other, sizeof(other), "meta key-%u", number(expr, NFTA_META_KEY));
	if (from < REGISTERS)
		say_meta_set(listing, name ? name : other, &listing->registers[from]);
	else
		load(listing, register_of(expr, NFTA_META_DREG), "%s", name ? name : other);
}

static void read_conntrack(struct listing *listing, const struct nft_expr *expr)
{
	size_t reg = register_of(expr, NFTA_CT_DREG);
	uint32_t what = number(expr, NFTA_CT_KEY);
	bool original = expr->v[NFTA_CT_DIRECTION] &&
			nl_attr_u8(expr->v[NFTA_CT_DIRECTION]) == IP_CT_DIR_ORIGINAL;
	const char *direction = !expr->v[NFTA_CT_DIRECTION] ? ""
				: original                  ? "original "
							    : "reply ";

	switch (what) {
	case NFT_CT_STATE:
		load(listing, reg, "ct state");
		break;
	case NFT_CT_STATUS:
		load(listing, reg, "ct status");
		break;
	case NFT_CT_DST_IP:
	case NFT_CT_DST_IP6:
		load(listing, reg, "ct %s%s daddr", direction, ip(listing->family));
		break;
	case NFT_CT_PROTO_DST:
		load(listing, reg, "ct %sproto-dst", direction);
		break;
	default:
		load(listing, reg, "ct %skey-%u", direction, what);
		break;
	}
}

static void read_numgen(struct listing *listing, const struct nft_expr *expr)
{
	size_t reg = register_of(expr, NFTA_NG_DREG);
	const char *kind = number(expr, NFTA_NG_TYPE) == NFT_NG_RANDOM ? "random" : "inc";

	if (number(expr, NFTA_NG_OFFSET))
		load(listing, reg, "numgen %s mod %u offset %u", kind,
		     number(expr, NFTA_NG_MODULUS), number(expr, NFTA_NG_OFFSET));
	else
		load(listing, reg, "numgen %s mod %u", kind, number(expr, NFTA_NG_MODULUS));
}

static void read_fib(struct listing *listing, const struct nft_expr *expr)
{
	uint32_t flags = number(expr, NFTA_FIB_FLAGS);
	bool type = number(expr, NFTA_FIB_RESULT) == NFT_FIB_RESULT_ADDRTYPE;

	if (type && (flags == NFTA_FIB_F_SADDR || flags == NFTA_FIB_F_DADDR))
		load(listing, register_of(expr, NFTA_FIB_DREG), "fib %s type",
		     flags == NFTA_FIB_F_SADDR ? "saddr" : "daddr");
	else
		load(listing, register_of(expr, NFTA_FIB_DREG), "fib flags-%u result-%u", flags,
		     number(expr, NFTA_FIB_RESULT));
}

static void read_bitwise(struct listing *listing, const struct nft_expr *expr)
{
	size_t from = register_of(expr, NFTA_BITWISE_SREG),
	       to = register_of(expr, NFTA_BITWISE_DREG);

	if (from >= REGISTERS || to >= REGISTERS)
		return;
	listing->registers[to] = listing->registers[from];
	listing->registers[to].masked = true;
	listing->registers[to].mask = data_of(expr, NFTA_BITWISE_MASK);
	listing->registers[to].xor = data_of(expr, NFTA_BITWISE_XOR);
}

/* -- comparisons */

static const char *hex(const struct data *data, char out[static 2 * DATA_MAX + 3])
{
	size_t n = (size_t)sprintf(out, "0x");

	for (size_t i = 0; i < data->n; i++)
		n += (size_t)sprintf(out + n, "%02x", data->bytes[i]);
	return out;
}

/* A mask's ones, if they are all in front; 255: they are not. */
static uint8_t prefix_length(const struct data *mask)
{
	uint8_t n = 0;

	while (n < mask->n * 8 && mask->bytes[n / 8] & 0x80 >> n % 8)
		n++;
	for (size_t i = n; i < mask->n * 8; i++)
		if (mask->bytes[i / 8] & 0x80 >> i % 8)
			return 255;
	return n;
}

/* ADDRESS or ADDRESS/LENGTH; false: it is none. */
static bool prefix_words(const struct listing *listing, const struct value *value,
			 const struct data *data, char out[static PREFIX_TEXT_MAX])
{
	struct prefix prefix = {.addr.family = (uint8_t)listing->family,
				.length = addr_bits(listing->family)};

	if (data->n != addr_bytes(listing->family) || !has_suffix(value->words, "addr"))
		return false;
	if (value->masked)
		prefix.length = prefix_length(&value->mask);
	if (prefix.length == 255 || (value->masked && !is_all(&value->xor, 0)))
		return false;
	memcpy(prefix.addr.bytes, data->bytes, data->n);
	if (prefix.length == addr_bits(listing->family))
		addr_print(&prefix.addr, out);
	else
		prefix_print(&prefix, out);
	return true;
}

static const char *protocol_words(const struct data *data)
{
	for (enum protocol i = 0; data->n == 1 && i < PROTOCOL_COUNT; i++)
		if (protocol_number(i) == data->bytes[0])
			return protocol_name(i);
	return NULL;
}

/* "ct state new" and the like: some bit of the mask is set. */
static bool say_bits(struct listing *listing, const struct value *value, const struct data *data)
{
	uint32_t mask = host_number(&value->mask);

	if (!value->masked || !is_all(&value->xor, 0) || data->n != 4 || !is_all(data, 0))
		return false;
	if (streq(value->words, "ct state") && mask == NFT_EXPR_CT_NEW)
		say(listing, "ct state new");
	else if (streq(value->words, "ct status") && mask == IPS_DST_NAT)
		say(listing, "ct status dnat");
	else
		say(listing, "%s & 0x%08x != 0x00000000", value->words, mask);
	return true;
}

static void read_compare(struct listing *listing, const struct nft_expr *expr)
{
	size_t reg = register_of(expr, NFTA_CMP_SREG);
	struct value value = reg < REGISTERS ? listing->registers[reg] : (struct value){0};
	uint32_t op = number(expr, NFTA_CMP_OP);
	const char *not = op == NFT_CMP_NEQ ? "!= " : "";
	struct data data = data_of(expr, NFTA_CMP_DATA);
	char out[PREFIX_TEXT_MAX], first[2 * DATA_MAX + 3], second[2 * DATA_MAX + 3];

	if (op == NFT_CMP_NEQ && say_bits(listing, &value, &data))
		return;
	if (op > NFT_CMP_NEQ)
		say(listing, "%s op-%u %s", value.words, op, hex(&data, first));
	else if (prefix_words(listing, &value, &data, out))
		say(listing, "%s %s%s", value.words, not, out);
	else if (value.masked)
		say(listing, "%s & %s %s%s", value.words, hex(&value.mask, first), not,
		    hex(&data, second));
	else if (has_suffix(value.words, "ifname"))
		say(listing, "%s %s\"%.*s%s\"", value.words, not, (int)data.n,
		    (const char *)data.bytes, data.n < DATA_MAX ? "*" : "");
	else if (has_prefix(value.words, "fib ") && host_number(&data) == RTN_LOCAL)
		say(listing, "%s %slocal", value.words, not );
	else if (streq(value.words, "meta priority") && data.n == sizeof(uint32_t))
		say(listing, "%s %s%x:%x", value.words, not, host_number(&data) >> 16,
		    host_number(&data) & 0xffff);
	else if (streq(value.words, "meta l4proto") && protocol_words(&data))
		say(listing, "%s %s%s", value.words, not, protocol_words(&data));
	else
		say(listing, "%s %s%s", value.words, not, hex(&data, first));
}

/* -- lookups and what happens */

static void read_lookup(struct listing *listing, const struct nft_expr *expr)
{
	const char *name = string(expr->v[NFTA_LOOKUP_SET]);
	const char *not = number(expr, NFTA_LOOKUP_FLAGS) & NFT_LOOKUP_F_INV ? "!= " : "";
	size_t to = register_of(expr, NFTA_LOOKUP_DREG);
	char words[WORDS_MAX];

	key(listing, register_of(expr, NFTA_LOOKUP_SREG), REGISTERS, words);
	if (!expr->v[NFTA_LOOKUP_DREG]) {
		say(listing, "%s %s@%s", words, not, name);
	} else if (to >= REGISTERS) {
		say(listing, "%s vmap @%s", words, name);
	} else {
		memset(listing->registers, 0, sizeof(listing->registers));
		load(listing, to, "%.180s map @%.60s", words, name);
	}
}

static void say_verdict(struct listing *listing, const struct nlattr *nest)
{
	struct nft_verdict verdict = nft_verdict_of(nest);
	const char *chain = verdict.chain ? verdict.chain : "?";

	switch (verdict.code) {
	case NF_DROP:
		say(listing, "drop");
		break;
	case NF_ACCEPT:
		say(listing, "accept");
		break;
	case NFT_JUMP:
		say(listing, "jump %s", chain);
		break;
	case NFT_GOTO:
		say(listing, "goto %s", chain);
		break;
	case NFT_RETURN:
		say(listing, "return");
		break;
	default:
		say(listing, "verdict %d", verdict.code);
		break;
	}
}

static void read_immediate(struct listing *listing, const struct nft_expr *expr)
{
	size_t reg = register_of(expr, NFTA_IMMEDIATE_DREG);
	struct nl_attrs inner = nl_attr_nest(expr->v[NFTA_IMMEDIATE_DATA]);
	struct data data = data_of(expr, NFTA_IMMEDIATE_DATA);
	char out[2 * DATA_MAX + 3];

	if (reg >= REGISTERS) {
		say_verdict(listing, nl_attr_find(inner, NFTA_DATA_VERDICT));
		return;
	}
	load(listing, reg, "%s", hex(&data, out));
	listing->registers[reg].constant = data.n == sizeof(uint32_t);
	listing->registers[reg].number = host_number(&data);
}

static void read_nat(struct listing *listing, const struct nft_expr *expr)
{
	const char *kind = number(expr, NFTA_NAT_TYPE) == NFT_NAT_DNAT ? "dnat" : "snat";
	bool v4 = number(expr, NFTA_NAT_FAMILY) == NFPROTO_IPV4;
	uint32_t flags = number(expr, NFTA_NAT_FLAGS);
	size_t address = register_of(expr, NFTA_NAT_REG_ADDR_MIN);
	size_t port = register_of(expr, NFTA_NAT_REG_PROTO_MIN);
	bool ours = flags == (NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED) &&
		    port == address + addr_bytes(listing->family) / 4;
	char words[WORDS_MAX];

	key(listing, address, REGISTERS, words);
	if (ours)
		say(listing, "%s %s to %s", kind, v4 ? "ip" : "ip6", words);
	else
		say(listing, "%s %s to %s flags 0x%x", kind, v4 ? "ip" : "ip6", words, flags);
}

static const char *dynset_word(uint32_t op)
{
	switch (op) {
	case NFT_DYNSET_OP_UPDATE:
		return "update";
	case NFT_DYNSET_OP_DELETE:
		return "delete";
	default:
		return "add";
	}
}

static void read_dynset(struct listing *listing, const struct nft_expr *expr)
{
	const char *name = string(expr->v[NFTA_DYNSET_SET_NAME]);
	const char *op = dynset_word(number(expr, NFTA_DYNSET_OP));
	size_t first = register_of(expr, NFTA_DYNSET_SREG_KEY);
	size_t second = register_of(expr, NFTA_DYNSET_SREG_DATA); /* REGISTERS: a set has no data */
	unsigned long long ms = nl_attr_u64(expr->v[NFTA_DYNSET_TIMEOUT]);
	char left[WORDS_MAX], right[WORDS_MAX], timeout[48] = "";

	key(listing, first, second, left);
	key(listing, second, REGISTERS, right);
	if (ms > 0)
		snprintf(timeout, sizeof(timeout), " timeout %llu%s", ms % 1000 ? ms : ms / 1000,
			 ms % 1000 ? "ms" : "s");
	say(listing, "%s @%s { %s%s%s%s }", op, name, left, timeout, right[0] ? " : " : "", right);
}

static void read_masquerade(struct listing *listing, const struct nft_expr *expr)
{
	uint32_t flags = number(expr, NFTA_MASQ_FLAGS);

	if (flags == NF_NAT_RANGE_PROTO_RANDOM_FULLY)
		say(listing, "masquerade fully-random");
	else if (flags)
		say(listing, "masquerade flags 0x%x", flags);
	else
		say(listing, "masquerade");
}

static void read_reject(struct listing *listing, const struct nft_expr *expr)
{
	uint32_t code = nl_attr_u8(expr->v[NFTA_REJECT_ICMP_CODE]);

	if (number(expr, NFTA_REJECT_TYPE) == NFT_REJECT_ICMP_UNREACH &&
	    code == nft_expr_port_unreachable(listing->family))
		say(listing, "reject");
	else
		say(listing, "reject with type %u code %u", number(expr, NFTA_REJECT_TYPE), code);
}

static void read_counter(struct listing *listing, const struct nft_expr *expr attr_unused)
{
	say(listing, "counter");
}

static const struct {
	const char *name;
	void (*read)(struct listing *listing, const struct nft_expr *expr);
} readers[] = {
	{"payload", read_payload}, {"meta", read_meta},       {"ct", read_conntrack},
	{"numgen", read_numgen},   {"fib", read_fib},         {"bitwise", read_bitwise},
	{"cmp", read_compare},     {"lookup", read_lookup},   {"immediate", read_immediate},
	{"nat", read_nat},         {"dynset", read_dynset},   {"masq", read_masquerade},
	{"reject", read_reject},   {"counter", read_counter},
};

static void read_expression(struct listing *listing, const struct nft_expr *expr)
{
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		if (streq(expr->name, readers[i].name)) {
			readers[i].read(listing, expr);
			return;
		}
	}
	say(listing, "[%.40s]", expr->name);
}

void expression_text_rule(struct text *text, enum family family, const struct nlmsghdr *message)
{
	struct listing listing = {.text = text, .family = family};
	struct nl_attrs list = nl_attr_nest(nft_message_attr(message, NFTA_RULE_EXPRESSIONS));
	char comment[USER_DATA_COMMENT_MAX];
	struct nft_expr expr;
	int r;

	while ((r = nft_expr_next(&list, &expr)) > 0)
		read_expression(&listing, &expr);
	if (r < 0)
		say(&listing, "[?]");
	if (user_data_read_comment(nft_message_attr(message, NFTA_RULE_USERDATA), comment))
		say(&listing, "comment \"%s\"", comment);
}
