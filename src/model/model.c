/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"

/*
 * A record holds all that is known under one Service key: the Service, and for each family the
 * slices that name it and the lists merged from them. It exists as long as any of these does, or a
 * change is pending, because slices may come before their Service and stay behind it.
 *
 * Service and slices are the newest; lists are as of the last model_take_changes(). A record has a
 * `pending` while its family has something to look at: it keeps the Service that the family last
 * took, to see whether a change was taken back. All of a family stand in one array, which is
 * released as a whole: at the start there is one for each service, and as many gaps between what
 * stays would be of little use to anyone. Slices are not compared with what was taken:
 * one that changes and changes back costs one look at its service, where keeping the old ones would
 * cost memory.
 *
 * Every call costs as much as the service concerned is large, whatever the cluster; the number of
 * endpoints in use is kept up to date for the same reason.
 */

struct pending {
	struct record *record;
	struct service *taken; /* last taken, or NULL; only with service_changed */
	int64_t *triggers;
	size_t n_triggers, triggers_capacity;
	bool service_changed;
	bool slices_changed;
};

struct share {
	struct slice *slices; /* a chain */
	union {               /* most services have one port */
		struct endpoints *only;
		struct endpoints **many;
	};
	uint32_t n_lists;
	uint32_t pending; /* which of tracker.pending, counted from 1; 0: nothing */
};

struct record {
	struct service *service; /* NULL: none known */
	struct share share[FAMILY_COUNT];
	char key[];
};

struct tracker {
	struct pending *pending; /* in no order */
	size_t n_pending, capacity;
	size_t services, slices; /* changes of each kind, for model_pending_*() */
	size_t endpoints;        /* for model_count_endpoints() */
	bool ignored;            /* by model_ignore_family(): all else is empty */
};

struct model {
	char *node_name;
	int64_t start_time_ns;
	struct node *node;
	struct map records; /* by Service key */
	struct map slices;  /* struct slice by slice key */
	struct tracker tracker[FAMILY_COUNT];
	struct service_cidr_set cidrs;
};

struct model *model_new(const char *node_name, int64_t start_time_ns)
{
	struct model *model = xcalloc(1, sizeof(*model));

	model->node_name = xstrdup(node_name);
	model->start_time_ns = start_time_ns;
	return model;
}

static struct endpoints *const *lists_of(const struct share *share)
{
	return share->n_lists == 1 ? &share->only : share->many;
}

static void free_lists(struct share *share)
{
	for (size_t i = 0; i < share->n_lists; i++)
		endpoints_unref(lists_of(share)[i]);
	if (share->n_lists > 1)
		free(share->many);
	share->many = NULL;
	share->n_lists = 0;
}

static struct endpoints *find_list(const struct share *share, const char *port_name,
				   enum protocol protocol)
{
	return endpoints_find(lists_of(share), share->n_lists, port_name, protocol);
}

static void pending_done(struct pending *pending)
{
	service_unref(pending->taken);
	free(pending->triggers);
}

static void forget_pending(struct tracker *tracker)
{
	for (size_t i = 0; i < tracker->n_pending; i++)
		pending_done(&tracker->pending[i]);
	free(tracker->pending);
	tracker->pending = NULL;
	tracker->n_pending = tracker->capacity = 0;
	tracker->services = tracker->slices = 0;
}

static void share_done(struct share *share)
{
	struct slice *slice, *next;

	for (slice = share->slices; slice; slice = next) {
		next = slice->next;
		slice_unref(slice);
	}
	free_lists(share);
	*share = (struct share){0};
}

static void free_record(struct record *record)
{
	service_unref(record->service);
	for (size_t i = 0; i < FAMILY_COUNT; i++)
		share_done(&record->share[i]);
	free(record);
}

struct model *model_free(struct model *model)
{
	struct record *record;
	size_t at = 0;

	if (!model)
		return NULL;
	while ((record = map_next(&model->records, &at)))
		free_record(record);
	map_done(&model->records);
	map_done(&model->slices);
	for (size_t i = 0; i < FAMILY_COUNT; i++)
		forget_pending(&model->tracker[i]);
	service_cidr_set_done(&model->cidrs);
	node_unref(model->node);
	free(model->node_name);
	free(model);
	return NULL;
}

const char *model_node_name(const struct model *model)
{
	return model->node_name;
}

