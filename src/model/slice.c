/* SPDX-License-Identifier: Apache-2.0 */
#include "model/slice.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/oom.h"

/*
 * The bytes, with strings NUL-terminated and numbers in the machine's own order, unaligned:
 *
 *	key, service key
 *	for each port: name, protocol (8 bits), port (16)
 *	for each endpoint: flags (8), address (4 or 16 bytes), hints if HAS_HINTS is among the flags
 *	hints: bytes of what follows (32), number of zones (32), their names, names of nodes
 */

#define HAS_HINTS   (1u << 7)
#define FIRST_BYTES 512

DEFINE_REFS(slice, free)

struct slice *slice_copy(const struct slice *slice)
{
	size_t n = offsetof(struct slice, data) + slice->size;
	struct slice *copy = xmalloc(n);

	memcpy(copy, slice, n);
	copy->refs = 1;
	copy->next = NULL;
	copy->trigger_time_ns = 0;
	return copy;
}

bool slice_equal(const struct slice *a, const struct slice *b)
{
	if (a == b)
		return true; /* as nearly all of a folder are when one file has changed */
	return a->family == b->family && a->n_ports == b->n_ports &&
	       a->n_endpoints == b->n_endpoints && a->size == b->size &&
	       memcmp(a->data, b->data, a->size) == 0;
}

const char *slice_key(const struct slice *slice)
{
	return slice->data;
}

const char *slice_service_key(const struct slice *slice)
{
	return slice->data + strlen(slice->data) + 1;
}

/* -- writing */

static void put(struct slice_writer *writer, const void *data, size_t n)
{
	struct slice *slice = writer->slice;
	size_t used = offsetof(struct slice, data) + slice->size;

	if (n > UINT32_MAX - slice->size) { /* a file can name one long hint many times */
		errno = EOVERFLOW;
		oom("an EndpointSlice", used + n);
	}
	if (writer->capacity - used < n) {
		writer->capacity = MAX(used + n, 2 * writer->capacity);
		slice = writer->slice = xrealloc(slice, writer->capacity);
	}
	memcpy(slice->data + slice->size, data, n);
	slice->size += (uint32_t)n;
}

static void put_string(struct slice_writer *writer, const char *s)
{
	put(writer, s, strlen(s) + 1);
}

static void put_byte(struct slice_writer *writer, unsigned int value)
{
	uint8_t byte = (uint8_t)value;

	put(writer, &byte, sizeof(byte));
}

static void put_count(struct slice_writer *writer, size_t n)
{
	uint32_t count = (uint32_t)n;

	put(writer, &count, sizeof(count));
}

static void put_key(struct slice_writer *writer, const char *ns, const char *name)
{
	put(writer, ns, strlen(ns));
	put_byte(writer, '/');
	put_string(writer, name);
}

static void put_hints(struct slice_writer *writer, const struct endpoint_hints *hints)
{
	size_t at = writer->slice->size;
	uint32_t size;

	put_count(writer, 0); /* known only at the end */
	put_count(writer, hints->n_zones);
	for (size_t i = 0; i < hints->n_zones; i++)
		put_string(writer, hints->zones[i]);
	for (size_t i = 0; i < hints->n_nodes; i++)
		put_string(writer, hints->nodes[i]);
	size = (uint32_t)(writer->slice->size - at - sizeof(size));
	memcpy(writer->slice->data + at, &size, sizeof(size));
}

void slice_writer_init(struct slice_writer *writer, const char *ns, const char *name,
		       const char *service_name, enum family family)
{
	writer->capacity = FIRST_BYTES;
	writer->slice = xcalloc(1, writer->capacity);
	writer->slice->refs = 1;
	writer->slice->family = family;
	put_key(writer, ns, name);
	put_key(writer, ns, service_name);
}

void slice_writer_port(struct slice_writer *writer, const char *name, enum protocol protocol,
		       uint16_t port)
{
	assert(writer->slice->n_endpoints == 0);
	put_string(writer, name);
	put_byte(writer, protocol);
	put(writer, &port, sizeof(port));
	writer->slice->n_ports++;
}

void slice_writer_endpoint(struct slice_writer *writer, const struct addr *addr, unsigned int flags,
			   const struct endpoint_hints *hints)
{
	bool hinted = hints && hints->n_zones + hints->n_nodes > 0;

	if (addr->family != writer->slice->family)
		return;
	put_byte(writer, flags | (hinted ? HAS_HINTS : 0));
	put(writer, addr->bytes, addr_bytes(addr->family));
	if (hinted)
		put_hints(writer, hints);
	writer->slice->n_endpoints++;
}

struct slice *slice_writer_finish(struct slice_writer *writer)
{
	struct slice *slice = take(writer->slice);

	return xrealloc(slice, offsetof(struct slice, data) + slice->size);
}

/* -- reading */

static void get(const char **at, void *ret, size_t n)
{
	memcpy(ret, *at, n);
	*at += n;
}

static const char *get_string(const char **at)
{
	const char *s = *at;

	*at += strlen(s) + 1;
	return s;
}

static uint8_t get_byte(const char **at)
{
	uint8_t byte;

	get(at, &byte, sizeof(byte));
	return byte;
}

static size_t get_count(const char **at)
{
	uint32_t count;

	get(at, &count, sizeof(count));
	return count;
}

const char *slice_read(const struct slice *slice)
{
	const char *at = slice_service_key(slice);

	get_string(&at);
	return at;
}

struct slice_port slice_next_port(const char **at)
{
	struct slice_port port;

	port.name = get_string(at);
	port.protocol = get_byte(at);
	get(at, &port.port, sizeof(port.port));
	return port;
}

struct slice_endpoint slice_next_endpoint(const struct slice *slice, const char **at)
{
	struct slice_endpoint endpoint = {.addr.family = slice->family};
	uint8_t flags = get_byte(at);

	endpoint.flags = flags & (uint8_t)~HAS_HINTS;
	get(at, endpoint.addr.bytes, addr_bytes(slice->family));
	if (flags & HAS_HINTS) {
		size_t n;

		endpoint.hints = *at;
		n = get_count(at);
		*at += n;
	}
	return endpoint;
}

bool slice_hints_equal(const char *a, const char *b)
{
	size_t n_a = get_count(&a), n_b = get_count(&b);

	return n_a == n_b && memcmp(a, b, n_a) == 0;
}

struct names {
	const char *text; /* one behind the other */
	size_t size, n, n_zones;
};

static struct names get_names(const char *hints)
{
	struct names names = {.size = get_count(&hints) - sizeof(uint32_t)};

	names.n_zones = get_count(&hints);
	names.text = hints;
	while (hints < names.text + names.size) {
		get_string(&hints);
		names.n++;
	}
	return names;
}

size_t slice_hints_size(const char *hints)
{
	struct names names = get_names(hints);

	return sizeof(struct endpoint_hints) + names.n * sizeof(char *) + names.size +
	       sizeof(char *); /* for what comes behind to be aligned */
}

const struct endpoint_hints *slice_hints_open(const char *hints, struct arena *arena)
{
	struct names names = get_names(hints);
	struct endpoint_hints *opened = arena_alloc(arena, sizeof(*opened));
	const char **v = arena_array(arena, names.n, sizeof(*v));
	const char *at = memcpy(arena_alloc(arena, names.size), names.text, names.size);

	for (size_t i = 0; i < names.n; i++)
		v[i] = get_string(&at);
	*opened = (struct endpoint_hints){v, names.n_zones, v + names.n_zones,
					  names.n - names.n_zones};
	return opened;
}
