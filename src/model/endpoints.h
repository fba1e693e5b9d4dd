/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The endpoints of one service port in one family: all slices merged, duplicates resolved, sorted
 * by their printed text ("10.1.1.11:80" comes before "10.1.1.1:80"). Immutable, shared by
 * reference.
 */

#include "model/slice.h"

/* 20 bytes: there may be a million of them. */
struct endpoint {
	struct addr addr;
	uint8_t flags; /* enum endpoint_flag */
	uint16_t port;
};

struct endpoints {
	unsigned int refs;
	uint32_t n;
	struct endpoint *v;
	const struct endpoint_hints **hints; /* one for each of v, or NULL: none has any */
	const char *port_name;
	enum protocol protocol;
};

/* Of v[i]; NULL: none. */
static inline const struct endpoint_hints *endpoints_hints(const struct endpoints *endpoints,
							   size_t i)
{
	return endpoints->hints ? endpoints->hints[i] : NULL;
}

struct endpoints *endpoints_ref(struct endpoints *object);
struct endpoints *endpoints_unref(struct endpoints *object); /* accepts NULL, returns NULL */

/*
 * Merges a chain of slices (all of one service and family) into one list for each port name and
 * protocol that has endpoints, sorted by those. The array and one reference to each list are the
 * caller's, the lists keep nothing of the slices. The order of the slices does not matter.
 */
struct endpoints **endpoints_merge(const struct slice *slices, size_t *ret_n);
/* Borrowed from what endpoints_merge() gave; NULL when there is none of that name and protocol. */
struct endpoints *endpoints_find(struct endpoints *const *lists, size_t n, const char *port_name,
				 enum protocol protocol);
