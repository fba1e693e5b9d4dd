/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Feature gates: all that kube-proxy of Kubernetes 1.35, 1.36 or 1.37 knows, which are those of
 * every Kubernetes program. Few change what Portolan does, but operators give all programs of a
 * cluster the same list, and one Portolan serves clusters of all three versions. So what one of
 * the three kube-proxies starts with is taken, and what all of them refuse is refused:
 *
 *   - a gate has the stage and default of the newest version that knows it
 *   - one that the newest no longer has does nothing: a warning that names the version
 *   - so does the other value of a gate that was locked after 1.35
 *   - a gate that is on by default, or by AllAlpha or AllBeta, and lacks another one that it needs
 *     is off: a warning. (Newer versions turn on more gates, and need more of them.)
 *   - wrong are a name that none of them knows, the other value of a gate that was always locked,
 *     and a gate that is named to be on without what it needs
 */

#include "base/util.h"

enum gate_stage {
	GATE_ALPHA = 0,
	GATE_BETA,
	GATE_GA,
	GATE_DEPRECATED,
	GATE_STAGE_COUNT,
};

struct gate {
	const char *name;
	enum gate_stage stage;
	bool on; /* by default */
	/* Minor versions, 0 for never: since when the default cannot be changed (35: or before) ... */
	unsigned int locked;
	unsigned int dropped; /* ... and which no longer has the gate */
};

/* Sorted by name. */
extern const struct gate gates_table[];
extern const size_t gates_n;
#define GATES_MAX 512

struct gate_need {
	const char *name;
	const char *needs;
};

extern const struct gate_need gates_needs[];
extern const size_t gates_n_needs;

struct gates {
	bool on[GATES_MAX]; /* as in gates_table */
	bool named[GATES_MAX];
};

/* What is wrong with gates, or of no effect: one line each. */
struct gates_report {
	void (*problem)(void *arg, const char *text);
	void (*warning)(void *arg, const char *text);
	void *arg;
};

void gates_init(struct gates *gates); /* the defaults */
/*
 * Sets one by name; AllAlpha and AllBeta move all of that stage that are not named themselves, in
 * whatever order they come.
 */
void gates_set(struct gates *gates, const char *name, bool on, const struct gates_report *report);
/* After the last one: do they have what they need? */
void gates_check(struct gates *gates, const struct gates_report *report);
/* Only for names in the table. */
bool gates_on(const struct gates *gates, const char *name);
