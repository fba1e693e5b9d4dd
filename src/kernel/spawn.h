/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starting a program as a child of this process, without a copy of its memory.
 *
 * The program gets our environment with LC_ALL=C, default signals and an empty signal mask, and no
 * file descriptor but the three standard ones. It dies when we do.
 */

#include <sys/types.h>

#include "base/util.h"

struct spawn_spec {
	const char *path;
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* NULL-terminated NAME=value, beside our own; or NULL */
	int fds[3];              /* its standard files */
	/* Optional: in the child, before the program. It shares our memory and must not change it. */
	void (*prepare)(void);
};

/* Returns once the program runs: 0, or a negative errno. The caller waits for *ret_pid. */
int spawn_start(const struct spawn_spec *spec, pid_t *ret_pid, int *ret_pidfd);
