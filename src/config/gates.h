/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Feature gates: all that kube-proxy of Kubernetes v1.36 knows, which are those of every Kubernetes
 * program. Few change what Portolan does, but a command line or file with any of them is as valid,
 * or as wrong, as it is for kube-proxy.
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
	bool on;     /* by default */
	bool locked; /* and cannot be changed */
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

void gates_init(struct gates *gates); /* the defaults */
/*
 * Sets one by name; AllAlpha and AllBeta move all of that stage that are not named themselves, in
 * whatever order they come. NULL, or what is wrong with it, for the caller to free.
 */
char *gates_set(struct gates *gates, const char *name, bool on);
/* After the last one: whose needs are not met, one line each. */
void gates_check(const struct gates *gates, void (*problem)(void *arg, const char *text),
		 void *arg);
/* Only for names in the table. */
bool gates_on(const struct gates *gates, const char *name);
