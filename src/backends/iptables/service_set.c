/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/service_set.h"

#include <stdlib.h>

void service_set_done(struct service_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		service_rules_free(set->v[i]);
	free(set->v);
	map_done(&set->by_key);
	*set = (struct service_set){0};
}

struct service_rules *service_set_get(const struct service_set *set, const char *key)
{
	return map_get(&set->by_key, key);
}

struct service_rules *service_set_put(struct service_set *set, struct service_rules *service)
{
	struct service_rules *old = map_set(&set->by_key, service->plan->key, service);

	if (old) {
		service->index = old->index;
	} else {
		array_grow(&set->v, &set->capacity, set->n, sizeof(struct service_rules *));
		service->index = (uint32_t)set->n++;
	}
	set->v[service->index] = service;
	return old;
}

struct service_rules *service_set_remove(struct service_set *set, const char *key)
{
	struct service_rules *old = map_remove(&set->by_key, key);
	struct service_rules *last;

	if (!old)
		return NULL;
	last = set->v[--set->n];
	set->v[old->index] = last;
	last->index = old->index;
	return old;
}

/* The slash between namespace and name counts less than any letter of either. */
static unsigned int weight(char c)
{
	return c == '/' ? 1 : (unsigned char)c;
}

static int compare_keys(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (int)weight(*a) - (int)weight(*b);
}

static int compare_services(const void *a, const void *b)
{
	const struct service_rules *const *x = a;
	const struct service_rules *const *y = b;

	return compare_keys((*x)->plan->key, (*y)->plan->key);
}

void service_set_sort(struct service_set *set)
{
	if (set->n > 1)
		qsort(set->v, set->n, sizeof(struct service_rules *), compare_services);
	for (size_t i = 0; i < set->n; i++)
		set->v[i]->index = (uint32_t)i;
}
