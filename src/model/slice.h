/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An EndpointSlice as far as a proxy cares: one run of bytes, immutable once written, shared by
 * reference.
 *
 * A slice is read only when its Service changes, but stays in memory as long as the cluster has it,
 * so it is kept small: about 100 bytes for five endpoints. A source writes it straight from the
 * object that it read, the model keeps it, and endpoints_merge() reads it. Of an endpoint's node
 * only that it is this one is kept, so slices with equal bytes ask for the same here.
 */

#include "model/service.h"

enum endpoint_flag {
	ENDPOINT_READY = 1 << 0,
	ENDPOINT_SERVING = 1 << 1,
	ENDPOINT_TERMINATING = 1 << 2,
	ENDPOINT_LOCAL = 1 << 3, /* on this node */
};

/* Names that an endpoint is meant for; a list that is empty means no hint. */
struct endpoint_hints {
	const char *const *zones;
	size_t n_zones;
	const char *const *nodes;
	size_t n_nodes;
};

struct slice {
	struct slice *next;      /* of the same Service and family; belongs to the model */
	int64_t trigger_time_ns; /* last-change-trigger-time since the epoch; 0: none given */
	uint32_t refs;
	uint32_t size; /* bytes of data */
	uint32_t n_ports, n_endpoints;
	uint8_t family;
	char data[]; /* begins with the key */
};

struct slice *slice_ref(struct slice *object);
struct slice *slice_unref(struct slice *object); /* accepts NULL, returns NULL */
/* For another model: with one reference, in no chain, and without the trigger time. */
struct slice *slice_copy(const struct slice *slice) __attribute__((returns_nonnull));
/* Same content in the same order? Trigger times do not count. */
bool slice_equal(const struct slice *a, const struct slice *b);
const char *slice_key(const struct slice *slice);         /* "namespace/name" of the slice */
const char *slice_service_key(const struct slice *slice); /* "namespace/name" of its Service */

/* -- writing: the names, all ports, all endpoints */

struct slice_writer {
	struct slice *slice; /* so far; may move with each call */
	size_t capacity;
};

void slice_writer_init(struct slice_writer *writer, const char *ns, const char *name,
		       const char *service_name, enum family family);
void slice_writer_port(struct slice_writer *writer, const char *name, enum protocol protocol,
		       uint16_t port);
/* An address of another family is left out. flags: of enum endpoint_flag. hints: NULL is none. */
void slice_writer_endpoint(struct slice_writer *writer, const struct addr *addr, unsigned int flags,
			   const struct endpoint_hints *hints);
/* The slice, whose one reference is the caller's. The writer is done with. */
struct slice *slice_writer_finish(struct slice_writer *writer) __attribute__((returns_nonnull));

/* -- reading: strings are borrowed from the slice */

struct slice_port {
	const char *name; /* "" is a name; ports with a null name or no number are left out */
	enum protocol protocol;
	uint16_t port;
};

struct slice_endpoint {
	struct addr addr;
	uint8_t flags;
	const char *hints; /* for slice_hints_*(); NULL: none */
};

/* Where the first port stands. Behind the last of n_ports stands the first of n_endpoints. */
const char *slice_read(const struct slice *slice);
struct slice_port slice_next_port(const char **at);
struct slice_endpoint slice_next_endpoint(const struct slice *slice, const char **at);

bool slice_hints_equal(const char *a, const char *b);
size_t slice_hints_size(const char *hints); /* bytes that slice_hints_open() takes of the arena */
const struct endpoint_hints *slice_hints_open(const char *hints, struct arena *arena);
