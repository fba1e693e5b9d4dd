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
	struct manifest_items services, slices, cidrs;
	struct node *node;
};

struct claim {
	const struct manifest_file *file;
	const struct manifest_object *object;
};

/* How the diff handles a kind of object. */
struct item_kind {
	void *(*ref)(void *object);
	void (*unref)(void *object);
	bool (*equal)(const void *a, const void *b);
	void (*set)(const struct source_sink *sink, void *object);
	void (*remove)(const struct source_sink *sink, const char *key);
};

static void *ref_service(void *object)
{
	return service_ref(object);
}

static void unref_service(void *object)
{
	service_unref(object);
}

static bool equal_services(const void *a, const void *b)
{
	return service_equal(a, b, FAMILY_IPV4) && service_equal(a, b, FAMILY_IPV6);
}

static void set_service(const struct source_sink *sink, void *object)
{
	sink->set_service(sink->arg, object);
}

static void remove_service(const struct source_sink *sink, const char *key)
{
	sink->remove_service(sink->arg, key);
}

static void *ref_slice(void *object)
{
	return slice_ref(object);
}

static void unref_slice(void *object)
{
	slice_unref(object);
}

static bool equal_slices(const void *a, const void *b)
{
	return slice_equal(a, b);
}

static void set_slice(const struct source_sink *sink, void *object)
{
	sink->set_slice(sink->arg, object);
}

static void remove_slice(const struct source_sink *sink, const char *key)
{
	sink->remove_slice(sink->arg, key);
}

static void *ref_cidr(void *object)
{
	return service_cidr_ref(object);
}

static void unref_cidr(void *object)
{
	service_cidr_unref(object);
}

static bool equal_cidrs(const void *a, const void *b)
{
	return service_cidr_equal(a, b);
}

static void set_cidr(const struct source_sink *sink, void *object)
{
	if (sink->set_service_cidr)
		sink->set_service_cidr(sink->arg, object);
	else
		service_cidr_unref(object);
}

static void remove_cidr(const struct source_sink *sink, const char *name)
{
	if (sink->remove_service_cidr)
		sink->remove_service_cidr(sink->arg, name);
}

static const struct item_kind service_kind = {ref_service, unref_service, equal_services,
					      set_service, remove_service};
static const struct item_kind slice_kind = {ref_slice, unref_slice, equal_slices, set_slice,
					    remove_slice};
static const struct item_kind cidr_kind = {ref_cidr, unref_cidr, equal_cidrs, set_cidr,
					   remove_cidr};

static void items_done(struct manifest_items *items, const struct item_kind *kind)
{
	for (size_t i = 0; i < items->n; i++)
		kind->unref(items->v[i].object);
	free(items->v);
	*items = (struct manifest_items){0};
}

static void notices_done(struct map *notices)
{
	size_t at = 0;
	char *text;

	while ((text = map_next(notices, &at)))
		free(text);
	map_done(notices);
	*notices = (struct map){0};
}

