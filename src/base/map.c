/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <endian.h>
#include <stdlib.h>

/* Open addressing, linear probing; a removed entry keeps its place with key NULL, value DEAD. */

static char dead_mark;
#define DEAD ((void *)&dead_mark)

/*
 * SipHash-1-3, with a key that each process draws for itself. Names come from whoever may create
 * objects: with a hash that can be known beforehand, some thousands of them could be chosen to
 * share one place, and every lookup would walk over all of them.
 */
struct sip {
	uint64_t v[4];
};

static uint64_t rotate(uint64_t x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static void sip_round(struct sip *sip)
{
	uint64_t *v = sip->v;

	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static void sip_word(struct sip *sip, uint64_t word)
{
	sip->v[3] ^= word;
	sip_round(sip);
	sip->v[0] ^= word;
}

uint64_t map_hash(const uint64_t key[2], const char *text)
{
	struct sip sip = {{
		key[0] ^ UINT64_C(0x736f6d6570736575),
		key[1] ^ UINT64_C(0x646f72616e646f6d),
		key[0] ^ UINT64_C(0x6c7967656e657261),
		key[1] ^ UINT64_C(0x7465646279746573),
	}};
	size_t n = strlen(text), at = 0;
	uint64_t word;

	for (; n - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, text + at, sizeof(word));
		sip_word(&sip, le64toh(word));
	}
	word = 0;
	memcpy(&word, text + at, n - at);
	sip_word(&sip, le64toh(word) | (uint64_t)n << 56);
	sip.v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&sip);
	return sip.v[0] ^ sip.v[1] ^ sip.v[2] ^ sip.v[3];
}

static uint32_t hash_of(const char *text)
{
	static uint64_t key[2];
	static bool drawn;

	if (!drawn)
		arc4random_buf(key, sizeof(key));
	drawn = true;
	return (uint32_t)map_hash(key, text);
}

static struct map_entry *find(const struct map *map, const char *key, uint32_t hash)
{
	if (map->size == 0)
		return NULL;
	for (size_t i = hash & (map->size - 1);; i = (i + 1) & (map->size - 1)) {
		struct map_entry *e = &map->entries[i];

		if (!e->key && e->value != DEAD)
			return NULL;
		if (e->key && e->hash == hash && streq(e->key, key))
			return e;
	}
}

static void put(struct map *map, const struct map_entry *entry)
{
	size_t i = entry->hash & (map->size - 1);

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
			put(map, &old.entries[i]);
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
	struct map_entry entry = {.key = key, .value = value, .hash = hash_of(key)};
	struct map_entry *e = find(map, key, entry.hash);

	if (e) {
		void *old = e->value;

		*e = entry;
		return old;
	}
	/* at most three quarters full, removed places included */
	if ((map->count + map->dead + 1) * 4 > map->size * 3)
		rehash(map);
	put(map, &entry);
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
