/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Protobuf-c messages as trees of named fields: what can be done with a configuration by following
 * its descriptor instead of naming each member. Paths are those of the file, "conntrack.maxPerCore".
 * A message and all it holds lie in one arena.
 */

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/text.h"

struct message_field {
	const ProtobufCFieldDescriptor *field;
	ProtobufCMessage *message; /* that has the field */
};

/* Makes all messages inside that are missing, so that every path leads somewhere. */
void message_fill(ProtobufCMessage *message, struct arena *arena);
/* False when there is no such path. Only in a filled message. */
bool message_find(ProtobufCMessage *message, const char *path, struct message_field *ret);
/* Where the field's value is. */
void *message_value(const struct message_field *field);
/* Was it given? Text and lists must not be empty for that. */
bool message_is_set(const struct message_field *field);
void message_mark_set(const struct message_field *field);
bool message_is_map(const ProtobufCMessageDescriptor *type); /* entries of a key and a value */
/* Appends a pointer to a repeated field of text or messages. */
void message_append(const struct message_field *field, void *value, struct arena *arena);

/* Calls `differs` for each field, and each list as a whole, in which two filled messages differ. */
void message_compare(const ProtobufCMessage *a, const ProtobufCMessage *b,
		     void (*differs)(void *arg, const char *path), void *arg);

/*
 * As text, fields in the order of their names: empty fields too, but for those that `omits` says
 * may be left out. The YAML is that of Kubernetes' own programs.
 */
typedef bool message_omit_fn(const ProtobufCFieldDescriptor *field);
void message_print_yaml(const ProtobufCMessage *message, message_omit_fn *omits, struct text *out);
void message_print_json(const ProtobufCMessage *message, message_omit_fn *omits, struct text *out);
