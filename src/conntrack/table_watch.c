/* SPDX-License-Identifier: Apache-2.0 */
#include "conntrack/table_watch.h"

#include <assert.h>
#include <stdlib.h>

#include "conntrack/service_fronts.h"
#include "kernel/conntrack_sysctls.h"

#define PERCENT     100
#define ROUNDED_TO  1024 /* entries: an operator reads no more digits */
#define ROOM_FACTOR 2    /* half of the table free */

static const struct {
	unsigned int rises, falls; /* percent */
} levels[] = {
	[TABLE_ROOMY] = {0, 0},
	[TABLE_FILLING] = {80, 75},
	[TABLE_NEARLY_FULL] = {95, 90},
};
static_assert(ARRAY_SIZE(levels) == TABLE_LEVEL_COUNT, "bounds for each level");

static bool has_percent(const struct conntrack_stats *stats, unsigned int percent)
{
	return stats->entries * PERCENT >= stats->max * percent;
}

enum table_level table_level_next(enum table_level before, const struct conntrack_stats *stats)
{
	enum table_level level = TABLE_LEVEL_COUNT - 1;

	if (stats->max == 0)
		return TABLE_ROOMY; /* no limit */
	while (level > TABLE_ROOMY &&
	       !has_percent(stats, level > before ? levels[level].rises : levels[level].falls))
		level--;
	return level;
}

void table_advice(const struct conntrack_stats *stats, int64_t cores, struct text *ret)
{
	unsigned long long n = (unsigned long long)MAX(cores, 1);
	unsigned long long wanted = stats->entries * ROOM_FACTOR;
	unsigned long long per_core = (wanted + n - 1) / n;

	per_core = (per_core + ROUNDED_TO - 1) / ROUNDED_TO * ROUNDED_TO;
	if (per_core * n <= CONNTRACK_MAX_CEILING)
		text_printf(ret,
			    "conntrack.maxPerCore=%llu (cores: %llu) would leave half of it free",
			    per_core, n);
	else
		text_printf(
			ret,
			"conntrack.maxPerCore gives no more than %d entries: with a smaller one, "
			"conntrack.min=%llu would leave half of it free",
			CONNTRACK_MAX_CEILING, per_core * n);
}

/* -- who */

struct table_top {
	struct service_fronts *fronts;
	size_t *counts; /* by owner */
	size_t others;  /* of no Service */
	size_t all;
};

struct table_top *table_top_new(const struct model *model)
{
	struct table_top *top = xcalloc(1, sizeof(*top));

	top->fronts = service_fronts_new(model);
	top->counts = xcalloc(service_fronts_count(top->fronts) + 1, sizeof(*top->counts));
	return top;
}

struct table_top *table_top_free(struct table_top *top)
{
	if (!top)
		return NULL;
	service_fronts_free(top->fronts);
	free(top->counts);
	free(top);
	return NULL;
}

void table_top_see(struct table_top *top, const struct conntrack_flow *flow)
{
	const struct front_owner *owner = service_fronts_find(top->fronts, flow);

	top->all++;
	if (owner)
		top->counts[service_fronts_number(top->fronts, owner)]++;
	else
		top->others++;
}

/* The one with the most entries, of those that come behind `before` in that order. */
static size_t find_next(const struct table_top *top, size_t before)
{
	size_t none = service_fronts_count(top->fronts);
	size_t best = none;

	for (size_t i = 0; i < none; i++) {
		bool told =
			before != none && (top->counts[i] > top->counts[before] ||
					   (top->counts[i] == top->counts[before] && i <= before));

		if (!told && top->counts[i] > 0 &&
		    (best == none || top->counts[i] > top->counts[best]))
			best = i;
	}
	return best;
}

void table_top_print(const struct table_top *top, struct text *ret)
{
	size_t none = service_fronts_count(top->fronts);
	size_t at = none;

	for (size_t i = 0; i < TABLE_TOP_NAMED; i++) {
		cleanup_free char *name = NULL;

		at = find_next(top, at);
		if (at == none)
			break;
		name = front_owner_name(service_fronts_owner(top->fronts, at));
		text_printf(ret, "%s%s %zu%%", i > 0 ? ", " : "", name,
			    top->counts[at] * PERCENT / top->all);
	}
	if (top->others > 0)
		text_printf(ret, "%sno Service %zu%%", ret->size > 0 ? ", " : "",
			    top->others * PERCENT / top->all);
}
