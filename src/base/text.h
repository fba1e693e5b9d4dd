/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text that only grows at its end, in blocks: tens of megabytes of rules are appended without
 * ever being copied, and each block is released as soon as it is written out.
 */

#include "base/util.h"

struct text_block {
	struct text_block *next;
	size_t used;
	char data[64 * 1024 - 2 * sizeof(void *)]; /* a block is 64 KiB as a whole */
};

struct text {
	struct text_block *first, *last;
	size_t size;
};

void text_init(struct text *text);
void text_done(struct text *text);

void text_add(struct text *text, const char *data, size_t n);
void text_printf(struct text *text, const char *fmt, ...) attr_printf(2, 3);
void text_move(struct text *to, struct text *from); /* appends all of `from`, leaves it empty */
void text_consume(struct text *text, size_t n);     /* drops n bytes from the start */
/* The first block's unread bytes; NULL and *n = 0 when the text is empty. */
const char *text_head(const struct text *text, size_t *n);
/* A copy in one piece, NUL-terminated, owned by the caller. */
char *text_dup(const struct text *text) __attribute__((returns_nonnull));
struct arena;
char *text_keep(const struct text *text, struct arena *arena) /* one that is the arena's */
	__attribute__((returns_nonnull));

static inline void text_str(struct text *text, const char *s)
{
	text_add(text, s, strlen(s));
}

#define cleanup_text attr_cleanup(text_done)
