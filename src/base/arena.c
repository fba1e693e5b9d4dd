/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct block {
	struct block *next;
	size_t size, used; /* of data, in bytes */
	alignas(max_align_t) unsigned char data[];
};

struct arena {
	struct block *blocks; /* the newest first */
	size_t total;
};

/* The arena itself lies at the start of its first block: one allocation for a small object. */
struct arena *arena_new(size_t first)
{
	size_t head = (sizeof(struct arena) + 7) & ~(size_t)7;
	size_t size = head + MAX(first, 64);
	struct block *block = xcalloc(1, sizeof(*block) + size);
	struct arena *arena = (void *)block->data;

	block->size = size;
	block->used = head;
	arena->blocks = block;
	arena->total = sizeof(*block) + size;
	return arena;
}

struct arena *arena_free(struct arena *arena)
{
	struct block *block, *next;

	if (!arena)
		return NULL;
	for (block = arena->blocks; block; block = next) {
		next = block->next;
		free(block); /* the last one holds the arena itself */
	}
	return NULL;
}

static void add_block(struct arena *arena, size_t need)
{
	size_t size = MAX(need, MIN(arena->blocks->size * 2, 64 * 1024));
	struct block *block = xcalloc(1, sizeof(*block) + size);

	block->size = size;
	block->next = arena->blocks;
	arena->blocks = block;
	arena->total += sizeof(*block) + size;
}

static void *alloc_aligned(struct arena *arena, size_t size, size_t align)
{
	struct block *block = arena->blocks;
	size_t at = (block->used + align - 1) & ~(align - 1);

	if (at > block->size || size > block->size - at) {
		add_block(arena, size);
		block = arena->blocks;
		at = 0;
	}
	block->used = at + size;
	return block->data + at;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	return alloc_aligned(arena, size, 8);
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		abort();
	return arena_alloc(arena, bytes);
}

char *arena_strdup(struct arena *arena, const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(alloc_aligned(arena, n, 1), s, n);
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list ap, again;
	char *s;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		n = 0;
	s = alloc_aligned(arena, (size_t)n + 1, 1);
	vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	return s;
}

size_t arena_size(const struct arena *arena)
{
	return arena->total;
}

void arena_cleanup(struct arena **arena)
{
	*arena = arena_free(*arena);
}
