/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory and small helpers.
 *
 * An owning local is declared with a cleanup attribute (cleanup_free and friends) and leaves its
 * scope only through take(). What lacks the attribute is borrowed and not kept past the call.
 *
 * The x* allocators never return NULL: running out of memory ends the process, in oom.h and
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

/* NAME_cleanup(), for attr_cleanup(), of what NAME_free() frees. */
#define DEFINE_CLEANUP(name)                                    \
	static inline void name##_cleanup(struct name **object) \
	{                                                       \
		*object = name##_free(*object);                 \
	}

/*
 * NAME_ref() and NAME_unref() of a structure that counts its references in `refs`: the latter accepts
 * NULL, returns NULL and has the last reference end in destroy().
 */
#define DEFINE_REFS(name, destroy)                     \
	struct name *name##_ref(struct name *object)   \
	{                                              \
		object->refs++;                        \
		return object;                         \
	}                                              \
	struct name *name##_unref(struct name *object) \
	{                                              \
		assert(!object || object->refs > 0);   \
		if (object && --object->refs == 0)     \
			destroy(object);               \
		return NULL;                           \
	}

/* Gives up ownership: yields the pointer and leaves NULL behind. */
#define take(p)                             \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

#define xmalloc(size)        util_malloc((size), UTIL_HERE)
#define xcalloc(count, size) util_calloc((count), (size), UTIL_HERE)
#define xrealloc(p, size)    util_realloc((p), (size), UTIL_HERE)
#define xstrdup(s)           util_strdup((s), UTIL_HERE)
#define xstrdup_or_null(s)   util_strdup_or_null((s), UTIL_HERE) /* NULL stays NULL */
#define xasprintf(...)       util_asprintf(UTIL_HERE, __VA_ARGS__)

/*
 * Makes room for one more element in a growing array:
 *	array_grow(&items, &capacity, count, sizeof(*items)); items[count++] = ...;
 */
#define array_grow(array_pointer, capacity, count, element_size) \
	util_array_grow((array_pointer), (capacity), (count), (element_size), UTIL_HERE)

/* Behind these: who asks is in the line that running out of memory leaves. */
#define UTIL_HERE __FILE__, __LINE__
void *util_malloc(size_t size, const char *file, int line) __attribute__((malloc, returns_nonnull));
void *util_calloc(size_t count, size_t size, const char *file, int line)
	__attribute__((malloc, returns_nonnull));
void *util_realloc(void *p, size_t size, const char *file, int line)
	__attribute__((returns_nonnull));
char *util_strdup(const char *s, const char *file, int line)
	__attribute__((malloc, returns_nonnull));
char *util_strdup_or_null(const char *s, const char *file, int line) __attribute__((malloc));
char *util_asprintf(const char *file, int line, const char *fmt, ...) attr_printf(3, 4)
	__attribute__((malloc, returns_nonnull));
void util_array_grow(void *array_pointer, size_t *capacity, size_t count, size_t element_size,
		     const char *file, int line);

/* Words: is it among these, an array? Which of them is it, into *ret, an enum; false: none. */
#define word_among(word, words) (util_find_word((word), (words), ARRAY_SIZE(words)) >= 0)
#define word_parse(word, words, ret)                                             \
	({                                                                       \
		int found_ = util_find_word((word), (words), ARRAY_SIZE(words)); \
		if (found_ >= 0)                                                 \
			*(ret) = (__typeof__(*(ret)))found_;                     \
		found_ >= 0;                                                     \
	})
int util_find_word(const char *word, const char *const *words,
		   size_t n); /* -1: none. NULL: a gap */
/* The first n bytes without white space around them, for the caller to free. */
char *util_trimmed(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *util_lower(char *s); /* in place; returns it */
/* "%40" is '@', and with plus "+" a blank; for the caller to free. NULL: not so written, or a NUL. */
char *util_percent_decode(const char *s, size_t n, bool plus);
/* The character of UTF-8 that s begins with: its length, 0 for bytes that are none. */
size_t util_utf8(const char *s, uint32_t *ret);
/* A list of words, NULL at its end: how many there are (NULL: none), a copy, and its end. */
size_t util_count_words(const char *const *words);
char **util_copy_words(const char *const *words);
char **util_free_words(char **words); /* accepts NULL, returns NULL */

void util_free_pointer(void *pointer_to_pointer);
void util_close_fd(const int *fd); /* keeps errno; ignores -1 */

static inline bool streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static inline bool is_given(const char *s)
{
	return s && *s;
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
