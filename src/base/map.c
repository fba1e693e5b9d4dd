/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdlib.h>

#include "base/siphash.h"

/*
 * Open addressing, linear probing; a removed entry keeps its place with key NULL, value DEAD. Hashes
 * are not kept: they would save a comparison now and then, and make every table half as large again.
 */

static char dead_mark;
#define DEAD ((void *)&dead_mark)

/*
 * The key is drawn by each process for itself. Names come from every tenant that may create objects: with a
 * hash that can be known beforehand, some thousands of them could be chosen to share one place, and
 * every lookup would walk over all of them.
 */
static uint32_t hash_of(const char *text)
{
	static uint64_t key[2];
	static bool drawn;

	if (!drawn)
		arc4random_buf(key, sizeof(key));
	drawn = true;
	return (uint32_t)siphash(key, text, strlen(text));
}

static struct map_entry *find(const struct map *map, const char *key, uint32_t hash)
{
	if (map->size == 0)
		return NULL;
	for (size_t i = hash & (map->size - 1);; i = (i + 1) & (map->size - 1)) {
		struct map_entry *e = &map->entries[i];

		if (!e->key && e->value != DEAD)
			return NULL;
		if (e->key && streq(e->key, key))
			return e;
	}
}

static void put(struct map *map, const struct map_entry *entry, uint32_t hash)
{
	size_t i = hash & (map->size - 1);

	while (map->entries[i].key)
		i = (i + 1) & (map->size - 1);
	if (map->entries[i].value == DEAD)
		map->dead--;
	map->entries[i] = *entry;
}

static void rehash(struct map *map)
{
	struct map old = *map;

	map->size = 16;
	while (map->size < (old.count + 1) * 2)
		map->size *= 2;
	map->entries = xcalloc(map->size, sizeof(*map->entries));
	map->dead = 0;
	for (size_t i = 0; i < old.size; i++)
		if (old.entries[i].key)
			put(map, &old.entries[i], hash_of(old.entries[i].key));
	free(old.entries);
}

void map_done(struct map *map)
{
	free(map->entries);
	*map = (struct map){0};
}

void *map_get(const struct map *map, const char *key)
{
	const struct map_entry *e = find(map, key, hash_of(key));

	return e ? e->value : NULL;
}

void *map_set(struct map *map, const char *key, void *value)
{
	const struct map_entry entry = {.key = key, .value = value};
	uint32_t hash = hash_of(key);
	struct map_entry *e = find(map, key, hash);

	if (e) {
		void *old = e->value;

		*e = entry;
		return old;
	}
	/* at most three quarters full, removed places included */
	if ((map->count + map->dead + 1) * 4 > map->size * 3)
		rehash(map);
	put(map, &entry, hash);
	map->count++;
	return NULL;
}

void *map_remove(struct map *map, const char *key)
{
	struct map_entry *e = find(map, key, hash_of(key));
	void *old;

	if (!e)
		return NULL;
	old = e->value;
	e->key = NULL;
	e->value = DEAD;
	map->count--;
	map->dead++;
	return old;
}

static const struct map_entry *next(const struct map *map, size_t *at)
{
	while (*at < map->size) {
		const struct map_entry *e = &map->entries[(*at)++];

		if (e->key)
			return e;
	}
	return NULL;
}

void *map_next(const struct map *map, size_t *at)
{
	const struct map_entry *e = next(map, at);

	return e ? e->value : NULL;
}

const char *map_next_key(const struct map *map, size_t *at)
{
	const struct map_entry *e = next(map, at);

	return e ? e->key : NULL;
}

void *map_ensure(struct map *map, const char *key, size_t size, size_t key_offset)
{
	char *value = map_get(map, key);
	size_t n = strlen(key) + 1;

	if (value)
		return value;
	value = xcalloc(1, size + n);
	memcpy(value + key_offset, key, n);
	map_set(map, value + key_offset, value);
	return value;
}

void map_free_values(struct map *map)
{
	void *value;
	size_t at = 0;

	while ((value = map_next(map, &at)))
		free(value);
	map_done(map);
	*map = (struct map){0};
}
