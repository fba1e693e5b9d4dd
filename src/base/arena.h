/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An arena: many small allocations that are born one by one and die together.
 *
 * The immutable objects of the model (a Service, an EndpointSlice, a list of endpoints) each own
 * one, so that an object is freed by one call whatever it holds. Memory is zeroed.
 */

#include "base/util.h"

struct arena;

/* first: bytes of the first block; each later one adds half as much again as there is, or what is
 * asked for. A good guess saves memory, nothing else. */
struct arena *arena_new(size_t first);
struct arena *arena_free(struct arena *arena); /* accepts NULL, returns NULL */
/* The arena that `first` was the first allocation from: who owns an arena and lies in it that way
 * need not hold a pointer to it. */
struct arena *arena_of(void *first) __attribute__((returns_nonnull));
void *arena_alloc(struct arena *arena, size_t size) __attribute__((returns_nonnull));
void *arena_array(struct arena *arena, size_t count, size_t size) __attribute__((returns_nonnull));
char *arena_strdup(struct arena *arena, const char *s) __attribute__((returns_nonnull));
char *arena_printf(struct arena *arena, const char *fmt, ...) attr_printf(2, 3)
	__attribute__((returns_nonnull));
size_t arena_size(const struct arena *arena); /* bytes taken from the system */

DEFINE_CLEANUP(arena)
#define cleanup_arena attr_cleanup(arena_cleanup)
