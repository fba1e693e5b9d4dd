/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "kernel/launcher.h"
#include "kernel/spawn.h"

/*
 * A process is four descriptors on the loop: one for its end, and a pipe for each standard stream. The
 * end decides when it is over: once it is readable the program has written everything that it
 * ever will, so both outputs are read until they would block, and the end is reported.
 */

#define PIPE_SIZE (1024 * 1024) /* the ceiling for unprivileged users; fewer turns of the loop */

static const struct launcher *chosen; /* NULL: programs are our own children */

/* What a stream left us, NUL-terminated when read. */
struct capture {
	char *data;
	size_t used, capacity;
};

struct process {
	struct process_spec spec;
	struct text input;
	pid_t pid; /* 0: the launcher's child */
	int end;   /* readable once it is over: a pidfd, or what the launcher gave */
	int in, out, errors;
	struct event *on_exit, *on_in, *on_out, *on_errors, *on_timeout;
	struct capture output, line, error_text;
	size_t output_seen;
	int error;   /* why it was killed by us */
	bool *ended; /* set at the end, for process_run(); else NULL */
};

static void capture_add(struct capture *capture, const char *data, size_t n, size_t max)
{
	size_t room = max - MIN(max, capture->used);

	n = MIN(n, room);
	if (capture->used + n + 1 > capture->capacity) {
		capture->capacity = MAX(2 * capture->capacity, capture->used + n + 1);
		capture->data = xrealloc(capture->data, capture->capacity);
	}
	memcpy(capture->data + capture->used, data, n);
	capture->used += n;
	capture->data[capture->used] = '\0';
}

static const char *capture_text(const struct capture *capture)
{
	return capture->data ? capture->data : "";
}

static void fd_drop(int *fd)
{
	util_close_fd(fd);
	*fd = -1;
}

/* -- the end */

static void process_free(struct process *process)
{
	loop_free(process->on_exit);
	loop_free(process->on_in);
	loop_free(process->on_out);
	loop_free(process->on_errors);
	loop_free(process->on_timeout);
	fd_drop(&process->end);
	fd_drop(&process->in);
	fd_drop(&process->out);
	fd_drop(&process->errors);
	text_done(&process->input);
	free(process->output.data);
	free(process->line.data);
	free(process->error_text.data);
	free(process);
}

static void process_kill(struct process *process, int error)
{
	if (process->error == 0)
		process->error = error;
	if (process->pid > 0)
		pidfd_send_signal(process->end, SIGKILL, NULL, 0);
	else
		launcher_kill(process->end);
}

static void wait_for(struct process *process, struct process_result *result)
{
	siginfo_t info = {0};

	if (process->pid == 0) {
		launcher_wait(process->end, &result->exit_code, &result->signal);
		return;
	}
	while (waitid(P_PID, (id_t)process->pid, &info, WEXITED) < 0)
		if (errno != EINTR)
			break; /* another program took the status: reported as a kill */
	if (info.si_code == CLD_EXITED) {
		result->exit_code = info.si_status;
	} else {
		result->exit_code = -1;
		result->signal = info.si_status > 0 ? info.si_status : SIGKILL;
	}
}

/* -- output */

static void line_end(struct process *process)
{
	process->spec.line(process->spec.arg, capture_text(&process->line), process->line.used);
	process->line.used = 0;
}

static void take_lines(struct process *process, const char *data, size_t n)
{
	while (n > 0) {
		const char *newline = memchr(data, '\n', n);
		size_t part = newline ? (size_t)(newline - data) : n;

		capture_add(&process->line, data, part, PROCESS_LINE_MAX);
		if (!newline)
			return;
		line_end(process);
		data += part + 1;
		n -= part + 1;
	}
}

static void take_output(struct process *process, const char *data, size_t n)
{
	process->output_seen += n;
	if (process->output_seen > process->spec.output_max) {
		process_kill(process, -EFBIG);
		return;
	}
	if (process->spec.line)
		take_lines(process, data, n);
	else
		capture_add(&process->output, data, n, process->spec.output_max);
}

static void take_errors(struct process *process, const char *data, size_t n)
{
	capture_add(&process->error_text, data, n, PROCESS_ERRORS_MAX);
}

/* Reads all that is there. */
static void drain(struct process *process, int *fd, struct event **event,
		  void (*use)(struct process *process, const char *data, size_t n))
{
	char data[64 * 1024];
	ssize_t n;

	while (*fd >= 0 && process->error == 0) {
		n = read(*fd, data, sizeof(data));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			*event = loop_free(*event);
			fd_drop(fd);
			return;
		}
		use(process, data, (size_t)n);
	}
}