static struct record *need_record(struct model *model, const char *key)
{
	struct record *record = map_get(&model->records, key);

	if (!record) {
		size_t n = strlen(key) + 1;

		record = xcalloc(1, sizeof(*record) + n);
		memcpy(record->key, key, n);
		map_set(&model->records, record->key, record);
	}
	return record;
}

/* Forgets a record that holds nothing any more. */
static void drop_record_if_empty(struct model *model, struct record *record)
{
	if (record->service)
		return;
	for (size_t i = 0; i < FAMILY_COUNT; i++) {
		const struct share *share = &record->share[i];

		if (share->slices || share->n_lists || share->pending)
			return;
	}
	map_remove(&model->records, record->key);
	free_record(record);
}

void model_ignore_family(struct model *model, enum family family)
{
	struct record *record;
	size_t at = 0;

	while ((record = map_next(&model->records, &at))) {
		struct share *share = &record->share[family];

		for (const struct slice *slice = share->slices; slice; slice = slice->next)
			map_remove(&model->slices, slice_key(slice));
		share_done(share);
		drop_record_if_empty(model, record);
	}
	forget_pending(&model->tracker[family]);
	model->tracker[family] = (struct tracker){.ignored = true};
}

/* Entries of the lists that stand for a port of the Service. */
static size_t count_endpoints(const struct record *record, enum family family)
{
	const struct share *share = &record->share[family];
	const struct service *service = record->service;
	size_t n = 0;

	if (!service_in_family(service, family))
		return 0;
	for (size_t i = 0; i < service->n_ports; i++) {
		const struct service_port *port = &service->ports[i];
		const struct endpoints *list = find_list(share, port->name, port->protocol);

		n += list ? list->n : 0;
	}
	return n;
}

/* NULL: nothing. Good until another is added or dropped. */
static struct pending *find_pending(const struct model *model, const struct record *record,
				    enum family family)
{
	uint32_t number = record->share[family].pending;

	assert(number == 0 || model->tracker[family].pending);
	return number ? &model->tracker[family].pending[number - 1] : NULL;
}

static struct pending *need_pending(struct model *model, struct record *record, enum family family)
{
	struct tracker *tracker = &model->tracker[family];
	struct pending *pending = find_pending(model, record, family);

	if (pending)
		return pending;
	array_grow(&tracker->pending, &tracker->capacity, tracker->n_pending, sizeof(*pending));
	pending = &tracker->pending[tracker->n_pending++];
	*pending = (struct pending){.record = record};
	record->share[family].pending = (uint32_t)tracker->n_pending;
	return pending;
}

/* The last one moves into the gap. */
static void drop_pending_if_empty(struct model *model, struct record *record, enum family family)
{
	struct tracker *tracker = &model->tracker[family];
	struct pending *pending = find_pending(model, record, family);

	if (!pending || pending->service_changed || pending->slices_changed)
		return;
	pending_done(pending);
	*pending = tracker->pending[--tracker->n_pending];
	pending->record->share[family].pending = record->share[family].pending;
	record->share[family].pending = 0;
}

/* Notes for one family that `newest` is about to replace the record's Service. */
static void track_service(struct model *model, struct record *record, enum family family,
			  const struct service *newest)
{
	struct pending *pending = find_pending(model, record, family);
	bool noted = pending && pending->service_changed;
	const struct service *taken = noted ? pending->taken : record->service;
	bool changed = !service_equal(taken, newest, family);

	if (changed == noted || model->tracker[family].ignored)
		return;
	pending = need_pending(model, record, family);
	pending->service_changed = changed;
	if (changed) {
		pending->taken = record->service ? service_ref(record->service) : NULL;
		model->tracker[family].services++;
	} else {
		pending->taken = service_unref(pending->taken);
		model->tracker[family].services--;
	}
	drop_pending_if_empty(model, record, family);
}

/* Takes over the reference; NULL: the Service is gone. */
static unsigned int replace_service(struct model *model, struct record *record,
				    struct service *newest)
{
	struct service *old = record->service;
	unsigned int result = 0;

	for (size_t i = 0; i < FAMILY_COUNT; i++) {
		if (service_in_family(old, i) || service_in_family(newest, i))
			result |= 1U << i;
		track_service(model, record, i, newest);
		model->tracker[i].endpoints -= count_endpoints(record, i);
	}
	record->service = newest;
	for (size_t i = 0; i < FAMILY_COUNT; i++) {
		model->tracker[i].endpoints += count_endpoints(record, i);
		if (!model_has_changes(model, i))
			result &= ~(1U << i);
	}
	service_unref(old);
	return result;
}

