/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan_store.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "plan/withheld.h"

/*
 * A record is there while its Service is wanted, or while a reader has something to do about it. Each reader has a
 * list of records at which it has to look, and a bit in them that keeps them from being listed twice. Records leave
 * the list when the reader has applied the wanted plan, that very object: so whatever happens between take and
 * commit leaves them there, and a failure needs to do nothing.
 */

#define READERS_MAX 8

struct plan_record {
	struct service_plan *wanted;    /* NULL: none */
	bool fresh;                     /* planned by the update that is under way */
	uint8_t pending;                /* readers that have it in their list, as bits */
	struct service_plan *applied[]; /* by each reader; behind them is the key */
};

/* A Service that the update under way has planned. */
struct planned {
	struct plan_record *record;
	struct service_plan *old;
};

struct plan_store {
	const struct settings *settings;
	struct model *model;
	struct map records;
	size_t n_readers, n_open;
	struct plan_reader *readers[READERS_MAX]; /* NULL: not open */
	bool all_due;                             /* plans are missing, or of another zone */
	struct node *node;                        /* as of the last update; NULL: not known */

	struct planned *planned; /* by the update under way */
	size_t n_planned, planned_capacity;

	struct address_owners owners; /* of what wanted plans ask for */
	struct conflicts conflicts;
	conflict_fn *on_conflict; /* or NULL */
	void *conflict_arg;
	size_t no_local_internal, no_local_external;
};

struct plan_reader {
	struct plan_store *store;
	size_t number;
	struct plan_record **pending;
	size_t n_pending, pending_capacity;
	struct plan_change
		*taken; /* of a delta that has not ended: changes first, renewed ones last */
	struct plan_delta delta;
	struct prefix *service_cidrs; /* the delta's: the model may change while it is applied */
};

/* -- records */

static size_t record_size(const struct plan_store *store)
{
	return sizeof(struct plan_record) + store->n_readers * sizeof(struct service_plan *);
}

static const char *key_of(const struct plan_store *store, const struct plan_record *record)
{
	return (const char *)record + record_size(store);
}

static void drop_if_gone(struct plan_store *store, struct plan_record *record)
{
	if (record->wanted || record->pending)
		return;
	map_remove(&store->records, key_of(store, record));
	free(record);
}

static void note_pending(struct plan_reader *reader, struct plan_record *record)
{
	unsigned int bit = 1u << reader->number;

	if (record->pending & bit)
		return;
	array_grow(&reader->pending, &reader->pending_capacity, reader->n_pending,
		   sizeof(struct plan_record *));
	reader->pending[reader->n_pending++] = record;
	record->pending = (uint8_t)(record->pending | bit);
}

/* -- planning */

static void count_no_local(struct plan_store *store, const struct service_plan *plan, size_t one)
{
	for (size_t i = 0; plan && i < plan->n_ports; i++) {
		store->no_local_internal += plan->ports[i].internal == PLAN_DROP ? one : 0;
		store->no_local_external += plan->ports[i].external == PLAN_DROP ? one : 0;
	}
}

/* Were they made from the same objects, with the same outcome? */
static bool is_same(const struct service_plan *old, const struct service_plan *new)
{
	if (!old || !new || old->service != new->service || !service_plan_equal(old, new))
		return false;
	for (size_t i = 0; i < new->n_ports; i++)
		if (old->ports[i].endpoints != new->ports[i].endpoints)
			return false;
	return true;
}

static void set_wanted(struct plan_store *store, struct plan_record *record,
		       struct service_plan *plan)
{
	array_grow(&store->planned, &store->planned_capacity, store->n_planned,
		   sizeof(*store->planned));
	store->planned[store->n_planned++] = (struct planned){record, record->wanted};
	count_no_local(store, record->wanted, (size_t)-1);
	count_no_local(store, plan, 1);
	record->wanted = plan;
	record->fresh = true;
}

