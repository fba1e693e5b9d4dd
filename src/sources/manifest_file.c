/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/manifest_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "sources/convert.h"
#include "sources/defaults.h"
#include "sources/printable.h"
#include "sources/yaml_message.h"

#define NOTICES_MAX 200u /* for one file; more do not help */
#define OBJECT_MAX  400u /* "Kind namespace/name" with the longest names that are allowed: 333 */

/* A file on its way from text to objects. */
struct parse {
	struct manifest_file *file; /* its older version: the objects to fall back to */
	const char *node_name;
	struct manifest_object *objects;
	size_t n_objects, objects_capacity;
	struct manifest_notice *notices;
	size_t n_notices, notices_capacity;
	size_t n_problems;

	/* the object at hand */
	struct arena *arena;
	const struct yaml_node *node;
	char object[OBJECT_MAX];
};

struct kind {
	const char *name;
	const char *api_version;
	const ProtobufCMessageDescriptor *type;
	bool namespaced;
	enum object_kind becomes;
};

static void object_done(struct manifest_object *object)
{
	free(object->id);
	for (size_t i = 0; i < object->n; i++)
		object_unref(object->v[i]);
	free(object->v);
}

static void objects_free(struct manifest_object *objects, size_t n)
{
	for (size_t i = 0; i < n; i++)
		object_done(&objects[i]);
	free(objects);
}

static void notices_free(struct manifest_notice *notices, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(notices[i].text);
	free(notices);
}

struct manifest_file *manifest_file_new(const char *dir, const char *name)
{
	struct manifest_file *file = xcalloc(1, sizeof(*file));

	file->path = xasprintf("%s/%s", dir, name);
	file->name = file->path + strlen(dir) + 1;
	return file;
}

struct manifest_file *manifest_file_free(struct manifest_file *file)
{
	if (!file)
		return NULL;
	objects_free(file->objects, file->n_objects);
	notices_free(file->notices, file->n_notices);
	free(file->path);
	free(file);
	return NULL;
}

static void add_notice(struct parse *parse, enum log_severity severity, const char *fmt, ...)
	attr_printf(3, 4);

static bool has_text(const struct manifest_notice *notices, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (streq(notices[i].text, text))
			return true;
	return false;
}

/* FILE:LINE:COLUMN: and the text. Said already, or too much: dropped. */
static void add_notice(struct parse *parse, enum log_severity severity, const char *fmt, ...)
{
	char text[1024], *line;
	va_list ap;

	if (parse->n_notices > NOTICES_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (parse->n_notices == NOTICES_MAX)
		snprintf(text, sizeof(text), "further messages about this file are left out");
	line = xasprintf("%s:%u:%u: %s", parse->file->path, parse->node->line, parse->node->column,
			 text);
	if (has_text(parse->notices, parse->n_notices, line)) {
		free(line);
		return;
	}
	array_grow(&parse->notices, &parse->notices_capacity, parse->n_notices,
		   sizeof(*parse->notices));
	parse->notices[parse->n_notices++] = (struct manifest_notice){
		.severity = severity,
		.known = has_text(parse->file->notices, parse->file->n_notices, line),
		.text = line,
	};
}

static void on_note(void *arg, const char *text)
{
	struct parse *parse = arg;

	add_notice(parse, LOG_SEVERITY_WARNING, "%s: %s", parse->object, text);
}

static int convert_mirrored(struct parse *parse, K8s__Endpoints *message,
			    const struct convert_notes *notes, struct manifest_object *object,
			    enum convert_skip *skip, struct err *err)
{
	struct slice **slices cleanup_free = NULL;
	int r;

	defaults_endpoints(message, parse->arena);
	r = convert_endpoints(message, parse->node_name, notes, &slices, &object->n, skip, err);
	if (r <= 0)
		return r;
	object->v = xcalloc(object->n, sizeof(*object->v));
	for (size_t i = 0; i < object->n; i++)
		object->v[i] = (struct object){.kind = OBJECT_SLICE, .slice = slices[i]};
	return r;
}

static int convert(struct parse *parse, const struct kind *kind, ProtobufCMessage *message,
		   struct manifest_object *object, enum convert_skip *skip, struct err *err)
{
	const struct convert_notes notes = {.fn = on_note, .arg = parse};
	struct object one;
	int r;

	if (kind->type == &k8s__endpoints__descriptor)
		return convert_mirrored(parse, (K8s__Endpoints *)message, &notes, object, skip,
					err);
	if (kind->becomes == OBJECT_SERVICE)
		defaults_service((K8s__Service *)message, parse->arena);
	else if (kind->becomes == OBJECT_SLICE)
		defaults_endpoint_slice((K8s__EndpointSlice *)message, parse->arena);
	r = convert_object(kind->becomes, message, parse->node_name, &notes, &one, skip, err);
	if (r <= 0)
		return r;
	object->v = xmalloc(sizeof(one));
	object->v[object->n++] = one;
	return r;
}

static const struct kind kinds[] = {
	{"Service", "v1", &k8s__service__descriptor, true, OBJECT_SERVICE},
	{"EndpointSlice", "discovery.k8s.io/v1", &k8s__endpoint_slice__descriptor, true,
	 OBJECT_SLICE},
	{"Endpoints", "v1", &k8s__endpoints__descriptor, true, OBJECT_SLICE},
	{"Node", "v1", &k8s__node__descriptor, false, OBJECT_NODE},
	{"ServiceCIDR", "networking.k8s.io/v1", &k8s__service_cidr__descriptor, false,
	 OBJECT_SERVICE_CIDR},
};

/* The kind whose objects these are, or whose lists with suffix "List"; NULL: none of ours. */
static const struct kind *find_kind(const char *name, const char *api_version, const char *suffix)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t n = strlen(kinds[i].name);

		if (strncmp(name, kinds[i].name, n) == 0 && streq(name + n, suffix) &&
		    streq(api_version, kinds[i].api_version))
			return &kinds[i];
	}
	return NULL;
}

