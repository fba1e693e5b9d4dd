/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libyaml's events become a tree. Its own document loader is not used: it has no ceiling, and it
 * forgets whether a plain 80 was tagged as a string.
 *
 * Open collections are frames on a stack. The children of all of them lie on one other stack, each
 * frame knowing where its own begin; when a collection closes, they move into an array of their
 * own.
 */

#include "sources/yaml_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/map.h"
#include "base/oom.h"
#include "sources/json_text.h"
#include "sources/printable.h"

#define TAG_PREFIX "tag:yaml.org,2002:"

struct frame {
	struct yaml_node *node;
	size_t first; /* of its children */
};

struct yaml_reader {
	const char *name;
	const char *text; /* what is not given to the parser yet follows at `at` */
	size_t size, at;
	char *owned_text;
	bool json;

	yaml_parser_t parser;
	bool parsing;
	uint32_t line, column; /* where the parser's input begins, from 0 */

	uint32_t documents;
	uint32_t nodes;    /* made so far */
	uint32_t expanded; /* in the documents so far, aliases resolved */

	/* of the current document */
	struct arena *arena;
	struct map anchors;
	struct frame frames[YAML_MAX_DEPTH];
	size_t depth;
	struct yaml_node **children;
	size_t n_children, children_capacity;
};

static int fail_at(const struct yaml_reader *reader, size_t line, size_t column, const char *what,
		   struct err *err)
{
	return err_set(err, -EINVAL, "%s:%zu:%zu: %s", reader->name, reader->line + line + 1,
		       (line ? 0 : reader->column) + column + 1, what);
}

static int fail(const struct yaml_reader *reader, const yaml_event_t *event, const char *what,
		struct err *err)
{
	return fail_at(reader, event->start_mark.line, event->start_mark.column, what, err);
}

/* Bytes that are no text at all: libyaml knows only the offset. */
static int fail_encoding(const struct yaml_reader *reader, struct err *err)
{
	const yaml_parser_t *parser = &reader->parser;
	const char *text = (const char *)parser->input.string.start;
	size_t size = (size_t)(parser->input.string.end - parser->input.string.start);
	size_t offset = MIN(parser->problem_offset, size);
	size_t line = 0, column = 0;

	for (size_t i = 0; i < offset; i++) {
		column++;
		if (text[i] == '\n') {
			line++;
			column = 0;
		}
	}
	return fail_at(reader, line, column, parser->problem ? parser->problem : "not UTF-8", err);
}

/* libyaml may only say that a tab "cannot start any token": the indentation of a block. */
static bool stopped_at_tab(const struct yaml_reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	const unsigned char *at = parser->input.string.start;
	size_t left = parser->problem_mark.index; /* letters, not bytes */

	for (; at < parser->input.string.end; at++)
		if ((*at & 0xc0) != 0x80 && left-- == 0)
			return *at == '\t';
	return false;
}

static int fail_parser(const struct yaml_reader *reader, struct err *err)
{
	const yaml_parser_t *parser = &reader->parser;
	char what[256];

	if (parser->error == YAML_MEMORY_ERROR)
		oom("libyaml", 0);
	if (parser->error == YAML_READER_ERROR)
		return fail_encoding(reader, err);
	if (stopped_at_tab(reader))
		return fail_at(reader, parser->problem_mark.line, parser->problem_mark.column,
			       "tabs cannot indent YAML: use spaces", err);
	snprintf(what, sizeof(what), "%s%s%s", parser->context ? parser->context : "",
		 parser->context ? ": " : "", parser->problem ? parser->problem : "not YAML");
	return fail_at(reader, parser->problem_mark.line, parser->problem_mark.column, what, err);
}

int yaml_reader_new(const char *name, const char *text, size_t n, struct yaml_reader **ret,
		    struct err *err)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct yaml_reader *reader;

	if (n > YAML_MAX_BYTES)
		return err_set(err, -EFBIG, "%s: larger than %u MiB", name, YAML_MAX_BYTES >> 20);
	reader = xcalloc(1, sizeof(*reader));
	reader->name = name;
	reader->text = text;
	reader->size = n;
	reader->json = has_suffix(name, ".json");
	if (reader->json) {
		reader->owned_text = json_text_without_surrogates(text, n, &reader->size);
		reader->text = reader->owned_text;
	}
	if (reader->size >= 3 && memcmp(reader->text, bom, 3) == 0)
		reader->at = 3;
	*ret = reader;
	return 0;
}

