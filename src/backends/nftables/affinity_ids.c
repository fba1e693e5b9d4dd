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

static void forget_all(struct map *map)
{
	struct numbered *numbered;
	size_t at = 0;

	while ((numbered = map_next(map, &at)))
		free(numbered);
	map_done(map);
	*map = (struct map){0};
}

void affinity_ids_done(struct affinity_ids *ids)
{
	forget_all(&ids->by_port);
	forget_all(&ids->found);
}

static struct numbered *number(struct map *map, const char *key, uint32_t id)
{
	size_t n = strlen(key) + 1;
	struct numbered *numbered = xcalloc(1, sizeof(*numbered) + n);

	numbered->id = id;
	memcpy(numbered->key, key, n);
	free(map_set(map, numbered->key, numbered));
	return numbered;
}

void affinity_ids_found(struct affinity_ids *ids, const char *destination, uint32_t id)
{
	if (id < AFFINITY_ID_FIRST)
		return; /* not one of ours */
	number(&ids->found, destination, id);
	if (id >= ids->next)
		ids->next = id + 1;
}

static bool in_use(const struct affinity_ids *ids, uint32_t id)
{
	const struct numbered *numbered;
	size_t at = 0;

	while ((numbered = map_next(&ids->by_port, &at)))
		if (numbered->id == id)
			return true;
	return false;
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
		if (numbered && !in_use(ids, numbered->id))
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
	uint32_t id;

	port_key(port, key);
	numbered = map_get(&ids->by_port, key);
	if (!numbered) {
		id = take_up(ids, port);
		numbered = number(&ids->by_port, key, id != 0 ? id : ids->next++);
	}
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
	forget_all(&ids->found);
}
