/* SPDX-License-Identifier: Apache-2.0 */
#include "model/service_cidr.h"

#include <assert.h>
#include <stdlib.h>

struct service_cidr *service_cidr_new(const char *name)
{
	size_t n = strlen(name) + 1;
	struct service_cidr *cidr = xcalloc(1, sizeof(*cidr) + n);

	cidr->refs = 1;
	memcpy(cidr->name, name, n);
	return cidr;
}

DEFINE_REFS(service_cidr, free)

static bool same_ranges(const struct prefix *a, size_t n_a, const struct prefix *b, size_t n_b)
{
	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++)
		if (!prefix_equal(&a[i], &b[i]))
			return false;
	return true;
}

bool service_cidr_equal(const struct service_cidr *a, const struct service_cidr *b)
{
	return streq(a->name, b->name) && same_ranges(a->cidrs, a->n_cidrs, b->cidrs, b->n_cidrs);
}

/* -- all of them */

/* A range comes before those inside it. */
static int compare(const void *left, const void *right)
{
	const struct prefix *a = left, *b = right;
	int order = addr_compare(&a->addr, &b->addr);

	return order != 0 ? order : a->length - b->length;
}

/* Ranges of a family, each once and none inside another; the caller frees. */
static struct prefix *collect(const struct service_cidr_set *set, enum family family, size_t *ret_n)
{
	struct prefix *found =
		xcalloc(MAX(set->objects.count, 1) * SERVICE_CIDR_MAX, sizeof(*found));
	const struct service_cidr *cidr;
	size_t at = 0, n = 0, kept = 0;

	while ((cidr = map_next(&set->objects, &at)))
		for (size_t i = 0; i < cidr->n_cidrs; i++)
			if (cidr->cidrs[i].addr.family == family)
				found[n++] = cidr->cidrs[i];
	qsort(found, n, sizeof(*found), compare);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || !prefix_contains(&found[kept - 1], &found[i].addr))
			found[kept++] = found[i];
	*ret_n = kept;
	return found;
}

static unsigned int refresh(struct service_cidr_set *set)
{
	unsigned int changed = 0;

	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		size_t n;
		struct prefix *ranges = collect(set, family, &n);

		if (!same_ranges(set->ranges[family], set->n_ranges[family], ranges, n))
			changed |= 1u << family;
		free(set->ranges[family]);
		set->ranges[family] = ranges;
		set->n_ranges[family] = n;
	}
	return changed;
}

unsigned int service_cidr_set_put(struct service_cidr_set *set, struct service_cidr *cidr)
{
	service_cidr_unref(map_set(&set->objects, cidr->name, cidr));
	return refresh(set);
}

unsigned int service_cidr_set_remove(struct service_cidr_set *set, const char *name)
{
	service_cidr_unref(map_remove(&set->objects, name));
	return refresh(set);
}

void service_cidr_set_done(struct service_cidr_set *set)
{
	struct service_cidr *cidr;
	size_t at = 0;

	while ((cidr = map_next(&set->objects, &at)))
		service_cidr_unref(cidr);
	map_done(&set->objects);
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		free(set->ranges[family]);
	*set = (struct service_cidr_set){0};
}