unsigned int model_set_service(struct model *model, struct service *service)
{
	return replace_service(model, need_record(model, service->key), service);
}

unsigned int model_remove_service(struct model *model, const char *key)
{
	struct record *record = map_get(&model->records, key);
	unsigned int result;

	if (!record || !record->service)
		return 0;
	result = replace_service(model, record, NULL);
	drop_record_if_empty(model, record);
	return result;
}

static struct pending *track_slice(struct model *model, struct record *record, enum family family)
{
	struct pending *pending = need_pending(model, record, family);

	pending->slices_changed = true;
	model->tracker[family].slices++;
	return pending;
}

static void unlink_slice(struct model *model, const struct slice *slice)
{
	struct record *record = map_get(&model->records, slice_service_key(slice));
	struct slice **link = &record->share[slice->family].slices;

	while (*link != slice)
		link = &(*link)->next;
	*link = slice->next;
}

/* The times of earlier changes say nothing about a removal: they go. */
static void remove_slice(struct model *model, struct slice *slice)
{
	struct record *record = map_get(&model->records, slice_service_key(slice));

	track_slice(model, record, slice->family)->n_triggers = 0;
	unlink_slice(model, slice);
	map_remove(&model->slices, slice_key(slice));
	slice_unref(slice);
}

static void add_slice(struct model *model, struct slice *slice)
{
	struct record *record = need_record(model, slice_service_key(slice));
	struct pending *pending = track_slice(model, record, slice->family);

	slice->next = record->share[slice->family].slices;
	record->share[slice->family].slices = slice;
	map_set(&model->slices, slice_key(slice), slice);
	if (slice->trigger_time_ns == 0 || slice->trigger_time_ns <= model->start_time_ns)
		return;
	array_grow(&pending->triggers, &pending->triggers_capacity, pending->n_triggers,
		   sizeof(*pending->triggers));
	pending->triggers[pending->n_triggers++] = slice->trigger_time_ns;
}

static bool same_owner(const struct slice *a, const struct slice *b)
{
	return a->family == b->family && streq(slice_service_key(a), slice_service_key(b));
}

/* Takes over the reference. */
static unsigned int replace_slice(struct model *model, struct slice *slice)
{
	struct slice *old = map_get(&model->slices, slice_key(slice));
	unsigned int result = 1U << slice->family;

	if (old && slice_equal(old, slice)) {
		slice_unref(slice);
		return 0;
	}
	if (old && !same_owner(old, slice)) {
		result |= 1U << old->family;
		remove_slice(model, old);
		old = NULL;
	}
	if (old)
		unlink_slice(model, old);
	add_slice(model, slice); /* takes the place of old in the map */
	slice_unref(old);
	return result;
}

unsigned int model_set_slice(struct model *model, struct slice *slice)
{
	unsigned int result;

	if (!model->tracker[slice->family].ignored)
		return replace_slice(model, slice);
	result = model_remove_slice(model, slice_key(slice)); /* it may have been the other's */
	slice_unref(slice);
	return result;
}

unsigned int model_remove_slice(struct model *model, const char *key)
{
	struct slice *slice = map_get(&model->slices, key);
	unsigned int result;

	if (!slice)
		return 0;
	result = 1U << slice->family;
	remove_slice(model, slice);
	return result;
}

bool model_set_node(struct model *model, struct node *node)
{
	bool zone_changed = !streq(model_zone(model), node ? node->zone : "");

	node_unref(model->node);
	model->node = node;
	return zone_changed;
}

unsigned int model_set_service_cidr(struct model *model, struct service_cidr *cidr)
{
	return service_cidr_set_put(&model->cidrs, cidr);
}

unsigned int model_remove_service_cidr(struct model *model, const char *name)
{
	return service_cidr_set_remove(&model->cidrs, name);
}

unsigned int model_set_object(struct model *model, struct object object)
{
	switch (object.kind) {
	case OBJECT_SERVICE:
		return model_set_service(model, object.service);
	case OBJECT_SLICE:
		return model_set_slice(model, object.slice);
	case OBJECT_SERVICE_CIDR:
		return model_set_service_cidr(model, object.cidr);
	default:
		model_set_node(model, object.node);
		return 0;
	}
}

