/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/statement_put.h"

#include <assert.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>

#include "backends/nftables/named_counter.h"
#include "kernel/nft_expr.h"

/*
 * Registers are counted in words of four bytes (R0, R1, ...), as the fields of a key lie in them. What
 * is compared lies in R0.
 */

#define R0 NFT_EXPR_WORD(0)

static void compare(struct nlmsghdr *m, bool equal, const void *value, size_t n)
{
	nft_expr_cmp(m, R0, equal ? NFT_CMP_EQ : NFT_CMP_NEQ, value, n);
}

/* -- keys */

/* Returns how many registers it took. */
static size_t load(struct nlmsghdr *m, enum family family, enum operand operand, uint32_t number,
		   size_t at)
{
	uint32_t reg = NFT_EXPR_WORD(at);

	switch (operand) {
	case OPERAND_SADDR:
	case OPERAND_DADDR:
		nft_expr_address(m, reg, family, operand == OPERAND_SADDR);
		return addr_bytes(family) / 4;
	case OPERAND_ORIGINAL_DADDR:
		nft_expr_ct_original(m, reg,
				     family == FAMILY_IPV4 ? NFT_CT_DST_IP : NFT_CT_DST_IP6);
		return addr_bytes(family) / 4;
	case OPERAND_PROTOCOL:
		nft_expr_meta(m, reg, NFT_META_L4PROTO);
		return 1;
	case OPERAND_DPORT:
		nft_expr_dport(m, reg);
		return 1;
	case OPERAND_ORIGINAL_DPORT:
		nft_expr_ct_original(m, reg, NFT_CT_PROTO_DST);
		return 1;
	case OPERAND_PRIORITY:
		nft_expr_meta(m, reg, NFT_META_PRIORITY);
		return 1;
	default:
		assert(operand == OPERAND_RANDOM);
		nft_expr_random(m, reg, number);
		return 1;
	}
}

/* The key, and what the container has for it: in register `to`, if it is a map. */
static void look_up(struct nlmsghdr *m, enum family family, const struct statement *statement,
		    uint32_t to)
{
	char name[CONTAINER_NAME_MAX];
	size_t at = 0;

	for (size_t i = 0; i < STATEMENT_KEY && statement->key[i]; i++)
		at += load(m, family, statement->key[i], statement->number, at);
	container_name(statement->container, statement->map, name);
	if (container_types[statement->container].data == DATA_NONE)
		nft_expr_lookup(m, R0, name, statement->not );
	else
		nft_expr_lookup_map(m, R0, name, to);
}

/* -- conditions */

static void put_prefix(struct nlmsghdr *m, enum family family, const struct statement *statement)
{
	const struct prefix *prefix = &statement->prefix;
	size_t n = addr_bytes(family);
	uint8_t mask[16];

	prefix_mask(prefix->length, mask);
	nft_expr_address(m, R0, family, statement->kind == STATEMENT_SOURCE);
	if (prefix->length < addr_bits(family))
		nft_expr_bitwise(m, R0, mask, NULL, n);
	compare(m, !statement->not, prefix->addr.bytes, n);
}

static void put_interface(struct nlmsghdr *m, const struct statement *statement)
{
	char name[16] = {0};
	size_t n = strlen(statement->interface);

	memcpy(name, statement->interface, MIN(n, sizeof(name) - 1));
	nft_expr_meta(m, R0, NFT_META_IIFNAME);
	compare(m, !statement->not, name, statement->is_prefix ? n : sizeof(name));
}

static void put_id(struct nlmsghdr *m, const struct statement *statement)
{
	uint32_t id = CONTAINER_ID_BASE + statement->number;

	nft_expr_meta(m, R0, NFT_META_PRIORITY);
	compare(m, !statement->not, &id, sizeof(id));
}

/* -- what happens */

static void put_mark(struct nlmsghdr *m, uint32_t mask, uint32_t xor)
{
	nft_expr_meta(m, R0, NFT_META_MARK);
	nft_expr_bitwise(m, R0, &mask, &xor, sizeof(mask));
	nft_expr_meta_set(m, R0, NFT_META_MARK);
}

static void set_id(struct nlmsghdr *m)
{
	nft_expr_meta_set(m, R0, NFT_META_PRIORITY);
}

/* number 0: none */
static void put_id_value(struct nlmsghdr *m, uint32_t number)
{
	uint32_t id = number ? CONTAINER_ID_BASE + number : 0;

	nft_expr_value(m, R0, &id, sizeof(id));
	set_id(m);
}

