/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each name that an object could have knows the objects that claim it, first file first, and what
 * the sink was told of it. When a file is read again or goes, its names are looked at again, and no
 * others. What counts is a function of the claims alone, so nothing depends on the order in which
 * files changed.
 *
 * One name can decide over another: Endpoints give way to EndpointSlices of their Service, as an API
 * server's mirror of them would. So the name of Endpoints counts those slices.
 */

#include "sources/manifest_set.h"

#include <stdio.h>
#include <stdlib.h>

#define ENDPOINTS "Endpoints "

struct manifest_name {
	struct manifest_object *claims; /* in the order of files and lines: the first counts */
	struct object *told;            /* what the sink was told */
	size_t n_told;
	struct map notices; /* those said and still true; keys are owned, values are the keys */
	size_t n_slices;    /* of Endpoints: the EndpointSlices that they give way to */
	bool changed;       /* and in the list of those */
	char id[];
};

/* What the sink is to be told. */
struct change {
	struct object object; /* to set, or the one told before to remove */
	bool remove;
};

/* A round of manifest_set_apply(). */
struct round {
	struct manifest_set *set;
	const struct source_sink *sink;
	manifests_report_fn *report;
	void *report_arg;
	struct change *changes;
	size_t n_changes, changes_capacity;
};

static void objects_unref(struct object *objects, size_t n)
{
	for (size_t i = 0; i < n; i++)
		object_unref(objects[i]);
	free(objects);
}

static void name_free(struct manifest_name *name)
{
	objects_unref(name->told, name->n_told);
	map_free_values(&name->notices);
	free(name);
}

void manifest_set_done(struct manifest_set *set)
{
	struct manifest_name *name;
	size_t at = 0;

	while ((name = map_next(&set->names, &at)))
		name_free(name);
	map_done(&set->names);
	free(set->changed);
	for (size_t i = 0; i < set->n_files; i++)
		manifest_file_free(set->files[i]);
	free(set->files);
	*set = (struct manifest_set){0};
}

/* The name, which is to be looked at. */
static struct manifest_name *touch(struct manifest_set *set, const char *id)
{
	struct manifest_name *name =
		map_ensure(&set->names, id, sizeof(*name), offsetof(struct manifest_name, id));

	if (!name->changed) {
		array_grow(&set->changed, &set->changed_capacity, set->n_changed,
			   sizeof(*set->changed));
		set->changed[set->n_changed++] = name;
	}
	name->changed = true;
	return name;
}

/* The objects of a file do not count any more. */
static void withdraw(struct manifest_set *set, struct manifest_file *file)
{
	for (size_t i = 0; i < file->n_objects; i++) {
		struct manifest_object *object = &file->objects[i];

		touch(set, object->id);
		*object->link = object->next;
		if (object->next)
			object->next->link = object->link;
	}
}

/* Before those of later files, and, because they come from the last to the first, before those of the
 * same file. */
static void claim(struct manifest_name *name, const struct manifest_file *file,
		  struct manifest_object *object)
{
	struct manifest_object **link = &name->claims;

	while (*link && strcmp((*link)->file->name, file->name) < 0)
		link = &(*link)->next;
	object->file = file;
	object->link = link;
	object->next = *link;
	if (*link)
		(*link)->link = &object->next;
	*link = object;
}

/* Names are touched in the order of lines, which is that of messages. */
static void enter(struct manifest_set *set, struct manifest_file *file)
{
	for (size_t i = 0; i < file->n_objects; i++)
		touch(set, file->objects[i].id);
	for (size_t i = file->n_objects; i-- > 0;)
		claim(touch(set, file->objects[i].id), file, &file->objects[i]);
}

