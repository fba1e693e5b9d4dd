/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_query.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

void api_query_start(struct api_query *query, const char *path, const char *selectors)
{
	query->text = xasprintf("%s%s%s", path, *selectors ? "?" : "", selectors);
}

static void append(struct api_query *query, const char *name, const char *escaped)
{
	char *old = query->text;

	query->text = xasprintf("%s%c%s=%s", old, strchr(old, '?') ? '&' : '?', name, escaped);
	free(old);
}

void api_query_text(struct api_query *query, const char *name, const char *value)
{
	char *escaped cleanup_free = api_query_escape(value);

	append(query, name, escaped);
}

void api_query_number(struct api_query *query, const char *name, unsigned int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	append(query, name, text);
}

void api_query_done(struct api_query *query)
{
	free(take(query->text));
}

char *api_query_escape(const char *value)
{
	static const char hex[] = "0123456789ABCDEF";
	char *escaped = xmalloc(3 * strlen(value) + 1);
	char *out = escaped;

	for (; *value; value++) {
		uint8_t byte = (uint8_t)*value;

		if (isalnum(byte) || strchr("-_.~", byte)) {
			*out++ = *value;
		} else {
			*out++ = '%';
			*out++ = hex[byte >> 4];
			*out++ = hex[byte & 15];
		}
	}
	*out = '\0';
	return escaped;
}
