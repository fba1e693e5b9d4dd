/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What all of the program agrees on: its version, its commands by number, how it ends. */

/* The kube-proxy whose flags, rules and behaviour this version has. */
#define KUBERNETES_VERSION "v1." KUBERNETES_MINOR
#define KUBERNETES_MINOR   "37"

enum command_id {
	COMMAND_RUN = 0,
	COMMAND_RENDER,
	COMMAND_EXPLAIN,
	COMMAND_TRACE,
	COMMAND_LIST,
	COMMAND_CHART,
	COMMAND_DIFF,
	COMMAND_CONNTRACK,
	COMMAND_TOP,
	COMMAND_CLEANUP,
	COMMAND_COMPLETION,
	COMMAND_VERSION,
	COMMAND_HELP,
	COMMAND_COUNT,
};

/* What `run` returns: kube-proxy knows only 0 and 1, so `run` never says 2. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	/* of `explain` and `trace`, where 1 means that a connection does not reach a backend */
	EXIT_KERNEL_DIFFERS = 3, /* `trace`: a packet did not do what is planned */
	EXIT_NO_STATE = 4,       /* what should be explained cannot be read, compared or traced */
	/* of `trace` */
	EXIT_NOTHING_SEEN = 5,
	EXIT_NOT_POSSIBLE = 6, /* with the rules of this node */
};