/* The place of the first file whose name is not less. */
static size_t lower_bound(const struct manifest_set *set, const char *name)
{
	size_t low = 0, high = set->n_files;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(set->files[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct manifest_file *manifest_set_find(const struct manifest_set *set, const char *name)
{
	size_t at = lower_bound(set, name);

	return at < set->n_files && streq(set->files[at]->name, name) ? set->files[at] : NULL;
}

void manifest_set_add(struct manifest_set *set, struct manifest_file *file)
{
	size_t at = lower_bound(set, file->name);

	array_grow(&set->files, &set->files_capacity, set->n_files, sizeof(struct manifest_file *));
	memmove(set->files + at + 1, set->files + at,
		(set->n_files - at) * sizeof(struct manifest_file *));
	set->files[at] = file;
	set->n_files++;
}

int manifest_set_read(struct manifest_set *set, struct manifest_file *file, int dir_fd,
		      const char *node_name, struct err *err)
{
	int r;

	withdraw(set, file);
	r = manifest_file_read(file, dir_fd, node_name, err);
	enter(set, file);
	return r;
}

void manifest_set_remove(struct manifest_set *set, size_t index)
{
	withdraw(set, set->files[index]);
	manifest_file_free(set->files[index]);
	set->n_files--;
	memmove(set->files + index, set->files + index + 1,
		(set->n_files - index) * sizeof(struct manifest_file *));
}

size_t manifest_set_problems(const struct manifest_set *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n_files; i++)
		n += set->files[i]->n_problems + set->files[i]->broken;
	return n;
}

/* An EndpointSlice comes to count, or counts no more: its Service's Endpoints have to know. */
static void count_slice(struct manifest_set *set, const struct object *objects, size_t n, int by)
{
	char *id cleanup_free = NULL;

	if (n == 0 || objects->kind != OBJECT_SLICE)
		return;
	id = xasprintf(ENDPOINTS "%s", slice_service_key(objects->slice));
	touch(set, id)->n_slices += (size_t)by;
}

static void count_slices(struct manifest_set *set, const struct manifest_name *name)
{
	if (strncmp(name->id, ENDPOINTS, strlen(ENDPOINTS)) == 0)
		return;
	count_slice(set, name->told, name->n_told, -1);
	if (name->claims)
		count_slice(set, name->claims->v, name->claims->n, 1);
}

/* Says it unless it was said the last time, too. Takes over the text. */
static void notice(const struct round *round, const struct map *before, struct map *now,
		   enum log_severity severity, char *text)
{
	if (!map_get(before, text) && !map_get(now, text))
		round->report(round->report_arg, severity, text);
	free(map_set(now, text, text));
}

static void say_notices(const struct round *round, struct manifest_name *name)
{
	const struct manifest_object *first = name->claims;
	struct map now = {0};

	for (const struct manifest_object *o = first ? first->next : NULL; o; o = o->next)
		notice(round, &name->notices, &now, LOG_SEVERITY_WARNING,
		       xasprintf("%s is in %s:%u and again in %s:%u: the first counts", name->id,
				 first->file->path, first->line, o->file->path, o->line));
	if (name->n_slices && first && first->n)
		notice(round, &name->notices, &now, LOG_SEVERITY_INFO,
		       xasprintf("%s:%u: %s is left out: the Service has EndpointSlices",
				 first->file->path, first->line, name->id));
	map_free_values(&name->notices);
	name->notices = now;
}

static void add_change(struct round *round, struct object object, bool remove)
{
	array_grow(&round->changes, &round->changes_capacity, round->n_changes,
		   sizeof(*round->changes));
	round->changes[round->n_changes++] =
		(struct change){.object = object_ref(object), .remove = remove};
}

static const struct object *find_key(const struct object *objects, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (streq(object_key(objects[i]), key))
			return &objects[i];
	return NULL;
}

static void compare(struct round *round, const struct manifest_name *name,
		    const struct object *wanted, size_t n_wanted)
{
	for (size_t i = 0; i < name->n_told; i++)
		if (!find_key(wanted, n_wanted, object_key(name->told[i])))
			add_change(round, name->told[i], true);
	for (size_t i = 0; i < n_wanted; i++) {
		const struct object *old =
			find_key(name->told, name->n_told, object_key(wanted[i]));

		if (!old || !object_equal(*old, wanted[i]))
			add_change(round, wanted[i], false);
	}
}

static size_t count_services(const struct object *objects, size_t n)
{
	return n > 0 && objects->kind == OBJECT_SERVICE;
}

/* Finds out what the sink has to be told of a name, and notes it as told. */
static void settle(struct round *round, struct manifest_name *name)
{
	const struct manifest_object *first = name->claims;
	struct object *wanted = NULL;
	size_t n = first && !name->n_slices ? first->n : 0;

	if (n > 0 && first->v->kind == OBJECT_SERVICE_CIDR && !round->sink->service_cidrs)
		n = 0;
	if (n > 0)
		wanted = xcalloc(n, sizeof(*wanted));
	for (size_t i = 0; i < n; i++)
		wanted[i] = object_ref(first->v[i]);
	say_notices(round, name);
	compare(round, name, wanted, n);
	round->set->n_services += count_services(wanted, n);
	round->set->n_services -= count_services(name->told, name->n_told);
	objects_unref(name->told, name->n_told);
	name->told = wanted;
	name->n_told = n;
	name->changed = false;
	if (!first && !name->n_slices) {
		map_remove(&round->set->names, name->id);
		name_free(name);
	}
}

/* Nodes and ServiceCIDRs first; slices when their Services are there. */
static int compare_changes(const void *left, const void *right)
{
	static const int ranks[OBJECT_KIND_COUNT][2] = {
		[OBJECT_NODE] = {1, 0},
		[OBJECT_SERVICE_CIDR] = {3, 2},
		[OBJECT_SERVICE] = {6, 5},
		[OBJECT_SLICE] = {7, 4},
	};
	const struct change *a = left, *b = right;
	int by = ranks[a->object.kind][a->remove] - ranks[b->object.kind][b->remove];

	return by ? by : strcmp(object_key(a->object), object_key(b->object));
}

/* Takes over the changes. */
static void tell(const struct round *round)
{
	const struct source_sink *sink = round->sink;

	if (round->n_changes)
		qsort(round->changes, round->n_changes, sizeof(*round->changes), compare_changes);
	for (size_t i = 0; i < round->n_changes; i++) {
		struct object object = round->changes[i].object;

		if (!round->changes[i].remove) {
			sink->set(sink->arg, object);
			continue;
		}
		sink->remove(sink->arg, object.kind, object_key(object));
		object_unref(object);
	}
	free(round->changes);
}

void manifest_set_apply(struct manifest_set *set, const struct source_sink *sink,
			manifests_report_fn *report, void *report_arg)
{
	struct round round = {.set = set, .sink = sink, .report = report, .report_arg = report_arg};

	for (size_t i = 0; i < set->n_changed; i++)
		count_slices(set, set->changed[i]); /* the list may grow */
	for (size_t i = 0; i < set->n_changed; i++)
		settle(&round, set->changed[i]);
	set->n_changed = 0;
	tell(&round);
}
