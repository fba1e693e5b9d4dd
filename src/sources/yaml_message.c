/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/yaml_message.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "sources/field_guess.h"
#include "sources/k8s.pb-c.h"
#include "sources/printable.h"
#include "sources/rfc3339.h"

#define FIELDS_MAX 64 /* of one message: a bit each */
#define KEY_MAX    64 /* bytes of a field's name, with its NUL */

/* Where we are: "spec", "ports[2]", "nodePort", from the inside out. */
struct path {
	const struct path *outer;
	const char *name; /* NULL: an element of a list */
	size_t index;
};

struct reading {
	const struct yaml_source *source;
	struct arena *arena;
	struct err *err;
};

static int read_message(const struct reading *reading, const struct path *path,
			const struct yaml_node *node, const ProtobufCMessageDescriptor *type,
			ProtobufCMessage **ret);

static size_t print_path(const struct path *path, char *out, size_t size)
{
	char name[64];
	size_t at;
	int n;

	if (!path)
		return 0;
	at = print_path(path->outer, out, size);
	if (path->name)
		n = snprintf(out + at, size - at, "%s%s", at ? "." : "",
			     printable(path->name, name, sizeof(name)));
	else
		n = snprintf(out + at, size - at, "[%zu]", path->index);
	return MIN(at + (size_t)n, size - 1);
}

static int fail(const struct reading *reading, const struct path *path,
		const struct yaml_node *node, const char *what)
{
	const char *object = reading->source->object;
	char where[256] = "";

	print_path(path, where, sizeof(where));
	return err_set(reading->err, -EINVAL, "%s:%u:%u: %s%s%s%s%s", reading->source->file,
		       node->line, node->column, object ? object : "", object ? ": " : "", where,
		       *where ? ": " : "", what);
}

/* Something to be told and got over, when the caller wants to hear of it: 0. Else an error. */
static int tolerate(const struct reading *reading, const struct path *path,
		    const struct yaml_node *node, const char *what)
{
	struct err err;
	struct reading aside = {.source = reading->source, .err = &err};

	if (!reading->source->warn)
		return fail(reading, path, node, what);
	fail(&aside, path, node, what);
	reading->source->warn(reading->source->arg, err.text);
	return 0;
}

static int fail_type(const struct reading *reading, const struct path *path,
		     const struct yaml_node *node, const char *expected)
{
	char found[96], what[160];

	snprintf(what, sizeof(what), "expected %s, found %s", expected,
		 yaml_node_describe(node, found, sizeof(found)));
	return fail(reading, path, node, what);
}

static int expect(const struct reading *reading, const struct path *path,
		  const struct yaml_node *node, enum yaml_type type)
{
	if (node->kind != YAML_KIND_SCALAR || node->type != type)
		return fail_type(reading, path, node, yaml_type_name(type));
	return 0;
}

static int read_string(const struct reading *reading, const struct path *path,
		       const struct yaml_node *node, char **ret)
{
	int r = expect(reading, path, node, YAML_TYPE_STRING);

	if (r < 0)
		return r;
	if (strlen(node->text) != node->n)
		return fail(reading, path, node, "a string with a NUL in it");
	*ret = (char *)node->text; /* protobuf-c has no const; it is not written to */
	return 0;
}

static int read_int(const struct reading *reading, const struct path *path,
		    const struct yaml_node *node, int64_t min, int64_t max, int64_t *ret)
{
	if (node->kind != YAML_KIND_SCALAR || !yaml_scalar_whole(node->type, node->text, ret))
		return fail_type(reading, path, node, yaml_type_name(YAML_TYPE_INT));
	if (*ret < min || *ret > max)
		return fail_type(reading, path, node, "a 32-bit integer");
	return 0;
}