void manifest_set_done(struct manifest_set *set)
{
	for (size_t i = 0; i < set->n_files; i++)
		manifest_file_free(set->files[i]);
	free(set->files);
	items_done(&set->services, &service_kind);
	items_done(&set->slices, &slice_kind);
	items_done(&set->cidrs, &cidr_kind);
	node_unref(set->node);
	notices_done(&set->notices);
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
	if (object->kind == MANIFEST_SLICE && object->n_slices)
		map_set(&round->sliced, slice_service_key(object->slices[0]), object->slices[0]);
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

static void add_item(struct manifest_items *items, const char *key, void *object)
{
	array_grow(&items->v, &items->capacity, items->n, sizeof(*items->v));
	items->v[items->n++] = (struct manifest_item){.key = key, .object = object};
}

/* Endpoints give way to EndpointSlices, as an API server's mirror of them would. */
static bool gives_way(struct round *round, const struct claim *claim)
{
	const struct manifest_object *object = claim->object;

	if (object->kind != MANIFEST_ENDPOINTS || !object->n_slices ||
	    !map_get(&round->sliced, slice_service_key(object->slices[0])))
		return false;
	notice(round, LOG_SEVERITY_INFO,
	       xasprintf("%s:%u: %s is left out: the Service has EndpointSlices", claim->file->path,
			 object->line, object->id));
	return true;
}

static int compare_items(const void *a, const void *b)
{
	return strcmp(((const struct manifest_item *)a)->key,
		      ((const struct manifest_item *)b)->key);
}

static void sort(struct manifest_items *items)
{
	if (items->n)
		qsort(items->v, items->n, sizeof(*items->v), compare_items);
}

static void collect_wanted(struct round *round)
{
	struct claim *claim;
	size_t at = 0;

	while ((claim = map_next(&round->winners, &at))) {
		const struct manifest_object *object = claim->object;

		if (object->service)
			add_item(&round->services, object->service->key,
				 service_ref(object->service));
		if (object->node)
			round->node = node_ref(object->node);
		if (object->cidr)
			add_item(&round->cidrs, object->cidr->name, service_cidr_ref(object->cidr));
		for (size_t i = 0; !gives_way(round, claim) && i < object->n_slices; i++)
			add_item(&round->slices, slice_key(object->slices[i]),
				 slice_ref(object->slices[i]));
	}
	sort(&round->services);
	sort(&round->slices);
	sort(&round->cidrs);
}

static void remove_old(const struct round *round, const struct manifest_items *old,
		       const struct manifest_items *wanted, const struct item_kind *kind)
{
	size_t j = 0;

	for (size_t i = 0; i < old->n; i++) {
		while (j < wanted->n && strcmp(wanted->v[j].key, old->v[i].key) < 0)
			j++;
		if (j == wanted->n || !streq(wanted->v[j].key, old->v[i].key))
			kind->remove(round->sink, old->v[i].key);
	}
}

static void set_new(const struct round *round, const struct manifest_items *old,
		    const struct manifest_items *wanted, const struct item_kind *kind)
{
	size_t i = 0;

	for (size_t j = 0; j < wanted->n; j++) {
		while (i < old->n && strcmp(old->v[i].key, wanted->v[j].key) < 0)
			i++;
		if (i == old->n || !streq(old->v[i].key, wanted->v[j].key) ||
		    !kind->equal(old->v[i].object, wanted->v[j].object))
			kind->set(round->sink, kind->ref(wanted->v[j].object));
	}
}

static void set_node(struct round *round)
{
	struct node **old = &round->set->node;
	const struct source_sink *sink = round->sink;

	if (!*old != !round->node || (*old && !node_equal(*old, round->node)))
		sink->set_node(sink->arg, round->node ? node_ref(round->node) : NULL);
	node_unref(*old);
	*old = round->node;
}

static void round_done(struct round *round)
{
	struct claim *claim;
	size_t at = 0;

	while ((claim = map_next(&round->winners, &at)))
		free(claim);
	map_done(&round->winners);
	map_done(&round->sliced);
}

void manifest_set_apply(struct manifest_set *set, const struct source_sink *sink,
			manifests_report_fn *report, void *report_arg)
{
	struct round round = {.set = set, .sink = sink, .report = report, .report_arg = report_arg};

	collect_winners(&round);
	collect_wanted(&round);
	set_node(&round);
	remove_old(&round, &set->cidrs, &round.cidrs, &cidr_kind);
	set_new(&round, &set->cidrs, &round.cidrs, &cidr_kind);
	remove_old(&round, &set->slices, &round.slices, &slice_kind);
	remove_old(&round, &set->services, &round.services, &service_kind);
	set_new(&round, &set->services, &round.services, &service_kind);
	set_new(&round, &set->slices, &round.slices, &slice_kind);
	items_done(&set->services, &service_kind);
	items_done(&set->slices, &slice_kind);
	items_done(&set->cidrs, &cidr_kind);
	set->cidrs = round.cidrs;
	set->services = round.services;
	set->slices = round.slices;
	notices_done(&set->notices);
	set->notices = round.notices;
	round_done(&round);
}
