/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/statement_put.h"

#include <assert.h>
#include <endian.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/rtnetlink.h>

#include "backends/nftables/element.h"
#include "kernel/nft_message.h"

/*
 * Registers are counted in words of four bytes (R0, R1, ...), as the fields of a key lie in them.
 * Each comment names the expressions as `nft --debug=netlink` prints them.
 */

#define REGISTER(n)       (NFT_REG32_00 + (uint32_t)(n))
#define CONNTRACK_NEW     (1u << (IP_CT_NEW + 1)) /* NF_CT_STATE_BIT */
#define UNREACHABLE_PORT4 3                       /* ICMP_PORT_UNREACH */
#define UNREACHABLE_PORT6 4                       /* ICMPV6_PORT_UNREACH */

struct expression {
	struct nlmsghdr *message;
	struct nlattr *list, *data;
};

static struct expression begin(struct nlmsghdr *message, const char *name)
{
	struct expression expression = {.message = message};

	expression.list = mnl_attr_nest_start(message, NFTA_LIST_ELEM);
	mnl_attr_put_strz(message, NFTA_EXPR_NAME, name);
	expression.data = mnl_attr_nest_start(message, NFTA_EXPR_DATA);
	return expression;
}

static void end(const struct expression *expression)
{
	mnl_attr_nest_end(expression->message, expression->data);
	mnl_attr_nest_end(expression->message, expression->list);
}

/* [ payload load Nb @ BASE header + OFFSET => reg R ] */
static void payload(struct nlmsghdr *m, uint32_t base, uint32_t offset, size_t n, size_t reg)
{
	struct expression e = begin(m, "payload");

	nft_put_u32(m, NFTA_PAYLOAD_DREG, REGISTER(reg));
	nft_put_u32(m, NFTA_PAYLOAD_BASE, base);
	nft_put_u32(m, NFTA_PAYLOAD_OFFSET, offset);
	nft_put_u32(m, NFTA_PAYLOAD_LEN, (uint32_t)n);
	end(&e);
}

/* [ meta load KEY => reg R ] */
static void meta_load(struct nlmsghdr *m, uint32_t key, size_t reg)
{
	struct expression e = begin(m, "meta");

	nft_put_u32(m, NFTA_META_KEY, key);
	nft_put_u32(m, NFTA_META_DREG, REGISTER(reg));
	end(&e);
}

/* [ meta set KEY with reg R0 ] */
static void meta_set(struct nlmsghdr *m, uint32_t key)
{
	struct expression e = begin(m, "meta");

	nft_put_u32(m, NFTA_META_KEY, key);
	nft_put_u32(m, NFTA_META_SREG, REGISTER(0));
	end(&e);
}

#define NO_DIRECTION 255

/* [ ct load KEY => reg R , dir original ] */
static void conntrack(struct nlmsghdr *m, uint32_t key, uint8_t direction, size_t reg)
{
	struct expression e = begin(m, "ct");

	nft_put_u32(m, NFTA_CT_KEY, key);
	nft_put_u32(m, NFTA_CT_DREG, REGISTER(reg));
	if (direction != NO_DIRECTION)
		mnl_attr_put_u8(m, NFTA_CT_DIRECTION, direction);
	end(&e);
}

/* [ cmp eq reg R0 VALUE ] */
static void compare(struct nlmsghdr *m, bool equal, const void *value, size_t n)
{
	struct expression e = begin(m, "cmp");

	nft_put_u32(m, NFTA_CMP_SREG, REGISTER(0));
	nft_put_u32(m, NFTA_CMP_OP, equal ? NFT_CMP_EQ : NFT_CMP_NEQ);
	nft_put_value(m, NFTA_CMP_DATA, value, n);
	end(&e);
}

/* [ bitwise reg R0 = ( reg R0 & MASK ) ^ XOR ] */
static void bitwise(struct nlmsghdr *m, const void *mask, const void * xor, size_t n)
{
	struct expression e = begin(m, "bitwise");

	nft_put_u32(m, NFTA_BITWISE_SREG, REGISTER(0));
	nft_put_u32(m, NFTA_BITWISE_DREG, REGISTER(0));
	nft_put_u32(m, NFTA_BITWISE_LEN, (uint32_t)n);
	nft_put_value(m, NFTA_BITWISE_MASK, mask, n);
	nft_put_value(m, NFTA_BITWISE_XOR, xor, n);
	end(&e);
}

