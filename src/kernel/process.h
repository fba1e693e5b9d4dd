/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Running a program without blocking the event loop.
 *
 * The program gets the daemon's environment with LC_ALL=C, default signals and an empty signal
 * mask, and no file descriptor but the three standard ones. Its end is noticed through a pidfd.
 * What it wrote until then is delivered; output of a grandchild that outlives it is not waited for.
 *
 * A program that is running when the daemon is killed dies with it, a restore too. The kernel takes
 * a table as a whole or not at all, so nothing is left half written; but a restore that outlived
 * its daemon could write its old state over the new one that the next daemon has begun with. That
 * first sync is a full one and makes good what was lost. A daemon that ends in good order gives
 * such a program a moment to finish (grace_ns).
 *
 * From the first start on SIGPIPE is ignored in the calling process (not in the children).
 */

#include "base/err.h"
#include "base/text.h"

struct event_base;
struct launcher;
struct process;

#define PROCESS_ERRORS_MAX (64UL * 1024) /* of stderr; what is above is dropped */
#define PROCESS_LINE_MAX \
	(64UL * 1024) /* of a line given to the line callback; the rest of it is dropped */

struct process_result {
	int error;     /* 0: it ended by itself; -ETIMEDOUT or -EFBIG (output_max): it was killed */
	int exit_code; /* 0..255; -1: a signal ended it */
	int signal;    /* which; 0: none */
	const char *output; /* stdout, NUL-terminated; "" when a line callback took it */
	size_t n_output;
	const char *errors; /* stderr, NUL-terminated */
};

struct process_spec {
	const char *path; /* of the program: see process_find() */
	const char *const *
		argv; /* NULL-terminated; argv[0] is its name in messages. Read only by the start */
	const char *const *env; /* NULL-terminated NAME=value, beside the daemon's own; or NULL */
	struct text
		*input; /* moved away, also when starting fails; NULL and no more(): /dev/null */
	/*
	 * Optional: appends more input when all so far was taken, from the loop; false: there is no
	 * more. Not asked once the program reads no further.
	 */
	bool (*more)(void *arg, struct text *input);
	size_t output_max;  /* ceiling of stdout: a program that writes more is killed */
	int64_t timeout_ns; /* 0: none */
	int64_t grace_ns;   /* process_cancel() waits so long for one that has got all its input */

	/* Optional: each line of stdout as it comes, NUL-terminated, without its newline. */
	void (*line)(void *arg, const char *line, size_t length);
	/* Optional: input that the pipe has taken, before its memory is released. */
	void (*sent)(void *arg, const char *data, size_t n);
	/* Once, from the loop, never from inside process_start(). The result is borrowed. */
	void (*done)(void *arg, const struct process_result *result);
	void *arg;
};

/* Looks a program up in PATH; a name with a slash is taken as it is. -ENOENT when there is none. */
int process_find(const char *name, char **ret_path, struct err *err);

/*
 * From now on programs are started by this launcher, in all of the process and in its copies; NULL: by
 * ourselves. Borrowed.
 */
void process_use_launcher(const struct launcher *launcher);
int process_launcher_fd(void); /* what a copy of the process must keep open; -1: none */

/* *ret is good until done() has returned, or until it is cancelled. */
int process_start(struct event_base *loop, const struct process_spec *spec, struct process **ret,
		  struct err *err);
void process_cancel(struct process *process); /* accepts NULL; done() is not called */

/* The same on a loop of its own: returns when done() has been called. */
int process_run(const struct process_spec *spec, struct err *err);

/*
 * 0 for a program that ended with exit status 0, else an error that says how it ended and what it
 * wrote to stderr, in one line: -EAGAIN for exit status 4 (how iptables reports a lock or another
 * resource), -ETIMEDOUT, -EFBIG, or -EIO.
 */
int process_check(const char *what, const struct process_result *result, struct err *err);
