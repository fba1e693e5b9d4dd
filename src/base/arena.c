/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/oom.h"

/*
 * The model holds tens of thousands of arenas with a few hundred bytes each, so the fixed cost
 * counts: 16 bytes, and no more than one allocation for an object that fits its first block.
 *
 * An arena is its first block. Later blocks hang behind it, the newest first: that is the one to
 * allocate from.
 */

#define ALIGN 8 /* enough for everything in the model: pointers and 64-bit numbers */

struct arena {
	struct arena *next;
	uint32_t size, used; /* of data, in bytes */
	unsigned char data[];
};

struct arena *arena_new(size_t first)
{
	struct arena *block;

	if (first > UINT32_MAX)
		abort(); /* no input is that large: a mistake of ours */
	block = xcalloc(1, sizeof(*block) + first);
	block->size = (uint32_t)first;
	return block;
}

struct arena *arena_of(void *first)
{
	return (void *)((unsigned char *)first - offsetof(struct arena, data));
}

struct arena *arena_free(struct arena *arena)
{
	struct arena *next;

	for (; arena; arena = next) {
		next = arena->next;
		free(arena);
	}
	return NULL;
}

static struct arena *add_block(struct arena *arena, size_t need)
{
	size_t size = MIN(arena_size(arena) / 2, 64 * 1024);
	struct arena *block = arena_new(MAX(need, size));

	block->next = arena->next;
	arena->next = block;
	return block;
}

static void *alloc_aligned(struct arena *arena, size_t size, size_t align)
{
	struct arena *block = arena->next ? arena->next : arena;
	size_t at = (block->used + align - 1) & ~(align - 1);

	if (size == 0)
		return arena->data; /* nothing will be read or written there */
	if (at > block->size || size > block->size - at) {
		block = add_block(arena, size);
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
		oom("a text", 0);
	return arena_strdup(arena, s);
}

size_t arena_size(const struct arena *arena)
{
	size_t total = 0;

	for (; arena; arena = arena->next)
		total += sizeof(*arena) + arena->size;
	return total;
}