static void end_parser(struct yaml_reader *reader)
{
	if (reader->parsing)
		yaml_parser_delete(&reader->parser);
	reader->parsing = false;
}

struct yaml_reader *yaml_reader_free(struct yaml_reader *reader)
{
	if (!reader)
		return NULL;
	end_parser(reader);
	map_done(&reader->anchors);
	free(reader->children);
	free(reader->owned_text);
	free(reader);
	return NULL;
}

static void skip_to(struct yaml_reader *reader, size_t to)
{
	for (; reader->at < to; reader->at++) {
		reader->column++;
		if (reader->text[reader->at] == '\n') {
			reader->line++;
			reader->column = 0;
		}
	}
}

/* Gives the parser the next stretch of text: all of YAML, one value of JSON. False: nothing is
 * left. */
static bool begin_parser(struct yaml_reader *reader)
{
	size_t at = reader->at, size;

	if (reader->json)
		while (at < reader->size && strchr(" \t\r\n", reader->text[at]) && reader->text[at])
			at++;
	skip_to(reader, at);
	if (at == reader->size)
		return false;
	size = reader->size - at;
	if (reader->json && (reader->text[at] == '{' || reader->text[at] == '['))
		size = json_text_value_size(reader->text + at, size);
	if (!yaml_parser_initialize(&reader->parser))
		oom("libyaml", 0);
	reader->parsing = true;
	yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader->parser, (const unsigned char *)reader->text + at,
				     size);
	return true;
}

static void end_input(struct yaml_reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	size_t size = (size_t)(parser->input.string.end - parser->input.string.start);

	end_parser(reader);
	skip_to(reader, reader->at + size);
}

/* The tag's own name ("str"), NULL when there is none, "" for one that is not YAML's. */
static const char *tag_name(const yaml_char_t *tag)
{
	if (!tag)
		return NULL;
	if (has_prefix((const char *)tag, TAG_PREFIX))
		return (const char *)tag + strlen(TAG_PREFIX);
	return streq((const char *)tag, "!") ? "str" : "";
}

static int scalar_type(const struct yaml_reader *reader, const yaml_event_t *event, uint8_t *ret,
		       struct err *err)
{
	static const char *const typed[] = {"null", "bool", "int", "float"};
	const char *text = (const char *)event->data.scalar.value;
	const char *tag = tag_name(event->data.scalar.tag);
	bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	static_assert(ARRAY_SIZE(typed) == YAML_TYPE_STRING, "the types before it");
	if (!tag) {
		*ret = plain ? yaml_scalar_type(text) : YAML_TYPE_STRING;
		return 0;
	}
	if (streq(tag, "str") || streq(tag, "timestamp")) {
		*ret = YAML_TYPE_STRING;
		return 0;
	}
	if (word_parse(tag, typed, ret) && yaml_scalar_type(text) == *ret)
		return 0;
	return fail(reader, event, "a value that does not fit its tag, or a tag that is not known",
		    err);
}

static int count(struct yaml_reader *reader, const yaml_event_t *event, uint32_t *sum,
		 uint32_t more, struct err *err)
{
	if (more > YAML_MAX_NODES - *sum)
		return fail(reader, event, "too many nodes, aliases counted as what they stand for",
			    err);
	*sum += more;
	return 0;
}

static int node_new(struct yaml_reader *reader, const yaml_event_t *event, enum yaml_kind kind,
		    const yaml_char_t *anchor, struct yaml_node **ret, struct err *err)
{
	struct yaml_node *node;
	int r = count(reader, event, &reader->nodes, 1, err);

	if (r < 0)
		return r;
	node = arena_alloc(reader->arena, sizeof(*node));
	node->kind = (uint8_t)kind;
	node->weight = 1;
	node->line = (uint32_t)(reader->line + event->start_mark.line + 1);
	node->column = (uint32_t)((event->start_mark.line ? 0 : reader->column) +
				  event->start_mark.column + 1);
	if (anchor)
		map_set(&reader->anchors, arena_strdup(reader->arena, (const char *)anchor), node);
	*ret = node;
	return 0;
}

