/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/errand.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

struct errand {
	struct errand_spec spec;
	pid_t pid; /* 0: it is over */
	int pidfd;
	struct event *on_exit;
};

/* The parent may have died before the kernel was told what that means. */
static void run_copy(const struct errand_spec *spec, pid_t parent)
{
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	_exit(spec->work(spec->arg));
}

static int reap(struct errand *errand)
{
	int status;
	pid_t pid = waitpid(errand->pid, &status, 0);

	errand->pid = 0;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void on_exit_event(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct errand *errand = arg;
	int status = reap(errand);

	if (errand->spec.done)
		errand->spec.done(errand->spec.arg, status);
}

static int watch(struct errand *errand, struct event_base *loop, struct err *err)
{
	errand->pidfd = pidfd_open(errand->pid, 0);
	if (errand->pidfd < 0)
		return err_sys(err, -errno, "watching a process");
	errand->on_exit = event_new(loop, errand->pidfd, EV_READ, on_exit_event, errand);
	if (!errand->on_exit || event_add(errand->on_exit, NULL) < 0)
		return err_set(err, -EIO, "a process cannot be watched");
	return 0;
}

int errand_start(struct event_base *loop, const struct errand_spec *spec, struct errand **ret,
		 struct err *err)
{
	struct errand *errand = xcalloc(1, sizeof(*errand));
	pid_t parent = getpid();
	int r;

	*errand = (struct errand){.spec = *spec, .pidfd = -1};
	errand->pid = fork();
	if (errand->pid == 0)
		run_copy(spec, parent);
	r = errand->pid < 0 ? err_sys(err, -errno, "starting a process") : watch(errand, loop, err);
	if (r < 0) {
		errand->pid = MAX(errand->pid, 0);
		errand->spec.grace_ns = 0;
		errand_free(errand);
		return r;
	}
	*ret = errand;
	return 0;
}

struct errand *errand_free(struct errand *errand)
{
	struct pollfd end = {.events = POLLIN};

	if (!errand)
		return NULL;
	if (errand->on_exit)
		event_free(errand->on_exit);
	end.fd = errand->pidfd;
	if (errand->pid && errand->spec.grace_ns > 0)
		poll(&end, 1, (int)(errand->spec.grace_ns / CLOCK_NS_PER_MS));
	if (errand->pid) {
		kill(errand->pid, SIGKILL); /* not yet reaped, so the number is still its own */
		reap(errand);
	}
	util_close_fd(&errand->pidfd);
	free(errand);
	return NULL;
}
