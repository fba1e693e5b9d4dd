/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/statement_text.h"

#include <assert.h>
#include <endian.h>

static const char *ip(enum family family)
{
	return family == FAMILY_IPV4 ? "ip" : "ip6";
}

static void put_operand(struct text *text, enum family family, enum operand operand,
			uint32_t number)
{
	switch (operand) {
	case OPERAND_SADDR:
		text_printf(text, "%s saddr", ip(family));
		break;
	case OPERAND_DADDR:
		text_printf(text, "%s daddr", ip(family));
		break;
	case OPERAND_PROTOCOL:
		text_str(text, "meta l4proto");
		break;
	case OPERAND_DPORT:
		text_str(text, "th dport");
		break;
	case OPERAND_PRIORITY:
		text_str(text, "meta priority");
		break;
	case OPERAND_ORIGINAL_DADDR:
		text_printf(text, "ct original %s daddr", ip(family));
		break;
	case OPERAND_ORIGINAL_DPORT:
		text_str(text, "ct original proto-dst");
		break;
	default:
		assert(operand == OPERAND_RANDOM);
		text_printf(text, "numgen random mod %u", number);
		break;
	}
}

static void put_key(struct text *text, enum family family, const struct statement *statement)
{
	for (size_t i = 0; i < STATEMENT_KEY && statement->key[i]; i++) {
		if (i > 0)
			text_str(text, " . ");
		put_operand(text, family, statement->key[i], statement->number);
	}
}

/* KEY WORD @NAME */
static void put_lookup(struct text *text, enum family family, const struct statement *statement,
		       const char *word)
{
	char name[CONTAINER_NAME_MAX];

	container_name(statement->container, statement->map, name);
	put_key(text, family, statement);
	text_printf(text, " %s@%s", word, name);
}

static void put_prefix(struct text *text, enum family family, const struct statement *statement)
{
	const struct prefix *prefix = &statement->prefix;
	char out[PREFIX_TEXT_MAX];

	if (prefix->length == addr_bits(family))
		addr_print(&prefix->addr, out);
	else
		prefix_print(prefix, out);
	text_printf(text, "%s %s %s%s", ip(family),
		    statement->kind == STATEMENT_SOURCE ? "saddr" : "daddr",
		    statement->not ? "!= " : "", out);
}

static void put_goto(struct text *text, const char *word, struct chain chain)
{
	char name[CHAIN_NAME_MAX];

	chain_name(chain, name);
	text_printf(text, "%s %s", word, name);
}

static void put_number_id(struct text *text, uint32_t number)
{
	uint32_t id = CONTAINER_ID_BASE + number;

	text_printf(text, "%x:%x", id >> 16, id & 0xffff);
}

static void put_condition(struct text *text, enum family family, const struct statement *statement)
{
	const char *not = statement->not ? "!= " : "";

	switch (statement->kind) {
	case STATEMENT_NEW:
		text_str(text, "ct state new");
		break;
	case STATEMENT_TRANSLATED:
		text_str(text, "ct status dnat");
		break;
	case STATEMENT_PROTOCOL:
		text_printf(text, "meta l4proto %s", protocol_name(statement->protocol));
		break;
	case STATEMENT_SOURCE:
	case STATEMENT_DESTINATION:
		put_prefix(text, family, statement);
		break;
	case STATEMENT_INTERFACE:
		text_printf(text, "iifname %s\"%s%s\"", not, statement->interface,
			    statement->is_prefix ? "*" : "");
		break;
	case STATEMENT_FROM_NODE:
		text_str(text, "fib saddr type local");
		break;
	case STATEMENT_TO_NODE:
		text_str(text, "fib daddr type local");
		break;
	case STATEMENT_ID:
		text_printf(text, "meta priority %s", not );
		put_number_id(text, statement->number);
		break;
	case STATEMENT_MARKED:
		text_printf(text, "meta mark & 0x%08x != 0x00000000", statement->number);
		break;
	default:
		assert(statement->kind == STATEMENT_IN);
		put_lookup(text, family, statement, not );
		break;
	}
}

