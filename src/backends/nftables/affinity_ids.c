/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/affinity_ids.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/nftables/elements.h"
#include "backends/nftables/user_data.h"

struct numbered {
	uint32_t number;
	uint32_t port; /* of an endpoint: its port's number */
	bool asked;
	bool local;
	char key[];
};

#define ENDPOINT_KEY_MAX (ADDR_PORT_TEXT_MAX + 16)

void affinity_ids_init(struct affinity_ids *ids)
{
	*ids = (struct affinity_ids){.next = 1, .mark = 1};
}

void affinity_ids_done(struct affinity_ids *ids)
{
	map_free_values(&ids->numbers);
	map_free_values(&ids->ports);
	map_free_values(&ids->endpoints);
	map_free_values(&ids->found_ports);
	map_free_values(&ids->found_endpoints);
}

static struct numbered *ensure(struct map *map, const char *key)
{
	return map_ensure(map, key, sizeof(struct numbered), offsetof(struct numbered, key));
}

/* -- keys */

void affinity_ids_name(const struct port_plan *port, char out[static AFFINITY_IDS_NAME_MAX])
{
	char addr[ADDR_TEXT_MAX];

	addr_print(port->cluster_ip, addr);
	snprintf(out, AFFINITY_IDS_NAME_MAX, "%s %s/%s", addr, port->id,
		 protocol_name(port->port->protocol));
}

static void endpoint_key(uint32_t port, const struct addr *addr, uint16_t number,
			 char out[static ENDPOINT_KEY_MAX])
{
	char text[ADDR_PORT_TEXT_MAX];

	addr_port_print(addr, number, text);
	snprintf(out, ENDPOINT_KEY_MAX, "%u %s", port, text);
}

/* -- a former life */

static void note_found(struct affinity_ids *ids, struct map *map, const char *key, uint32_t number)
{
	ensure(map, key)->number = number;
	if (number >= ids->next)
		ids->next = number + 1;
}

void affinity_ids_found_port(struct affinity_ids *ids, const char *name, uint32_t number)
{
	note_found(ids, &ids->found_ports, name, number);
}

void affinity_ids_found_endpoint(struct affinity_ids *ids, uint32_t port, const struct addr *addr,
				 uint16_t number, uint32_t id)
{
	char key[ENDPOINT_KEY_MAX];

	endpoint_key(port, addr, number, key);
	note_found(ids, &ids->found_endpoints, key, id);
}

void affinity_ids_found_mark(struct affinity_ids *ids, uint32_t mark)
{
	ids->mark = mark;
	if (mark > ids->next)
		ids->next = mark;
}

/* Each is taken once: no two ports, and no two endpoints, have the same. 0: there is none. */
static uint32_t take_up(struct map *found, const char *key)
{
	cleanup_free struct numbered *numbered = map_remove(found, key);

	return numbered ? numbered->number : 0;
}

/* -- asking */

/* Points from a number to what has it. */
struct pointer {
	struct numbered *to;
	char key[];
};

#define NUMBER_TEXT_MAX 16

static void print_number(uint32_t number, char out[static NUMBER_TEXT_MAX])
{
	snprintf(out, NUMBER_TEXT_MAX, "%u", number);
}

static struct numbered *find_number(const struct affinity_ids *ids, uint32_t number)
{
	char key[NUMBER_TEXT_MAX];
	const struct pointer *pointer;

	print_number(number, key);
	pointer = map_get(&ids->numbers, key);
	return pointer ? pointer->to : NULL;
}

static void give_number(struct affinity_ids *ids, struct numbered *numbered, uint32_t number)
{
	char key[NUMBER_TEXT_MAX];
	struct pointer *pointer;

	print_number(number, key);
	pointer = map_ensure(&ids->numbers, key, sizeof(*pointer), offsetof(struct pointer, key));
	pointer->to = numbered;
	numbered->number = number;
}

static struct numbered *ask(struct affinity_ids *ids, struct map *map, struct map *found,
			    const char *key, const char *found_key)
{
	struct numbered *numbered = ensure(map, key);
	uint32_t number;

	numbered->asked = true;
	if (numbered->number != 0)
		return numbered;
	number = take_up(found, found_key);
	give_number(ids, numbered, number != 0 ? number : ids->next++);
	return numbered;
}

uint32_t affinity_ids_port(struct affinity_ids *ids, const struct port_plan *port)
{
	char name[AFFINITY_IDS_NAME_MAX], cut[USER_DATA_COMMENT_MAX];
	struct numbered *numbered;

	affinity_ids_name(port, name);
	user_data_cut(name, cut);
	numbered = ask(ids, &ids->ports, &ids->found_ports, name, cut);
	numbered->local = elements_have_local_affinity(port);
	return numbered->number;
}

uint32_t affinity_ids_endpoint(struct affinity_ids *ids, uint32_t port,
			       const struct endpoint *endpoint)
{
	char key[ENDPOINT_KEY_MAX];
	struct numbered *numbered;

	endpoint_key(port, &endpoint->addr, endpoint->port, key);
	numbered = ask(ids, &ids->endpoints, &ids->found_endpoints, key, key);
	numbered->port = port;
	return numbered->number;
}

static void forget(struct affinity_ids *ids, struct map *map, const char *key)
{
	cleanup_free struct numbered *numbered = map_remove(map, key);
	char number[NUMBER_TEXT_MAX];

	if (!numbered)
		return;
	print_number(numbered->number, number);
	free(map_remove(&ids->numbers, number));
}

void affinity_ids_forget_port(struct affinity_ids *ids, const struct port_plan *port)
{
	char name[AFFINITY_IDS_NAME_MAX];

	affinity_ids_name(port, name);
	forget(ids, &ids->ports, name);
}

void affinity_ids_forget_endpoint(struct affinity_ids *ids, uint32_t port,
				  const struct endpoint *endpoint)
{
	char key[ENDPOINT_KEY_MAX];

	endpoint_key(port, &endpoint->addr, endpoint->port, key);
	forget(ids, &ids->endpoints, key);
}

bool affinity_ids_has(const struct affinity_ids *ids, uint32_t number, bool local)
{
	const struct numbered *numbered = find_number(ids, number);

	return numbered && numbered->asked && numbered->port == 0 && (!local || numbered->local);
}

/* -- rounds */

static void begin(const struct map *map)
{
	struct numbered *numbered;
	size_t at = 0;

	while ((numbered = map_next(map, &at)))
		numbered->asked = false;
}

static void prune(struct affinity_ids *ids, struct map *map)
{
	struct numbered *numbered;
	size_t at = 0;

	while ((numbered = map_next(map, &at)))
		if (!numbered->asked)
			forget(ids, map, numbered->key);
}

void affinity_ids_begin(struct affinity_ids *ids)
{
	begin(&ids->ports);
	begin(&ids->endpoints);
}

void affinity_ids_prune(struct affinity_ids *ids)
{
	prune(ids, &ids->ports);
	prune(ids, &ids->endpoints);
	map_free_values(&ids->found_ports);
	map_free_values(&ids->found_endpoints);
}

void affinity_ids_raise_mark(struct affinity_ids *ids)
{
	if (ids->next > ids->mark)
		ids->mark = ids->next + AFFINITY_IDS_STEP;
}
