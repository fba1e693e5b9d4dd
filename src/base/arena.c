/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The model holds tens of thousands of arenas with a few hundred bytes each, so the fixed cost
 * counts: 24 bytes, and no more than one allocation for an object that fits its first block.
 */

#define ALIGN 8 /* enough for everything in the model: pointers and 64-bit numbers */

struct block {
	struct block *next;
	uint32_t size, used; /* of data, in bytes */
	unsigned char data[];
};

/* Lies at the start of its own first block. */
struct arena {
	struct block *blocks; /* the newest first */
};

static struct block *new_block(size_t size)
{
	struct block *block;

	if (size > UINT32_MAX)
		abort(); /* no input is that large: a mistake of ours */
	block = xcalloc(1, sizeof(*block) + size);
	block->size = (uint32_t)size;
	return block;
}

struct arena *arena_new(size_t first)
{
	struct block *block = new_block(sizeof(struct arena) + first);
	struct arena *arena = (void *)block->data;

	block->used = sizeof(*arena);
	arena->blocks = block;
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
	size_t size = MIN(arena_size(arena) / 2, 64 * 1024);
	struct block *block = new_block(MAX(need, size));

	block->next = arena->blocks;
	arena->blocks = block;
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
	block->used = (uint32_t)(at + size);
	return block->data + at;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	return alloc_aligned(arena, size, ALIGN);
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
	cleanup_free char *s = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort(); /* out of memory, as in util.c */
	return arena_strdup(arena, s);
}

size_t arena_size(const struct arena *arena)
{
	size_t total = 0;

	for (const struct block *block = arena->blocks; block; block = block->next)
		total += sizeof(*block) + block->size;
	return total;
}

void arena_cleanup(struct arena **arena)
{
	*arena = arena_free(*arena);
}