/* OP @clients-1 { ip saddr timeout Ts : meta priority } */
static void put_client(struct text *text, enum family family, const struct statement *statement,
		       const char *op)
{
	char name[CONTAINER_NAME_MAX];

	container_name(statement->container, statement->map, name);
	text_printf(text, "%s @%s { %s saddr", op, name, ip(family));
	if (statement->number > 0)
		text_printf(text, " timeout %us", statement->number);
	text_str(text, " : meta priority }");
}

static void put_action(struct text *text, enum family family, const struct statement *statement)
{
	switch (statement->kind) {
	case STATEMENT_SET_MARK:
		text_printf(text, "meta mark set meta mark | 0x%08x", statement->number);
		break;
	case STATEMENT_TOGGLE_MARK:
		text_printf(text, "meta mark set meta mark ^ 0x%08x", statement->number);
		break;
	case STATEMENT_DNAT:
		text_printf(text, "dnat %s to ", ip(family));
		put_lookup(text, family, statement, "map ");
		break;
	case STATEMENT_TAKE_ID:
		text_str(text, "meta priority set ");
		put_lookup(text, family, statement, "map ");
		break;
	case STATEMENT_SET_ID:
		text_str(text, "meta priority set ");
		if (statement->number)
			put_number_id(text, statement->number);
		else
			text_str(text, "none");
		break;
	case STATEMENT_UPDATE:
		put_client(text, family, statement, "update");
		break;
	case STATEMENT_NOTE_FULL:
		text_printf(text, "update @%s { meta priority timeout %us }",
			    container_types[statement->container].name, statement->number);
		break;
	case STATEMENT_FORGET:
		put_client(text, family, statement, "delete");
		break;
	default:
		assert(statement->kind == STATEMENT_MASQUERADE);
		text_str(text, "masquerade fully-random");
		break;
	}
}

static void put_end(struct text *text, enum family family, const struct statement *statement)
{
	switch (statement->kind) {
	case STATEMENT_VMAP:
		put_lookup(text, family, statement, "vmap ");
		break;
	case STATEMENT_JUMP:
		put_goto(text, "jump", statement->chain);
		break;
	case STATEMENT_GOTO:
		put_goto(text, "goto", statement->chain);
		break;
	case STATEMENT_RETURN:
		text_str(text, "return");
		break;
	case STATEMENT_DROP:
		text_str(text, "drop");
		break;
	default:
		assert(statement->kind == STATEMENT_REJECT);
		text_str(text, "reject");
		break;
	}
}

void statement_text_rule(struct text *text, enum family family, const struct nft_rule *rule)
{
	for (size_t i = 0; i < rule->n; i++) {
		const struct statement *statement = &rule->v[i];

		if (i > 0)
			text_str(text, " ");
		if (statement->kind >= STATEMENT_VMAP)
			put_end(text, family, statement);
		else if (statement->kind >= STATEMENT_SET_MARK)
			put_action(text, family, statement);
		else
			put_condition(text, family, statement);
	}
	if (rule->comment)
		text_printf(text, " comment \"%s\"", rule->comment);
}

/* -- elements */

static const char *protocol_of(uint8_t number)
{
	for (enum protocol i = 0; i < PROTOCOL_COUNT; i++)
		if (protocol_number(i) == number)
			return protocol_name(i);
	return "?";
}

static void put_addr(struct text *text, enum family family, const uint8_t *bytes)
{
	struct addr addr = {.family = (uint8_t)family};
	char out[ADDR_TEXT_MAX];

	memcpy(addr.bytes, bytes, addr_bytes(family));
	addr_print(&addr, out);
	text_str(text, out);
}

static void put_port(struct text *text, const uint8_t *bytes)
{
	text_printf(text, "%u", (unsigned int)(bytes[0] << 8 | bytes[1]));
}

static void put_id(struct text *text, const uint8_t *bytes)
{
	put_number_id(text, element_id_number(bytes));
}

