/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_limit.h"

#include <stdlib.h>

static int64_t keep(struct log_gate *gate, const char *line, size_t n, int severity, int64_t now_ns)
{
	gate->line = xrealloc(gate->line, n);
	memcpy(gate->line, line, n);
	gate->n = n;
	gate->severity = severity;
	gate->kept_ns = now_ns;
	gate->kept++;
	return MAX(gate->until_ns, now_ns + 1);
}

static int64_t keep_at_site(struct log_limit *limit, struct log_site *site, const char *line,
			    size_t n, int severity, int64_t now_ns)
{
	if (!site->listed) {
		site->listed = true;
		site->next = limit->sites;
		limit->sites = site;
	}
	return keep(&site->gate, line, n, severity, now_ns);
}

/* Closed also when its time is over and what it kept has not been written yet: that comes first. */
static bool closed(const struct log_gate *gate, int64_t now_ns)
{
	return now_ns < gate->until_ns || gate->kept > 0;
}

/* The object's place, or one that it may have: the one whose time ends first. NULL: all keep lines. */
static struct log_limit_object *place_of(struct log_limit *limit, uint64_t key)
{
	struct log_limit_object *set = &limit->objects[key % LOG_LIMIT_SETS * LOG_LIMIT_WAYS];
	struct log_limit_object *best = NULL;

	for (size_t i = 0; i < LOG_LIMIT_WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
		if (set[i].gate.kept == 0 && (!best || set[i].gate.until_ns < best->gate.until_ns))
			best = &set[i];
	}
	return best;
}

int64_t log_limit_ask(struct log_limit *limit, struct log_site *site, uint64_t object,
		      const char *line, size_t n, int severity, int64_t now_ns)
{
	uint64_t key = MAX(object, 1); /* 0 is an empty place */
	struct log_limit_object *place = place_of(limit, key);

	if (place && place->key == key && closed(&place->gate, now_ns))
		return keep(&place->gate, line, n, severity, now_ns);
	if (now_ns >= site->gate.until_ns && site->gate.kept == 0) {
		site->gate.until_ns = now_ns + LOG_LIMIT_NS;
		site->gate.written = 0;
	}
	if (!place || site->gate.kept > 0 || site->gate.written >= LOG_LIMIT_SITE)
		return keep_at_site(limit, site, line, n, severity, now_ns);
	site->gate.written++;
	place->key = key;
	place->gate.until_ns = now_ns + LOG_LIMIT_NS;
	return 0;
}

static void look_at(struct log_gate *gate, bool all, int64_t now_ns, struct log_gate **best)
{
	if (gate->kept > 0 && (all || gate->until_ns <= now_ns) &&
	    (!*best || gate->kept_ns < (*best)->kept_ns))
		*best = gate;
}

bool log_limit_next(struct log_limit *limit, bool all, int64_t now_ns, struct log_kept *ret)
{
	struct log_gate *gate = NULL;
	bool of_site = false;

	for (size_t i = 0; i < ARRAY_SIZE(limit->objects); i++)
		look_at(&limit->objects[i].gate, all, now_ns, &gate);
	for (struct log_site *site = limit->sites; site; site = site->next) {
		look_at(&site->gate, all, now_ns, &gate);
		of_site |= gate == &site->gate;
	}
	if (!gate)
		return false;
	*ret = (struct log_kept){take(gate->line), gate->n, gate->severity, gate->kept - 1,
				 of_site};
	gate->kept = 0;
	gate->written = 1;
	gate->until_ns = now_ns + LOG_LIMIT_NS;
	return true;
}

int64_t log_limit_due(const struct log_limit *limit)
{
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(limit->objects); i++)
		if (limit->objects[i].gate.kept > 0)
			due = MIN(due, limit->objects[i].gate.until_ns);
	for (const struct log_site *site = limit->sites; site; site = site->next)
		if (site->gate.kept > 0)
			due = MIN(due, site->gate.until_ns);
	return due;
}

void log_limit_forget(struct log_limit *limit)
{
	struct log_site *next;

	for (size_t i = 0; i < ARRAY_SIZE(limit->objects); i++)
		free(limit->objects[i].gate.line);
	for (struct log_site *site = limit->sites; site; site = next) {
		next = site->next;
		free(site->gate.line);
		site->gate = (struct log_gate){0};
		site->listed = false;
	}
	*limit = (struct log_limit){0};
}
