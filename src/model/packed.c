/* SPDX-License-Identifier: Apache-2.0 */
#include "model/packed.h"

/*
 * The bytes, with strings NUL-terminated and numbers in the machine's own order, unaligned:
 *
 *	key, service key,
 *	number of ports (32 bits), for each: name, protocol (8), port (16)
 *	number of endpoints (32 bits), for each: what is given (8), flags (8), address (4 or 16 bytes),
 *		hints
 *	hints: number of zones (32), names, number of nodes (32), names
 */

enum {
	HAS_HINTS = 1 << 0,
	IS_IPV6 = 1 << 1, /* the address, whatever the slice says */
};

struct writer {
	char *data;
	size_t n, capacity;
};

static void put(struct writer *writer, const void *data, size_t n)
{
	if (writer->capacity - writer->n < n) {
		writer->capacity = MAX(writer->n + n, 2 * writer->capacity);
		writer->data = xrealloc(writer->data, writer->capacity);
	}
	memcpy(writer->data + writer->n, data, n);
	writer->n += n;
}

static void put_string(struct writer *writer, const char *s)
{
	put(writer, s, strlen(s) + 1);
}

static void put_byte(struct writer *writer, unsigned int value)
{
	uint8_t byte = (uint8_t)value;

	put(writer, &byte, sizeof(byte));
}

static void put_count(struct writer *writer, size_t n)
{
	uint32_t count = (uint32_t)n;

	put(writer, &count, sizeof(count));
}

static void put_names(struct writer *writer, const char *const *names, size_t n)
{
	put_count(writer, n);
	for (size_t i = 0; i < n; i++)
		put_string(writer, names[i]);
}

static void put_endpoint(struct writer *writer, const struct slice_endpoint *endpoint,
			 const char *node_name)
{
	const struct endpoint_hints *hints = endpoint->hints;
	enum family family = endpoint->addr.family;
	bool local = endpoint->node && *node_name && streq(endpoint->node, node_name);

	put_byte(writer, (hints ? HAS_HINTS : 0) | (family == FAMILY_IPV6 ? IS_IPV6 : 0));
	put_byte(writer, endpoint->flags | (local ? ENDPOINT_LOCAL : 0));
	put(writer, endpoint->addr.bytes, addr_bytes(family));
	if (hints) {
		put_names(writer, hints->zones, hints->n_zones);
		put_names(writer, hints->nodes, hints->n_nodes);
	}
}

struct packed *packed_new(const struct slice *slice, const char *node_name)
{
	struct writer writer = {.n = offsetof(struct packed, data), .capacity = 512};
	struct packed *packed;

	writer.data = xcalloc(1, writer.capacity);
	put_string(&writer, slice->key);
	put_string(&writer, slice->service_key);
	put_count(&writer, slice->n_ports);
	for (size_t i = 0; i < slice->n_ports; i++) {
		put_string(&writer, slice->ports[i].name);
		put_byte(&writer, slice->ports[i].protocol);
		put(&writer, &slice->ports[i].port, sizeof(slice->ports[i].port));
	}
	put_count(&writer, slice->n_endpoints);
	for (size_t i = 0; i < slice->n_endpoints; i++)
		put_endpoint(&writer, &slice->endpoints[i], node_name);
	packed = xrealloc(writer.data, writer.n);
	packed->size = (uint32_t)(writer.n - offsetof(struct packed, data));
	packed->family = slice->family;
	return packed;
}

struct packed *packed_copy(const struct packed *packed)
{
	size_t n = offsetof(struct packed, data) + packed->size;
	struct packed *copy = xmalloc(n);

	memcpy(copy, packed, n);
	copy->next = NULL;
	return copy;
}

bool packed_equal(const struct packed *a, const struct packed *b)
{
	return a->family == b->family && a->size == b->size &&
	       memcmp(a->data, b->data, a->size) == 0;
}

const char *packed_key(const struct packed *packed)
{
	return packed->data;
}

const char *packed_service_key(const struct packed *packed)
{
	return packed->data + strlen(packed->data) + 1;
}

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

static const char *const *get_names(const char **at, struct arena *arena, size_t *ret_n)
{
	const char **names;

	*ret_n = get_count(at);
	names = arena_array(arena, *ret_n, sizeof(*names));
	for (size_t i = 0; i < *ret_n; i++)
		names[i] = get_string(at);
	return names;
}

static void get_endpoint(const char **at, struct arena *arena, struct slice_endpoint *ret)
{
	uint8_t given = get_byte(at);
	enum family family = given & IS_IPV6 ? FAMILY_IPV6 : FAMILY_IPV4;

	ret->flags = get_byte(at);
	ret->addr.family = family;
	get(at, ret->addr.bytes, addr_bytes(family));
	if (given & HAS_HINTS) {
		struct endpoint_hints *hints = arena_alloc(arena, sizeof(*hints));

		hints->zones = get_names(at, arena, &hints->n_zones);
		hints->nodes = get_names(at, arena, &hints->n_nodes);
		ret->hints = hints;
	}
}

struct slice *packed_open(const struct packed *packed, struct arena *arena)
{
	struct slice *slice = arena_alloc(arena, sizeof(*slice));
	const char *at = packed->data;

	slice->key = get_string(&at);
	slice->service_key = get_string(&at);
	slice->family = packed->family;
	slice->n_ports = get_count(&at);
	slice->ports = arena_array(arena, slice->n_ports, sizeof(*slice->ports));
	for (size_t i = 0; i < slice->n_ports; i++) {
		slice->ports[i].name = get_string(&at);
		slice->ports[i].protocol = get_byte(&at);
		get(&at, &slice->ports[i].port, sizeof(slice->ports[i].port));
	}
	slice->n_endpoints = get_count(&at);
	slice->endpoints = arena_array(arena, slice->n_endpoints, sizeof(*slice->endpoints));
	for (size_t i = 0; i < slice->n_endpoints; i++)
		get_endpoint(&at, arena, &slice->endpoints[i]);
	return slice;
}

size_t packed_count(const struct packed *packed)
{
	const char *at = packed->data;
	uint16_t port;
	size_t n_ports;

	get_string(&at); /* its own key and its Service's */
	get_string(&at);
	n_ports = get_count(&at);
	for (size_t i = 0; i < n_ports; i++) {
		get_string(&at);
		get_byte(&at);
		get(&at, &port, sizeof(port));
	}
	return get_count(&at);
}
