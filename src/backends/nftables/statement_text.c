/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/statement_text.h"

#include <assert.h>
#include <endian.h>
#include <linux/netfilter/nf_tables.h>

#include "backends/nftables/named_counter.h"
#include "kernel/nft_expr.h"

#define RAW_BYTES 32 /* of an attribute that are printed */

static const char *ip(enum family family)
{
	return family == FAMILY_IPV4 ? "ip" : "ip6";
}

static const char *const operands[OPERAND_COUNT] = {
	[OPERAND_SADDR] = "%f saddr",
	[OPERAND_DADDR] = "%f daddr",
	[OPERAND_PROTOCOL] = "meta l4proto",
	[OPERAND_DPORT] = "th dport",
	[OPERAND_RANDOM] = "numgen random mod %u",
	[OPERAND_PRIORITY] = "meta priority",
	[OPERAND_ORIGINAL_DADDR] = "ct original %f daddr",
	[OPERAND_ORIGINAL_DPORT] = "ct original proto-dst",
};

static void put_chain(struct text *text, struct chain chain)
{
	char name[CHAIN_NAME_MAX];

	chain_name(chain, name);
	text_str(text, name);
}

static void put_container(struct text *text, const struct statement *statement)
{
	char name[CONTAINER_NAME_MAX];

	container_name(statement->container, statement->map, name);
	text_str(text, name);
}

static void put_prefix(struct text *text, const struct prefix *prefix)
{
	char out[PREFIX_TEXT_MAX];

	if (prefix->length == addr_bits((enum family)prefix->addr.family))
		addr_print(&prefix->addr, out);
	else
		prefix_print(prefix, out);
	text_str(text, out);
}

static void put_number_id(struct text *text, uint32_t number)
{
	uint32_t id = CONTAINER_ID_BASE + number;

	text_printf(text, "%x:%x", id >> 16, id & 0xffff);
}

/* What another program wrote, on one line. */
static void put_words(struct text *text, const char *words)
{
	for (; *words; words++)
		text_add(text, (unsigned char)*words < ' ' || *words == '\177' ? "?" : words, 1);
}

/* Numbers, names, and bytes; of those not too many. A value is printed without what it is wrapped in. */
static void put_attribute(struct text *text, const struct nlattr *attribute)
{
	const struct nlattr *value = nl_attr_find(nl_attr_nest(attribute), NFTA_DATA_VALUE);
	const char *words = nl_attr_text(attribute);
	size_t n;
	const uint8_t *bytes = nl_attr_bytes(attribute, &n);

	if (n == sizeof(uint32_t)) {
		text_printf(text, " %u", nl_attr_u32(attribute));
		return;
	}
	if (words && strlen(words) == n - 1) {
		text_str(text, " ");
		put_words(text, words);
		return;
	}
	if (value)
		bytes = nl_attr_bytes(value, &n);
	text_str(text, " 0x");
	for (size_t i = 0; i < MIN(n, RAW_BYTES); i++)
		text_printf(text, "%02x", bytes[i]);
	text_str(text, n > RAW_BYTES ? "..." : "");
}

/* [name attribute ...] for each expression; "[?]" for what is none. */
static void put_raw(struct text *text, const struct statement *statement)
{
	struct nl_attrs list = {statement->raw, statement->raw_size};
	const char *blank = "";
	struct nft_expr expr;
	int r;

	while ((r = nft_expr_next(&list, &expr)) > 0) {
		text_printf(text, "%s[", blank);
		put_words(text, expr.name);
		for (size_t i = 0; i <= NFT_EXPR_ATTR_MAX; i++)
			if (expr.v[i])
				put_attribute(text, expr.v[i]);
		text_str(text, "]");
		blank = " ";
	}
	if (r < 0)
		text_printf(text, "%s[?]", blank);
}

static void put_form(struct text *text, enum family family, const struct statement *statement,
		     const char *form);

static void put_part(struct text *text, enum family family, const struct statement *statement,
		     char part)
{
	uint32_t number = statement->number;
	char name[NAMED_COUNTER_MAX];

	switch (part) {
	case 'c':
		put_chain(text, statement->chain);
		break;
	case 'f':
		text_str(text, ip(family));
		break;
	case 'i': /* a packet may be given none */
		if (number == 0 && statement->kind == STATEMENT_SET_ID)
			text_str(text, "none");
		else
			put_number_id(text, number);
		break;
	case 'k':
		for (size_t i = 0; i < STATEMENT_KEY && statement->key[i]; i++) {
			text_str(text, i > 0 ? " . " : "");
			put_form(text, family, statement, operands[statement->key[i]]);
		}
		break;
	case 'l':
		text_str(text, protocol_name(statement->protocol));
		break;
	case 'm':
		put_container(text, statement);
		break;
	case 'n':
		put_words(text, statement->interface);
		text_str(text, statement->is_prefix ? "*" : "");
		break;
	case 'o':
		named_counter_name(statement->protocol, name);
		text_str(text, name);
		break;
	case 'p':
		put_prefix(text, &statement->prefix);
		break;
	case 'r':
		put_raw(text, statement);
		break;
	case 't':
		if (number > 0)
			text_printf(text, " timeout %us", number);
		break;
	case 'u':
		text_printf(text, "%u", number);
		break;
	case 'x':
		text_printf(text, "0x%08x", number);
		break;
	default:
		assert(part == '!');
		text_str(text, statement->not ? "!= " : "");
		break;
	}
}

