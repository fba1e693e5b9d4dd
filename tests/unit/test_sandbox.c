/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What can still be done in the sandbox, and what no longer can. Each try is made by a copy of this
 * process, which enters the sandbox and does not come back.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build.h"
#include "kernel/capabilities.h"
#include "kernel/sandbox.h"

static char *own_file; /* of this user, writable */

static struct sandbox_state enter(enum sandbox_mode mode)
{
	static const char *const writable[] = {"/proc/sys/net", "/does/not/exist", NULL};
	struct sandbox_state state;

	sandbox_enter(&(struct sandbox_spec){.mode = mode,
					     .capabilities = capability_bit(CAP_NET_ADMIN),
					     .writable = writable},
		      &state);
	return state;
}

/* The exit status of what a copy of us does in the sandbox. */
static int inside(enum sandbox_mode mode, int (*try)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		enter(mode);
		_exit(try());
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* 0, or why it failed. */
static int outcome(long r)
{
	return r < 0 ? errno : 0;
}

static int try_exec(void)
{
	char *const argv[] = {(char *)"true", NULL};

	return outcome(execve("/bin/true", argv, NULL));
}

static int try_ptrace(void)
{
	return outcome(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int try_mount(void)
{
	return outcome(mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int try_unshare(void)
{
	return outcome(unshare(CLONE_NEWUSER));
}

static int try_namespace(void)
{
	return outcome(syscall(SYS_clone, CLONE_NEWNET | SIGCHLD, NULL, NULL, NULL, NULL));
}

static int try_packet_socket(void)
{
	return outcome(socket(AF_PACKET, SOCK_DGRAM, 0));
}

static int try_local_socket(void)
{
	return outcome(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int try_signal(void)
{
	return outcome(kill(getppid(), 0));
}

static int try_making_a_file(void)
{
	return outcome(open("/tmp/portolan-sandbox-made", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int try_writing_a_file(void)
{
	return outcome(open(own_file, O_WRONLY | O_CLOEXEC));
}

static int try_emptying_a_file(void)
{
	return outcome(open(own_file, O_RDONLY | O_TRUNC | O_CLOEXEC));
}

static int try_removing_a_file(void)
{
	return outcome(unlink(own_file));
}

static int try_module(void)
{
	return outcome(syscall(SYS_init_module, NULL, 0, ""));
}

static int try_bpf(void)
{
	return outcome(syscall(SYS_bpf, 0, NULL, 0));
}

static int try_becoming_root(void)
{
	return outcome(syscall(SYS_setresuid, 0, 0, 0));
}

static int try_newer_call(void)
{
	return outcome(syscall(9999));
}

static int try_clone3(void)
{
	return outcome(syscall(SYS_clone3, NULL, 0));
}

static const struct {
	const char *name;
	int (*try)(void);
	int error;
} refused[] = {
	{"starting a program", try_exec, EPERM},
	{"tracing", try_ptrace, EPERM},
	{"mounting", try_mount, EPERM},
	{"a user namespace", try_unshare, EPERM},
	{"a network namespace", try_namespace, EPERM},
	{"a packet socket", try_packet_socket, EPERM},
	{"a signal to another process", try_signal, EPERM},
	{"making a file", try_making_a_file, EPERM},
	{"emptying a file", try_emptying_a_file, EPERM},
	{"removing a file", try_removing_a_file, EPERM},
	{"loading a module", try_module, EPERM},
	{"bpf", try_bpf, EPERM},
	{"another user", try_becoming_root, EPERM},
	{"a call that is newer than the tables", try_newer_call, ENOSYS},
	{"a call that the C library can do without", try_clone3, ENOSYS},
};

static void what_matters_is_refused(void **state attr_unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		int got = inside(SANDBOX_ON, refused[i].try);

		if (got != refused[i].error)
			fail_msg("%s: %s (%d)", refused[i].name, strerror(got), got);
	}
	assert_int_equal(access(own_file, F_OK), 0);
}

static int landlock_version(void)
{
	return enter(SANDBOX_ON).landlock;
}

static void files_are_not_written(void **state attr_unused)
{
	if (inside(SANDBOX_LOG, landlock_version) == 0) {
		print_message("the kernel has no landlock\n");
		skip();
	}
	assert_int_equal(inside(SANDBOX_ON, try_writing_a_file), EACCES);
	assert_int_equal(inside(SANDBOX_LOG, try_writing_a_file), EACCES);
}

static void logging_only_refuses_no_call(void **state attr_unused)
{
	assert_int_equal(inside(SANDBOX_LOG, try_ptrace), 0);
	assert_int_equal(inside(SANDBOX_LOG, try_clone3), EINVAL); /* the kernel's own word */
}

/* -- what goes on */

static void *in_a_thread(void *arg)
{
	return arg;
}

static int try_work(void)
{
	const int domains[] = {AF_INET, AF_INET6, AF_NETLINK};
	pthread_t thread;
	char byte;
	int fd;
	pid_t pid;

	for (size_t i = 0; i < ARRAY_SIZE(domains); i++)
		if (socket(domains[i], SOCK_DGRAM, 0) < 0)
			return 1;
	fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &byte, 1) != 1)
		return 2;
	if (pthread_create(&thread, NULL, in_a_thread, NULL) != 0 ||
	    pthread_join(thread, NULL) != 0)
		return 3;
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		return 4;
	return 0;
}

static void the_daemons_work_goes_on(void **state attr_unused)
{
	assert_int_equal(inside(SANDBOX_ON, try_work), 0);
}

static int try_aborting(void)
{
	abort();
}

/* Over them root is believed by whoever starts containers and services. */
static void root_opens_no_local_sockets(void **state attr_unused)
{
	assert_int_equal(inside(SANDBOX_ON, try_local_socket), geteuid() == 0 ? EPERM : 0);
}

static void it_can_still_abort(void **state attr_unused)
{
	assert_int_equal(inside(SANDBOX_ON, try_aborting), -SIGABRT);
}

static int try_capabilities(void)
{
	if (capabilities_permitted() & ~capability_bit(CAP_NET_ADMIN))
		return 1;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 2;
	if (geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) == 1)
		return 3;
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_NET_ADMIN, 0, 0) == 1 ? 4 : 0;
}

static void capabilities_are_given_up(void **state attr_unused)
{
	assert_int_equal(inside(SANDBOX_ON, try_capabilities), 0);
}

/* -- the user */

static void it_knows_what_another_user_cannot_read(void **state attr_unused)
{
	const char *const paths[] = {"/etc/passwd", "/does/not/exist", own_file, "/etc/hosts"};
	size_t unreadable = 0;
	int r;

	if (geteuid() != 0)
		skip();
	r = sandbox_try_user(paths, 2, &unreadable);
	if (r < 0)
		skip(); /* a user namespace with one user */
	assert_int_equal(r, 1);
	assert_int_equal(chmod(own_file, 0600), 0);
	assert_int_equal(sandbox_try_user(paths, ARRAY_SIZE(paths), &unreadable), 0);
	assert_int_equal(unreadable, 2);
}

static void the_other_user_keeps_what_is_needed(void **state attr_unused)
{
	static const char *const writable[] = {NULL};
	struct sandbox_state left;
	int status;
	pid_t pid;

	if (geteuid() != 0 || sandbox_try_user(NULL, 0, NULL) < 0)
		skip();
	pid = fork();
	if (pid == 0) {
		sandbox_enter(&(struct sandbox_spec){.mode = SANDBOX_ON,
						     .capabilities = capability_bit(CAP_NET_ADMIN),
						     .other_user = true,
						     .writable = writable},
			      &left);
		_exit(left.user != SANDBOX_USER                                       ? 1
		      : left.capabilities != capability_bit(CAP_NET_ADMIN)            ? 2
		      : left.missing[0]                                               ? 3
		      : socket(AF_UNIX, SOCK_STREAM, 0) < 0                           ? 5
		      : open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 ? 4
										      : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void modes_have_names(void **state attr_unused)
{
	enum sandbox_mode mode;

	assert_true(sandbox_mode_parse("log", &mode));
	assert_int_equal(mode, SANDBOX_LOG);
	assert_string_equal(sandbox_mode_name(SANDBOX_ON), "on");
	assert_false(sandbox_mode_parse("maybe", &mode));
}

static int make_file(void **state attr_unused)
{
	int fd;

	own_file = xstrdup("/tmp/portolan-sandbox-XXXXXX");
	fd = mkstemp(own_file);
	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static int remove_file(void **state attr_unused)
{
	unlink(own_file);
	free(own_file);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_matters_is_refused),
		cmocka_unit_test(files_are_not_written),
		cmocka_unit_test(logging_only_refuses_no_call),
		cmocka_unit_test(the_daemons_work_goes_on),
		cmocka_unit_test(root_opens_no_local_sockets),
		cmocka_unit_test(it_can_still_abort),
		cmocka_unit_test(capabilities_are_given_up),
		cmocka_unit_test(it_knows_what_another_user_cannot_read),
		cmocka_unit_test(the_other_user_keeps_what_is_needed),
		cmocka_unit_test(modes_have_names),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
