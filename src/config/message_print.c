/* SPDX-License-Identifier: Apache-2.0 */

/*
 * YAML goes through libyaml's emitter, which Kubernetes' own library is a translation of: what it
 * quotes, and how, comes out the same. Only the choice of double quotes for text that would be read
 * as something else (a number, true, nothing) is made here, as there.
 */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/doc.h"
#include "config/message.h"
#include "sources/yaml_scalar.h"

/* How values are put down: as YAML events, or as JSON text. */
struct writer {
	message_omit_fn *omits;
	yaml_emitter_t emitter; /* YAML */
	struct doc *json;       /* JSON, or NULL */
	const char *key;        /* of the next value in JSON */
};

static void emit(struct writer *writer, yaml_event_t *event)
{
	yaml_emitter_emit(&writer->emitter, event); /* fails only for lack of memory */
}

static void begin(struct writer *writer, bool list)
{
	yaml_event_t event;

	if (writer->json) {
		(list ? doc_open_list : doc_open_map)(writer->json, take(writer->key));
		return;
	}
	if (list)
		yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
						     YAML_BLOCK_SEQUENCE_STYLE);
	else
		yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
						    YAML_BLOCK_MAPPING_STYLE);
	emit(writer, &event);
}

static void end(struct writer *writer, bool list)
{
	yaml_event_t event;

	if (writer->json) {
		doc_close(writer->json);
		return;
	}
	if (list)
		yaml_sequence_end_event_initialize(&event);
	else
		yaml_mapping_end_event_initialize(&event);
	emit(writer, &event);
}

/* 2006-1-2: other readers of YAML take it for a date. */
static bool is_date(const char *s)
{
	static const char *const shapes[] = {"dddd-dd-dd", "dddd-d-dd", "dddd-dd-d", "dddd-d-d"};

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		size_t n = 0;

		while (shapes[i][n] &&
		       (shapes[i][n] == 'd' ? s[n] >= '0' && s[n] <= '9' : s[n] == shapes[i][n]))
			n++;
		if (!shapes[i][n] && !s[n])
			return true;
	}
	return false;
}

/* 1:2:3: older readers of YAML take it for a number to the base of 60. */
static bool is_base60(const char *s)
{
	size_t parts = 0;

	s += *s == '+' || *s == '-';
	if (*s < '0' || *s > '9')
		return false;
	s += strspn(s, "0123456789_");
	for (; *s == ':'; parts++) {
		size_t n = strspn(s + 1, "0123456789");

		if (n < 1 || n > 2 || (n == 2 && s[1] > '5'))
			return false;
		s += 1 + n;
	}
	if (*s == '.')
		s += 1 + strspn(s + 1, "0123456789_");
	return parts > 0 && !*s;
}

static void put_yaml(struct writer *writer, const char *s, yaml_scalar_style_t style)
{
	yaml_event_t event;

	yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)s, (int)strlen(s), 1,
				     1, style);
	emit(writer, &event);
}

