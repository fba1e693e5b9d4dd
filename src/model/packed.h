/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An EndpointSlice as the model stores it: one run of bytes.
 *
 * A slice is read only when its service changes, but stays in memory for ever, so it is kept small:
 * about 100 bytes for five endpoints instead of 450. Of an endpoint's node only that it is this one
 * is kept, so slices with equal bytes ask for the same here.
 */

#include "model/slice.h"

struct packed {
	struct packed *next; /* of the same service and family; belongs to the model */
	uint32_t size;       /* bytes of data */
	uint8_t family;
	char data[]; /* begins with the key */
};

/* Released with free(). The trigger time is not kept. node_name: what is local; "": nothing is. */
struct packed *packed_new(const struct slice *slice, const char *node_name)
	__attribute__((returns_nonnull));
/* Released with free(), too; in no chain. */
struct packed *packed_copy(const struct packed *packed) __attribute__((returns_nonnull));
bool packed_equal(const struct packed *a, const struct packed *b);
const char *packed_key(const struct packed *packed);
const char *packed_service_key(const struct packed *packed);
size_t packed_count(const struct packed *packed); /* endpoints */
/* The slice again, without nodes: lives in `arena`, borrows strings from `packed`, is not reference-counted. */
struct slice *packed_open(const struct packed *packed, struct arena *arena);
