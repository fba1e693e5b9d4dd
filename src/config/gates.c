/* SPDX-License-Identifier: Apache-2.0 */

#include "config/gates.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/nearest.h"

#define OLDEST    35 /* minor version of the first kube-proxy whose gates are known */
#define TEXT_SIZE 256

static void attr_printf(3, 4)
	tell(void (*line)(void *arg, const char *text), void *arg, const char *fmt, ...)
{
	char text[TEXT_SIZE];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	line(arg, text);
}

#define problem(report, ...) tell((report)->problem, (report)->arg, __VA_ARGS__)
#define warning(report, ...) tell((report)->warning, (report)->arg, __VA_ARGS__)

static const char *word(bool on)
{
	return on ? "true" : "false";
}

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
	for (size_t i = 0; i < gates_n; i++) {
		const struct gate *gate = &gates_table[i];

		if (gate->stage == stage && !gates->named[i] && !gate->locked && !gate->dropped)
			gates->on[i] = on;
	}
}

static void report_unknown(const char *name, const struct gates_report *report)
{
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (size_t i = 0; i < gates_n; i++)
		if (!gates_table[i].dropped)
			nearest_offer(&nearest, gates_table[i].name);
	problem(report, "unrecognized feature gate: %s%s%s%s", name,
		nearest.best ? "; did you mean " : "", nearest.best ? nearest.best : "",
		nearest.best ? "?" : "");
}

/* Says so when it can have no effect to set the gate to this value. */
static bool takes(const struct gate *gate, bool on, const struct gates_report *report)
{
	bool refused = gate->locked && on != gate->on;

	if (refused && gate->locked == OLDEST)
		problem(report, "cannot set feature gate %s to %s, feature is locked to %s",
			gate->name, word(on), word(gate->on));
	else if (gate->dropped)
		warning(report, "%s has no effect: Kubernetes 1.%u dropped this feature gate",
			gate->name, gate->dropped);
	else if (refused)
		warning(report,
			"%s=%s has no effect: Kubernetes 1.%u locked this feature gate to %s",
			gate->name, word(on), gate->locked, word(gate->on));
	return !refused;
}

void gates_set(struct gates *gates, const char *name, bool on, const struct gates_report *report)
{
	const struct gate *gate = find(name);

	if (!gate) {
		report_unknown(name, report);
		return;
	}
	if (!takes(gate, on, report))
		return;
	gates->on[gate - gates_table] = on;
	gates->named[gate - gates_table] = true;
	if (streq(name, "AllAlpha"))
		set_stage(gates, GATE_ALPHA, on);
	else if (streq(name, "AllBeta"))
		set_stage(gates, GATE_BETA, on);
}

bool gates_on(const struct gates *gates, const char *name)
{
	const struct gate *gate = find(name);

	assert(gate);
	return gates->on[gate - gates_table];
}

static bool is_met(const struct gates *gates, const struct gate_need *need)
{
	return !gates_on(gates, need->name) || gates_on(gates, need->needs);
}

/* Turns off one gate that nobody named and that lacks what it needs. False: there is none. */
static bool give_way(struct gates *gates, const struct gates_report *report)
{
	for (size_t i = 0; i < gates_n_needs; i++) {
		const struct gate_need *need = &gates_needs[i];
		size_t at = (size_t)(find(need->name) - gates_table);

		if (gates->named[at] || is_met(gates, need))
			continue;
		gates->on[at] = false;
		warning(report,
			"feature gate %s is off, because it depends on %s, which is disabled",
			need->name, need->needs);
		return true;
	}
	return false;
}

void gates_check(struct gates *gates, const struct gates_report *report)
{
	while (give_way(gates, report)) {
		/* others may have needed that one */
	}
	for (size_t i = 0; i < gates_n_needs; i++)
		if (!is_met(gates, &gates_needs[i]))
			problem(report, "%s is enabled, but depends on %s, which is disabled",
				gates_needs[i].name, gates_needs[i].needs);
}
