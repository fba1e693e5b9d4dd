/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory and small helpers.
 *
 * An owning local is declared with a cleanup attribute (cleanup_free and friends) and leaves its
 * scope only through take(). What lacks the attribute is borrowed and not kept past the call.
 *
 * The x* allocators never return NULL: running out of memory ends the process, in util.c and
 * nowhere else. In exchange every input has a ceiling.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))

#define attr_printf(fmt, args) __attribute__((format(printf, fmt, args)))
#define attr_unused            __attribute__((unused))
#define attr_cleanup(fn)       __attribute__((cleanup(fn)))
#define cleanup_free           attr_cleanup(util_free_pointer)
#define cleanup_fd             attr_cleanup(util_close_fd)

/* Gives up ownership: yields the pointer and leaves NULL behind. */
#define take(p)                             \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrdup_or_null(const char *s) __attribute__((malloc)); /* NULL stays NULL */
char *xasprintf(const char *fmt, ...) attr_printf(1, 2) __attribute__((malloc, returns_nonnull));

/*
 * Makes room for one more element in a growing array:
 *	array_grow(&items, &capacity, count, sizeof(*items)); items[count++] = ...;
 */
void array_grow(void *array_pointer, size_t *capacity, size_t count, size_t element_size);

void util_free_pointer(void *pointer_to_pointer);
void util_close_fd(const int *fd); /* keeps errno; ignores -1 */

static inline bool streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static inline bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static inline bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s);
	size_t m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}
