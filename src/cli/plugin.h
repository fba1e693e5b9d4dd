/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs credential plugins as processes on the loop, one at a time. */

#include "sources/credentials.h"

struct event_base;
struct process;

struct plugin {
	struct event_base *loop;
	struct process *process; /* NULL: none runs */
	char *name;
	credentials_output_fn *done;
	void *done_arg;
};

/* The runner points to the plugin, which must stay where it is. */
struct credentials_runner plugin_runner(struct plugin *plugin, struct event_base *loop);
