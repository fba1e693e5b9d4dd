/* SPDX-License-Identifier: Apache-2.0 */
#include "conntrack/service_fronts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/siphash.h"
#include "kernel/conntrack.h"

#define LEAST_SIZE 64

/* Compared and hashed as bytes: there is no padding. */
struct front {
	uint8_t protocol; /* IPPROTO_*; 0: an empty place */
	struct addr addr; /* all zero, family FAMILY_COUNT: any */
	uint16_t port;
};

struct place {
	struct front front;
	uint32_t owner;
};

struct service_fronts {
	uint64_t key[2];
	struct front_owner *owners;
	size_t n_owners, owners_capacity;
	struct place *places; /* open addressing, linear probing */
	size_t size, used;    /* size: a power of two */
};

static const struct addr any_addr = {.family = FAMILY_COUNT};

/* -- the table */

static struct place *find_place(const struct service_fronts *fronts, const struct front *front)
{
	size_t at = siphash(fronts->key, front, sizeof(*front)) & (fronts->size - 1);

	_Static_assert(sizeof(struct front) == 20, "no padding");
	while (fronts->places[at].front.protocol &&
	       memcmp(&fronts->places[at].front, front, sizeof(*front)) != 0)
		at = (at + 1) & (fronts->size - 1);
	return &fronts->places[at];
}

static void grow(struct service_fronts *fronts)
{
	struct place *old = fronts->places;
	size_t n = fronts->size;

	if (fronts->used < n / 2)
		return;
	fronts->size = MAX(2 * n, LEAST_SIZE);
	fronts->places = xcalloc(fronts->size, sizeof(*fronts->places));
	for (size_t i = 0; i < n; i++)
		if (old[i].front.protocol)
			*find_place(fronts, &old[i].front) = old[i];
	free(old);
}

/* Is a older than b? Of two that are of the same age the first by name. */
static bool is_older(const struct service *a, const struct service *b)
{
	if (a->created_s != b->created_s)
		return a->created_s < b->created_s;
	return strcmp(a->key, b->key) < 0;
}

static void claim(struct service_fronts *fronts, const struct front *front, uint32_t owner)
{
	struct place *place;

	grow(fronts);
	place = find_place(fronts, front);
	if (place->front.protocol &&
	    !is_older(fronts->owners[owner].service, fronts->owners[place->owner].service))
		return;
	fronts->used += !place->front.protocol;
	*place = (struct place){*front, owner};
}

/* -- Services */

static void add_addresses(struct service_fronts *fronts, struct front front,
			  const struct addr *addrs, size_t n, uint32_t owner)
{
	for (size_t i = 0; i < n; i++) {
		front.addr = addrs[i];
		claim(fronts, &front, owner);
	}
}

static void add_port(struct service_fronts *fronts, struct service *service,
		     const struct service_port *port)
{
	struct front front = {.protocol = protocol_number(port->protocol), .port = port->port};
	uint32_t owner = (uint32_t)fronts->n_owners;

	array_grow(&fronts->owners, &fronts->owners_capacity, fronts->n_owners,
		   sizeof(*fronts->owners));
	fronts->owners[fronts->n_owners++] = (struct front_owner){service_ref(service), port};
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (service->has_cluster_ip[family])
			add_addresses(fronts, front, &service->cluster_ip[family], 1, owner);
	add_addresses(fronts, front, service->external_ips, service->n_external_ips, owner);
	add_addresses(fronts, front, service->vips, service->n_vips, owner);
	front.port = port->node_port;
	if (port->node_port)
		add_addresses(fronts, front, &any_addr, 1, owner);
}

struct service_fronts *service_fronts_new(const struct model *model)
{
	struct service_fronts *fronts = xcalloc(1, sizeof(*fronts));
	struct service *service;
	size_t at = 0;

	arc4random_buf(fronts->key, sizeof(fronts->key));
	grow(fronts);
	while ((service = model_next_service(model, &at)))
		for (size_t i = 0; i < service->n_ports; i++)
			add_port(fronts, service, &service->ports[i]);
	return fronts;
}

struct service_fronts *service_fronts_free(struct service_fronts *fronts)
{
	if (!fronts)
		return NULL;
	for (size_t i = 0; i < fronts->n_owners; i++)
		service_unref(fronts->owners[i].service);
	free(fronts->owners);
	free(fronts->places);
	free(fronts);
	return NULL;
}

/* -- asking */

const struct front_owner *service_fronts_find(const struct service_fronts *fronts,
					      const struct conntrack_flow *flow)
{
	struct front front = {
		.protocol = flow->protocol,
		.addr = flow->original.dst,
		.port = flow->original.dst_port,
	};
	const struct place *place;

	if (!flow->protocol)
		return NULL;
	place = find_place(fronts, &front);
	if (!place->front.protocol) {
		front.addr = any_addr;
		place = find_place(fronts, &front);
	}
	return place->front.protocol ? &fronts->owners[place->owner] : NULL;
}

size_t service_fronts_count(const struct service_fronts *fronts)
{
	return fronts->n_owners;
}

const struct front_owner *service_fronts_owner(const struct service_fronts *fronts, size_t number)
{
	return &fronts->owners[number];
}

size_t service_fronts_number(const struct service_fronts *fronts, const struct front_owner *owner)
{
	return (size_t)(owner - fronts->owners);
}

void front_owner_port(const struct front_owner *owner, char out[static FRONT_PORT_MAX])
{
	if (*owner->port->name)
		snprintf(out, FRONT_PORT_MAX, "%s", owner->port->name);
	else
		snprintf(out, FRONT_PORT_MAX, "%u", owner->port->port);
}

char *front_owner_name(const struct front_owner *owner)
{
	char port[FRONT_PORT_MAX];

	front_owner_port(owner, port);
	return xasprintf("%s:%s/%s", owner->service->key, port,
			 protocol_name(owner->port->protocol));
}
