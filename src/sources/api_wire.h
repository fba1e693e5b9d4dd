/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Protobuf's wire format, field by field, without copying: for the wrapping around objects (events,
 * envelopes, metadata, Status), of which only a few bytes matter. The objects themselves are read
 * by their schema.
 */

#include "base/util.h"

enum api_wire_type {
	API_WIRE_VARINT = 0,
	API_WIRE_64 = 1,
	API_WIRE_BYTES = 2,
	API_WIRE_32 = 5,
};

/* Borrowed bytes; text when it is a string's, without a NUL behind. */
struct api_bytes {
	const uint8_t *data;
	size_t n;
};

struct api_wire_field {
	uint32_t number;
	enum api_wire_type type;
	uint64_t value;         /* of a varint; else 0 */
	struct api_bytes bytes; /* of API_WIRE_BYTES; else empty */
};

/* Takes the next field off the front of *left: 1, 0 at the end, or -EBADMSG. */
int api_wire_next(struct api_bytes *left, struct api_wire_field *ret);

bool api_bytes_equal(struct api_bytes bytes, const char *text);
char *api_bytes_text(struct api_bytes bytes); /* a copy; ends at a NUL, if there is one */