static void put_form(struct text *text, enum family family, const struct statement *statement,
		     const char *form)
{
	for (;;) {
		size_t n = strcspn(form, "%");

		text_add(text, form, n);
		if (!form[n])
			return;
		put_part(text, family, statement, form[n + 1]);
		form += n + 2;
	}
}

void statement_text_rule(struct text *text, enum family family, const struct nft_rule *rule)
{
	for (size_t i = 0; i < rule->n; i++) {
		text_str(text, i > 0 ? " " : "");
		put_form(text, family, &rule->v[i], statement_types[rule->v[i].kind].form);
	}
	if (rule->comment) {
		text_str(text, rule->n > 0 ? " comment \"" : "comment \"");
		put_words(text, rule->comment);
		text_str(text, "\"");
	}
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

static void put_verdict(struct text *text, const struct element *element)
{
	const struct element_verdict_type *type = &element_verdicts[element->verdict];

	text_printf(text, " : %s", type->word);
	if (type->has_chain) {
		text_str(text, " ");
		put_chain(text, element->chain);
	}
}

static void put_fields(struct text *text, enum family family, const enum container_field *fields,
		       const uint8_t *at)
{
	for (size_t i = 0; i < CONTAINER_FIELDS && fields[i]; i++) {
		text_str(text, i > 0 ? " . " : "");
		at = put_field(text, family, fields[i], at);
	}
}

/* What data are made of, verdicts aside. */
static const enum container_field data_fields[DATA_COUNT][CONTAINER_FIELDS] = {
	[DATA_ENDPOINT] = {FIELD_ADDRESS, FIELD_PORT},
	[DATA_ID] = {FIELD_ID},
};

void statement_text_key(struct text *text, enum family family, const struct element *element)
{
	const struct container_type *type = &container_types[element->container];

	put_fields(text, family, type->key, element->bytes);
	if (type->ranges && element->prefix < addr_bits(family))
		text_printf(text, "/%u", element->prefix);
	if (element->comment)
		text_printf(text, " comment \"%.*s\"", ELEMENT_COMMENT_MAX, element->comment);
}

void statement_text_element(struct text *text, enum family family, const struct element *element)
{
	enum container_data data = container_types[element->container].data;

	statement_text_key(text, family, element);
	if (data == DATA_VERDICT)
		put_verdict(text, element);
	else if (data != DATA_NONE)
		text_str(text, " : ");
	put_fields(text, family, data_fields[data], element->bytes + element->key_size);
}

/* -- types of containers */

/* Numbers have no type of their own in nft: slots are said to be what they are made by. */
static void put_types(struct text *text, enum family family, const enum container_field *fields,
		      bool slots)
{
	static const char *const words[FIELD_COUNT][2][FAMILY_COUNT] = {
		[FIELD_ADDRESS] = {{"ipv4_addr", "ipv6_addr"}, {"ip daddr", "ip6 daddr"}},
		[FIELD_PROTOCOL] = {{"inet_proto", "inet_proto"}, {"meta l4proto", "meta l4proto"}},
		[FIELD_PORT] = {{"inet_service", "inet_service"}, {"th dport", "th dport"}},
		[FIELD_SLOT] = {[1] = {"numgen random mod 2", "numgen random mod 2"}},
		[FIELD_ID] = {{"classid", "classid"}},
	};

	for (size_t i = 0; i < CONTAINER_FIELDS && fields[i]; i++)
		text_printf(text, "%s%s", i > 0 ? " . " : "", words[fields[i]][slots][family]);
}

void statement_text_type(struct text *text, enum family family, enum container container)
{
	const struct container_type *type = &container_types[container];
	bool slots = container_has_slots(container);

	text_str(text, slots ? "typeof " : "type ");
	put_types(text, family, type->key, slots);
	if (type->data != DATA_NONE)
		text_str(text, type->data == DATA_VERDICT ? " : verdict" : " : ");
	put_types(text, family, data_fields[type->data], slots);
}