/* Puts a finished node below the innermost open collection. */
static int add_child(struct yaml_reader *reader, const yaml_event_t *event, struct yaml_node *child,
		     struct err *err)
{
	struct frame *frame = reader->depth ? &reader->frames[reader->depth - 1] : NULL;
	int r;

	if (reader->depth + child->height > YAML_MAX_DEPTH)
		return fail(reader, event, "nested too deep", err);
	if (frame) {
		bool is_key = frame->node->kind == YAML_KIND_MAPPING &&
			      (reader->n_children - frame->first) % 2 == 0;

		if (is_key && child->kind != YAML_KIND_SCALAR)
			return fail(reader, event, "a key that is not a scalar", err);
		if (is_key && child->type == YAML_TYPE_NULL)
			return fail(reader, event, "a key that is null", err);
		frame->node->height = MAX(frame->node->height, child->height);
		r = count(reader, event, &frame->node->weight, child->weight, err);
		if (r < 0)
			return r;
	}
	array_grow(&reader->children, &reader->children_capacity, reader->n_children,
		   sizeof(struct yaml_node *));
	reader->children[reader->n_children++] = child;
	return 0;
}

static int on_scalar(struct yaml_reader *reader, const yaml_event_t *event, struct err *err)
{
	struct yaml_node *node;
	char *text;
	int r = node_new(reader, event, YAML_KIND_SCALAR, event->data.scalar.anchor, &node, err);

	if (r < 0)
		return r;
	r = scalar_type(reader, event, &node->type, err);
	if (r < 0)
		return r;
	text = arena_alloc(reader->arena, event->data.scalar.length + 1);
	memcpy(text, event->data.scalar.value, event->data.scalar.length);
	node->text = text;
	node->n = (uint32_t)event->data.scalar.length;
	node->height = 1;
	return add_child(reader, event, node, err);
}

/* Height 0 marks a collection as open; its children write theirs, closing adds one. */
static int on_start(struct yaml_reader *reader, const yaml_event_t *event, enum yaml_kind kind,
		    const yaml_char_t *anchor, struct err *err)
{
	struct yaml_node *node;
	int r;

	if (reader->depth == YAML_MAX_DEPTH)
		return fail(reader, event, "nested too deep", err);
	r = node_new(reader, event, kind, anchor, &node, err);
	if (r < 0)
		return r;
	node->type = YAML_TYPE_COUNT; /* still open */
	reader->frames[reader->depth++] = (struct frame){.node = node, .first = reader->n_children};
	return 0;
}

static int on_end(struct yaml_reader *reader, const yaml_event_t *event, struct err *err)
{
	struct frame frame = reader->frames[--reader->depth];
	struct yaml_node *node = frame.node;
	size_t n = reader->n_children - frame.first;

	node->type = 0;
	node->height++;
	node->items = arena_array(reader->arena, n, sizeof(struct yaml_node *));
	if (n)
		memcpy(node->items, reader->children + frame.first, n * sizeof(struct yaml_node *));
	node->n = (uint32_t)(node->kind == YAML_KIND_MAPPING ? n / 2 : n);
	reader->n_children = frame.first;
	return add_child(reader, event, node, err);
}

static int on_alias(struct yaml_reader *reader, const yaml_event_t *event, struct err *err)
{
	struct yaml_node *node = map_get(&reader->anchors, (const char *)event->data.alias.anchor);

	if (!node)
		return fail(reader, event, "an alias without its anchor", err);
	if (node->type == YAML_TYPE_COUNT)
		return fail(reader, event, "an alias inside its own anchor", err);
	return add_child(reader, event, node, err);
}