unsigned int model_remove_object(struct model *model, enum object_kind kind, const char *key)
{
	switch (kind) {
	case OBJECT_SERVICE:
		return model_remove_service(model, key);
	case OBJECT_SLICE:
		return model_remove_slice(model, key);
	case OBJECT_SERVICE_CIDR:
		return model_remove_service_cidr(model, key);
	default:
		return 0;
	}
}

const struct prefix *model_service_cidrs(const struct model *model, enum family family,
					 size_t *ret_n)
{
	*ret_n = model->cidrs.n_ranges[family];
	return model->cidrs.ranges[family];
}

const struct node *model_node(const struct model *model)
{
	return model->node;
}

const char *model_zone(const struct model *model)
{
	return model->node ? model->node->zone : "";
}

struct service *model_service(const struct model *model, const char *key)
{
	const struct record *record = map_get(&model->records, key);

	return record ? record->service : NULL;
}

struct service *model_next_service(const struct model *model, size_t *at)
{
	const struct record *record;

	while ((record = map_next(&model->records, at)))
		if (record->service)
			return record->service;
	return NULL;
}

struct endpoints *model_endpoints(const struct model *model, enum family family, const char *key,
				  const char *port_name, enum protocol protocol)
{
	const struct record *record = map_get(&model->records, key);
	const struct share *share = record ? &record->share[family] : NULL;

	return share ? find_list(share, port_name, protocol) : NULL;
}

size_t model_count_endpoints(const struct model *model, enum family family)
{
	return model->tracker[family].endpoints;
}

/* Has the Service an endpoint in a slice that is not among these? */
static bool has_endpoints(const struct record *record, const struct map *without)
{
	for (size_t i = 0; i < FAMILY_COUNT; i++)
		for (const struct slice *s = record->share[i].slices; s; s = s->next)
			if (s->n_endpoints > 0 && !map_get(without, slice_key(s)))
				return true;
	return false;
}

static void fill_key_set(struct map *set, const char *const *keys, size_t n)
{
	static char any;

	for (size_t i = 0; i < n; i++)
		map_set(set, keys[i], &any);
}

void model_count_stranded(const struct model *model, const struct model_slice_change *change,
			  size_t *ret_known, size_t *ret_stranded)
{
	const struct record *record;
	struct map lost = {0}, added = {0};
	size_t at = 0;

	fill_key_set(&lost, change->lost, change->n_lost);
	fill_key_set(&added, change->added, change->n_added);
	*ret_known = *ret_stranded = 0;
	while ((record = map_next(&model->records, &at))) {
		if (!record->service || !has_endpoints(record, &added))
			continue;
		*ret_known += 1;
		*ret_stranded += !has_endpoints(record, &lost);
	}
	map_done(&lost);
	map_done(&added);
}

bool model_ignores_family(const struct model *model, enum family family)
{
	return model->tracker[family].ignored;
}

bool model_has_changes(const struct model *model, enum family family)
{
	return model->tracker[family].n_pending > 0;
}

size_t model_pending_services(const struct model *model, enum family family)
{
	return model->tracker[family].services;
}

size_t model_pending_slices(const struct model *model, enum family family)
{
	return model->tracker[family].slices;
}

static bool has_udp_list(const struct share *share)
{
	for (size_t i = 0; i < share->n_lists; i++)
		if (lists_of(share)[i]->protocol == PROTOCOL_UDP)
			return true;
	return false;
}

static void merge_lists(struct share *share)
{
	size_t n_lists;
	struct endpoints **lists = endpoints_merge(share->slices, &n_lists);

	share->n_lists = (uint32_t)n_lists;
	if (n_lists > 1) {
		share->many = lists;
		return;
	}
	share->only = n_lists == 1 ? lists[0] : NULL;
	free(lists);
}

/* Merges the lists of one service anew; true when it has, or had, endpoints of a UDP port. */
static bool rebuild(struct model *model, struct record *record, enum family family)
{
	struct share *share = &record->share[family];
	bool udp = has_udp_list(share);

	model->tracker[family].endpoints -= count_endpoints(record, family);
	free_lists(share);
	if (share->slices)
		merge_lists(share);
	model->tracker[family].endpoints += count_endpoints(record, family);
	return udp || has_udp_list(share);
}

