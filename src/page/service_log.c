/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list is an array in the order of numbers, so that a cursor finds its place by bisection and needs no
 * care when others change. An item that moves to the end leaves a hole; when there are as many holes as
 * items the array is written anew.
 */

#include "page/service_log.h"

#include <stdlib.h>

#include "base/map.h"

#define SPARE_HOLES 64 /* a short list is not worth the trouble */

/* A hole keeps its number, or bisection would not find its way. */
struct slot {
	uint64_t number;
	struct service_log_item *item; /* NULL: a hole */
};

struct service_log {
	struct map items; /* by key */
	struct slot *slots;
	size_t n, capacity;
	size_t n_holes, n_gone;
	uint64_t last; /* number given */
};

struct service_log *service_log_new(void)
{
	return xcalloc(1, sizeof(struct service_log));
}

struct service_log *service_log_free(struct service_log *log)
{
	if (!log)
		return NULL;
	map_free_values(&log->items);
	map_done(&log->items);
	free(log->slots);
	free(log);
	return NULL;
}

static void fill_holes(struct service_log *log)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n; i++) {
		struct slot slot = log->slots[i];

		if (!slot.item)
			continue;
		slot.item->place = n;
		log->slots[n++] = slot;
	}
	log->n = n;
	log->n_holes = 0;
}

static void leave_hole(struct service_log *log, const struct service_log_item *item)
{
	log->slots[item->place].item = NULL;
	log->n_holes++;
	if (log->n_holes > SPARE_HOLES && log->n_holes > log->n / 2)
		fill_holes(log);
}

void service_log_touch(struct service_log *log, const char *key, bool gone, int64_t changed_s)
{
	struct service_log_item *item = map_get(&log->items, key);

	if (!item && gone)
		return;
	if (item)
		leave_hole(log, item);
	else
		item = map_ensure(&log->items, key, sizeof(*item),
				  offsetof(struct service_log_item, key));
	log->n_gone += gone;
	log->n_gone -= item->gone;
	item->gone = gone;
	item->changed_s = changed_s;
	item->number = ++log->last;
	item->place = log->n;
	array_grow(&log->slots, &log->capacity, log->n, sizeof(*log->slots));
	log->slots[log->n++] = (struct slot){item->number, item};
}

/* The first slot whose number is greater. */
static size_t find_place(const struct service_log *log, uint64_t cursor)
{
	size_t low = 0;
	size_t high = log->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (log->slots[middle].number <= cursor)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct service_log_item *service_log_next(const struct service_log *log, uint64_t *cursor)
{
	for (size_t i = find_place(log, *cursor); i < log->n; i++) {
		*cursor = log->slots[i].number;
		if (log->slots[i].item)
			return log->slots[i].item;
	}
	*cursor = log->last; /* what is not there any more was seen, too */
	return NULL;
}

bool service_log_seen(const struct service_log *log, uint64_t cursor)
{
	return cursor >= log->last;
}

void service_log_trim(struct service_log *log, uint64_t slowest)
{
	if (log->n_gone == 0)
		return;
	for (size_t i = 0; i < log->n && log->slots[i].number <= slowest; i++) {
		struct service_log_item *item = log->slots[i].item;

		if (!item || !item->gone)
			continue;
		log->slots[i].item = NULL;
		log->n_holes++;
		log->n_gone--;
		map_remove(&log->items, item->key);
		free(item);
	}
	fill_holes(log);
}

size_t service_log_count(const struct service_log *log)
{
	return log->items.count - log->n_gone;
}