/* Returns what comes behind the field. */
static const uint8_t *put_field(struct text *text, enum family family, enum container_field field,
				const uint8_t *bytes)
{
	uint32_t number;

	switch (field) {
	case FIELD_ADDRESS:
		put_addr(text, family, bytes);
		return bytes + addr_bytes(family);
	case FIELD_PROTOCOL:
		text_str(text, protocol_of(bytes[0]));
		break;
	case FIELD_PORT:
		put_port(text, bytes);
		break;
	case FIELD_ID:
		put_id(text, bytes);
		break;
	default:
		memcpy(&number, bytes, sizeof(number));
		text_printf(text, "%u", number);
		break;
	}
	return bytes + 4;
}

static void put_data(struct text *text, enum family family, const struct element *element)
{
	const uint8_t *data = element->bytes + element->key_size;

	switch (container_types[element->container].data) {
	case DATA_VERDICT:
		text_str(text, " : ");
		if (element->verdict == VERDICT_DROP)
			text_str(text, "drop");
		else
			put_goto(text, element->verdict == VERDICT_JUMP ? "jump" : "goto",
				 element->chain);
		break;
	case DATA_ENDPOINT:
		text_str(text, " : ");
		put_addr(text, family, data);
		text_str(text, " . ");
		put_port(text, data + addr_bytes(family));
		break;
	case DATA_ID:
		text_str(text, " : ");
		put_id(text, data);
		break;
	default:
		break;
	}
}

void statement_text_key(struct text *text, enum family family, const struct element *element)
{
	const struct container_type *type = &container_types[element->container];
	const uint8_t *at = element->bytes;

	for (size_t i = 0; i < CONTAINER_FIELDS && type->key[i]; i++) {
		if (i > 0)
			text_str(text, " . ");
		at = put_field(text, family, type->key[i], at);
	}
	if (type->ranges && element->prefix < addr_bits(family))
		text_printf(text, "/%u", element->prefix);
	if (element->comment)
		text_printf(text, " comment \"%.*s\"", ELEMENT_COMMENT_MAX, element->comment);
}

void statement_text_element(struct text *text, enum family family, const struct element *element)
{
	statement_text_key(text, family, element);
	put_data(text, family, element);
}

/* -- types of containers */

static const char *field_type(enum family family, enum container_field field)
{
	switch (field) {
	case FIELD_ADDRESS:
		return family == FAMILY_IPV4 ? "ipv4_addr" : "ipv6_addr";
	case FIELD_PROTOCOL:
		return "inet_proto";
	case FIELD_PORT:
		return "inet_service";
	default:
		return "classid";
	}
}

/* Numbers have no type of their own in nft: slots are said to be what they are made by. */
static const char *field_typeof(enum family family, enum container_field field)
{
	switch (field) {
	case FIELD_ADDRESS:
		return family == FAMILY_IPV4 ? "ip daddr" : "ip6 daddr";
	case FIELD_PROTOCOL:
		return "meta l4proto";
	case FIELD_PORT:
		return "th dport";
	default:
		return "numgen random mod 2";
	}
}

void statement_text_type(struct text *text, enum family family, enum container container)
{
	const struct container_type *type = &container_types[container];
	bool slots = container_has_slots(container);

	text_str(text, slots ? "typeof " : "type ");
	for (size_t i = 0; i < CONTAINER_FIELDS && type->key[i]; i++)
		text_printf(text, "%s%s", i > 0 ? " . " : "",
			    slots ? field_typeof(family, type->key[i])
				  : field_type(family, type->key[i]));
	if (type->data == DATA_VERDICT)
		text_str(text, " : verdict");
	else if (type->data == DATA_ID)
		text_str(text, " : classid");
	else if (type->data == DATA_ENDPOINT)
		text_printf(text, slots ? " : %s daddr . th dport" : " : %s . inet_service",
			    slots ? ip(family) : field_type(family, FIELD_ADDRESS));
}
