/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A hash map from strings to pointers.
 *
 * A key is borrowed: it must live as long as its entry, so it is usually a member of the value.
 * map_set() replaces key and value both. Order is not defined, and differs from process to process;
 * removing the current entry while walking is allowed, adding is not.
 *
 *	size_t at = 0;
 *	struct service *service;
 *	while ((service = map_next(&map, &at)))
 *		...
 */

#include "base/util.h"

struct map_entry {
	const char *key; /* NULL: empty */
	void *value;
};

struct map {
	struct map_entry *entries;
	size_t size;  /* of the table: a power of two, or 0 */
	size_t count; /* entries in use */
	size_t dead;  /* removed entries still in the table */
};

void map_done(struct map *map); /* frees the table, not the values */
void *map_get(const struct map *map, const char *key);
/* Returns the value that was replaced, or NULL. value must not be NULL. */
void *map_set(struct map *map, const char *key, void *value);
void *map_remove(struct map *map, const char *key); /* the value removed, or NULL */
void *map_next(const struct map *map, size_t *at);
/*
 * The value of a key; if there is none, a new one of `size` bytes, zeroed, with a copy of the key in
 * its flexible member, which begins at key_offset. For maps whose values are freed by free().
 */
void *map_ensure(struct map *map, const char *key, size_t size, size_t key_offset);
void map_free_values(struct map *map); /* by free(); the map is empty afterwards */
const char *map_next_key(const struct map *map, size_t *at);