static void plan_key(struct plan_store *store, const char *key)
{
	struct service_plan *plan = plan_service(store->settings, store->model, key);
	struct plan_record *record = map_get(&store->records, key);
	struct service_plan *old = record ? record->wanted : NULL;

	if (plan && old && plan->service == old->service)
		plan->withheld = withheld_copy(old->withheld);
	if ((!plan && !old) || is_same(old, plan)) {
		service_plan_unref(plan);
		return;
	}
	if (!record)
		record = map_ensure(&store->records, key, record_size(store), record_size(store));
	set_wanted(store, record, plan);
}

/* The order of keys is that of what is told about them. */
static int compare_planned(const void *a, const void *b)
{
	const struct planned *x = a, *y = b;

	return strcmp((x->old ? x->old : x->record->wanted)->key,
		      (y->old ? y->old : y->record->wanted)->key);
}

static void plan_all(struct plan_store *store, const struct model_changes *changes)
{
	const struct service *service;
	size_t at = 0;

	while ((service = model_next_service(store->model, &at)))
		plan_key(store, service->key);
	for (size_t i = 0; i < changes->n_services; i++)
		if (!model_service(store->model, changes->services[i]))
			plan_key(store, changes->services[i]);
	if (store->n_planned > 1)
		qsort(store->planned, store->n_planned, sizeof(*store->planned), compare_planned);
	store->all_due = false;
}

static void plan_changed(struct plan_store *store, const struct model_changes *changes)
{
	for (size_t i = 0; i < changes->n_services; i++)
		plan_key(store, changes->services[i]);
}

/* -- who owns what */

struct judgement {
	struct plan_store *store;
	struct service_plan *plan; /* the one judged, if it is one alone */
	const struct destination *destination;
	const struct service *owner;
};

/* A plan of the Service that no reader has seen yet, of the same object: it is the one that `owners` knows. */
static struct service_plan *freshen(struct plan_store *store, struct plan_record *record)
{
	struct service_plan *plan;

	if (record->fresh)
		return record->wanted;
	plan = plan_service_object(store->settings, store->model, record->wanted->service);
	plan->withheld = withheld_copy(record->wanted->withheld);
	set_wanted(store, record, plan);
	return plan;
}

static void judge(void *arg, const struct service *service, bool external attr_unused,
		  bool balancer attr_unused)
{
	const struct judgement *judgement = arg;
	struct plan_record *record = map_get(&judgement->store->records, service->key);
	bool lost = service != judgement->owner;

	if (withheld_has(record->wanted->withheld, judgement->destination) != lost)
		withheld_set(&freshen(judgement->store, record)->withheld, judgement->destination,
			     lost);
}

/* All that ask for a destination that is no longer the same one's. */
static void judge_all(void *arg, const struct destination *destination)
{
	struct plan_store *store = arg;
	bool unused;
	struct judgement judgement = {
		.store = store,
		.destination = destination,
		.owner = address_owners_of(&store->owners, destination, &unused),
	};

	if (!destination->whole)
		address_owners_each(&store->owners, destination, judge, &judgement);
}

static void judge_own(void *arg, const struct destination *destination)
{
	const struct judgement *judgement = arg;
	bool unused;

	if (address_owners_of(&judgement->store->owners, destination, &unused) !=
	    judgement->plan->service)
		withheld_set(&judgement->plan->withheld, destination, true);
}

/* Is it another object that asks? */
static bool asks_anew(const struct planned *planned)
{
	const struct service_plan *old = planned->old, *new = planned->record->wanted;

	return !old || !new || old->service != new->service;
}

