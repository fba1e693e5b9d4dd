/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes as they come off the wire, and where protobuf's fields begin and end in them: as much of
 * the format as it takes to cut a list while it arrives. What is inside the fields is read by its
 * schema (api_object.h).
 */

#include "base/util.h"

enum api_wire_type {
	API_WIRE_VARINT = 0,
	API_WIRE_64 = 1,
	API_WIRE_BYTES = 2,
	API_WIRE_32 = 5,
};

/* Borrowed. */
struct api_bytes {
	const uint8_t *data;
	size_t n;
};

/* What stands in front of a field's value; of a varint the value is a part of it. */
struct api_wire_head {
	uint32_t number;
	enum api_wire_type type;
	size_t n;      /* bytes of the head itself */
	uint64_t size; /* and of the value behind it */
};

/* Reads the head that the bytes begin with: 1; 0: it is not complete yet; or -EBADMSG. */
int api_wire_head(struct api_bytes bytes, struct api_wire_head *ret);