static int read_float(const struct reading *reading, const struct path *path,
		      const struct yaml_node *node, float *ret)
{
	if (node->kind == YAML_KIND_SCALAR && node->type == YAML_TYPE_INT)
		*ret = (float)yaml_scalar_int(node->text);
	else if (node->kind == YAML_KIND_SCALAR && node->type == YAML_TYPE_FLOAT)
		*ret = strtof(node->text, NULL);
	else
		return fail_type(reading, path, node, "a number");
	if (!isfinite(*ret) ||
	    strpbrk(node->text, "nN")) /* .nan and .inf, which C spells otherwise */
		return fail_type(reading, path, node, "a number of 32 bits");
	return 0;
}

static int read_time(const struct reading *reading, const struct path *path,
		     const struct yaml_node *node, ProtobufCMessage **ret)
{
	K8s__Time *time = arena_alloc(reading->arena, sizeof(*time));
	int r = expect(reading, path, node, YAML_TYPE_STRING);

	if (r < 0)
		return r;
	k8s__time__init(time);
	if (rfc3339_parse(node->text, &time->seconds, &time->nanos) < 0)
		return fail_type(reading, path, node, "a time such as 2006-01-02T15:04:05Z");
	time->has_seconds = true;
	time->has_nanos = true;
	*ret = &time->base;
	return 0;
}

/* Writes one value to where the message, or a list of it, has it. */
static int read_value(const struct reading *reading, const struct path *path,
		      const struct yaml_node *node, const ProtobufCFieldDescriptor *field, void *at)
{
	int64_t number = 0;
	int r;

	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		return read_string(reading, path, node, at);
	case PROTOBUF_C_TYPE_INT32:
		r = read_int(reading, path, node, INT32_MIN, INT32_MAX, &number);
		if (r == 0)
			*(int32_t *)at = (int32_t)number;
		return r;
	case PROTOBUF_C_TYPE_INT64:
		return read_int(reading, path, node, INT64_MIN, INT64_MAX, at);
	case PROTOBUF_C_TYPE_FLOAT:
		return read_float(reading, path, node, at);
	case PROTOBUF_C_TYPE_BOOL:
		r = expect(reading, path, node, YAML_TYPE_BOOL);
		if (r == 0)
			*(protobuf_c_boolean *)at = yaml_scalar_bool(node->text);
		return r;
	case PROTOBUF_C_TYPE_MESSAGE:
		if (field->descriptor == &k8s__time__descriptor)
			return read_time(reading, path, node, at);
		return read_message(reading, path, node, field->descriptor, at);
	default:
		assert(!"a type that the schema does not use");
		return fail(reading, path, node, "a type that is not supported");
	}
}

static size_t element_size(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
		return sizeof(int32_t);
	case PROTOBUF_C_TYPE_INT64:
		return sizeof(int64_t);
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	default:
		return sizeof(void *);
	}
}

static int read_list(const struct reading *reading, const struct path *path,
		     const struct yaml_node *node, const ProtobufCFieldDescriptor *field,
		     char *message)
{
	size_t size = element_size(field->type);
	char *values;

	if (node->kind != YAML_KIND_SEQUENCE)
		return fail_type(reading, path, node, "a list");
	values = arena_array(reading->arena, node->n, size);
	for (size_t i = 0; i < node->n; i++) {
		struct path inner = {.outer = path, .index = i};
		int r = read_value(reading, &inner, node->items[i], field, values + i * size);

		if (r < 0)
			return r;
	}
	*(size_t *)(message + field->quantifier_offset) = node->n;
	*(void **)(message + field->offset) = values;
	return 0;
}

/* Is a repeated field of these messages a mapping? */
static bool is_map_entry(const ProtobufCMessageDescriptor *type)
{
	return type && type->n_fields == 2 && streq(type->fields[0].name, "key") &&
	       streq(type->fields[1].name, "value");
}

/* merged: it comes from "<<", and counts only where nothing was given before. */
typedef int pair_fn(const struct reading *reading, const struct path *path,
		    const struct yaml_node *key, const struct yaml_node *value, bool merged,
		    void *to);