/* The text of a field of metadata, whatever the type; for messages. */
static const char *metadata_text(const struct yaml_node *node, const char *key)
{
	const struct yaml_node *value = yaml_node_get(yaml_node_get(node, "metadata"), key);

	if (yaml_node_is_null(value) || value->kind != YAML_KIND_SCALAR)
		return "";
	return value->text;
}

static void name_object(struct parse *parse, const struct kind *kind, const struct yaml_node *node)
{
	const char *ns = metadata_text(node, "namespace");
	const char *name = metadata_text(node, "name");
	char text[OBJECT_MAX];

	if (!kind->namespaced)
		snprintf(text, sizeof(text), "%s %s", kind->name, *name ? name : "(no name)");
	else
		snprintf(text, sizeof(text), "%s %s/%s", kind->name, *ns ? ns : "default",
			 *name ? name : "(no name)");
	printable(text, parse->object, sizeof(parse->object));
}

static void note_skip(struct parse *parse, enum convert_skip skip)
{
	if (convert_skip_is_mistake(skip)) {
		parse->n_problems++;
		add_notice(parse, LOG_SEVERITY_ERROR, "%s cannot be served: %s", parse->object,
			   convert_skip_text(skip));
	} else {
		add_notice(parse, LOG_SEVERITY_INFO, "%s is left out: %s", parse->object,
			   convert_skip_text(skip));
	}
}

/* A refused object: its older version, if it has one, moves over. */
static bool keep_previous(struct parse *parse, struct manifest_object *object)
{
	for (size_t i = 0; i < parse->file->n_objects; i++) {
		struct manifest_object *old = &parse->file->objects[i];

		if (!streq(old->id, object->id))
			continue;
		object->v = xcalloc(old->n, sizeof(*object->v));
		for (size_t j = 0; j < old->n; j++)
			object->v[object->n++] = object_ref(old->v[j]);
		return old->n > 0;
	}
	return false;
}

static void add_object(struct parse *parse, const struct kind *kind, ProtobufCMessage *message)
{
	struct manifest_object object = {.line = parse->node->line};
	enum convert_skip skip = CONVERT_SKIP_NONE;
	struct err err;
	int r = convert(parse, kind, message, &object, &skip, &err);

	object.id = xstrdup(parse->object);
	if (r < 0) {
		parse->n_problems++;
		add_notice(parse, LOG_SEVERITY_ERROR, "%s cannot be served: %s%s", parse->object,
			   err.text,
			   keep_previous(parse, &object) ? ", keeping the previous version" : "");
	} else if (r == 0) {
		note_skip(parse, skip);
	}
	array_grow(&parse->objects, &parse->objects_capacity, parse->n_objects,
		   sizeof(*parse->objects));
	parse->objects[parse->n_objects++] = object;
}

