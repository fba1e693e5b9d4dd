/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An EndpointSlice as far as a proxy cares: plain data, immutable once built, shared by reference.
 * An endpoint whose address is not of the slice's family is harmless: it is never used.
 */

#include "model/service.h"

enum endpoint_flag {
	ENDPOINT_READY = 1 << 0,
	ENDPOINT_SERVING = 1 << 1,
	ENDPOINT_TERMINATING = 1 << 2,
	ENDPOINT_LOCAL = 1 << 3, /* on this node; known only in the model */
};

/* Names that an endpoint is meant for; a list that is absent or empty means no hint. */
struct endpoint_hints {
	const char *const *zones;
	size_t n_zones;
	const char *const *nodes;
	size_t n_nodes;
};

bool endpoint_hints_equal(const struct endpoint_hints *a, const struct endpoint_hints *b);

struct slice_endpoint {
	struct addr addr;                   /* addresses[0] */
	uint8_t flags;                      /* enum endpoint_flag without LOCAL */
	const char *node;                   /* nodeName, NULL when not given */
	const struct endpoint_hints *hints; /* NULL: none at all */
};

struct slice_port {
	const char *name; /* "" is a name; ports with a null name or no number are left out */
	enum protocol protocol;
	uint16_t port;
};

struct slice {
	unsigned int refs;
	struct arena *arena;

	const char *key;         /* "namespace/name" of the slice */
	const char *service_key; /* "namespace/name" of its Service */
	enum family family;

	struct slice_port *ports;
	size_t n_ports;
	struct slice_endpoint *endpoints; /* those with an address, of this family */
	size_t n_endpoints;

	int64_t trigger_time_ns; /* last-change-trigger-time since the epoch; 0: none given */
};

struct slice *slice_new(const char *ns, const char *name, const char *service_name,
			enum family family);
struct slice *slice_ref(struct slice *slice);
struct slice *slice_unref(struct slice *slice); /* accepts NULL, returns NULL */
/* Same content in the same order? Trigger times do not count. */
bool slice_equal(const struct slice *a, const struct slice *b);