/* A mapping's own pairs, then those of what "<<" names. */
static int read_pairs(const struct reading *reading, const struct path *path,
		      const struct yaml_node *node, bool merged, pair_fn *fn, void *to)
{
	int r = 0;

	if (node->kind != YAML_KIND_MAPPING)
		return fail_type(reading, path, node, "a mapping");
	for (size_t i = 0; i < node->n && r == 0; i++)
		if (!streq(node->pairs[2 * i]->text, "<<"))
			r = fn(reading, path, node->pairs[2 * i], node->pairs[2 * i + 1], merged,
			       to);
	for (size_t i = 0; i < node->n && r == 0; i++) {
		const struct yaml_node *source = node->pairs[2 * i + 1];

		if (!streq(node->pairs[2 * i]->text, "<<"))
			continue;
		if (source->kind != YAML_KIND_SEQUENCE)
			r = read_pairs(reading, path, source, true, fn, to);
		else
			for (size_t j = 0; j < source->n && r == 0; j++)
				r = read_pairs(reading, path, source->items[j], true, fn, to);
	}
	return r;
}

/* A mapping's own entries, and those of "<<" that it does not have itself. */
struct entries {
	const ProtobufCMessageDescriptor *type;
	char **v;
	size_t n, capacity;
	struct map seen;
};

static int read_entry_value(const struct reading *reading, const struct path *path,
			    const struct yaml_node *value, const ProtobufCFieldDescriptor *field,
			    char *entry)
{
	int r = 0;

	if (field->type == PROTOBUF_C_TYPE_STRING)
		*(char **)(entry + field->offset) = (char *)"";
	else
		*(protobuf_c_boolean *)(entry + field->quantifier_offset) = true;
	if (!yaml_node_is_null(value))
		r = read_value(reading, path, value, field, entry + field->offset);
	return r;
}

static int add_entry(const struct reading *reading, const struct path *path,
		     const struct yaml_node *key, const struct yaml_node *value, bool merged,
		     void *to)
{
	struct entries *entries = to;
	const ProtobufCFieldDescriptor *fields = entries->type->fields;
	struct path inner = {.outer = path, .name = key->text};
	char *entry = map_get(&entries->seen, key->text);
	int r;

	if (entry && merged)
		return 0;
	if (entry) {
		r = tolerate(reading, &inner, key, "given twice");
		return r < 0 ? r : read_entry_value(reading, &inner, value, &fields[1], entry);
	}
	if (strlen(key->text) != key->n)
		return fail(reading, path, key, "a key with a NUL in it");
	entry = arena_alloc(reading->arena, entries->type->sizeof_message);
	entries->type->message_init((ProtobufCMessage *)entry);
	*(const char **)(entry + fields[0].offset) = key->text;
	r = read_entry_value(reading, &inner, value, &fields[1], entry);
	if (r < 0)
		return r;
	map_set(&entries->seen, key->text, entry);
	array_grow(&entries->v, &entries->capacity, entries->n, sizeof(char *));
	entries->v[entries->n++] = entry;
	return 0;
}

static int read_map(const struct reading *reading, const struct path *path,
		    const struct yaml_node *node, const ProtobufCFieldDescriptor *field,
		    char *message)
{
	struct entries entries = {.type = field->descriptor};
	int r = read_pairs(reading, path, node, false, add_entry, &entries);

	map_done(&entries.seen);
	if (r == 0 && entries.n) {
		void *v = arena_array(reading->arena, entries.n, sizeof(K8s__MapEntry *));

		*(void **)(message + field->offset) =
			memcpy(v, entries.v, entries.n * sizeof(K8s__MapEntry *));
		*(size_t *)(message + field->quantifier_offset) = entries.n;
	}
	util_free_pointer(&entries.v);
	return r;
}

