/* SPDX-License-Identifier: Apache-2.0 */

#include "config/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void problems_add(struct problems *problems, const char *fmt, ...)
{
	char text[1024]; /* what is longer is cut */
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	array_grow(&problems->v, &problems->capacity, problems->n, sizeof(*problems->v));
	problems->v[problems->n++] = xstrdup(text);
}

void problems_done(struct problems *problems)
{
	for (size_t i = 0; i < problems->n; i++)
		free(problems->v[i]);
	free(problems->v);
	*problems = (struct problems){0};
}
