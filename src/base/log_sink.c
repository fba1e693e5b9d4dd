/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/oom.h"

#define TURN_BYTES (64 * 1024) /* that one call from the loop writes */
#define NOTICE_MAX 512

/* -- the file */

static bool has_room(int fd, int timeout_ms)
{
	struct pollfd out = {.fd = fd, .events = POLLOUT};

	return poll(&out, 1, timeout_ms) > 0;
}

/* As write(2), without waiting: -1 and EAGAIN when there is no room. */
static ssize_t put(const struct log_sink *sink, const char *data, size_t n)
{
	if (sink->way == LOG_WAY_SOCKET)
		return send(sink->out, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sink->way == LOG_WAY_ROOM) {
		if (!has_room(sink->out, 0)) {
			errno = EAGAIN;
			return -1;
		}
		n = MIN(n, PIPE_BUF);
	}
	return write(sink->out, data, n);
}

/*
 * Bytes that left. Less than n: there is no room for the rest now. An error is the end of the line, and
 * the line counts as dropped: the next one tries again.
 */
static size_t put_line(struct log_sink *sink, const char *data, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = put(sink, data + done, n - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EAGAIN)
			return done;
		if (r <= 0) {
			sink->dropped++;
			sink->untold++;
			return n;
		}
		done += (size_t)r;
	}
	return n;
}

static int open_again(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

static void choose_way(struct log_sink *sink)
{
	struct stat st = {0};
	int own;

	sink->out = sink->fd;
	sink->way = LOG_WAY_PLAIN;
	if (fstat(sink->fd, &st) < 0)
		return;
	if (S_ISSOCK(st.st_mode)) {
		sink->way = LOG_WAY_SOCKET;
	} else if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
		own = open_again(sink->fd);
		sink->way = own >= 0 ? LOG_WAY_OWN : LOG_WAY_ROOM;
		sink->out = own >= 0 ? own : sink->fd;
	}
}

/* -- the buffer */

static size_t waiting(const struct log_sink *sink)
{
	return sink->to - sink->from;
}

static void wait_for_room(struct log_sink *sink)
{
	if (sink->writable && !event_pending(sink->writable, EV_WRITE, NULL) &&
	    event_add(sink->writable, NULL) < 0)
		oom("an event", 0);
}

static void append(struct log_sink *sink, const char *data, size_t n)
{
	if (LOG_SINK_BYTES - sink->to < n) {
		memmove(sink->buffer, sink->buffer + sink->from, waiting(sink));
		sink->to -= sink->from;
		sink->from = 0;
	}
	memcpy(sink->buffer + sink->to, data, n);
	sink->to += n;
	wait_for_room(sink);
}

/* Writes, or puts into the buffer, for which there must be room. */
static void send_line(struct log_sink *sink, const char *line, size_t n)
{
	size_t done = waiting(sink) == 0 ? put_line(sink, line, n) : 0;

	if (done < n)
		append(sink, line + done, n - done);
}

/* Lines of the buffer, each in one write, until there is no room or they are this many bytes. */
static void drain(struct log_sink *sink, size_t limit)
{
	size_t all = 0;

	while (waiting(sink) > 0 && all < limit) {
		const char *line = sink->buffer + sink->from;
		const char *end = memchr(line, '\n', waiting(sink));
		size_t n = end ? (size_t)(end - line) + 1 : waiting(sink);
		size_t done = put_line(sink, line, n);

		sink->from += done;
		all += done;
		if (done < n)
			break;
	}
	if (waiting(sink) == 0)
		sink->from = sink->to = 0;
}

/* Tells of dropped lines, once half of the buffer is free. */
static void tell(struct log_sink *sink)
{
	unsigned long long lines = sink->untold;
	unsigned long long dropped = sink->dropped;
	char notice[NOTICE_MAX];

	if (lines == 0 || waiting(sink) > LOG_SINK_BYTES / 2)
		return;
	sink->untold = 0;
	send_line(sink, notice, sink->notice(lines, notice, sizeof(notice)));
	if (sink->untold > 0) { /* it could not be written either */
		sink->untold = lines;
		sink->dropped = dropped;
	}
}

static void on_writable(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct log_sink *sink = arg;

	drain(sink, TURN_BYTES);
	tell(sink);
	if (waiting(sink) == 0)
		event_del(sink->writable);
}

void log_sink_write(struct log_sink *sink, const char *line, size_t n, bool important)
{
	size_t room = important ? LOG_SINK_BYTES : LOG_SINK_BYTES / 4 * 3;

	if (!sink->buffer) { /* a command that may wait, or a copy that has no loop */
		put_line(sink, line, n);
		return;
	}
	if (!sink->writable)
		drain(sink, TURN_BYTES);
	tell(sink);
	if ((sink->untold > 0 && !important) || waiting(sink) + n > room) {
		sink->dropped++;
		sink->untold++;
		return;
	}
	send_line(sink, line, n);
}

void log_sink_flush(struct log_sink *sink, int64_t patience_ns)
{
	int64_t end_ns = clock_now_ns() + patience_ns;
	int64_t left_ns;

	while (waiting(sink) > 0 && (left_ns = end_ns - clock_now_ns()) > 0) {
		if (has_room(sink->out, (int)(left_ns / CLOCK_NS_PER_MS) + 1))
			drain(sink, SIZE_MAX);
		tell(sink);
	}
}

/* -- its life */

void log_sink_open(struct log_sink *sink, int fd)
{
	sink->fd = fd;
	sink->buffer = xmalloc(LOG_SINK_BYTES);
	sink->from = sink->to = 0;
	choose_way(sink);
}

void log_sink_attach(struct log_sink *sink, struct event_base *loop)
{
	sink->writable = loop_free(sink->writable);
	if (loop && sink->buffer && sink->way != LOG_WAY_PLAIN)
		sink->writable =
			event_new(loop, sink->out, EV_WRITE | EV_PERSIST, on_writable, sink);
	if (waiting(sink) > 0)
		wait_for_room(sink);
}

static void let_go(struct log_sink *sink)
{
	free(sink->buffer);
	sink->buffer = NULL;
	sink->from = sink->to = 0;
	sink->out = sink->fd;
	sink->way = LOG_WAY_PLAIN;
}

void log_sink_close(struct log_sink *sink, int64_t patience_ns)
{
	log_sink_flush(sink, patience_ns);
	log_sink_attach(sink, NULL);
	if (sink->out != sink->fd)
		close(sink->out);
	let_go(sink);
}

/* Its event belongs to a loop that is not run here, and its own description is closed. */
void log_sink_forked(struct log_sink *sink, int fd)
{
	bool may_wait = !sink->buffer;

	sink->writable = NULL;
	sink->fd = fd;
	let_go(sink);
	if (!may_wait)
		choose_way(sink);
}
