/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Runs credential plugins as processes on the loop, one at a time, and remembers the last one: a sandbox
 * lets that one be started again (confinement.h).
 */

#include "sources/credentials.h"

struct event_base;
struct process;

struct plugin {
	struct event_base *loop;
	struct process *process; /* NULL: none runs */
	char *name;
	credentials_output_fn *done;
	void *done_arg;
	char *path;         /* of the last one that was started; NULL: none was */
	char **argv, **env; /* what it was started with */
};

/* The runner points to the plugin, which must stay where it is. */
struct credentials_runner plugin_runner(struct plugin *plugin, struct event_base *loop);
void plugin_done(struct plugin *plugin); /* once none runs */
