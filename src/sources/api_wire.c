/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_wire.h"

#include <errno.h>

#define VARINT_BYTES_MAX 10 /* 64 bits, 7 in a byte */

/* Reads the varint at *at and moves that behind it: 1; 0: it is not complete; or -EBADMSG. */
static int read_varint(struct api_bytes bytes, size_t *at, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < VARINT_BYTES_MAX; i++) {
		if (*at == bytes.n)
			return 0;
		value |= (uint64_t)(bytes.data[*at] & 0x7f) << (7 * i);
		if (bytes.data[(*at)++] & 0x80)
			continue;
		*ret = value;
		return 1;
	}
	return -EBADMSG;
}

/* What the type says about the value's size. */
static int read_size(struct api_bytes bytes, struct api_wire_head *head)
{
	uint64_t value;

	switch (head->type) {
	case API_WIRE_VARINT:
		return read_varint(bytes, &head->n, &value);
	case API_WIRE_BYTES:
		return read_varint(bytes, &head->n, &head->size);
	case API_WIRE_64:
		head->size = 8;
		return 1;
	case API_WIRE_32:
		head->size = 4;
		return 1;
	}
	return -EBADMSG; /* groups, which Kubernetes has none of, and what is not defined */
}

int api_wire_head(struct api_bytes bytes, struct api_wire_head *ret)
{
	struct api_wire_head head = {0};
	uint64_t tag;
	int r = read_varint(bytes, &head.n, &tag);

	if (r <= 0)
		return r;
	if (tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
		return -EBADMSG;
	head.number = (uint32_t)(tag >> 3);
	head.type = tag & 7;
	r = read_size(bytes, &head);
	if (r > 0)
		*ret = head;
	return r;
}