static void put_string(struct writer *writer, const char *s)
{
	bool plain = yaml_scalar_type(s) == YAML_TYPE_STRING && !is_date(s) && !is_base60(s);

	if (writer->json)
		doc_string(writer->json, take(writer->key), s);
	else
		put_yaml(writer, s,
			 plain ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

/* Numbers, true, false, null. */
static void put_word(struct writer *writer, const char *word)
{
	if (writer->json)
		doc_word(writer->json, take(writer->key), word);
	else
		put_yaml(writer, word, YAML_PLAIN_SCALAR_STYLE);
}

static void put_key(struct writer *writer, const char *key)
{
	if (writer->json)
		writer->key = key;
	else
		put_string(writer, key);
}

static void put_message(struct writer *writer, const ProtobufCMessage *message);

/* A span of time may be a number of nanoseconds: text of digits alone. */
static void put_text(struct writer *writer, const ProtobufCFieldDescriptor *field, const char *s)
{
	if (s && *s && s[strspn(s, "0123456789")] == '\0' && streq(field->name, "flushFrequency"))
		put_word(writer, s);
	else
		put_string(writer, s ? s : "");
}

/* The fewest digits that mean the same number, without an exponent unless it is far from one. */
static void print_float(float value, char *out, size_t size)
{
	const char *e;
	int digits = 1, exponent;

	do
		snprintf(out, size, "%.*e", digits - 1, (double)value);
	while (strtof(out, NULL) != value && ++digits <= 9);
	e = strchr(out, 'e');
	exponent = e ? (int)strtol(e + 1, NULL, 10) : INT_MAX; /* infinity has none */
	if (exponent >= -6 && exponent < 21)
		snprintf(out, size, "%.*f", MAX(0, digits - 1 - exponent), (double)value);
}

static void put_value(struct writer *writer, const ProtobufCFieldDescriptor *field, const void *at)
{
	char number[64];

	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		put_text(writer, field, *(char *const *)at);
		return;
	case PROTOBUF_C_TYPE_BOOL:
		put_word(writer, *(const protobuf_c_boolean *)at ? "true" : "false");
		return;
	case PROTOBUF_C_TYPE_MESSAGE:
		put_message(writer, *(ProtobufCMessage *const *)at);
		return;
	case PROTOBUF_C_TYPE_FLOAT:
		print_float(*(const float *)at, number, sizeof(number));
		break;
	case PROTOBUF_C_TYPE_INT32:
		snprintf(number, sizeof(number), "%d", *(const int32_t *)at);
		break;
	default:
		snprintf(number, sizeof(number), "%lld", (long long)*(const int64_t *)at);
	}
	put_word(writer, number);
}

static int compare_keys(const void *a, const void *b)
{
	/* the key is the first field of either */
	const ProtobufCMessage *const *one = a;
	const ProtobufCMessage *const *two = b;
	size_t offset = (*one)->descriptor->fields[0].offset;

	return strcmp(*(char *const *)((const char *)*one + offset),
		      *(char *const *)((const char *)*two + offset));
}

static void put_map(struct writer *writer, ProtobufCMessage **entries, size_t n)
{
	size_t size = n * sizeof(*entries);
	cleanup_free ProtobufCMessage **sorted = memcpy(xmalloc(size + 1), entries, size);

	qsort(sorted, n, sizeof(*sorted), compare_keys);
	begin(writer, false);
	for (size_t i = 0; i < n; i++) {
		const ProtobufCFieldDescriptor *fields = sorted[i]->descriptor->fields;
		const char *entry = (const char *)sorted[i];

		put_key(writer, *(char *const *)(entry + fields[0].offset));
		put_value(writer, &fields[1], entry + fields[1].offset);
	}
	end(writer, false);
}

static void put_field(struct writer *writer, const struct message_field *field)
{
	void **values;
	size_t n;

	if (field->field->label != PROTOBUF_C_LABEL_REPEATED) {
		put_value(writer, field->field, message_value(field));
		return;
	}
	values = *(void ***)message_value(field);
	n = *(size_t *)((char *)field->message + field->field->quantifier_offset);
	if (message_is_map(field->field->descriptor)) {
		put_map(writer, (ProtobufCMessage **)values, n);
		return;
	}
	if (!values) {
		put_word(writer, "null");
		return;
	}
	begin(writer, true);
	for (size_t i = 0; i < n; i++)
		put_value(writer, field->field, &values[i]);
	end(writer, true);
}

/* Zero, false, empty. */
static bool is_empty(const struct message_field *field)
{
	if (field->field->type == PROTOBUF_C_TYPE_BOOL)
		return !*(protobuf_c_boolean *)message_value(field);
	return !message_is_set(field);
}

static void put_message(struct writer *writer, const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;

	begin(writer, false);
	for (unsigned int i = 0; i < type->n_fields; i++) {
		const struct message_field field = {&type->fields[type->fields_sorted_by_name[i]],
						    (ProtobufCMessage *)message};

		if (is_empty(&field) && writer->omits && writer->omits(field.field))
			continue;
		put_key(writer, field.field->name);
		put_field(writer, &field);
	}
	end(writer, false);
}

static int add_to_text(void *out, unsigned char *data, size_t n)
{
	text_add(out, (const char *)data, n);
	return 1;
}

void message_print_yaml(const ProtobufCMessage *message, message_omit_fn *omits, struct text *out)
{
	struct writer writer = {.omits = omits};
	yaml_event_t event;

	yaml_emitter_initialize(&writer.emitter);
	yaml_emitter_set_output(&writer.emitter, add_to_text, out);
	yaml_emitter_set_unicode(&writer.emitter, 1);
	yaml_emitter_set_width(&writer.emitter, -1);
	yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING);
	emit(&writer, &event);
	yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1);
	emit(&writer, &event);
	put_message(&writer, message);
	yaml_document_end_event_initialize(&event, 1);
	emit(&writer, &event);
	yaml_stream_end_event_initialize(&event);
	emit(&writer, &event);
	yaml_emitter_flush(&writer.emitter);
	yaml_emitter_delete(&writer.emitter);
}

void message_print_json(const ProtobufCMessage *message, message_omit_fn *omits, struct text *out)
{
	struct doc json;
	struct writer writer = {.omits = omits, .json = &json};

	doc_init(&json, out, DOC_LINE);
	put_message(&writer, message);
}
