/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/accept.h"

#include <assert.h>
#include <stdio.h>

#define TYPE_MAX 64

static const char *const versions[] = {
	[ACCEPT_NONE] = "",
	[ACCEPT_TEXT] = "",
	[ACCEPT_V1ALPHA1] = "v1alpha1",
	[ACCEPT_V1BETA1] = "v1beta1",
};
static_assert(ARRAY_SIZE(versions) == ACCEPT_SHAPE_COUNT, "a word for each shape");

const char *accept_version(enum accept_shape shape)
{
	return versions[shape];
}

/* One entry of the header: "type/subtype;as=Kind;v=version;g=group". */
struct clause {
	char type[TYPE_MAX];
	char as[TYPE_MAX], group[TYPE_MAX], version[TYPE_MAX];
};

static void copy_word(const char *s, size_t n, char out[static TYPE_MAX])
{
	while (n > 0 && (*s == ' ' || *s == '\t')) {
		s++;
		n--;
	}
	while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		n--;
	snprintf(out, TYPE_MAX, "%.*s", (int)MIN(n, (size_t)TYPE_MAX - 1), s);
}

static void take_parameter(struct clause *clause, const char *word)
{
	if (has_prefix(word, "as="))
		copy_word(word + 3, strlen(word + 3), clause->as);
	else if (has_prefix(word, "g="))
		copy_word(word + 2, strlen(word + 2), clause->group);
	else if (has_prefix(word, "v="))
		copy_word(word + 2, strlen(word + 2), clause->version);
}

static struct clause read_clause(const char *s, size_t n)
{
	struct clause clause = {0};
	size_t length = MIN(strcspn(s, ";"), n);

	copy_word(s, length, clause.type);
	while (length < n) {
		char word[TYPE_MAX];
		size_t begin = length + 1;

		length = begin + MIN(strcspn(s + begin, ";"), n - begin);
		copy_word(s + begin, length - begin, word);
		take_parameter(&clause, word);
	}
	return clause;
}

static enum accept_shape shape_of(const struct clause *clause, const char *kind)
{
	bool any = streq(clause->type, "*/*");

	if (!*clause->as)
		return any || streq(clause->type, "text/*") || streq(clause->type, "text/plain")
			       ? ACCEPT_TEXT
			       : ACCEPT_NONE;
	if (!any && !streq(clause->type, "application/*") &&
	    !streq(clause->type, "application/json") && !streq(clause->type, "application/yaml"))
		return ACCEPT_NONE;
	if (!streq(clause->as, kind) || !streq(clause->group, ACCEPT_GROUP))
		return ACCEPT_NONE;
	for (enum accept_shape shape = ACCEPT_V1ALPHA1; shape < ACCEPT_SHAPE_COUNT; shape++)
		if (streq(clause->version, versions[shape]))
			return shape;
	return ACCEPT_NONE;
}

enum accept_shape accept_choose(const char *header, const char *kind, bool *ret_yaml)
{
	const char *at = header;

	*ret_yaml = false;
	if (!at[strspn(at, " \t")])
		return ACCEPT_TEXT;
	while (*at) {
		size_t n = strcspn(at, ",");
		struct clause clause = read_clause(at, n);
		enum accept_shape shape = shape_of(&clause, kind);

		*ret_yaml = streq(clause.type, "application/yaml");
		if (shape != ACCEPT_NONE)
			return shape;
		at += n + (at[n] == ',');
	}
	return ACCEPT_NONE;
}
