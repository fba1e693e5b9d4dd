/* SPDX-License-Identifier: Apache-2.0 */

#include "config/gates.h"

#include <assert.h>
#include <stdlib.h>

#include "base/nearest.h"

static int compare_names(const void *name, const void *gate)
{
	return strcmp(name, ((const struct gate *)gate)->name);
}

static const struct gate *find(const char *name)
{
	return bsearch(name, gates_table, gates_n, sizeof(*gates_table), compare_names);
}

void gates_init(struct gates *gates)
{
	assert(gates_n <= GATES_MAX);
	*gates = (struct gates){0};
	for (size_t i = 0; i < gates_n; i++)
		gates->on[i] = gates_table[i].on;
}

static void set_stage(struct gates *gates, enum gate_stage stage, bool on)
{
	for (size_t i = 0; i < gates_n; i++)
		if (gates_table[i].stage == stage && !gates->named[i] && !gates_table[i].locked)
			gates->on[i] = on;
}

static char *unknown(const char *name)
{
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (size_t i = 0; i < gates_n; i++)
		nearest_offer(&nearest, gates_table[i].name);
	if (nearest.best)
		return xasprintf("unrecognized feature gate: %s; did you mean %s?", name,
				 nearest.best);
	return xasprintf("unrecognized feature gate: %s", name);
}

char *gates_set(struct gates *gates, const char *name, bool on)
{
	const struct gate *gate = find(name);

	if (!gate)
		return unknown(name);
	if (gate->locked && on != gate->on)
		return xasprintf("cannot set feature gate %s to %s, feature is locked to %s", name,
				 on ? "true" : "false", gate->on ? "true" : "false");
	gates->on[gate - gates_table] = on;
	gates->named[gate - gates_table] = true;
	if (streq(name, "AllAlpha"))
		set_stage(gates, GATE_ALPHA, on);
	else if (streq(name, "AllBeta"))
		set_stage(gates, GATE_BETA, on);
	return NULL;
}

bool gates_on(const struct gates *gates, const char *name)
{
	const struct gate *gate = find(name);

	assert(gate);
	return gates->on[gate - gates_table];
}

void gates_check(const struct gates *gates, void (*problem)(void *arg, const char *text), void *arg)
{
	for (size_t i = 0; i < gates_n_needs; i++) {
		const struct gate_need *need = &gates_needs[i];
		cleanup_free char *text = NULL;

		if (!gates_on(gates, need->name) || gates_on(gates, need->needs))
			continue;
		text = xasprintf("%s is enabled, but depends on %s, which is disabled", need->name,
				 need->needs);
		problem(arg, text);
	}
}