static void change_owners(struct plan_store *store, const struct planned *planned)
{
	if (!asks_anew(planned))
		return;
	if (planned->old)
		address_owners_remove(&store->owners, planned->old);
	if (planned->record->wanted)
		address_owners_add(&store->owners, planned->record->wanted);
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Those planned from `first` on; one whose new endpoints make no difference may be there already. */
static void add_changes(const struct plan_store *store, size_t first, struct model_changes *changes)
{
	size_t n = changes->n_services, room = n + store->n_planned - first;
	const char **services;

	if (room == n)
		return;
	services = arena_array(changes->arena, room, sizeof(*services));
	if (n > 0)
		memcpy(services, changes->services, n * sizeof(*services));
	for (size_t i = first; i < store->n_planned; i++) {
		const char *key = store->planned[i].record->wanted->key;

		if (n == 0 || !bsearch(&key, changes->services, n, sizeof(key), compare_keys))
			services[changes->n_services++] = arena_strdup(changes->arena, key);
	}
	qsort(services, changes->n_services, sizeof(*services), compare_keys);
	changes->services = services;
}

/* Adds to what was planned, and to the changes, those Services that get or lose what others ask for. */
static void settle_owners(struct plan_store *store, struct model_changes *changes)
{
	size_t n = store->n_planned;

	for (size_t i = 0; i < n; i++)
		change_owners(store, &store->planned[i]);
	for (size_t i = 0; i < n; i++) {
		const struct planned *planned = &store->planned[i];
		struct judgement judgement = {.store = store, .plan = planned->record->wanted};

		if (asks_anew(planned) && judgement.plan)
			destination_each(judgement.plan, judge_own, &judgement);
	}
	address_owners_each_moved(&store->owners, judge_all, store);
	add_changes(store, n, changes);
}

static void look_at_planned(struct plan_store *store, const struct conflicts_view *view)
{
	for (size_t i = 0; i < store->n_planned; i++)
		if (asks_anew(&store->planned[i]))
			conflicts_look(&store->conflicts, view, store->planned[i].old,
				       store->planned[i].record->wanted);
	conflicts_look_moved(&store->conflicts, view);
}

static void look_at_all(struct plan_store *store, const struct conflicts_view *view)
{
	const struct plan_record *record;
	size_t at = 0;

	conflicts_begin_all(&store->conflicts);
	while ((record = map_next(&store->records, &at)))
		conflicts_look_own(&store->conflicts, view, record->wanted);
	conflicts_end_all(&store->conflicts);
}

static void look_for_conflicts(struct plan_store *store, bool all)
{
	const struct conflicts_view view = {
		.owners = &store->owners,
		.node_addresses = store->node ? store->node->addresses : NULL,
		.n_node_addresses = store->node ? store->node->n_addresses : 0,
		.fn = store->on_conflict,
		.arg = store->conflict_arg,
	};

	if (all)
		look_at_all(store, &view);
	else
		look_at_planned(store, &view);
	address_owners_settle(&store->owners);
}

/* -- an update */

/* Notes the Node as it is now. True: it has other addresses. */
static bool note_node(struct plan_store *store)
{
	struct node *node = (struct node *)model_node(store->model), *old = store->node;
	bool moved;

	if (!node || node == old)
		return false;
	if (!streq(old ? old->zone : "", node->zone))
		store->all_due = true;
	moved = !old || old->n_addresses != node->n_addresses;
	for (size_t i = 0; !moved && i < node->n_addresses; i++)
		moved = !addr_equal(&old->addresses[i], &node->addresses[i]);
	store->node = node_ref(node);
	node_unref(old);
	return moved;
}

static void publish(struct plan_store *store)
{
	for (size_t i = 0; i < store->n_planned; i++) {
		struct plan_record *record = store->planned[i].record;

		record->fresh = false;
		for (size_t j = 0; j < store->n_readers; j++)
			if (store->readers[j])
				note_pending(store->readers[j], record);
		service_plan_unref(store->planned[i].old);
	}
	free(take(store->planned));
	store->n_planned = store->planned_capacity = 0;
}

void plan_store_update(struct plan_store *store, struct model_changes *ret)
{
	bool moved;

	model_take_changes(store->model, store->settings->family, ret);
	if (store->n_open == 0)
		return;
	moved = note_node(store) && store->records.count > 0;
	if (store->all_due)
		plan_all(store, ret);
	else
		plan_changed(store, ret);
	settle_owners(store, ret);
	look_for_conflicts(store, moved);
	publish(store);
}

void plan_store_take_only(struct model *model, enum family family)
{
	struct model_changes changes;

	model_take_changes(model, family, &changes);
	model_changes_done(&changes);
}

/* -- the store */

struct plan_store *plan_store_new(const struct settings *settings, struct model *model,
				  size_t n_readers)
{
	struct plan_store *store = xcalloc(1, sizeof(*store));

	assert(n_readers <= READERS_MAX);
	store->settings = settings;
	store->model = model;
	store->n_readers = n_readers;
	store->all_due = true;
	return store;
}

/* There is no reader any more. */
static void forget_plans(struct plan_store *store)
{
	struct plan_record *record;
	size_t at = 0;

	address_owners_done(&store->owners);
	conflicts_done(&store->conflicts);
	store->no_local_internal = store->no_local_external = 0;
	while ((record = map_next(&store->records, &at))) {
		service_plan_unref(record->wanted);
		free(record);
	}
	map_done(&store->records);
	store->all_due = true;
}

struct plan_store *plan_store_free(struct plan_store *store)
{
	if (!store)
		return NULL;
	assert(store->n_open == 0);
	node_unref(store->node);
	free(store);
	return NULL;
}

void plan_store_on_conflict(struct plan_store *store, conflict_fn *fn, void *arg)
{
	store->on_conflict = fn;
	store->conflict_arg = arg;
}

const struct service *plan_store_service(const struct plan_store *store, const char *key)
{
	const struct plan_record *record = map_get(&store->records, key);

	return record && record->wanted ? record->wanted->service : NULL;
}

const struct service *plan_store_owner(const struct plan_store *store,
				       const struct destination *destination)
{
	bool unused;

	return address_owners_of(&store->owners, destination, &unused);
}

const size_t *plan_store_conflicts(const struct plan_store *store)
{
	return store->conflicts.counts;
}

void plan_store_count_no_local(const struct plan_store *store, size_t *ret_internal,
			       size_t *ret_external)
{
	*ret_internal = store->no_local_internal;
	*ret_external = store->no_local_external;
}

/* -- readers */

struct plan_reader *plan_reader_new(struct plan_store *store)
{
	struct plan_reader *reader = xcalloc(1, sizeof(*reader));
	struct plan_record *record;
	size_t at = 0;

	assert(store->n_open < store->n_readers);
	reader->store = store;
	while (store->readers[reader->number])
		reader->number++;
	store->readers[reader->number] = reader;
	store->n_open++;
	while ((record = map_next(&store->records, &at)))
		note_pending(reader, record);
	return reader;
}

struct plan_reader *plan_reader_free(struct plan_reader *reader)
{
	struct plan_store *store;
	struct plan_record *record;
	size_t at = 0;

	if (!reader)
		return NULL;
	store = reader->store;
	plan_reader_fail(reader);
	while ((record = map_next(&store->records, &at))) {
		record->applied[reader->number] =
			service_plan_unref(record->applied[reader->number]);
		record->pending = (uint8_t)(record->pending & ~(1u << reader->number));
		drop_if_gone(store, record);
	}
	store->readers[reader->number] = NULL;
	if (--store->n_open == 0)
		forget_plans(store);
	free(reader->pending);
	free(reader);
	return NULL;
}

/* Strikes those off the list for which there is nothing to do. */
static void settle(struct plan_reader *reader)
{
	size_t n = 0;

	for (size_t i = 0; i < reader->n_pending; i++) {
		struct plan_record *record = reader->pending[i];

		if (record->applied[reader->number] != record->wanted) {
			reader->pending[n++] = record;
			continue;
		}
		record->pending = (uint8_t)(record->pending & ~(1u << reader->number));
		drop_if_gone(reader->store, record);
	}
	reader->n_pending = n;
	if (n > 0)
		return;
	free(take(
		reader->pending)); /* after the first delta it was as long as there are Services */
	reader->pending_capacity = 0;
}

/* Both ends of the array move towards each other. */
static void add_change(struct plan_reader *reader, struct plan_record *record, size_t *end)
{
	struct plan_delta *delta = &reader->delta;
	struct service_plan *applied = record->applied[reader->number];
	struct plan_change *change;

	if (!applied && !record->wanted)
		return;
	if (!delta->full && service_plan_equal(applied, record->wanted))
		change = &reader->taken[--*end];
	else
		change = &reader->taken[delta->n_changes++];
	*change = (struct plan_change){
		.key = key_of(reader->store, record),
		.applied = applied,
		.wanted = service_plan_ref(record->wanted),
		.record = record,
	};
}

static int compare_changes(const void *a, const void *b)
{
	const struct plan_change *x = a, *y = b;

	return strcmp(x->key, y->key);
}

static void copy_service_cidrs(struct plan_reader *reader)
{
	const struct plan_store *store = reader->store;
	struct plan_delta *delta = &reader->delta;
	const struct prefix *v =
		model_service_cidrs(store->model, store->settings->family, &delta->n_service_cidrs);
	size_t size = delta->n_service_cidrs * sizeof(*v);

	reader->service_cidrs = xmalloc(size + 1);
	if (size > 0)
		memcpy(reader->service_cidrs, v, size);
	delta->service_cidrs = reader->service_cidrs;
}

const struct plan_delta *plan_reader_take(struct plan_reader *reader, bool full)
{
	const struct plan_store *store = reader->store;
	enum family family = store->settings->family;
	struct plan_delta *delta = &reader->delta;
	struct plan_record *record;
	size_t n, end, at = 0;

	assert(!reader->taken);
	settle(reader);
	end = n = full ? store->records.count : reader->n_pending;
	reader->taken = xcalloc(n + 1, sizeof(*reader->taken));
	*delta = (struct plan_delta){.full = full, .changes = reader->taken};
	while (full && (record = map_next(&store->records, &at)))
		add_change(reader, record, &end);
	for (size_t i = 0; !full && i < reader->n_pending; i++)
		add_change(reader, reader->pending[i], &end);
	if (delta->n_changes > 1)
		qsort(reader->taken, delta->n_changes, sizeof(*reader->taken), compare_changes);
	delta->renewed = &reader->taken[end];
	delta->n_renewed = n - end;
	delta->n_endpoints = model_count_endpoints(store->model, family);
	copy_service_cidrs(reader);
	return delta;
}

static void apply(struct plan_reader *reader, struct plan_change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct service_plan **applied = &changes[i].record->applied[reader->number];

		service_plan_unref(*applied);
		*applied = service_plan_ref(changes[i].wanted);
	}
}

static void release(const struct plan_change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		service_plan_unref(changes[i].wanted);
}

void plan_reader_commit(struct plan_reader *reader)
{
	const struct plan_delta *delta = &reader->delta;

	assert(reader->taken);
	apply(reader, reader->taken, delta->n_changes);
	apply(reader, reader->taken + (delta->renewed - delta->changes), delta->n_renewed);
	plan_reader_fail(reader);
	settle(reader);
}

void plan_reader_fail(struct plan_reader *reader)
{
	release(reader->delta.changes, reader->delta.n_changes);
	release(reader->delta.renewed, reader->delta.n_renewed);
	reader->delta = (struct plan_delta){0};
	free(take(reader->taken));
	free(take(reader->service_cidrs));
}

/* -- one who looks once */

void plan_once_take(struct plan_once *once, const struct settings *settings, struct model *model)
{
	struct model_changes changes;

	once->store = plan_store_new(settings, model, 1);
	once->reader = plan_reader_new(once->store);
	plan_store_update(once->store, &changes);
	model_changes_done(&changes);
	once->delta = plan_reader_take(once->reader, true);
}

void plan_once_done(struct plan_once *once)
{
	plan_reader_free(once->reader);
	plan_store_free(once->store);
	*once = (struct plan_once){0};
}
