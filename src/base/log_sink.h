/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where lines go: a file descriptor that another program may read, slowly or not at all. Nothing here
 * waits for the reader, but log_sink_flush() for as long as it is told.
 *
 *   pipe, terminal   written through a description of our own (/proc/self/fd/N opened again), for
 *                    O_NONBLOCK on the inherited one would be set for all who share it. Where that cannot
 *                    be opened (no /proc, a pipe of another user): no more than the kernel says
 *                    there is room for
 *   socket           MSG_DONTWAIT
 *   file             written as it is: there is no reader
 *
 * A thread that writes would do for all of these; but it would have to start before the sandbox, and be told
 * apart in each fork, capability, seccomp filter and ruleset of landlock.
 *
 * What does not go out at once waits in a buffer of LOG_SINK_BYTES, for the loop to say that there is
 * room. What does not fit there is dropped and counted; a last quarter is for warnings and errors.
 * When half of the buffer is free again a notice tells how many lines are missing, in their place.
 *
 * A line that has no more than PIPE_BUF bytes goes out as a whole, whatever other processes write to the pipe.
 */

#include "base/util.h"

#define LOG_SINK_BYTES (256 * 1024)

struct event;
struct event_base;

enum log_way {
	LOG_WAY_PLAIN = 0, /* write(2), which may block */
	LOG_WAY_OWN,       /* write(2) to a description that does not */
	LOG_WAY_SOCKET,
	LOG_WAY_ROOM, /* write(2) when poll(2) says so */
};

struct log_sink {
	int fd;  /* given */
	int out; /* written to: the same, or our own */
	enum log_way way;
	struct event *writable; /* NULL: no loop tells */
	char *buffer;           /* whole lines, but for the first, which may have begun to leave */
	size_t from, to;
	unsigned long long dropped;
	unsigned long long untold; /* of these, those that no notice has told yet */
	/* Makes the notice; returns its length. */
	size_t (*notice)(unsigned long long lines, char *out, size_t size);
};

void log_sink_open(struct log_sink *sink, int fd); /* from now on as above */
/* The loop that tells of room. NULL, as in the beginning: none, and the next line tries again. */
void log_sink_attach(struct log_sink *sink, struct event_base *loop);
/* Waits so long at most for what is in the buffer to leave; then it is dropped. Keeps fd. */
void log_sink_close(struct log_sink *sink, int64_t patience_ns);
/* In a copy of this process that has closed all but the standard files: what is in the buffer is the
 * original's, and so is its loop. Lines for which there is no room are lost. */
void log_sink_forked(struct log_sink *sink, int fd);

/* A line with its end. */
void log_sink_write(struct log_sink *sink, const char *line, size_t n, bool important);
void log_sink_flush(struct log_sink *sink, int64_t patience_ns);