static void on_unknown(void *arg, const struct yaml_node *key, const char *meant)
{
	struct parse *parse = arg;
	char name[64];

	parse->node = key;
	add_notice(parse, LOG_SEVERITY_WARNING, "unknown field \"%s\" in %s: did you mean %s?",
		   printable(key->text, name, sizeof(name)), parse->object, meant);
}

static int parse_object(struct parse *parse, const struct kind *kind, const struct yaml_node *node,
			struct err *err)
{
	struct yaml_source source = {.file = parse->file->path,
				     .object = parse->object,
				     .unknown = on_unknown,
				     .arg = parse};
	ProtobufCMessage *message;
	struct arena *arena cleanup_arena = arena_new(4096);
	int r;

	name_object(parse, kind, node);
	r = yaml_message_read(&source, node, kind->type, arena, &message, err);
	if (r < 0)
		return r;
	if (kind->becomes == OBJECT_NODE && !streq(metadata_text(node, "name"), parse->node_name))
		return 0;
	parse->arena = arena;
	parse->node = node;
	add_object(parse, kind, message);
	parse->arena = NULL;
	return 0;
}

/* Groups in which a kind that has nearly our name can only be a mistake; others have their own, as
 * serving.knative.dev has a Service. */
static bool is_our_group(const char *api_version)
{
	static const char *const groups[] = {"core/", "discovery.k8s.io/", "networking.k8s.io/"};

	if (!strchr(api_version, '/'))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (strncasecmp(api_version, groups[i], strlen(groups[i])) == 0)
			return true;
	return false;
}

/* The kind that a name may have meant: one of ours, or a list of it. NULL: none is near. */
static const char *guess_kind(const K8s__TypeMeta *type, char *out, size_t size)
{
	static const char *const suffixes[] = {"", "List"};

	if (!is_our_group(convert_text(type->apiversion)))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(kinds) * ARRAY_SIZE(suffixes); i++) {
		const struct kind *kind = &kinds[i / ARRAY_SIZE(suffixes)];
		int n = snprintf(out, size, "%s ", kind->api_version);

		snprintf(out + n, size - (size_t)n, "%s%s", kind->name,
			 suffixes[i % ARRAY_SIZE(suffixes)]);
		if (strcasecmp(out + n, type->kind) == 0)
			return out;
	}
	return strcasecmp(type->kind, "List") == 0 ? "v1 List" : NULL;
}

/* One line for each kind that is not ours. */
static void note_unknown(struct parse *parse, const struct yaml_node *node,
			 const K8s__TypeMeta *type)
{
	char kind[64], version[64], guess[64], text[320];
	const char *meant = guess_kind(type, guess, sizeof(guess));

	printable(convert_text(type->apiversion), version, sizeof(version));
	snprintf(text, sizeof(text), ": %s %s is not a kind that a proxy reads%s%s%s",
		 *version ? version : "(no apiVersion)", printable(type->kind, kind, sizeof(kind)),
		 meant ? ": did you mean " : "", meant ? meant : "", meant ? "?" : "");
	for (size_t i = 0; i < parse->n_notices; i++)
		if (has_suffix(parse->notices[i].text, text))
			return;
	parse->node = node;
	add_notice(parse, meant ? LOG_SEVERITY_WARNING : LOG_SEVERITY_INFO, "%s", text + 2);
}

static int parse_node(struct parse *parse, const struct yaml_node *node,
		      const struct kind *expected, struct err *err);

static int parse_items(struct parse *parse, const struct yaml_node *list,
		       const struct kind *expected, struct err *err)
{
	const struct yaml_node *items = yaml_node_get(list, "items");
	int r = 0;

	if (yaml_node_is_null(items))
		return 0;
	if (items->kind != YAML_KIND_SEQUENCE)
		return err_set(err, -EINVAL, "%s:%u:%u: items: expected a list", parse->file->path,
			       items->line, items->column);
	for (size_t i = 0; i < items->n && r == 0; i++)
		r = parse_node(parse, items->items[i], expected, err);
	return r;
}

