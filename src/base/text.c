/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/oom.h"

/*
 * No block is ever empty, so the first one always holds the first bytes. text_consume() frees the
 * blocks that are used up and shifts what is left of the next one to its start: at most 64 KiB for
 * each write that a pipe took in part, where a read offset would be one more field to keep right
 * everywhere.
 */

void text_init(struct text *text)
{
	*text = (struct text){0};
}

void text_done(struct text *text)
{
	struct text_block *block, *next;

	for (block = text->first; block; block = next) {
		next = block->next;
		free(block);
	}
	text_init(text);
}

static void add_block(struct text *text)
{
	struct text_block *block = xmalloc(sizeof(*block));

	block->next = NULL;
	block->used = 0;
	if (text->last)
		text->last->next = block;
	else
		text->first = block;
	text->last = block;
}

void text_add(struct text *text, const char *data, size_t n)
{
	text->size += n;
	while (n > 0) {
		struct text_block *block = text->last;
		size_t room = block ? sizeof(block->data) - block->used : 0;
		size_t part = MIN(room, n);

		if (part == 0) {
			add_block(text);
			continue;
		}
		memcpy(block->data + block->used, data, part);
		block->used += part;
		data += part;
		n -= part;
	}
}

/* Straight into the last block where that has room, else by way of a copy. */
void text_printf(struct text *text, const char *fmt, ...)
{
	struct text_block *block = text->last;
	size_t room = block ? sizeof(block->data) - block->used : 0;
	cleanup_free char *s = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(room ? block->data + block->used : NULL, room, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < room) {
		block->used += (size_t)n;
		text->size += (size_t)n;
		return;
	}
	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		oom("a text", 0);
	text_add(text, s, (size_t)n);
}

void text_move(struct text *to, struct text *from)
{
	if (!from->first)
		return;
	if (to->last)
		to->last->next = from->first;
	else
		to->first = from->first;
	to->last = from->last;
	to->size += from->size;
	text_init(from);
}

void text_consume(struct text *text, size_t n)
{
	assert(n <= text->size);
	text->size -= n;
	while (n > 0) {
		struct text_block *block = text->first;

		assert(block);
		if (n < block->used) {
			memmove(block->data, block->data + n, block->used - n);
			block->used -= n;
			return;
		}
		n -= block->used;
		text->first = block->next;
		if (!text->first)
			text->last = NULL;
		free(block);
	}
}

const char *text_head(const struct text *text, size_t *n)
{
	const struct text_block *block = text->first;

	*n = block ? block->used : 0;
	return *n > 0 ? block->data : NULL;
}

static char *copy_to(char *to, const struct text *text)
{
	char *at = to;

	for (const struct text_block *block = text->first; block; block = block->next) {
		memcpy(at, block->data, block->used);
		at += block->used;
	}
	*at = '\0';
	return to;
}

char *text_dup(const struct text *text)
{
	return copy_to(xmalloc(text->size + 1), text);
}

char *text_keep(const struct text *text, struct arena *arena)
{
	return copy_to(arena_alloc(arena, text->size + 1), text);
}
