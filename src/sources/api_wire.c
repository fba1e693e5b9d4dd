/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_wire.h"

#include <errno.h>

#define VARINT_BYTES_MAX 10 /* 64 bits, 7 in a byte */

static int take_varint(struct api_bytes *left, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < MIN(left->n, (size_t)VARINT_BYTES_MAX); i++) {
		value |= (uint64_t)(left->data[i] & 0x7f) << (7 * i);
		if (left->data[i] & 0x80)
			continue;
		left->data += i + 1;
		left->n -= i + 1;
		*ret = value;
		return 0;
	}
	return -EBADMSG;
}

static int take_bytes(struct api_bytes *left, uint64_t n, struct api_bytes *ret)
{
	if (n > left->n)
		return -EBADMSG;
	*ret = (struct api_bytes){left->data, (size_t)n};
	left->data += n;
	left->n -= (size_t)n;
	return 0;
}

static int take_value(struct api_bytes *left, struct api_wire_field *field)
{
	struct api_bytes skipped;
	uint64_t n;

	switch (field->type) {
	case API_WIRE_VARINT:
		return take_varint(left, &field->value);
	case API_WIRE_64:
		return take_bytes(left, 8, &skipped);
	case API_WIRE_32:
		return take_bytes(left, 4, &skipped);
	case API_WIRE_BYTES:
		return take_varint(left, &n) < 0 ? -EBADMSG : take_bytes(left, n, &field->bytes);
	}
	return -EBADMSG; /* groups, which Kubernetes has none of, and what is not defined */
}

int api_wire_next(struct api_bytes *left, struct api_wire_field *ret)
{
	struct api_wire_field field = {0};
	uint64_t tag;

	if (left->n == 0)
		return 0;
	if (take_varint(left, &tag) < 0 || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
		return -EBADMSG;
	field.number = (uint32_t)(tag >> 3);
	field.type = tag & 7;
	if (take_value(left, &field) < 0)
		return -EBADMSG;
	*ret = field;
	return 1;
}

bool api_bytes_equal(struct api_bytes bytes, const char *text)
{
	return bytes.n == strlen(text) && (bytes.n == 0 || memcmp(bytes.data, text, bytes.n) == 0);
}

char *api_bytes_text(struct api_bytes bytes)
{
	char *text = xmalloc(bytes.n + 1);

	if (bytes.n)
		memcpy(text, bytes.data, bytes.n);
	text[bytes.n] = '\0';
	return text;
}
