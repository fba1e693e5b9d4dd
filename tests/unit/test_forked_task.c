/* SPDX-License-Identifier: Apache-2.0 */

/* Work in a copy of this process, beside the loop. */

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build.h"
#include "kernel/forked_task.h"

struct fixture {
	struct event_base *loop;
	struct forked_task *task;
	int gate[2]; /* the copy works until something comes */
	int status;
	size_t n_done, n_ticks;
};

static struct fixture f;

static int set_up(void **state attr_unused)
{
	f = (struct fixture){.loop = event_base_new(), .status = -2};
	assert_int_equal(pipe2(f.gate, O_CLOEXEC), 0);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	forked_task_free(f.task);
	event_base_free(f.loop);
	close(f.gate[0]);
	close(f.gate[1]);
	return 0;
}

static void note_done(void *arg attr_unused, int status)
{
	f.status = status;
	f.n_done++;
	event_base_loopbreak(f.loop);
}

static void start(int (*work)(void *arg), int64_t grace_ns)
{
	const struct forked_task_spec spec = {
		.work = work, .done = note_done, .grace_ns = grace_ns};
	struct err err;

	assert_int_equal(forked_task_start(f.loop, &spec, &f.task, &err), 0);
}

static int answer_seven(void *arg attr_unused)
{
	return 7;
}

static void the_loop_learns_how_it_ended(void **state attr_unused)
{
	start(answer_seven, 0);
	event_base_dispatch(f.loop);
	assert_int_equal(f.n_done, 1);
	assert_int_equal(f.status, 7);
}

/* Standard input stays: it is the gate. */
static int wait_for_input(void *arg attr_unused)
{
	char byte;

	return read(STDIN_FILENO, &byte, 1) == 1 ? 3 : 4;
}

static void open_gate(evutil_socket_t fd attr_unused, short what attr_unused, void *arg attr_unused)
{
	f.n_ticks++;
	assert_int_equal(write(f.gate[1], "x", 1), 1);
}

static void with_gate_as_input(void (*body)(void))
{
	int before = dup(STDIN_FILENO);

	assert_true(dup2(f.gate[0], STDIN_FILENO) >= 0);
	body();
	if (before >= 0) {
		dup2(before, STDIN_FILENO);
		close(before);
	} else {
		close(STDIN_FILENO);
	}
}

static void run_with_tick(void)
{
	const struct timeval soon = {.tv_usec = 1};

	start(wait_for_input, 0);
	event_base_once(f.loop, -1, EV_TIMEOUT, open_gate, NULL, &soon);
	event_base_dispatch(f.loop);
}

static void the_loop_goes_on_meanwhile(void **state attr_unused)
{
	with_gate_as_input(run_with_tick);
	assert_int_equal(f.n_ticks, 1);
	assert_int_equal(f.status, 3);
}

static int count_descriptors(void *arg attr_unused)
{
	return fcntl(f.gate[0], F_GETFD) < 0 && errno == EBADF && fcntl(STDERR_FILENO, F_GETFD) >= 0
		       ? 0
		       : 1;
}

static void descriptors_of_ours_are_closed_there(void **state attr_unused)
{
	start(count_descriptors, 0);
	event_base_dispatch(f.loop);
	assert_int_equal(f.status, 0);
}

static int kill_myself(void *arg attr_unused)
{
	return raise(SIGTERM);
}

/* As a daemon that handles it. */
static void signals_do_there_what_they_do_by_default(void **state attr_unused)
{
	void (*before)(int) = signal(SIGTERM, SIG_IGN);

	start(kill_myself, 0);
	event_base_dispatch(f.loop);
	signal(SIGTERM, before);
	assert_int_equal(f.status, -1);
}

static int wait_for_ever(void *arg attr_unused)
{
	pause();
	return 0;
}

static void one_that_is_freed_is_over(void **state attr_unused)
{
	start(wait_for_ever, 0);
	f.task = forked_task_free(f.task);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(f.n_done, 0);
}

static int report(void *arg attr_unused)
{
	return write(STDIN_FILENO, "y", 1) == 1 ? 0 : 1;
}

static void free_at_once(void)
{
	start(report, INT64_C(60) * 1000000000);
	f.task = forked_task_free(f.task);
}

static void within_its_grace_it_may_finish(void **state attr_unused)
{
	char byte;
	int reader = f.gate[0];

	f.gate[0] = f.gate[1];
	with_gate_as_input(free_at_once);
	f.gate[0] = reader;
	assert_int_equal(read(reader, &byte, 1), 1);
	assert_int_equal(byte, 'y');
}

#define ERRAND_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ERRAND_TEST(the_loop_learns_how_it_ended),
		ERRAND_TEST(the_loop_goes_on_meanwhile),
		ERRAND_TEST(descriptors_of_ours_are_closed_there),
		ERRAND_TEST(signals_do_there_what_they_do_by_default),
		ERRAND_TEST(one_that_is_freed_is_over),
		ERRAND_TEST(within_its_grace_it_may_finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
