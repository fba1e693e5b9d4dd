/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/capabilities.h"
#include "kernel/landlock.h"
#include "kernel/seccomp_filter.h"

static const char *const mode_names[] = {"off", "log", "on"};
_Static_assert(ARRAY_SIZE(mode_names) == SANDBOX_MODE_COUNT, "a name for each mode");

const char *sandbox_mode_name(enum sandbox_mode mode)
{
	return mode_names[mode];
}

bool sandbox_mode_parse(const char *s, enum sandbox_mode *ret)
{
	return word_parse(s, mode_names, ret);
}

/* -- the user */

static int become_user(struct err *err)
{
	if (setgroups(0, NULL) < 0 || setresgid(SANDBOX_USER, SANDBOX_USER, SANDBOX_USER) < 0)
		return err_sys(err, -errno, "becoming group %d", SANDBOX_USER);
	if (setresuid(SANDBOX_USER, SANDBOX_USER, SANDBOX_USER) < 0)
		return err_sys(err, -errno, "becoming user %d", SANDBOX_USER);
	return 0;
}

/* Exit statuses of the copy that tries; below them: which file cannot be read. */
#define CAN_READ_ALL  255
#define CANNOT_BECOME 254

static int try_user(const char *const *paths, size_t n)
{
	struct err ignored;

	if (become_user(&ignored) < 0)
		return CANNOT_BECOME;
	for (size_t i = 0; i < n; i++) {
		int fd = open(paths[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0 && errno == EACCES)
			return (int)i;
		util_close_fd(&fd);
	}
	return CAN_READ_ALL;
}

int sandbox_try_user(const char *const *paths, size_t n, size_t *ret_unreadable)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(try_user(paths, MIN(n, CANNOT_BECOME)));
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) ||
	    WEXITSTATUS(status) == CANNOT_BECOME)
		return -EPERM;
	if (WEXITSTATUS(status) == CAN_READ_ALL)
		return 1;
	*ret_unreadable = (size_t)WEXITSTATUS(status);
	return 0;
}

/* -- all of it */

static void note(struct sandbox_state *state, const struct err *err)
{
	size_t n = strlen(state->missing);

	snprintf(state->missing + n, sizeof(state->missing) - n, "%s%s", n > 0 ? "; " : "",
		 err->text);
}

/* Capabilities survive the change of the user only when that is asked for. */
static void change_user(struct sandbox_state *state)
{
	struct err err;
	int r;

	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	r = become_user(&err);
	if (r < 0)
		note(state, &err);
	if (r < 0 && getegid() == SANDBOX_USER && setresgid(0, 0, 0) < 0)
		note(state, &err); /* a group that owns nothing */
	prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
}

static void limit_capabilities(uint64_t keep, bool other_user, struct sandbox_state *state)
{
	struct err err;

	if (capabilities_bound(keep, &err) < 0 && (capabilities_permitted() & ~keep))
		note(state, &err);
	if (other_user && geteuid() == 0)
		change_user(state);
	if (capabilities_keep(keep, false, &err) < 0)
		note(state, &err);
	/*
	 * The kernel has made our files in /proc those of root. Without that it still lets no other user in
	 * who has not all our capabilities.
	 */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	state->capabilities = capabilities_permitted();
	state->user = geteuid();
}

static int forbid_privileges(struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, -errno, "setting no_new_privs");
	return 0;
}

void sandbox_prepare(void)
{
	struct err ignored; /* what is missing is told by the call that needs it */

	if (geteuid() != 0)
		(void)capabilities_keep(UINT64_MAX, true, &ignored);
}

void sandbox_enter(const struct sandbox_spec *spec, struct sandbox_state *ret)
{
	struct seccomp_filter_choice choice = {.log_only = spec->mode == SANDBOX_LOG};
	struct err err;
	int r;

	*ret = (struct sandbox_state){0};
	limit_capabilities(spec->capabilities, spec->other_user, ret);
	if (forbid_privileges(&err) < 0)
		note(ret, &err);
	r = landlock_enter(spec->writable, &err);
	if (r < 0)
		note(ret, &err);
	ret->landlock = MAX(r, 0);
	choice.writes = ret->landlock > 0 || ret->user != 0;
	choice.local_sockets = ret->user != 0;
	r = seccomp_filter_daemon(&choice, &err);
	if (r < 0)
		note(ret, &err);
	ret->filtered = r >= 0;
}

void sandbox_enter_launcher(uint64_t capabilities)
{
	struct err ignored; /* the daemon meets the same obstacles, and tells */

	(void)capabilities_bound(capabilities, &ignored);
	(void)capabilities_keep(capabilities, true, &ignored);
	(void)forbid_privileges(&ignored);
	(void)seccomp_filter_programs(&ignored);
}
