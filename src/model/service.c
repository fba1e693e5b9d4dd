/* SPDX-License-Identifier: Apache-2.0 */
#include "model/service.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>

static const char *const protocol_names[] = {"tcp", "udp", "sctp"};
_Static_assert(ARRAY_SIZE(protocol_names) == PROTOCOL_COUNT, "a name for each protocol");

const char *protocol_name(enum protocol protocol)
{
	return protocol_names[protocol];
}

uint8_t protocol_number(enum protocol protocol)
{
	static const uint8_t numbers[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP};

	_Static_assert(ARRAY_SIZE(numbers) == PROTOCOL_COUNT, "a number for each protocol");
	return numbers[protocol];
}

static const char *const api_names[] = {"TCP", "UDP", "SCTP"};

_Static_assert(ARRAY_SIZE(api_names) == PROTOCOL_COUNT, "a name for each protocol");

const char *protocol_api_name(enum protocol protocol)
{
	return api_names[protocol];
}

int protocol_parse(const char *name, enum protocol *ret)
{
	return word_parse(name, api_names, ret) ? 0 : -EINVAL;
}

bool terminate_parse(const char *name, enum terminate *ret)
{
	static const char *const names[] = {
		[TERMINATE_NONE] = "none",
		[TERMINATE_ENDPOINT_REMOVED] = "endpoint-removed",
	};

	_Static_assert(ARRAY_SIZE(names) == TERMINATE_COUNT, "a name for each");
	return word_parse(name, names, ret);
}

struct service *service_new(const char *ns, const char *name, size_t room)
{
	size_t names = 2 * strlen(ns) + strlen(name) + 3;
	size_t aligned = (names + 7) & ~(size_t)7;
	struct arena *arena = arena_new(sizeof(struct service) + aligned + room);
	struct service *service = arena_alloc(arena, sizeof(*service));

	service->refs = 1;
	service->arena = arena;
	service->key = arena_printf(arena, "%s/%s", ns, name);
	service->ns = arena_strdup(arena, ns);
	service->name = service->key + strlen(ns) + 1;
	return service;
}

static void destroy(struct service *service)
{
	arena_free(service->arena);
}

DEFINE_REFS(service, destroy)

bool service_in_family(const struct service *service, enum family family)
{
	return service && service->has_cluster_ip[family] && service->n_ports > 0;
}

/*
 * Lists of addresses, or of ranges, as one family sees them. Both begin with their struct addr, and
 * are bytes without gaps.
 */
static const struct addr *next_of(const void *list, size_t n, size_t size, enum family family,
				  size_t *at)
{
	while (*at < n) {
		const struct addr *addr =
			(const struct addr *)((const char *)list + (*at)++ * size);

		if (addr->family == family)
			return addr;
	}
	return NULL;
}

static bool lists_equal(const void *a, size_t n_a, const void *b, size_t n_b, size_t size,
			enum family family)
{
	size_t at_a = 0, at_b = 0;

	for (;;) {
		const struct addr *x = next_of(a, n_a, size, family, &at_a);
		const struct addr *y = next_of(b, n_b, size, family, &at_b);

		if (!x || !y)
			return x == y;
		if (memcmp(x, y, size) != 0)
			return false;
	}
}

const struct service_port *service_find_port(const struct service *service, const char *name,
					     enum protocol protocol)
{
	for (size_t i = 0; i < service->n_ports; i++) {
		const struct service_port *port = &service->ports[i];

		if (port->protocol == protocol && streq(port->name, name))
			return port;
	}
	return NULL;
}

static bool same_port(const struct service_port *a, const struct service_port *b)
{
	return a->protocol == b->protocol && streq(a->name, b->name);
}

/* A port's place in the list means nothing, but is the first to look at: it is mostly the same. */
static bool ports_equal(const struct service *a, const struct service *b)
{
	if (a->n_ports != b->n_ports)
		return false;
	for (size_t i = 0; i < a->n_ports; i++) {
		const struct service_port *x = &a->ports[i];
		const struct service_port *y = &b->ports[i];

		if (!same_port(x, y))
			y = service_find_port(b, x->name, x->protocol);
		if (!y || x->port != y->port || x->node_port != y->node_port)
			return false;
	}
	return true;
}

bool service_equal(const struct service *a, const struct service *b, enum family family)
{
	bool has_a = service_in_family(a, family);

	if (has_a != service_in_family(b, family))
		return false;
	if (!has_a || a == b)
		return true;
	return streq(a->key, b->key) && a->created_s == b->created_s &&
	       addr_equal(&a->cluster_ip[family], &b->cluster_ip[family]) &&
	       lists_equal(a->external_ips, a->n_external_ips, b->external_ips, b->n_external_ips,
			   sizeof(struct addr), family) &&
	       lists_equal(a->vips, a->n_vips, b->vips, b->n_vips, sizeof(struct addr), family) &&
	       lists_equal(a->source_ranges, a->n_source_ranges, b->source_ranges,
			   b->n_source_ranges, sizeof(struct prefix), family) &&
	       ports_equal(a, b) && a->sticky_seconds == b->sticky_seconds &&
	       a->health_check_node_port == b->health_check_node_port &&
	       a->external_local == b->external_local && a->internal_local == b->internal_local &&
	       a->terminate == b->terminate;
}
