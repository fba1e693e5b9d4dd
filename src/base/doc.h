/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A document of maps, lists and values, written as JSON or as YAML by the same calls:
 *
 *	doc_init(&doc, &text, DOC_JSON);
 *	doc_open_map(&doc, NULL);
 *	doc_string(&doc, "name", "web");
 *	doc_open_list(&doc, "ports");
 *	doc_number(&doc, NULL, 80);
 *	doc_close(&doc);
 *	doc_close(&doc);
 *
 * Inside a map every entry has a key, inside a list none has. Keys of YAML are ours and go out as they
 * are; strings are escaped, always quoted, and bytes that are no UTF-8 become U+FFFD, so that YAML and
 * JSON read the same whatever is in them.
 */

#include "base/text.h"

enum doc_format {
	DOC_JSON = 0,
	DOC_YAML,
	DOC_LINE, /* JSON without blanks and line ends */
	DOC_FORMAT_COUNT,
};

#define DOC_DEPTH 16

struct doc_level {
	bool list;
	size_t count;
};

struct doc {
	struct text *text;
	enum doc_format format;
	size_t depth;
	struct doc_level levels[DOC_DEPTH];
};

/* The text is borrowed and appended to. */
void doc_init(struct doc *doc, struct text *text, enum doc_format format);
void doc_open_map(struct doc *doc, const char *key);
void doc_open_list(struct doc *doc, const char *key);
void doc_close(struct doc *doc); /* the outermost one ends the line, too, but of DOC_LINE */
void doc_word(struct doc *doc, const char *key, const char *word);      /* true, 1.5: as it is */
void doc_string(struct doc *doc, const char *key, const char *value);   /* NULL: null */
void doc_optional(struct doc *doc, const char *key, const char *value); /* NULL: no entry */
void doc_number(struct doc *doc, const char *key, uint64_t value);
void doc_real(struct doc *doc, const char *key, double value); /* six digits */
void doc_bool(struct doc *doc, const char *key, bool value);

/* A string in quotes, as both formats read it. */
void doc_quote(struct text *text, const char *value);
