/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/user_data.h"

#include <assert.h>
#include <linux/netfilter/nf_tables.h>

#include "backends/nftables/element.h"
#include "kernel/nl_attr.h"

/*
 * User data are entries of a byte for the type, a byte for the length, and bytes; a value may be
 * such entries again. The numbers below are nft's own and the same since it has typeof; those of
 * expressions and of protocol headers are its enumerations.
 */

enum {
	ENTRY_KEY_ORDER = 0, /* of a container */
	ENTRY_DATA_ORDER = 1,
	ENTRY_KEY_TYPEOF = 3,
	ENTRY_DATA_TYPEOF = 4,
	ENTRY_DATA_INTERVAL = 6,
	ENTRY_SET_COMMENT = 7,
	ENTRY_COMMENT = 0, /* of anything else */

	ENTRY_EXPRESSION = 0, /* of a typeof, and of each of its parts */
	ENTRY_EXPRESSION_DATA = 1,

	ORDER_NONE = 0,
	ORDER_HOST = 1,
	ORDER_BIG = 2,

	EXPRESSION_PAYLOAD = 7,
	EXPRESSION_META = 9,
	EXPRESSION_CONCAT = 13,
	EXPRESSION_NUMGEN = 23,

	HEADER_TH = 11, /* and the number of the field in it */
	HEADER_TH_DPORT = 2,
	HEADER_IP = 12,
	HEADER_IP_DADDR = 12,
	HEADER_IP6 = 13,
	HEADER_IP6_DADDR = 9,

	NUMGEN_RANDOM = 1,
	NUMGEN_MODULUS = 2, /* any will do */
};

struct user_data {
	uint8_t bytes[256]; /* NFT_USERDATA_MAXLEN */
	size_t n;
};

static void put(struct user_data *to, uint8_t type, const void *data, size_t n)
{
	assert(n <= UINT8_MAX && to->n + 2 + n <= sizeof(to->bytes));
	to->bytes[to->n++] = type;
	to->bytes[to->n++] = (uint8_t)n;
	memcpy(to->bytes + to->n, data, n);
	to->n += n;
}

static void put_u32(struct user_data *to, uint8_t type, uint32_t value)
{
	put(to, type, &value, sizeof(value));
}

void user_data_cut(const char *comment, char out[static USER_DATA_COMMENT_MAX])
{
	size_t n = MIN(strlen(comment), ELEMENT_COMMENT_MAX);

	memcpy(out, comment, n);
	out[n] = '\0';
}

static void put_comment(struct user_data *to, uint8_t type, const char *comment)
{
	char cut[USER_DATA_COMMENT_MAX];

	user_data_cut(comment, cut);
	put(to, type, cut, strlen(cut) + 1);
}

void user_data_comment(struct nlmsghdr *message, uint16_t attribute, const char *comment)
{
	struct user_data data = {.n = 0};

	put_comment(&data, ENTRY_COMMENT, comment);
	mnl_attr_put(message, attribute, data.n, data.bytes);
}

static bool read_entry(const struct nlattr *attribute, uint8_t type,
		       char out[static USER_DATA_COMMENT_MAX])
{
	size_t left;
	const uint8_t *data = nl_attr_bytes(attribute, &left);

	while (left >= 2 && left - 2 >= data[1]) {
		size_t n = data[1];

		if (data[0] == type && n > 0) {
			memcpy(out, data + 2, n);
			out[n - 1] = '\0'; /* as a rule it is there */
			return true;
		}
		data += 2 + n;
		left -= 2 + n;
	}
	return false;
}

bool user_data_read_comment(const struct nlattr *attribute, char out[static USER_DATA_COMMENT_MAX])
{
	return read_entry(attribute, ENTRY_COMMENT, out);
}

bool user_data_read_set_comment(const struct nlattr *attribute,
				char out[static USER_DATA_COMMENT_MAX])
{
	return read_entry(attribute, ENTRY_SET_COMMENT, out);
}

/* An expression: its kind, and up to three numbers that make it. */
static void put_expression(struct user_data *to, uint8_t type, uint32_t kind,
			   const uint32_t *numbers, size_t n)
{
	struct user_data inner = {.n = 0}, expression = {.n = 0};

	for (size_t i = 0; i < n; i++)
		put_u32(&inner, (uint8_t)i, numbers[i]);
	put_u32(&expression, ENTRY_EXPRESSION, kind);
	put(&expression, ENTRY_EXPRESSION_DATA, inner.bytes, inner.n);
	put(to, type, expression.bytes, expression.n);
}

static void put_field(struct user_data *to, uint8_t index, enum family family,
		      enum container_field field)
{
	static const uint32_t address[FAMILY_COUNT][2] = {{HEADER_IP, HEADER_IP_DADDR},
							  {HEADER_IP6, HEADER_IP6_DADDR}};
	static const uint32_t port[] = {HEADER_TH, HEADER_TH_DPORT};
	static const uint32_t protocol[] = {NFT_META_L4PROTO};
	static const uint32_t slot[] = {NUMGEN_RANDOM, NUMGEN_MODULUS, 0};

	switch (field) {
	case FIELD_ADDRESS:
		put_expression(to, index, EXPRESSION_PAYLOAD, address[family], 2);
		break;
	case FIELD_PORT:
		put_expression(to, index, EXPRESSION_PAYLOAD, port, 2);
		break;
	case FIELD_PROTOCOL:
		put_expression(to, index, EXPRESSION_META, protocol, 1);
		break;
	default:
		assert(field == FIELD_SLOT);
		put_expression(to, index, EXPRESSION_NUMGEN, slot, 3);
		break;
	}
}

static void put_typeof(struct user_data *to, uint8_t type, enum family family,
		       const enum container_field *fields, size_t n)
{
	struct user_data parts = {.n = 0}, concat = {.n = 0};

	for (size_t i = 0; i < n && fields[i]; i++)
		put_field(&parts, (uint8_t)i, family, fields[i]);
	put_u32(&concat, ENTRY_EXPRESSION, EXPRESSION_CONCAT);
	put(&concat, ENTRY_EXPRESSION_DATA, parts.bytes, parts.n);
	put(to, type, concat.bytes, concat.n);
}

static uint32_t key_order(const struct container_type *type)
{
	if (type->key[1]) /* of more than one field: each has its own */
		return ORDER_NONE;
	return type->key[0] == FIELD_ID ? ORDER_HOST : ORDER_BIG;
}

void user_data_container(struct nlmsghdr *message, enum family family, enum container container,
			 const char *comment)
{
	static const enum container_field endpoint[] = {FIELD_ADDRESS, FIELD_PORT};
	const struct container_type *type = &container_types[container];
	struct user_data data = {.n = 0};

	put_u32(&data, ENTRY_KEY_ORDER, key_order(type));
	if (type->data != DATA_NONE)
		put_u32(&data, ENTRY_DATA_ORDER, type->data == DATA_ID ? ORDER_HOST : ORDER_NONE);
	if (container_has_slots(container)) {
		put_typeof(&data, ENTRY_KEY_TYPEOF, family, type->key, CONTAINER_FIELDS);
		put_typeof(&data, ENTRY_DATA_TYPEOF, family, endpoint, ARRAY_SIZE(endpoint));
	}
	if (type->data != DATA_NONE)
		put_u32(&data, ENTRY_DATA_INTERVAL, 0);
	put_comment(&data, ENTRY_SET_COMMENT, comment);
	mnl_attr_put(message, NFTA_SET_USERDATA, data.n, data.bytes);
}