static int read_field(const struct reading *reading, const struct path *path,
		      const struct yaml_node *node, const ProtobufCFieldDescriptor *field,
		      char *message)
{
	int r;

	if (yaml_node_is_null(node))
		return 0;
	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		if (is_map_entry(field->descriptor))
			return read_map(reading, path, node, field, message);
		return read_list(reading, path, node, field, message);
	}
	r = read_value(reading, path, node, field, message + field->offset);
	if (r == 0 && field->type != PROTOBUF_C_TYPE_STRING &&
	    field->type != PROTOBUF_C_TYPE_MESSAGE)
		*(protobuf_c_boolean *)(message + field->quantifier_offset) = true;
	return r;
}

struct unknown {
	struct unknown *next;
	const struct yaml_node *key;
};

struct target {
	const ProtobufCMessageDescriptor *type;
	char *message;
	uint64_t seen; /* fields given, a bit each */
	struct unknown *unknown, **unknown_end;
};

/* protobuf's names have no dash: an underscore of the schema stands for it, and for nothing else.
 */
static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type,
						  const struct yaml_node *key)
{
	char name[KEY_MAX];

	if (key->n >= sizeof(name) || strlen(key->text) != key->n || strchr(key->text, '_'))
		return NULL;
	for (size_t i = 0; i <= key->n; i++)
		name[i] = key->text[i] == '-' ? '_' : key->text[i];
	return protobuf_c_message_descriptor_get_field_by_name(type, name);
}

static void add_unknown(const struct reading *reading, const struct yaml_node *key,
			struct target *target)
{
	struct unknown *unknown;

	if (!reading->source->unknown)
		return;
	unknown = arena_alloc(reading->arena, sizeof(*unknown));
	unknown->key = key;
	*target->unknown_end = unknown;
	target->unknown_end = &unknown->next;
}

/* When all of the message is read: a field that is given was not meant by another key. */
static void tell_unknown(const struct reading *reading, const struct target *target)
{
	const struct yaml_source *source = reading->source;

	for (const struct unknown *unknown = target->unknown; unknown; unknown = unknown->next) {
		const char *meant = field_guess(target->type, unknown->key->text, target->seen);

		if (meant)
			source->unknown(source->arg, unknown->key, meant);
	}
}

static int read_pair(const struct reading *reading, const struct path *path,
		     const struct yaml_node *key, const struct yaml_node *value, bool merged,
		     void *to)
{
	struct target *target = to;
	const ProtobufCFieldDescriptor *field = find_field(target->type, key);
	struct path inner = {.outer = path, .name = key->text};
	uint64_t bit;

	if (!field && reading->source->warn)
		return tolerate(reading, &inner, key, "unknown field");
	if (!field) {
		add_unknown(reading, key, target);
		return 0;
	}
	bit = UINT64_C(1) << (field - target->type->fields);
	if (target->seen & bit) {
		int r = merged ? 0 : tolerate(reading, &inner, key, "given twice");

		if (merged || r < 0)
			return r;
	}
	target->seen |= bit;
	return read_field(reading, &inner, value, field, target->message);
}

static int read_message(const struct reading *reading, const struct path *path,
			const struct yaml_node *node, const ProtobufCMessageDescriptor *type,
			ProtobufCMessage **ret)
{
	struct target target = {.type = type, .unknown_end = &target.unknown};
	int r;

	assert(type->n_fields <= FIELDS_MAX);
	target.message = arena_alloc(reading->arena, type->sizeof_message);
	type->message_init((ProtobufCMessage *)target.message);
	r = read_pairs(reading, path, node, false, read_pair, &target);
	if (r < 0)
		return r;
	tell_unknown(reading, &target);
	*ret = (ProtobufCMessage *)target.message;
	return 0;
}

int yaml_message_read(const struct yaml_source *source, const struct yaml_node *node,
		      const ProtobufCMessageDescriptor *type, struct arena *arena,
		      ProtobufCMessage **ret, struct err *err)
{
	struct reading reading = {.source = source, .arena = arena, .err = err};

	return read_message(&reading, NULL, node, type, ret);
}
