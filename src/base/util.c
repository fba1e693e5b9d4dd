/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *need(void *p)
{
	if (!p) {
		fputs("portolan: out of memory\n", stderr);
		abort();
	}
	return p;
}

void *xmalloc(size_t size)
{
	return need(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
	return need(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t size)
{
	return need(realloc(p, size ? size : 1));
}

char *xstrdup(const char *s)
{
	return need(strdup(s));
}

char *xstrdup_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return need(s);
}

void array_grow(void *array_pointer, size_t *capacity, size_t count, size_t element_size)
{
	void *old;
	size_t more;

	if (count < *capacity)
		return;
	/* half as much again, 8 to begin with: few copies, little left over */
	more = MAX(*capacity + *capacity / 2, 8);
	memcpy(&old, array_pointer, sizeof(old));
	old = need(reallocarray(old, more, element_size));
	memcpy(array_pointer, &old, sizeof(old));
	*capacity = more;
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