/* data: the register; 0: the container has no data */
static void put_dynset(struct nlmsghdr *m, const struct statement *statement, uint32_t op,
		       uint32_t data)
{
	char name[CONTAINER_NAME_MAX];

	container_name(statement->container, statement->map, name);
	nft_expr_dynset(m, &(struct nft_expr_update){
				   .op = op,
				   .set = name,
				   .key = R0,
				   .data = data,
				   .timeout_ms = statement->number * UINT64_C(1000),
			   });
}

/* The client, and the id of its endpoint. */
static void put_client(struct nlmsghdr *m, enum family family, const struct statement *statement,
		       uint32_t op)
{
	size_t at = load(m, family, OPERAND_SADDR, 0, 0);

	load(m, family, OPERAND_PRIORITY, 0, at);
	put_dynset(m, statement, op, NFT_EXPR_WORD(at));
}

static void put_named_counter(struct nlmsghdr *m, enum protocol protocol)
{
	char name[NAMED_COUNTER_MAX];

	named_counter_name(protocol, name);
	nft_expr_named_counter(m, name);
}

static void put_condition(struct nlmsghdr *m, enum family family, const struct statement *statement)
{
	switch (statement->kind) {
	case STATEMENT_NEW:
		nft_expr_ct(m, R0, NFT_CT_STATE);
		nft_expr_any_bit(m, R0, NFT_EXPR_CT_NEW);
		break;
	case STATEMENT_TRANSLATED:
		nft_expr_ct(m, R0, NFT_CT_STATUS);
		nft_expr_any_bit(m, R0, IPS_DST_NAT);
		break;
	case STATEMENT_MARKED:
		nft_expr_meta(m, R0, NFT_META_MARK);
		nft_expr_any_bit(m, R0, statement->number);
		break;
	case STATEMENT_PROTOCOL:
		nft_expr_protocol(m, R0, protocol_number(statement->protocol));
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
		nft_expr_local(m, R0, NFTA_FIB_F_SADDR);
		break;
	case STATEMENT_TO_NODE:
		nft_expr_local(m, R0, NFTA_FIB_F_DADDR);
		break;
	default:
		assert(statement->kind == STATEMENT_IN);
		look_up(m, family, statement, R0);
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
		look_up(m, family, statement, R0);
		nft_expr_dnat(m, family, R0, NFT_EXPR_WORD(addr_bytes(family) / 4));
		break;
	case STATEMENT_TAKE_ID:
		look_up(m, family, statement, R0);
		set_id(m);
		break;
	case STATEMENT_SET_ID:
		put_id_value(m, statement->number);
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
	case STATEMENT_COUNTER:
		nft_expr_counter(m);
		break;
	case STATEMENT_NAMED_COUNTER:
		put_named_counter(m, statement->protocol);
		break;
	default:
		assert(statement->kind == STATEMENT_MASQUERADE);
		nft_expr_masquerade(m, NF_NAT_RANGE_PROTO_RANDOM_FULLY);
		break;
	}
}

static void put_end(struct nlmsghdr *m, enum family family, const struct statement *statement)
{
	char name[CHAIN_NAME_MAX];

	switch (statement->kind) {
	case STATEMENT_VMAP:
		look_up(m, family, statement, NFT_REG_VERDICT);
		break;
	case STATEMENT_JUMP:
		chain_name(statement->chain, name);
		nft_expr_verdict(m, NFT_JUMP, name);
		break;
	case STATEMENT_GOTO:
		chain_name(statement->chain, name);
		nft_expr_verdict(m, NFT_GOTO, name);
		break;
	case STATEMENT_RETURN:
		nft_expr_verdict(m, NFT_RETURN, NULL);
		break;
	case STATEMENT_DROP:
		nft_expr_verdict(m, NF_DROP, NULL);
		break;
	case STATEMENT_ACCEPT:
		nft_expr_verdict(m, NF_ACCEPT, NULL);
		break;
	case STATEMENT_RESET:
		nft_expr_reset(m);
		break;
	default:
		assert(statement->kind == STATEMENT_REJECT);
		nft_expr_reject(m, family);
		break;
	}
}

void statement_put(struct nlmsghdr *message, enum family family, const struct statement *statement)
{
	if (statement->kind >= STATEMENT_VMAP)
		put_end(message, family, statement);
	else if (statement->kind >= STATEMENT_SET_MARK)
		put_action(message, family, statement);
	else
		put_condition(message, family, statement);
}

void statement_put_all(struct nlmsghdr *message, enum family family, const struct nft_rule *rule)
{
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);

	for (size_t i = 0; i < rule->n; i++)
		statement_put(message, family, &rule->v[i]);
	mnl_attr_nest_end(message, list);
}
