/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/spawn.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/open_files.h"

/*
 * The child shares our memory until its exec, while we are stopped, so that the start costs the
 * same whatever the size of the daemon. posix_spawn() does that too, but cannot let the child die
 * with its parent.
 */

#define CHILD_STACK (64UL * 1024)

/* ThreadSanitizer would take what the child does for the daemon's own deeds. */
#ifdef __SANITIZE_THREAD__
#define SHARED_MEMORY 0
#else
#define SHARED_MEMORY CLONE_VM
#endif

extern char **environ;

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strncmp(a, b, n) == 0 && b[n] == '=';
}

/* Puts a variable in the place of one with its name, or behind the n that there are. */
static size_t put_variable(char **variables, size_t n, const char *variable)
{
	size_t i = 0;

	while (i < n && !same_name(variables[i], variable))
		i++;
	variables[i] = (char *)variable; /* execve() has no const; it is not written to */
	return MAX(n, i + 1);
}

/* Our environment, LC_ALL=C and what the program wants: an array for the caller to free, of borrowed
 * strings. */
static char **make_environment(const struct spawn_spec *spec)
{
	size_t n = util_count_words((const char *const *)environ);
	size_t extra = util_count_words(spec->env);
	char **result = xcalloc(n + extra + 2, sizeof(*result));

	memcpy(result, environ, n * sizeof(*result));
	n = put_variable(result, n, "LC_ALL=C");
	for (size_t i = 0; i < extra; i++)
		n = put_variable(result, n, spec->env[i]);
	return result;
}

/* What the child needs between its start and exec, in memory that it shares in any case. */
struct child {
	const struct spawn_spec *spec;
	char **environment;
	pid_t parent;
	int error; /* why there was no exec */
};

static void child_signals(void)
{
	const struct sigaction normal = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &normal, NULL); /* refused for those that cannot be changed */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int child_run(void *arg)
{
	struct child *child = arg;

	child_signals();
	if (getppid() != child->parent)
		_exit(127); /* the daemon was killed just now */
	for (int i = 0; i < 3; i++)
		if (dup2(child->spec->fds[i], i) < 0)
			goto failed;
	close_range(3, ~0U, 0); /* those that the daemon inherited */
	open_files_restore();
	if (child->spec->prepare)
		child->spec->prepare();
	execve(child->spec->path, (char *const *)child->spec->argv, child->environment);
failed:
	child->error = -errno;
	_exit(127);
}

int spawn_start(const struct spawn_spec *spec, pid_t *ret_pid, int *ret_pidfd)
{
	cleanup_free char **environment = make_environment(spec);
	cleanup_free char *stack = xmalloc(CHILD_STACK);
	struct child *child = mmap(NULL, sizeof(*child), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigset_t all, before;
	int r;

	if (child == MAP_FAILED)
		return -errno;
	*child = (struct child){spec, environment, getpid(), 0};
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the child */
	*ret_pid = clone(child_run, stack + CHILD_STACK,
			 SHARED_MEMORY | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, child, ret_pidfd);
	r = *ret_pid < 0 ? -errno : child->error;
	munmap(child, sizeof(*child));
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (r < 0 && *ret_pid > 0)
		waitpid(*ret_pid, NULL, 0);
	return r;
}
