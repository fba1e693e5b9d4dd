/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/json_text.h"

#include <stdio.h>
#include <stdlib.h>

#define ESCAPE_SIZE ((size_t)6) /* \uXXXX */

/* The code unit of an escape \uXXXX at s, or -1. */
static int code_unit(const char *s, size_t n)
{
	char digits[5] = {0};

	if (n < ESCAPE_SIZE || s[0] != '\\' || s[1] != 'u')
		return -1;
	memcpy(digits, s + 2, 4);
	if (strspn(digits, "0123456789abcdefABCDEF") != 4)
		return -1;
	return (int)strtol(digits, NULL, 16);
}

/* Writes the escape at s to out; *used: how much of s it was. Returns the bytes written, no more than that. */
static size_t copy_escape(const char *s, size_t n, char *out, size_t *used)
{
	int high = code_unit(s, n), low;
	char fixed[16];

	*used = MIN(n, 2);
	if (high < 0xd800 || high > 0xdfff) { /* also any other escape, such as \\ */
		memcpy(out, s, *used);
		return *used;
	}
	low = high < 0xdc00 ? code_unit(s + ESCAPE_SIZE, n - ESCAPE_SIZE) : -1;
	if (low >= 0xdc00 && low <= 0xdfff) {
		*used = 2 * ESCAPE_SIZE;
		snprintf(fixed, sizeof(fixed), "\\U%08x",
			 0x10000u + (((unsigned int)high & 0x3ff) << 10) +
				 ((unsigned int)low & 0x3ff));
	} else {
		*used = ESCAPE_SIZE;
		snprintf(fixed, sizeof(fixed), "\\ufffd");
	}
	return (size_t)(stpcpy(out, fixed) - out); /* shorter than what it replaces */
}

char *json_text_without_surrogates(const char *text, size_t n, size_t *ret_n)
{
	char *out = xmalloc(n + 1);
	size_t size = 0;

	for (size_t i = 0; i < n;) {
		size_t used = 1;

		if (text[i] == '\\')
			size += copy_escape(text + i, n - i, out + size, &used);
		else
			out[size++] = text[i];
		i += used;
	}
	out[size] = '\0';
	*ret_n = size;
	return out;
}

static size_t string_size(const char *text, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (text[i] == '\\')
			i++;
		else if (text[i] == '"')
			return i + 1;
	}
	return n;
}

size_t json_text_value_size(const char *text, size_t n)
{
	size_t depth = 0;

	for (size_t i = 0; i < n; i++) {
		switch (text[i]) {
		case '"':
			i += string_size(text + i, n - i) - 1;
			break;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			if (--depth == 0)
				return i + 1;
			break;
		default:
			break;
		}
	}
	return n;
}