/* expected: what an item is that does not say so itself, or NULL. */
static int parse_node(struct parse *parse, const struct yaml_node *node,
		      const struct kind *expected, struct err *err)
{
	struct yaml_source source = {.file = parse->file->path};
	struct arena *arena cleanup_arena = arena_new(256);
	const struct kind *kind;
	K8s__TypeMeta *type;
	const char *version;
	int r;

	if (yaml_node_is_null(node))
		return 0;
	r = yaml_message_read(&source, node, &k8s__type_meta__descriptor, arena,
			      (ProtobufCMessage **)&type, err);
	if (r < 0)
		return r;
	if (!*convert_text(type->kind)) {
		if (expected)
			return parse_object(parse, expected, node, err);
		return err_set(err, -EINVAL, "%s:%u:%u: an object without a kind",
			       parse->file->path, node->line, node->column);
	}
	version = convert_text(type->apiversion);
	kind = find_kind(type->kind, version, "");
	if (kind)
		return parse_object(parse, kind, node, err);
	kind = find_kind(type->kind, version, "List");
	if (kind || (streq(type->kind, "List") && streq(version, "v1")))
		return parse_items(parse, node, kind, err);
	note_unknown(parse, node, type);
	return 0;
}

static int parse_documents(struct parse *parse, const char *text, size_t n, struct err *err)
{
	struct yaml_reader *reader cleanup_yaml_reader = NULL;
	int r = yaml_reader_new(parse->file->path, text, n, &reader, err);

	while (r >= 0) {
		struct arena *arena cleanup_arena = arena_new(4096);
		struct yaml_node *root;

		r = yaml_reader_next(reader, arena, &root, err);
		if (r == 0)
			return 0;
		if (r > 0)
			r = parse_node(parse, root, NULL, err);
	}
	return r;
}

int manifest_file_parse(struct manifest_file *file, const char *text, size_t n,
			const char *node_name, struct err *err)
{
	struct parse parse = {.file = file, .node_name = node_name};
	int r = parse_documents(&parse, text, n, err);

	file->broken = r < 0;
	if (r < 0) {
		objects_free(parse.objects, parse.n_objects);
		notices_free(parse.notices, parse.n_notices);
		return r;
	}
	objects_free(file->objects, file->n_objects);
	notices_free(file->notices, file->n_notices);
	file->objects = parse.objects;
	file->n_objects = parse.n_objects;
	file->notices = parse.notices;
	file->n_notices = parse.n_notices;
	file->n_problems = parse.n_problems;
	return 0;
}

struct manifest_signature manifest_signature(const struct stat *st)
{
	return (struct manifest_signature){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = st->st_size,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
	};
}

static bool time_equal(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool manifest_signature_equal(const struct manifest_signature *a,
			      const struct manifest_signature *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       time_equal(&a->mtime, &b->mtime) && time_equal(&a->ctime, &b->ctime);
}

/* All of it, up to one byte more than is allowed: it may grow while being read. */
static int read_all(int fd, size_t expected, char **ret, size_t *ret_n)
{
	size_t capacity = MIN(expected, (size_t)YAML_MAX_BYTES) + 1, n = 0;
	char *text = xmalloc(capacity);

	for (;;) {
		ssize_t got = read(fd, text + n, capacity - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int r = -errno;

			free(text);
			return r;
		}
		n += (size_t)got;
		if (got == 0 || n > YAML_MAX_BYTES)
			break;
		if (n == capacity) {
			capacity = MIN(capacity * 2, (size_t)YAML_MAX_BYTES + 1);
			text = xrealloc(text, capacity);
		}
	}
	*ret = text;
	*ret_n = n;
	return 0;
}

int manifest_file_read(struct manifest_file *file, int dir_fd, const char *node_name,
		       struct err *err)
{
	/* not blocking: it might be a FIFO */
	int fd cleanup_fd = openat(dir_fd, file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text cleanup_free = NULL;
	struct stat st;
	size_t n = 0;
	int r;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		file->broken = true;
		return err_sys(err, r, "%s", file->path);
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	file->signature = manifest_signature(&st);
	r = read_all(fd, (size_t)st.st_size, &text, &n);
	if (r < 0) {
		file->broken = true;
		return err_sys(err, r, "%s", file->path);
	}
	r = manifest_file_parse(file, text, n, node_name, err);
	return r < 0 ? r : 1;
}
