/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is wanted is computed afresh each time and compared with what the sink was told: both sides
 * sorted by key, walked once. So nothing depends on the order in which files changed.
 */

#include "sources/manifest_set.h"

#include <stdio.h>
#include <stdlib.h>

/* A round of manifest_set_apply(). */
struct round {
	struct manifest_set *set;
	const struct source_sink *sink;
	manifests_report_fn *report;
	void *report_arg;
	struct map winners; /* id -> struct claim */
	struct map sliced;  /* keys of Services that have EndpointSlices */
	struct map notices;
	struct manifest_items items[OBJECT_KIND_COUNT];
};

struct claim {
	const struct manifest_file *file;
	const struct manifest_object *object;
};

static void items_done(struct manifest_items *items)
{
	for (size_t i = 0; i < items->n; i++)
		object_unref(items->v[i]);
	free(items->v);
	*items = (struct manifest_items){0};
}

void manifest_set_done(struct manifest_set *set)
{
	for (size_t i = 0; i < set->n_files; i++)
		manifest_file_free(set->files[i]);
	free(set->files);
	for (size_t i = 0; i < ARRAY_SIZE(set->items); i++)
		items_done(&set->items[i]);
	map_free_values(&set->notices);
	*set = (struct manifest_set){0};
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

void manifest_set_remove(struct manifest_set *set, size_t index)
{
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

/* Says it unless the round before said it, too. Takes over the text. */
static void notice(struct round *round, enum log_severity severity, char *text)
{
	if (map_get(&round->notices, text)) {
		free(text);
		return;
	}
	map_set(&round->notices, text, text);
	if (!map_get(&round->set->notices, text))
		round->report(round->report_arg, severity, text);
}

static void collect_winner(struct round *round, const struct manifest_file *file,
			   const struct manifest_object *object)
{
	const struct claim *first = map_get(&round->winners, object->id);
	struct claim *claim;

	if (first) {
		notice(round, LOG_SEVERITY_WARNING,
		       xasprintf("%s is in %s:%u and again in %s:%u: the first counts", object->id,
				 first->file->path, first->object->line, file->path, object->line));
		return;
	}
	claim = xmalloc(sizeof(*claim));
	*claim = (struct claim){.file = file, .object = object};
	map_set(&round->winners, object->id, claim);
	if (!object->endpoints && object->n > 0 && object->v[0].kind == OBJECT_SLICE)
		map_set(&round->sliced, slice_service_key(object->v[0].slice), object->v);
}

static void collect_winners(struct round *round)
{
	const struct manifest_set *set = round->set;

	for (size_t i = 0; i < set->n_files; i++) {
		const struct manifest_file *file = set->files[i];

		for (size_t j = 0; j < file->n_notices; j++)
			notice(round, file->notices[j].severity, xstrdup(file->notices[j].text));
		for (size_t j = 0; j < file->n_objects; j++)
			collect_winner(round, file, &file->objects[j]);
	}
}

static void add_item(struct round *round, struct object object)
{
	struct manifest_items *items = &round->items[object.kind];

	if (object.kind == OBJECT_SERVICE_CIDR && !round->sink->service_cidrs)
		return;
	array_grow(&items->v, &items->capacity, items->n, sizeof(*items->v));
	items->v[items->n++] = object_ref(object);
}

/* Endpoints give way to EndpointSlices, as an API server's mirror of them would. */
static bool gives_way(struct round *round, const struct claim *claim)
{
	const struct manifest_object *object = claim->object;

	if (!object->endpoints || !object->n ||
	    !map_get(&round->sliced, slice_service_key(object->v[0].slice)))
		return false;
	notice(round, LOG_SEVERITY_INFO,
	       xasprintf("%s:%u: %s is left out: the Service has EndpointSlices", claim->file->path,
			 object->line, object->id));
	return true;
}

static int compare_items(const void *a, const void *b)
{
	return strcmp(object_key(*(const struct object *)a), object_key(*(const struct object *)b));
}

static void collect_wanted(struct round *round)
{
	struct claim *claim;
	size_t at = 0;

	while ((claim = map_next(&round->winners, &at)))
		for (size_t i = 0; !gives_way(round, claim) && i < claim->object->n; i++)
			add_item(round, claim->object->v[i]);
	for (size_t i = 0; i < ARRAY_SIZE(round->items); i++)
		if (round->items[i].n)
			qsort(round->items[i].v, round->items[i].n, sizeof(struct object),
			      compare_items);
}

static void remove_old(const struct round *round, enum object_kind kind)
{
	const struct manifest_items *old = &round->set->items[kind], *wanted = &round->items[kind];
	size_t j = 0;

	for (size_t i = 0; i < old->n; i++) {
		const char *key = object_key(old->v[i]);

		while (j < wanted->n && strcmp(object_key(wanted->v[j]), key) < 0)
			j++;
		if (j == wanted->n || !streq(object_key(wanted->v[j]), key))
			round->sink->remove(round->sink->arg, kind, key);
	}
}

static void set_new(const struct round *round, enum object_kind kind)
{
	const struct manifest_items *old = &round->set->items[kind], *wanted = &round->items[kind];
	size_t i = 0;

	for (size_t j = 0; j < wanted->n; j++) {
		const char *key = object_key(wanted->v[j]);

		while (i < old->n && strcmp(object_key(old->v[i]), key) < 0)
			i++;
		if (i == old->n || !streq(object_key(old->v[i]), key) ||
		    !object_equal(old->v[i], wanted->v[j]))
			round->sink->set(round->sink->arg, object_ref(wanted->v[j]));
	}
}

void manifest_set_apply(struct manifest_set *set, const struct source_sink *sink,
			manifests_report_fn *report, void *report_arg)
{
	struct round round = {.set = set, .sink = sink, .report = report, .report_arg = report_arg};

	collect_winners(&round);
	collect_wanted(&round);
	remove_old(&round, OBJECT_NODE);
	set_new(&round, OBJECT_NODE);
	remove_old(&round, OBJECT_SERVICE_CIDR);
	set_new(&round, OBJECT_SERVICE_CIDR);
	remove_old(&round, OBJECT_SLICE);
	remove_old(&round, OBJECT_SERVICE);
	set_new(&round, OBJECT_SERVICE);
	set_new(&round, OBJECT_SLICE);
	for (size_t i = 0; i < ARRAY_SIZE(set->items); i++) {
		items_done(&set->items[i]);
		set->items[i] = round.items[i];
	}
	map_free_values(&set->notices);
	set->notices = round.notices;
	map_free_values(&round.winners);
	map_done(&round.sliced);
}