static int on_event(struct yaml_reader *reader, const yaml_event_t *event, struct err *err)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (++reader->documents > YAML_MAX_DOCUMENTS)
			return fail(reader, event, "too many documents", err);
		return 0;
	case YAML_SCALAR_EVENT:
		return on_scalar(reader, event, err);
	case YAML_SEQUENCE_START_EVENT:
		return on_start(reader, event, YAML_KIND_SEQUENCE,
				event->data.sequence_start.anchor, err);
	case YAML_MAPPING_START_EVENT:
		return on_start(reader, event, YAML_KIND_MAPPING, event->data.mapping_start.anchor,
				err);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_end(reader, event, err);
	case YAML_ALIAS_EVENT:
		return on_alias(reader, event, err);
	default:
		return 0;
	}
}

/* One event further: 1, or 0 when a document or the stream ended, as *ended says. */
static int step(struct yaml_reader *reader, yaml_event_type_t *ended, struct err *err)
{
	yaml_event_t event;
	int r;

	if (!yaml_parser_parse(&reader->parser, &event))
		return fail_parser(reader, err);
	*ended = event.type;
	r = on_event(reader, &event, err);
	yaml_event_delete(&event);
	if (r < 0)
		return r;
	return *ended != YAML_DOCUMENT_END_EVENT && *ended != YAML_STREAM_END_EVENT;
}

static void begin_document(struct yaml_reader *reader, struct arena *arena)
{
	reader->arena = arena;
	map_done(&reader->anchors);
	reader->anchors = (struct map){0};
	reader->depth = 0;
	reader->n_children = 0;
}

static int end_document(struct yaml_reader *reader, struct yaml_node **ret, struct err *err)
{
	struct yaml_node *root = reader->children[0];

	if (root->weight > YAML_MAX_NODES - reader->expanded)
		return err_set(err, -EINVAL, "%s:%u:%u: too many nodes in all documents",
			       reader->name, root->line, root->column);
	reader->expanded += root->weight;
	*ret = root;
	return 1;
}

int yaml_reader_next(struct yaml_reader *reader, struct arena *arena, struct yaml_node **ret,
		     struct err *err)
{
	begin_document(reader, arena);
	for (;;) {
		yaml_event_type_t ended = YAML_NO_EVENT;
		int r;

		if (!reader->parsing && !begin_parser(reader))
			return 0;
		do
			r = step(reader, &ended, err);
		while (r > 0);
		if (r < 0)
			return r;
		if (ended == YAML_DOCUMENT_END_EVENT)
			return end_document(reader, ret, err);
		end_input(reader);
	}
}

static const struct yaml_node *get_merged(const struct yaml_node *source, const char *key)
{
	if (source->kind == YAML_KIND_MAPPING)
		return yaml_node_get(source, key);
	if (source->kind == YAML_KIND_SEQUENCE) {
		for (size_t i = 0; i < source->n; i++) {
			const struct yaml_node *value = yaml_node_get(source->items[i], key);

			if (value)
				return value;
		}
	}
	return NULL;
}

const struct yaml_node *yaml_node_get(const struct yaml_node *node, const char *key)
{
	const struct yaml_node *value = NULL;

	if (!node || node->kind != YAML_KIND_MAPPING)
		return NULL;
	for (size_t i = 0; i < node->n; i++)
		if (streq(node->pairs[2 * i]->text, key))
			return node->pairs[2 * i + 1];
	for (size_t i = 0; i < node->n && !value; i++)
		if (streq(node->pairs[2 * i]->text, "<<"))
			value = get_merged(node->pairs[2 * i + 1], key);
	return value;
}

bool yaml_node_is_null(const struct yaml_node *node)
{
	return !node || (node->kind == YAML_KIND_SCALAR && node->type == YAML_TYPE_NULL);
}

const char *yaml_node_describe(const struct yaml_node *node, char *out, size_t size)
{
	char text[48];

	if (node->kind == YAML_KIND_MAPPING)
		return "a mapping";
	if (node->kind == YAML_KIND_SEQUENCE)
		return "a list";
	if (node->type == YAML_TYPE_NULL)
		return "null";
	snprintf(out, size, node->type == YAML_TYPE_STRING ? "the %s \"%s\"" : "the %s %s",
		 strchr(yaml_type_name(node->type), ' ') + 1,
		 printable(node->text, text, sizeof(text)));
	return out;
}