static void on_out(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct process *process = arg;

	drain(process, &process->out, &process->on_out, take_output);
	if (process->error != 0)
		process->on_out = loop_free(
			process->on_out); /* killed: nothing more is read until it is gone */
}

static void on_errors(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct process *process = arg;

	drain(process, &process->errors, &process->on_errors, take_errors);
	if (process->error != 0)
		process->on_errors = loop_free(process->on_errors);
}

static void on_exit_event(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct process *process = arg;
	struct process_result result = {0};

	drain(process, &process->out, &process->on_out, take_output);
	drain(process, &process->errors, &process->on_errors, take_errors);
	if (process->spec.line && process->line.used > 0)
		line_end(process); /* a last line without newline */
	wait_for(process, &result);
	result.error = process->error;
	result.output = capture_text(&process->output);
	result.n_output = process->output.used;
	result.errors = capture_text(&process->error_text);
	process->spec.done(process->spec.arg, &result);
	if (process->ended)
		*process->ended = true;
	process_free(process);
}

static void on_timeout(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	process_kill(arg, -ETIMEDOUT);
}

/* -- input */

static void input_end(struct process *process)
{
	process->on_in = loop_free(process->on_in);
	fd_drop(&process->in);
	text_done(&process->input);
}

/* Writes what there is: 1 when all was taken, 0 when the pipe is full, negative when it broke. */
static int input_write(struct process *process)
{
	const char *data;
	size_t n;
	ssize_t written;

	while ((data = text_head(&process->input, &n))) {
		written = write(process->in, data, n);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (process->spec.sent)
			process->spec.sent(process->spec.arg, data, (size_t)written);
		text_consume(&process->input, (size_t)written);
	}
	return 1;
}

/* A piece at a time, so that others on the loop have their turn. */
static void on_in(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct process *process = arg;
	int r = input_write(process);

	if (r == 1 && process->spec.more)
		r = !process->spec.more(process->spec.arg, &process->input);
	if (r != 0)
		input_end(process); /* EPIPE: it reads no further; its exit status says why */
}

/* -- the start */

void process_use_launcher(const struct launcher *launcher)
{
	chosen = launcher;
}

int process_launcher_fd(void)
{
	return chosen ? launcher_fd(chosen) : -1;
}

int process_find(const char *name, char **ret_path, struct err *err)
{
	const char *path = getenv("PATH");
	const char *end;
	struct stat st;

	if (strchr(name, '/')) {
		*ret_path = xstrdup(name);
		return 0;
	}
	if (!path)
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	for (;; path = end + 1) {
		cleanup_free char *candidate = NULL;

		end = strchrnul(path, ':');
		candidate = end == path ? xasprintf("./%s", name)
					: xasprintf("%.*s/%s", (int)(end - path), path, name);
		if (stat(candidate, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(candidate, X_OK) == 0) {
			*ret_path = take(candidate);
			return 0;
		}
		if (*end == '\0')
			return err_set(err, -ENOENT, "program '%s' not found in PATH", name);
	}
}

/* A pipe of which our end (0: we read, 1: we write) does not block. */
static int make_pipe(int ours, int *ret_ours, int *ret_theirs)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	fcntl(fds[0], F_SETPIPE_SZ, PIPE_SIZE); /* may be refused: then it is smaller */
	if (fcntl(fds[ours], F_SETFL, O_NONBLOCK) < 0) {
		int r = -errno;

		close(fds[0]);
		close(fds[1]);
		return r;
	}
	*ret_ours = fds[ours];
	*ret_theirs = fds[!ours];
	return 0;
}

static int launch(struct process *process, const int fds[static 3])
{
	const struct process_spec *spec = &process->spec;
	const struct spawn_spec direct = {
		.path = spec->path,
		.argv = spec->argv,
		.env = spec->env,
		.fds = {fds[0], fds[1], fds[2]},
	};

	if (chosen)
		return launcher_run(chosen, spec->path, spec->argv, spec->env, fds, &process->end);
	return spawn_start(&direct, &process->pid, &process->end);
}