/* [ immediate reg R0 VALUE ] */
static void immediate(struct nlmsghdr *m, uint32_t value)
{
	struct expression e = begin(m, "immediate");

	nft_put_u32(m, NFTA_IMMEDIATE_DREG, REGISTER(0));
	nft_put_value(m, NFTA_IMMEDIATE_DATA, &value, sizeof(value));
	end(&e);
}

/* [ immediate reg 0 goto -> CHAIN ] */
static void verdict(struct nlmsghdr *m, int code, const struct chain *chain)
{
	struct expression e = begin(m, "immediate");
	char name[CHAIN_NAME_MAX];
	struct nlattr *data, *nest;

	nft_put_u32(m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = mnl_attr_nest_start(m, NFTA_IMMEDIATE_DATA);
	nest = mnl_attr_nest_start(m, NFTA_DATA_VERDICT);
	nft_put_u32(m, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain) {
		chain_name(*chain, name);
		mnl_attr_put_strz(m, NFTA_VERDICT_CHAIN, name);
	}
	mnl_attr_nest_end(m, nest);
	mnl_attr_nest_end(m, data);
	end(&e);
}

/* [ lookup reg R0 set NAME dreg R ] */
static void lookup(struct nlmsghdr *m, const struct statement *statement, uint32_t dreg)
{
	struct expression e = begin(m, "lookup");
	char name[CONTAINER_NAME_MAX];

	container_name(statement->container, statement->map, name);
	mnl_attr_put_strz(m, NFTA_LOOKUP_SET, name);
	nft_put_u32(m, NFTA_LOOKUP_SREG, REGISTER(0));
	if (container_types[statement->container].data != DATA_NONE)
		nft_put_u32(m, NFTA_LOOKUP_DREG, dreg);
	if (statement->not )
		nft_put_u32(m, NFTA_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
	end(&e);
}

/* -- keys */

static void load_address(struct nlmsghdr *m, enum family family, bool source, size_t reg)
{
	uint32_t offset = family == FAMILY_IPV4 ? 12 : 8; /* of the source in either header */
	uint32_t n = (uint32_t)addr_bytes(family);

	payload(m, NFT_PAYLOAD_NETWORK_HEADER, source ? offset : offset + n, n, reg);
}

/* [ numgen reg R = random mod N ] */
static void load_random(struct nlmsghdr *m, uint32_t modulus, size_t reg)
{
	struct expression e = begin(m, "numgen");

	nft_put_u32(m, NFTA_NG_DREG, REGISTER(reg));
	nft_put_u32(m, NFTA_NG_MODULUS, modulus);
	nft_put_u32(m, NFTA_NG_TYPE, NFT_NG_RANDOM);
	nft_put_u32(m, NFTA_NG_OFFSET, 0);
	end(&e);
}

/* Returns how many registers it took. */
static size_t load(struct nlmsghdr *m, enum family family, enum operand operand, uint32_t number,
		   size_t reg)
{
	switch (operand) {
	case OPERAND_SADDR:
	case OPERAND_DADDR:
		load_address(m, family, operand == OPERAND_SADDR, reg);
		return addr_bytes(family) / 4;
	case OPERAND_ORIGINAL_DADDR:
		conntrack(m, family == FAMILY_IPV4 ? NFT_CT_DST_IP : NFT_CT_DST_IP6,
			  IP_CT_DIR_ORIGINAL, reg);
		return addr_bytes(family) / 4;
	case OPERAND_PROTOCOL:
		meta_load(m, NFT_META_L4PROTO, reg);
		return 1;
	case OPERAND_DPORT:
		payload(m, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, reg);
		return 1;
	case OPERAND_ORIGINAL_DPORT:
		conntrack(m, NFT_CT_PROTO_DST, IP_CT_DIR_ORIGINAL, reg);
		return 1;
	case OPERAND_PRIORITY:
		meta_load(m, NFT_META_PRIORITY, reg);
		return 1;
	default:
		assert(operand == OPERAND_RANDOM);
		load_random(m, number, reg);
		return 1;
	}
}

static size_t load_key(struct nlmsghdr *m, enum family family, const struct statement *statement)
{
	size_t reg = 0;

	for (size_t i = 0; i < STATEMENT_KEY && statement->key[i]; i++)
		reg += load(m, family, statement->key[i], statement->number, reg);
	return reg;
}

/* -- conditions */

static void put_bits(struct nlmsghdr *m, uint32_t bits)
{
	uint32_t zero = 0;

	bitwise(m, &bits, &zero, sizeof(bits));
	compare(m, false, &zero, sizeof(zero));
}

static void put_prefix(struct nlmsghdr *m, enum family family, const struct statement *statement)
{
	const struct prefix *prefix = &statement->prefix;
	size_t n = addr_bytes(family);
	uint8_t mask[16] = {0}, zero[16] = {0};

	for (uint8_t i = 0; i < prefix->length; i++)
		mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
	load_address(m, family, statement->kind == STATEMENT_SOURCE, 0);
	if (prefix->length < addr_bits(family))
		bitwise(m, mask, zero, n);
	compare(m, !statement->not, prefix->addr.bytes, n);
}

static void put_interface(struct nlmsghdr *m, const struct statement *statement)
{
	char name[16] = {0};
	size_t n = strlen(statement->interface);

	memcpy(name, statement->interface, MIN(n, sizeof(name) - 1));
	meta_load(m, NFT_META_IIFNAME, 0);
	compare(m, !statement->not, name, statement->is_prefix ? n : sizeof(name));
}

/* [ fib saddr type => reg R0 ] [ cmp eq reg R0 local ] */
static void put_fib(struct nlmsghdr *m, uint32_t flag)
{
	struct expression e = begin(m, "fib");
	uint32_t local = RTN_LOCAL;

	nft_put_u32(m, NFTA_FIB_DREG, REGISTER(0));
	nft_put_u32(m, NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
	nft_put_u32(m, NFTA_FIB_FLAGS, flag);
	end(&e);
	compare(m, true, &local, sizeof(local));
}

static void put_protocol(struct nlmsghdr *m, enum protocol protocol)
{
	uint8_t number = element_protocol_number(protocol);

	meta_load(m, NFT_META_L4PROTO, 0);
	compare(m, true, &number, sizeof(number));
}

static void put_id(struct nlmsghdr *m, const struct statement *statement)
{
	uint32_t id = CONTAINER_ID_BASE + statement->number;

	meta_load(m, NFT_META_PRIORITY, 0);
	compare(m, !statement->not, &id, sizeof(id));
}

/* -- what happens */

static void put_mark(struct nlmsghdr *m, uint32_t mask, uint32_t xor)
{
	meta_load(m, NFT_META_MARK, 0);
	bitwise(m, &mask, &xor, sizeof(mask));
	meta_set(m, NFT_META_MARK);
}

/* [ nat dnat ip addr_min reg R0 proto_min reg R1 ] */
static void put_dnat(struct nlmsghdr *m, enum family family, const struct statement *statement)
{
	struct expression e;

	load_key(m, family, statement);
	lookup(m, statement, REGISTER(0));
	e = begin(m, "nat");
	nft_put_u32(m, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	nft_put_u32(m, NFTA_NAT_FAMILY, family == FAMILY_IPV4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
	nft_put_u32(m, NFTA_NAT_REG_ADDR_MIN, REGISTER(0));
	nft_put_u32(m, NFTA_NAT_REG_PROTO_MIN, REGISTER(addr_bytes(family) / 4));
	nft_put_u32(m, NFTA_NAT_FLAGS, NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED);
	end(&e);
}

/* [ dynset OP reg_key R0 set NAME sreg_data R timeout Tms ]; data 0: there are none */
static void put_dynset(struct nlmsghdr *m, const struct statement *statement, uint32_t op,
		       size_t data)
{
	struct expression e = begin(m, "dynset");
	char name[CONTAINER_NAME_MAX];

	container_name(statement->container, statement->map, name);
	mnl_attr_put_strz(m, NFTA_DYNSET_SET_NAME, name);
	nft_put_u32(m, NFTA_DYNSET_OP, op);
	nft_put_u32(m, NFTA_DYNSET_SREG_KEY, REGISTER(0));
	if (data > 0)
		nft_put_u32(m, NFTA_DYNSET_SREG_DATA, REGISTER(data));
	if (statement->number > 0)
		mnl_attr_put_u64(m, NFTA_DYNSET_TIMEOUT,
				 htobe64(statement->number * UINT64_C(1000)));
	end(&e);
}

/* The client, and the id of its endpoint. */
static void put_client(struct nlmsghdr *m, enum family family, const struct statement *statement,
		       uint32_t op)
{
	size_t data = addr_bytes(family) / 4;

	load(m, family, OPERAND_SADDR, 0, 0);
	load(m, family, OPERAND_PRIORITY, 0, data);
	put_dynset(m, statement, op, data);
}

static void put_masquerade(struct nlmsghdr *m)
{
	struct expression e = begin(m, "masq");

	nft_put_u32(m, NFTA_MASQ_FLAGS, NF_NAT_RANGE_PROTO_RANDOM_FULLY);
	end(&e);
}

static void put_reject(struct nlmsghdr *m, enum family family)
{
	struct expression e = begin(m, "reject");

	nft_put_u32(m, NFTA_REJECT_TYPE, NFT_REJECT_ICMP_UNREACH);
	mnl_attr_put_u8(m, NFTA_REJECT_ICMP_CODE,
			family == FAMILY_IPV4 ? UNREACHABLE_PORT4 : UNREACHABLE_PORT6);
	end(&e);
}

static void put_condition(struct nlmsghdr *m, enum family family, const struct statement *statement)
{
	switch (statement->kind) {
	case STATEMENT_NEW:
		conntrack(m, NFT_CT_STATE, NO_DIRECTION, 0);
		put_bits(m, CONNTRACK_NEW);
		break;
	case STATEMENT_TRANSLATED:
		conntrack(m, NFT_CT_STATUS, NO_DIRECTION, 0);
		put_bits(m, IPS_DST_NAT);
		break;
	case STATEMENT_MARKED:
		meta_load(m, NFT_META_MARK, 0);
		put_bits(m, statement->number);
		break;
	case STATEMENT_PROTOCOL:
		put_protocol(m, statement->protocol);
		break;
	case STATEMENT_ID:
		put_id(m, statement);
		break;
	case STATEMENT_SOURCE:
	case STATEMENT_DESTINATION:
		put_prefix(m, family, statement);
		break;
	case STATEMENT_INTERFACE:
		put_interface(m, statement);
		break;
	case STATEMENT_FROM_NODE:
	case STATEMENT_TO_NODE:
		put_fib(m, statement->kind == STATEMENT_FROM_NODE ? NFTA_FIB_F_SADDR
								  : NFTA_FIB_F_DADDR);
		break;
	default:
		assert(statement->kind == STATEMENT_IN);
		load_key(m, family, statement);
		lookup(m, statement, 0);
		break;
	}
}

static void put_action(struct nlmsghdr *m, enum family family, const struct statement *statement)
{
	switch (statement->kind) {
	case STATEMENT_SET_MARK:
		put_mark(m, ~statement->number, statement->number);
		break;
	case STATEMENT_TOGGLE_MARK:
		put_mark(m, UINT32_MAX, statement->number);
		break;
	case STATEMENT_DNAT:
		put_dnat(m, family, statement);
		break;
	case STATEMENT_TAKE_ID:
		load_key(m, family, statement);
		lookup(m, statement, REGISTER(0));
		meta_set(m, NFT_META_PRIORITY);
		break;
	case STATEMENT_SET_ID:
		immediate(m, statement->number ? CONTAINER_ID_BASE + statement->number : 0);
		meta_set(m, NFT_META_PRIORITY);
		break;
	case STATEMENT_UPDATE:
		put_client(m, family, statement, NFT_DYNSET_OP_UPDATE);
		break;
	case STATEMENT_NOTE_FULL:
		load(m, family, OPERAND_PRIORITY, 0, 0);
		put_dynset(m, statement, NFT_DYNSET_OP_UPDATE, 0);
		break;
	case STATEMENT_FORGET:
		put_client(m, family, statement, NFT_DYNSET_OP_DELETE);
		break;
	default:
		assert(statement->kind == STATEMENT_MASQUERADE);
		put_masquerade(m);
		break;
	}
}

static void put_end(struct nlmsghdr *m, enum family family, const struct statement *statement)
{
	switch (statement->kind) {
	case STATEMENT_VMAP:
		load_key(m, family, statement);
		lookup(m, statement, NFT_REG_VERDICT);
		break;
	case STATEMENT_JUMP:
		verdict(m, NFT_JUMP, &statement->chain);
		break;
	case STATEMENT_GOTO:
		verdict(m, NFT_GOTO, &statement->chain);
		break;
	case STATEMENT_RETURN:
		verdict(m, NFT_RETURN, NULL);
		break;
	case STATEMENT_DROP:
		verdict(m, NF_DROP, NULL);
		break;
	default:
		assert(statement->kind == STATEMENT_REJECT);
		put_reject(m, family);
		break;
	}
}

void statement_put_all(struct nlmsghdr *message, enum family family, const struct nft_rule *rule)
{
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);

	for (size_t i = 0; i < rule->n; i++) {
		const struct statement *statement = &rule->v[i];

		if (statement->kind >= STATEMENT_VMAP)
			put_end(message, family, statement);
		else if (statement->kind >= STATEMENT_SET_MARK)
			put_action(message, family, statement);
		else
			put_condition(message, family, statement);
	}
	mnl_attr_nest_end(message, list);
}
