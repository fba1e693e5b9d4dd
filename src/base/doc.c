/* SPDX-License-Identifier: Apache-2.0 */
#include "base/doc.h"

#include <assert.h>

void doc_init(struct doc *doc, struct text *text, enum doc_format format)
{
	*doc = (struct doc){.text = text, .format = format};
}

/* -- strings */

void doc_quote(struct text *text, const char *value)
{
	text_str(text, "\"");
	while (*value) {
		uint32_t c = 0;
		size_t n = util_utf8(value, &c);

		if (n == 0)
			text_str(text, "\\ufffd");
		else if (c == '"' || c == '\\')
			text_printf(text, "\\%c", *value);
		else if (c == '\n' || c == '\t')
			text_str(text, c == '\n' ? "\\n" : "\\t");
		else if (c < 0x20 || c == 0x7f)
			text_printf(text, "\\u%04x", c);
		else
			text_add(text, value, n);
		value += n ? n : 1;
	}
	text_str(text, "\"");
}

/* -- places */

static void new_line(struct doc *doc, size_t depth)
{
	text_printf(doc->text, "\n%*s", (int)(2 * depth), "");
}

static void begin_json(struct doc *doc, struct doc_level *level, const char *key)
{
	if (level->count > 0)
		text_str(doc->text, ",");
	if (doc->format == DOC_JSON)
		new_line(doc, doc->depth);
	if (!key)
		return;
	doc_quote(doc->text, key);
	text_str(doc->text, doc->format == DOC_JSON ? ": " : ":");
}

/* The first entry of a map in a list stands behind the dash; all others begin a line. */
static void begin_yaml(struct doc *doc, struct doc_level *level, const char *key)
{
	bool behind_dash = level->count == 0 && doc->depth > 1 && level[-1].list;
	bool first = level->count == 0 && doc->depth == 1;

	if (!behind_dash && !first)
		new_line(doc, doc->depth - 1);
	text_printf(doc->text, "%s%s", level->list ? "- " : key, level->list ? "" : ":");
}

/* scalar: a value follows on the same line */
static void begin(struct doc *doc, const char *key, bool scalar)
{
	struct doc_level *level;

	if (doc->depth == 0)
		return;
	level = &doc->levels[doc->depth - 1];
	assert(level->list == !key);
	if (doc->format == DOC_YAML)
		begin_yaml(doc, level, key);
	else
		begin_json(doc, level, key);
	if (doc->format == DOC_YAML && scalar && key)
		text_str(doc->text, " ");
	level->count++;
}

static void open(struct doc *doc, const char *key, bool list)
{
	begin(doc, key, false);
	assert(doc->depth < DOC_DEPTH);
	doc->levels[doc->depth++] = (struct doc_level){.list = list};
	if (doc->format != DOC_YAML)
		text_str(doc->text, list ? "[" : "{");
}

void doc_open_map(struct doc *doc, const char *key)
{
	open(doc, key, false);
}

void doc_open_list(struct doc *doc, const char *key)
{
	open(doc, key, true);
}

void doc_close(struct doc *doc)
{
	struct doc_level level;

	assert(doc->depth > 0);
	level = doc->levels[--doc->depth];
	if (doc->format == DOC_YAML && level.count == 0) {
		bool behind_key = doc->depth > 0 && !doc->levels[doc->depth - 1].list;

		text_printf(doc->text, "%s%s", behind_key ? " " : "", level.list ? "[]" : "{}");
	}
	if (doc->format == DOC_JSON && level.count > 0)
		new_line(doc, doc->depth);
	if (doc->format != DOC_YAML)
		text_str(doc->text, level.list ? "]" : "}");
	if (doc->depth == 0 && doc->format != DOC_LINE)
		text_str(doc->text, "\n");
}

/* -- values */

void doc_word(struct doc *doc, const char *key, const char *word)
{
	begin(doc, key, true);
	text_str(doc->text, word);
}

void doc_string(struct doc *doc, const char *key, const char *value)
{
	begin(doc, key, true);
	if (value)
		doc_quote(doc->text, value);
	else
		text_str(doc->text, "null");
}

void doc_optional(struct doc *doc, const char *key, const char *value)
{
	if (value)
		doc_string(doc, key, value);
}

void doc_number(struct doc *doc, const char *key, uint64_t value)
{
	begin(doc, key, true);
	text_printf(doc->text, "%llu", (unsigned long long)value);
}

void doc_real(struct doc *doc, const char *key, double value)
{
	begin(doc, key, true);
	text_printf(doc->text, "%.6g", value);
}

void doc_bool(struct doc *doc, const char *key, bool value)
{
	doc_word(doc, key, value ? "true" : "false");
}