static int start_child(struct process *process)
{
	cleanup_fd int in = -1;
	cleanup_fd int out = -1;
	cleanup_fd int errors = -1;
	int r = 0;

	if (process->input.size > 0 || process->spec.more)
		r = make_pipe(1, &process->in, &in);
	else if ((in = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
		r = -errno;
	if (r >= 0)
		r = make_pipe(0, &process->out, &out);
	if (r >= 0)
		r = make_pipe(0, &process->errors, &errors);
	if (r >= 0)
		r = launch(process, (int[]){in, out, errors});
	return r;
}

static void watch_all(struct process *process, struct event_base *loop)
{
	const short readable = EV_READ | EV_PERSIST;

	process->on_exit = loop_watch(loop, process->end, readable, on_exit_event, process);
	process->on_out = loop_watch(loop, process->out, readable, on_out, process);
	process->on_errors = loop_watch(loop, process->errors, readable, on_errors, process);
	if (process->in >= 0)
		process->on_in =
			loop_watch(loop, process->in, EV_WRITE | EV_PERSIST, on_in, process);
	if (process->spec.timeout_ns <= 0)
		return;
	process->on_timeout = loop_timer(loop, on_timeout, process);
	loop_arm(process->on_timeout, process->spec.timeout_ns);
}

int process_start(struct event_base *loop, const struct process_spec *spec, struct process **ret,
		  struct err *err)
{
	struct process *process = xcalloc(1, sizeof(*process));
	const char *name = spec->argv[0];
	int r;

	signal(SIGPIPE, SIG_IGN);
	process->spec = *spec;
	process->end = process->in = process->out = process->errors = -1;
	text_init(&process->input);
	if (spec->input)
		text_move(&process->input, spec->input);
	r = start_child(process);
	process->spec.argv = NULL; /* not kept */
	process->spec.path = NULL;
	process->spec.input = NULL;
	if (r < 0) {
		process_free(process);
		if (chosen && r == -EPERM)
			return err_set(err, r,
				       "starting %s (%s): differs from what was allowed before the "
				       "sandbox was entered: start the daemon again",
				       name, spec->path);
		return err_sys(err, r, "starting %s (%s)", name, spec->path);
	}
	watch_all(process, loop);
	*ret = process;
	return 0;
}

void process_cancel(struct process *process)
{
	struct process_result ignored;

	if (!process)
		return;
	if (process->in < 0 && process->spec.grace_ns > 0) {
		struct pollfd end = {.fd = process->end, .events = POLLIN};

		poll(&end, 1, (int)(process->spec.grace_ns / CLOCK_NS_PER_MS));
	}
	process_kill(process, -ECANCELED);
	wait_for(process, &ignored); /* at once */
	process_free(process);
}

/* -- waiting for it */

int process_run(const struct process_spec *spec, struct err *err)
{
	struct event_base *loop = event_base_new();
	struct process *process = NULL;
	bool ended = false;
	int r;

	if (!loop)
		return err_set(err, -ENOMEM, "no event loop for %s", spec->argv[0]);
	r = process_start(loop, spec, &process, err);
	if (process)
		process->ended = &ended;
	while (process && !ended)
		event_base_loop(loop, EVLOOP_ONCE);
	event_base_free(loop);
	return r;
}

/* -- saying how it ended */

/* Many lines as one: "a; b; c", or "a: b" where a line ends in a colon. */
static void one_line(const char *s, char *out, size_t size)
{
	size_t n = 0;

	while (*s && n + 3 < size) {
		if (*s != '\n') {
			out[n++] = *s++;
			continue;
		}
		s += strspn(s, "\n ");
		while (n > 0 && out[n - 1] == ' ')
			n--;
		if (n == 0 || *s == '\0')
			continue;
		if (out[n - 1] != ':')
			out[n++] = ';';
		out[n++] = ' ';
	}
	out[n] = '\0';
}

int process_check(const char *what, const struct process_result *result, struct err *err)
{
	char said[768];
	const char *before;

	one_line(result->errors, said, sizeof(said));
	before = said[0] ? ": " : "";
	if (result->error == -ETIMEDOUT)
		return err_set(err, -ETIMEDOUT, "%s took too long and was ended%s%s", what, before,
			       said);
	if (result->error == -EFBIG)
		return err_set(err, -EFBIG, "%s wrote too much and was ended", what);
	if (result->exit_code < 0)
		return err_set(err, -EIO, "%s was ended by signal %d%s%s", what, result->signal,
			       before, said);
	if (result->exit_code > 0)
		return err_set(err, result->exit_code == 4 ? -EAGAIN : -EIO,
			       "%s failed with status %d%s%s", what, result->exit_code, before,
			       said);
	return 0;
}
