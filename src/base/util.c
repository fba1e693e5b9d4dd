/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/oom.h"

void *util_malloc(size_t size, const char *file, int line)
{
	size = MAX(size, 1);
	return oom_check(malloc(size), "", size, file, line);
}

void *util_calloc(size_t count, size_t size, const char *file, int line)
{
	size_t bytes;

	count = MAX(count, 1);
	size = MAX(size, 1);
	if (__builtin_mul_overflow(count, size, &bytes))
		bytes = SIZE_MAX;
	return oom_check(calloc(count, size), "", bytes, file, line);
}

void *util_realloc(void *p, size_t size, const char *file, int line)
{
	size = MAX(size, 1);
	return oom_check(realloc(p, size), "", size, file, line);
}

char *util_strdup(const char *s, const char *file, int line)
{
	return oom_check(strdup(s), "", strlen(s) + 1, file, line);
}

char *util_strdup_or_null(const char *s, const char *file, int line)
{
	return s ? util_strdup(s, file, line) : NULL;
}

/* How long the text would have become need not be known to say what it was for. */
char *util_asprintf(const char *file, int line, const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		oom_end("a text", 0, file, line);
	return s;
}

void util_array_grow(void *array_pointer, size_t *capacity, size_t count, size_t element_size,
		     const char *file, int line)
{
	void *old;
	size_t more;
	size_t bytes;

	if (count < *capacity)
		return;
	/* half as much again, 8 to begin with: few copies, little left over */
	more = MAX(*capacity + *capacity / 2, 8);
	if (__builtin_mul_overflow(more, element_size, &bytes))
		bytes = SIZE_MAX;
	memcpy(&old, array_pointer, sizeof(old));
	old = util_realloc(old, bytes, file, line);
	memcpy(array_pointer, &old, sizeof(old));
	*capacity = more;
}

int util_find_word(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] && streq(word, words[i]))
			return (int)i;
	return -1;
}

char *util_trimmed(const char *s, size_t n)
{
	for (; n > 0 && isspace((unsigned char)s[0]); n--)
		s++;
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	return xasprintf("%.*s", (int)n, s);
}

char *util_lower(char *s)
{
	for (char *c = s; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return s;
}

char *util_percent_decode(const char *s, size_t n, bool plus)
{
	cleanup_free char *out = xmalloc(n + 1);
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		char digits[3] = {0};

		if (s[i] != '%') {
			out[to++] = plus && s[i] == '+' ? ' ' : s[i];
			continue;
		}
		if (n - i < 3 || !isxdigit((unsigned char)s[i + 1]) ||
		    !isxdigit((unsigned char)s[i + 2]) || has_prefix(s + i, "%00"))
			return NULL;
		memcpy(digits, s + i + 1, 2);
		out[to++] = (char)strtoul(digits, NULL, 16);
		i += 2;
	}
	out[to] = '\0';
	return take(out);
}

/* Overlong forms, surrogates and what lies beyond U+10FFFF are none. */
size_t util_utf8(const char *s, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *u = (const unsigned char *)s;
	size_t n = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	uint32_t c = n == 1 ? u[0] : n == 2 ? u[0] & 0x1f : n == 3 ? u[0] & 0x0f : u[0] & 0x07;

	if (u[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	if (n == 0 || c < least[n] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return 0;
	*ret = c;
	return n;
}

size_t util_count_words(const char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

char **util_copy_words(const char *const *words)
{
	size_t n = util_count_words(words);
	char **copy = xcalloc(n + 1, sizeof(*copy));

	for (size_t i = 0; i < n; i++)
		copy[i] = xstrdup(words[i]);
	return copy;
}

char **util_free_words(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
	return NULL;
}

void util_free_pointer(void *pointer_to_pointer)
{
	void *p;

	memcpy(&p, pointer_to_pointer, sizeof(p));
	free(p);
}

void util_close_fd(const int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}