static int compare_pending(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	return strcmp(x->record->key, y->record->key);
}

/* One allocation for all keys, however many. */
static void make_room(const struct tracker *tracker, struct model_changes *changes)
{
	size_t keys = 0, n_triggers = 0;

	for (size_t i = 0; i < tracker->n_pending; i++) {
		keys += strlen(tracker->pending[i].record->key) + 1;
		n_triggers += tracker->pending[i].n_triggers;
	}
	changes->arena = arena_new(tracker->n_pending * sizeof(*changes->services) +
				   n_triggers * sizeof(*changes->triggers) + keys);
	changes->services =
		arena_array(changes->arena, tracker->n_pending, sizeof(*changes->services));
	changes->triggers = arena_array(changes->arena, n_triggers, sizeof(*changes->triggers));
}

static void take_pending(struct model *model, enum family family, const struct pending *pending,
			 struct model_changes *changes)
{
	struct record *record = pending->record;
	const char *key = arena_strdup(changes->arena, record->key);

	changes->services[changes->n_services++] = key;
	for (size_t i = 0; i < pending->n_triggers; i++)
		changes->triggers[changes->n_triggers++] =
			(struct model_trigger){.service = key, .time_ns = pending->triggers[i]};
	if (pending->slices_changed && rebuild(model, record, family))
		changes->udp_endpoints_changed = true;
	record->share[family].pending = 0;
	drop_record_if_empty(model, record);
}

void model_take_changes(struct model *model, enum family family, struct model_changes *ret)
{
	struct tracker *tracker = &model->tracker[family];
	struct model_changes changes = {0};

	if (tracker->n_pending > 0)
		qsort(tracker->pending, tracker->n_pending, sizeof(*tracker->pending),
		      compare_pending);
	make_room(tracker, &changes);
	for (size_t i = 0; i < tracker->n_pending; i++)
		take_pending(model, family, &tracker->pending[i], &changes);
	forget_pending(tracker);
	*ret = changes;
}

void model_changes_done(struct model_changes *changes)
{
	arena_free(changes->arena);
	*changes = (struct model_changes){0};
}

/* -- an excerpt */

static void copy_record(struct model *to, const struct record *record)
{
	model_set_service(to, service_ref(record->service));
	for (size_t i = 0; i < FAMILY_COUNT; i++)
		for (const struct slice *s = record->share[i].slices; s; s = s->next)
			replace_slice(to, slice_copy(s));
}

struct model *model_excerpt(const struct model *model, const char *const *keys, size_t n_keys)
{
	struct model *excerpt = model_new(model->node_name, model->start_time_ns);
	struct service_cidr *cidr;
	size_t at = 0;

	if (model->node)
		model_set_node(excerpt, node_ref(model->node));
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		excerpt->tracker[family].ignored = model->tracker[family].ignored;
	while ((cidr = map_next(&model->cidrs.objects, &at)))
		model_set_service_cidr(excerpt, service_cidr_ref(cidr));
	for (size_t i = 0; i < n_keys; i++) {
		const struct record *record = map_get(&model->records, keys[i]);

		if (record && record->service)
			copy_record(excerpt, record);
	}
	return excerpt;
}

/* -- */

static int compare_addrs(const void *a, const void *b)
{
	return addr_compare(a, b);
}

size_t model_local_ready_addresses(const struct model *model, enum family family, const char *key)
{
	const unsigned int wanted = ENDPOINT_LOCAL | ENDPOINT_READY;
	const struct record *record = map_get(&model->records, key);
	const struct share *share = record ? &record->share[family] : NULL;
	cleanup_free struct addr *addrs = NULL;
	size_t n = 0, capacity = 0, distinct = 0;

	for (size_t i = 0; share && i < share->n_lists; i++) {
		const struct endpoints *list = lists_of(share)[i];

		for (size_t j = 0; j < list->n; j++) {
			const struct endpoint *endpoint = &list->v[j];

			if ((endpoint->flags & wanted) != wanted)
				continue;
			array_grow(&addrs, &capacity, n, sizeof(*addrs));
			addrs[n++] = endpoint->addr;
		}
	}
	if (n > 0)
		qsort(addrs, n, sizeof(*addrs), compare_addrs);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || !addr_equal(&addrs[i], &addrs[i - 1]))
			distinct++;
	return distinct;
}
