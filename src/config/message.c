/* SPDX-License-Identifier: Apache-2.0 */

#include "config/message.h"

#include <assert.h>

#define PATH_MAX_TEXT 256

void *message_value(const struct message_field *field)
{
	return (char *)field->message + field->field->offset;
}

static void *quantifier(const struct message_field *field)
{
	return (char *)field->message + field->field->quantifier_offset;
}

static bool is_list(const ProtobufCFieldDescriptor *field)
{
	return field->label == PROTOBUF_C_LABEL_REPEATED;
}

static bool is_message(const ProtobufCFieldDescriptor *field)
{
	return field->type == PROTOBUF_C_TYPE_MESSAGE && !is_list(field);
}

bool message_is_map(const ProtobufCMessageDescriptor *type)
{
	return type && type->n_fields == 2 && streq(type->fields[0].name, "key") &&
	       streq(type->fields[1].name, "value");
}

void message_fill(ProtobufCMessage *message, struct arena *arena)
{
	for (unsigned int i = 0; i < message->descriptor->n_fields; i++) {
		const struct message_field field = {&message->descriptor->fields[i], message};
		const ProtobufCMessageDescriptor *type = field.field->descriptor;
		ProtobufCMessage **inner = message_value(&field);

		if (!is_message(field.field))
			continue;
		if (!*inner) {
			*inner = arena_alloc(arena, type->sizeof_message);
			type->message_init(*inner);
		}
		message_fill(*inner, arena);
	}
}

bool message_find(ProtobufCMessage *message, const char *path, struct message_field *ret)
{
	size_t n = strcspn(path, ".");
	char name[PATH_MAX_TEXT];
	struct message_field at = {.message = message};

	if (n >= sizeof(name))
		return false;
	memcpy(name, path, n);
	name[n] = '\0';
	at.field = protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
	if (!at.field)
		return false;
	if (path[n] == '.')
		return is_message(at.field) &&
		       message_find(*(ProtobufCMessage **)message_value(&at), path + n + 1, ret);
	*ret = at;
	return true;
}

bool message_is_set(const struct message_field *field)
{
	const char *text;

	if (is_list(field->field))
		return *(size_t *)quantifier(field) > 0;
	if (field->field->type == PROTOBUF_C_TYPE_MESSAGE)
		return *(void **)message_value(field) != NULL;
	if (field->field->type != PROTOBUF_C_TYPE_STRING)
		return *(protobuf_c_boolean *)quantifier(field);
	text = *(char **)message_value(field);
	return text && *text;
}

void message_mark_set(const struct message_field *field)
{
	if (!is_list(field->field) && field->field->type != PROTOBUF_C_TYPE_STRING &&
	    field->field->type != PROTOBUF_C_TYPE_MESSAGE)
		*(protobuf_c_boolean *)quantifier(field) = true;
}

void message_append(const struct message_field *field, void *value, struct arena *arena)
{
	size_t *n = quantifier(field);
	void ***values = message_value(field);
	void **grown = arena_array(arena, *n + 1, sizeof(*grown));

	assert(is_list(field->field));
	if (*n > 0)
		memcpy(grown, *values, *n * sizeof(*grown));
	grown[(*n)++] = value;
	*values = grown;
}

struct comparison {
	void (*differs)(void *arg, const char *path);
	void *arg;
};

static bool same_text(const char *a, const char *b)
{
	return streq(a ? a : "", b ? b : "");
}

static bool same_value(const ProtobufCFieldDescriptor *field, const void *a, const void *b);

static bool same_message(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	bool same = true;

	for (unsigned int i = 0; same && i < a->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &a->descriptor->fields[i];

		same = same_value(field, (const char *)a + field->offset,
				  (const char *)b + field->offset);
	}
	return same;
}

static bool same_value(const ProtobufCFieldDescriptor *field, const void *a, const void *b)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		return same_text(*(char *const *)a, *(char *const *)b);
	case PROTOBUF_C_TYPE_MESSAGE:
		return same_message(*(ProtobufCMessage *const *)a, *(ProtobufCMessage *const *)b);
	case PROTOBUF_C_TYPE_INT64:
		return *(const int64_t *)a == *(const int64_t *)b;
	case PROTOBUF_C_TYPE_INT32:
		return *(const int32_t *)a == *(const int32_t *)b;
	case PROTOBUF_C_TYPE_FLOAT:
		return *(const float *)a == *(const float *)b;
	case PROTOBUF_C_TYPE_BOOL:
		return *(const protobuf_c_boolean *)a == *(const protobuf_c_boolean *)b;
	default:
		assert(!"a type that the schema does not use");
		return false;
	}
}

/* Lists here hold text or messages, so that their elements are pointers. */
static bool same_list(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *a,
		      const ProtobufCMessage *b)
{
	size_t n = *(const size_t *)((const char *)a + field->quantifier_offset);
	void *const *one = *(void *const *const *)((const char *)a + field->offset);
	void *const *two = *(void *const *const *)((const char *)b + field->offset);

	if (n != *(const size_t *)((const char *)b + field->quantifier_offset))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!same_value(field, &one[i], &two[i]))
			return false;
	return true;
}

static void compare(const ProtobufCMessage *a, const ProtobufCMessage *b, const char *outer,
		    const struct comparison *comparison)
{
	for (unsigned int i = 0; i < a->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field =
			&a->descriptor->fields[a->descriptor->fields_sorted_by_name[i]];
		const char *one = (const char *)a + field->offset;
		const char *two = (const char *)b + field->offset;
		cleanup_free char *path =
			xasprintf("%s%s%s", outer, *outer ? "." : "", field->name);

		if (is_message(field))
			compare(*(ProtobufCMessage *const *)one, *(ProtobufCMessage *const *)two,
				path, comparison);
		else if (is_list(field) ? !same_list(field, a, b) : !same_value(field, one, two))
			comparison->differs(comparison->arg, path);
	}
}

void message_compare(const ProtobufCMessage *a, const ProtobufCMessage *b,
		     void (*differs)(void *arg, const char *path), void *arg)
{
	const struct comparison comparison = {differs, arg};

	compare(a, b, "", &comparison);
}
