/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/affinity_ids.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/nftables/elements.h"

struct numbered {
	uint32_t id;
	bool asked;
	char key[];
};

void affinity_ids_init(struct affinity_ids *ids)
{
	*ids = (struct affinity_ids){.next = AFFINITY_ID_FIRST};
}

void affinity_ids_done(struct affinity_ids *ids)
{
	map_free_values(&ids->by_port);
	map_free_values(&ids->found);
	map_free_values(&ids->taken);
}

static struct numbered *ensure(struct map *map, const char *key)
{
	return map_ensure(map, key, sizeof(struct numbered), offsetof(struct numbered, key));
}

void affinity_ids_found(struct affinity_ids *ids, const char *destination, uint32_t id)
{
	if (id < AFFINITY_ID_FIRST)
		return; /* not one of ours */
	ensure(&ids->found, destination)->id = id;
	if (id >= ids->next)
		ids->next = id + 1;
}

/* False: another port was quicker. */
static bool take_number(struct affinity_ids *ids, uint32_t id)
{
	struct numbered *numbered;
	char key[16];

	snprintf(key, sizeof(key), "%x", id);
	numbered = ensure(&ids->taken, key);
	if (numbered->id != 0)
		return false;
	numbered->id = id;
	return true;
}

/* 0: no destination of the port had one, or another port has taken it. */
static uint32_t take_up(struct affinity_ids *ids, const struct port_plan *port)
{
	size_t n;
	cleanup_free struct destination *v = NULL;
	uint32_t id = 0;

	if (ids->found.count == 0)
		return 0;
	v = elements_destinations(port, &n);
	for (size_t i = 0; i < n && id == 0; i++) {
		char text[DESTINATION_TEXT_MAX];
		struct numbered *numbered;

		destination_print(&v[i], text);
		numbered = map_remove(&ids->found, text);
		if (numbered && take_number(ids, numbered->id))
			id = numbered->id;
		free(numbered);
	}
	return id;
}

#define PORT_KEY_MAX 256

static void port_key(const struct port_plan *port, char out[static PORT_KEY_MAX])
{
	snprintf(out, PORT_KEY_MAX, "%s/%s", port->id, protocol_name(port->port->protocol));
}

uint32_t affinity_ids_get(struct affinity_ids *ids, const struct port_plan *port)
{
	struct numbered *numbered;
	char key[PORT_KEY_MAX];

	port_key(port, key);
	numbered = ensure(&ids->by_port, key);
	if (numbered->id == 0)
		numbered->id = take_up(ids, port);
	if (numbered->id == 0)
		numbered->id = ids->next++;
	numbered->asked = true;
	return numbered->id;
}

void affinity_ids_forget(struct affinity_ids *ids, const struct port_plan *port)
{
	char key[PORT_KEY_MAX];

	port_key(port, key);
	free(map_remove(&ids->by_port, key));
}

void affinity_ids_begin(struct affinity_ids *ids)
{
	struct numbered *numbered;
	size_t at = 0;

	while ((numbered = map_next(&ids->by_port, &at)))
		numbered->asked = false;
}

void affinity_ids_prune(struct affinity_ids *ids)
{
	struct numbered *numbered;
	size_t at = 0;

	while ((numbered = map_next(&ids->by_port, &at))) {
		if (numbered->asked)
			continue;
		map_remove(&ids->by_port, numbered->key);
		free(numbered);
	}
	map_free_values(&ids->found);
	map_free_values(&ids->taken);
}
