/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/forked_task.h"

#include <errno.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "kernel/process.h"

struct forked_task {
	struct forked_task_spec spec;
	pid_t pid; /* 0: it is over */
	int pidfd;
	struct event *on_exit;
};

/* All but the standard ones and this one, or -1. */
static void close_others(int kept)
{
	unsigned int first = STDERR_FILENO + 1;

	if (kept > (int)first)
		close_range(first, (unsigned int)kept - 1, 0);
	close_range(kept < 0 ? first : (unsigned int)kept + 1, ~0U, 0);
}

/* The parent may have died before the kernel was told what that means. */
static void run_copy(const struct forked_task_spec *spec, pid_t parent)
{
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	close_others(process_launcher_fd());
	log_forked();
	_exit(spec->work(spec->arg));
}

static int reap(struct forked_task *task)
{
	int status;
	pid_t pid = waitpid(task->pid, &status, 0);

	task->pid = 0;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void on_exit_event(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct forked_task *task = arg;
	int status = reap(task);

	if (task->spec.done)
		task->spec.done(task->spec.arg, status);
}

static int watch(struct forked_task *task, struct event_base *loop, struct err *err)
{
	task->pidfd = pidfd_open(task->pid, 0);
	if (task->pidfd < 0)
		return err_sys(err, -errno, "watching a process");
	task->on_exit = event_new(loop, task->pidfd, EV_READ, on_exit_event, task);
	if (!task->on_exit || event_add(task->on_exit, NULL) < 0)
		return err_set(err, -EIO, "a process cannot be watched");
	return 0;
}

int forked_task_start(struct event_base *loop, const struct forked_task_spec *spec,
		      struct forked_task **ret, struct err *err)
{
	struct forked_task *task = xcalloc(1, sizeof(*task));
	pid_t parent = getpid();
	int r;

	*task = (struct forked_task){.spec = *spec, .pidfd = -1};
	task->pid = fork();
	if (task->pid == 0)
		run_copy(spec, parent);
	r = task->pid < 0 ? err_sys(err, -errno, "starting a process") : watch(task, loop, err);
	if (r < 0) {
		task->pid = MAX(task->pid, 0);
		task->spec.grace_ns = 0;
		forked_task_free(task);
		return r;
	}
	*ret = task;
	return 0;
}

struct forked_task *forked_task_free(struct forked_task *task)
{
	struct pollfd end = {.events = POLLIN};

	if (!task)
		return NULL;
	loop_free(task->on_exit);
	end.fd = task->pidfd;
	if (task->pid && task->spec.grace_ns > 0)
		poll(&end, 1, (int)(task->spec.grace_ns / CLOCK_NS_PER_MS));
	if (task->pid) {
		if (pidfd_send_signal(task->pidfd, SIGKILL, NULL, 0) < 0)
			kill(task->pid, SIGKILL); /* it could not be watched */
		reap(task);
	}
	util_close_fd(&task->pidfd);
	free(task);
	return NULL;
}
