/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A process that starts programs for a daemon that no longer can (sandbox.h).
 *
 * It is made before the daemon gives up its privileges, from the same file, so it has none of the
 * daemon's memory. It keeps the user, and of the capabilities those that the programs need. It knows the
 * programs that it may start from its first moment and learns of no others, whatever the daemon asks
 * for later: a tool with arguments that name no file, a plugin only with the arguments and the environment
 * that it had then, and without capabilities. A tool that is no script cannot start programs in turn.
 *
 *	daemon	socket: RUN path argv env, with descriptors: stdin, stdout, stderr, end   launcher
 *		end: an error, or 0 once the program runs; then how it ended		  a runner
 *		end shut down or closed: the program is killed
 *
 * For each program there is a runner, a copy of the launcher that waits for it. Program, runner and
 * launcher die with their parents, and the launcher ends when the daemon's end of the socket closes.
 */

#include <sys/types.h>

#include "base/err.h"

#define LAUNCHER_NAME "portolan-launcher" /* argv[0]: main() goes to launcher_main() */
/* The one variable of a plugin that may differ from run to run. */
#define LAUNCHER_FREE_VARIABLE "KUBERNETES_EXEC_INFO"

struct launcher;

struct launcher_program {
	const char *path;
	const char *const *argv; /* NULL-terminated: a plugin with these; NULL: a tool */
	const char *const *env;  /* of a plugin; NULL: none */
};

int launcher_start(const struct launcher_program *programs, size_t n, uint64_t capabilities,
		   struct launcher **ret, struct err *err);
struct launcher *launcher_free(struct launcher *launcher); /* accepts NULL, returns NULL; ends it */
int launcher_fd(const struct launcher *launcher);          /* is readable when it has ended */
pid_t launcher_pid(const struct launcher *launcher);

/*
 * Returns once the program runs: 0, -EPERM when it is none of those that may be started, or another
 * negative errno. *ret_end becomes readable when it has ended.
 */
int launcher_run(const struct launcher *launcher, const char *path, const char *const *argv,
		 const char *const *env, const int fds[static 3], int *ret_end);
void launcher_kill(int end);
/* Waits for the end: exit status 0..255, or -1 and which signal. */
void launcher_wait(int end, int *ret_exit_code, int *ret_signal);

/* What the launcher itself does until it ends; its standard input is the socket. */
void launcher_main(void) __attribute__((noreturn));
