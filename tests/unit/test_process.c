/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "fake_tools.h"
#include "kernel/open_files.h"
#include "kernel/process.h"

struct seen {
	bool done;
	int error, exit_code, signal;
	char *output, *errors;
	size_t n_output;
	struct text lines, sent;
	int pieces;         /* given by on_more() so far */
	size_t largest_gap; /* input that waited when more was asked for */
};

static void on_done(void *arg, const struct process_result *result)
{
	struct seen *seen = arg;

	seen->done = true;
	seen->error = result->error;
	seen->exit_code = result->exit_code;
	seen->signal = result->signal;
	seen->output = xstrdup(result->output);
	seen->n_output = result->n_output;
	seen->errors = xstrdup(result->errors);
}

static void on_line(void *arg, const char *line, size_t length)
{
	struct seen *seen = arg;

	assert_int_equal(strlen(line), length);
	text_printf(&seen->lines, "[%s]", line);
}

static void on_sent(void *arg, const char *data, size_t n)
{
	struct seen *seen = arg;

	text_add(&seen->sent, data, n);
}

#define PIECES 300

static bool on_more(void *arg, struct text *input)
{
	struct seen *seen = arg;

	seen->largest_gap = MAX(seen->largest_gap, input->size);
	if (seen->pieces == PIECES)
		return false;
	for (int i = 0; i < 1000; i++)
		text_printf(input, "-A KUBE-SERVICES piece %d\n", seen->pieces);
	seen->pieces++;
	return true;
}

static void seen_done(struct seen *seen)
{
	free(seen->output);
	free(seen->errors);
	text_done(&seen->lines);
	text_done(&seen->sent);
}

#define cleanup_seen attr_cleanup(seen_done)

/* Runs a shell script to its end. */
static void run(const char *script, struct process_spec *spec, struct seen *seen)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	struct err err;

	spec->path = "/bin/sh";
	spec->argv = argv;
	if (spec->output_max == 0)
		spec->output_max = 1 << 20;
	spec->done = on_done;
	spec->arg = seen;
	assert_int_equal(process_run(spec, &err), 0);
	assert_true(seen->done);
}

static void output_errors_and_exit_status_are_delivered(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {0};

	run("echo out; echo err >&2; exit 3", &spec, &seen);
	assert_int_equal(seen.error, 0);
	assert_int_equal(seen.exit_code, 3);
	assert_int_equal(seen.signal, 0);
	assert_string_equal(seen.output, "out\n");
	assert_string_equal(seen.errors, "err\n");
}

/* Programs that use select() cannot have more than 1,024. */
static void a_program_gets_the_limit_of_open_files_that_we_began_with(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {0};
	struct rlimit limit;
	char wanted[64];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = MIN(limit.rlim_max, 512) / 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(open_files_raise(), limit.rlim_max);
	snprintf(wanted, sizeof(wanted), "%llu %llu\n", (unsigned long long)limit.rlim_cur,
		 (unsigned long long)limit.rlim_max);
	run("echo $(ulimit -Sn) $(ulimit -Hn)", &spec, &seen);
	assert_string_equal(seen.output, wanted);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(limit.rlim_cur, limit.rlim_max);
}

static void a_signal_is_not_an_exit_status(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {0};

	run("kill -TERM $$", &spec, &seen);
	assert_int_equal(seen.exit_code, -1);
	assert_int_equal(seen.signal, SIGTERM);
}

static void large_input_comes_through_and_is_released(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	cleanup_text struct text input = {0};
	struct process_spec spec = {.input = &input, .output_max = 32 << 20, .sent = on_sent};
	cleanup_free char *expected = NULL;
	cleanup_free char *sent = NULL;

	for (int i = 0; i < 400000; i++)
		text_printf(&input, "-A KUBE-SERVICES line %d\n", i);
	expected = text_dup(&input);
	run("cat", &spec, &seen);
	assert_int_equal(input.size, 0);
	assert_int_equal(seen.n_output, strlen(expected));
	assert_string_equal(seen.output, expected);
	sent = text_dup(&seen.sent);
	assert_string_equal(sent, expected);
}

static void input_in_pieces_comes_through_and_is_not_heaped_up(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {.more = on_more, .output_max = 32 << 20};
	size_t lines = 0;

	run("cat", &spec, &seen);
	assert_int_equal(seen.exit_code, 0);
	assert_int_equal(seen.pieces, PIECES);
	assert_int_equal(seen.largest_gap, 0); /* asked for only when all was taken */
	for (const char *at = seen.output; *at; at++)
		lines += *at == '\n';
	assert_int_equal(lines, PIECES * 1000);
	assert_non_null(strstr(seen.output, "piece 299\n"));
}

static void pieces_end_when_nobody_reads(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {.more = on_more};

	run("exec <&-; exit 5", &spec, &seen);
	assert_int_equal(seen.exit_code, 5);
	assert_true(seen.pieces < PIECES);
}

static void input_that_nobody_reads_does_no_harm(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	cleanup_text struct text input = {0};
	struct process_spec spec = {.input = &input};

	for (int i = 0; i < 400000; i++)
		text_str(&input, "more than a pipe holds\n");
	run("exec <&-; exit 2", &spec, &seen);
	assert_int_equal(seen.exit_code, 2);
}

static void without_input_stdin_is_empty(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {0};

	run("cat; echo end", &spec, &seen);
	assert_string_equal(seen.output, "end\n");
}

static void output_comes_line_by_line(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {.line = on_line};
	cleanup_free char *lines = NULL;

	run("printf 'a\\n\\nb c\\n'; printf 'no newline'", &spec, &seen);
	lines = text_dup(&seen.lines);
	assert_string_equal(lines, "[a][][b c][no newline]");
	assert_string_equal(seen.output, "");
}

static void too_much_output_ends_the_program(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {.output_max = 1000};
	struct process_result result = {0};
	struct err err;

	run("while :; do echo 0123456789; done", &spec, &seen);
	assert_int_equal(seen.error, -EFBIG);
	result.error = seen.error;
	result.errors = "";
	assert_int_equal(process_check("yes", &result, &err), -EFBIG);
}

static void too_many_errors_are_cut(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {0};

	run("head -c 200000 /dev/zero | tr '\\0' x >&2; exit 1", &spec, &seen);
	assert_int_equal(seen.exit_code, 1);
	assert_int_equal(strlen(seen.errors), PROCESS_ERRORS_MAX);
}

static void a_program_that_takes_too_long_is_ended(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {.timeout_ns = 50 * CLOCK_NS_PER_MS};
	int64_t start = clock_now_ns();

	run("exec sleep 1000", &spec, &seen);
	assert_int_equal(seen.error, -ETIMEDOUT);
	assert_true(clock_now_ns() - start >= 50 * CLOCK_NS_PER_MS);
}

static void a_grandchild_does_not_hold_it_up(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {0};
	int64_t start = clock_now_ns();

	run("sleep 60 & echo $!", &spec, &seen);
	assert_true(clock_now_ns() - start < 50 * CLOCK_NS_PER_SECOND);
	assert_int_equal(kill(atoi(seen.output), SIGKILL), 0);
}

static void environment_stays_but_for_the_locale(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {0};

	setenv("LC_ALL", "de_DE.UTF-8", 1);
	setenv("PORTOLAN_TEST", "kept", 1);
	run("echo $LC_ALL $PORTOLAN_TEST", &spec, &seen);
	assert_string_equal(seen.output, "C kept\n");
	assert_string_equal(getenv("LC_ALL"), "de_DE.UTF-8");
	unsetenv("LC_ALL");
}

static void variables_of_its_own_count_before_the_daemons(void **state attr_unused)
{
	static const char *const env[] = {"PORTOLAN_TEST=own", "PORTOLAN_NEW=new", NULL};
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {.env = env};

	setenv("PORTOLAN_TEST", "daemon", 1);
	setenv("PORTOLAN_TEST_TWO", "two", 1); /* a longer name is another name */
	run("echo $LC_ALL $PORTOLAN_TEST $PORTOLAN_TEST_TWO $PORTOLAN_NEW", &spec, &seen);
	assert_string_equal(seen.output, "C own two new\n");
	unsetenv("PORTOLAN_TEST_TWO");
}

static void no_descriptor_and_no_signal_setting_leaks_into_it(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct process_spec spec = {0};
	sigset_t block;

	sigemptyset(&block);
	sigaddset(&block, SIGTERM);
	sigprocmask(SIG_BLOCK, &block, NULL);
	/* 3 is the folder that ls reads; signals 32 and 33 are the C library's own */
	run("ls /proc/self/fd | tr '\\n' ' '\n"
	    "for set in SigBlk SigIgn; do\n"
	    "  echo $set $((0x$(sed -n \"s/$set:.//p\" /proc/self/status) & 0x7fffffff))\n"
	    "done",
	    &spec, &seen);
	sigprocmask(SIG_UNBLOCK, &block, NULL);
	assert_string_equal(seen.output, "0 1 2 3 SigBlk 0\nSigIgn 0\n");
}

static void programs_are_found_in_path(void **state attr_unused)
{
	struct fake fake;
	struct err err;
	cleanup_free char *path = NULL;
	cleanup_free char *expected = NULL;
	char *none = NULL;

	fake_start(&fake);
	fake_write(&fake, "not-a-program", "");
	assert_int_equal(process_find("iptables", &path, &err), 0);
	expected = fake_file(&fake, "bin/iptables");
	assert_string_equal(path, expected);
	setenv("PATH", fake.folder, 1);
	assert_int_equal(process_find("not-a-program", &none, &err), -ENOENT);
	assert_string_equal(err.text, "program 'not-a-program' not found in PATH");
	assert_null(none);
	fake_stop(&fake);
}

static void a_missing_program_is_an_error_of_the_start(void **state attr_unused)
{
	const char *argv[] = {"nothing", NULL};
	struct process_spec spec = {.path = "/nonexistent/nothing", .argv = argv, .done = on_done};
	struct err err;

	assert_int_equal(process_run(&spec, &err), -ENOENT);
	assert_string_equal(err.text,
			    "starting nothing (/nonexistent/nothing): No such file or directory");
}

static struct process *start_cat(struct event_base *loop, struct text *input, int64_t grace_ns,
				 const char *script, struct seen *seen)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	const struct process_spec spec = {
		.path = "/bin/sh",
		.argv = argv,
		.input = input,
		.output_max = 1 << 20,
		.grace_ns = grace_ns,
		.done = on_done,
		.arg = seen,
	};
	struct process *process;
	struct err err;

	assert_int_equal(process_start(loop, &spec, &process, &err), 0);
	return process;
}

static void cancelling_ends_it_without_a_callback(void **state attr_unused)
{
	cleanup_seen struct seen seen = {0};
	struct event_base *loop = event_base_new();

	process_cancel(start_cat(loop, NULL, 0, "exec sleep 1000", &seen));
	event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_false(seen.done);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	event_base_free(loop);
}

/* Cancels a program once it has got its input and opened a file; does it still write it? */
static bool cancelled_writer_finishes(int64_t grace_ns, const char *work)
{
	cleanup_seen struct seen seen = {0};
	cleanup_text struct text input = {0};
	struct event_base *loop = event_base_new();
	char template[] = "/tmp/portolan-test-XXXXXX";
	cleanup_free char *path = xasprintf("%s/written", mkdtemp(template));
	cleanup_free char *script = xasprintf("cat; exec >%s; %s; echo done", path, work);
	struct process *process;
	struct stat st = {0};

	text_str(&input, "transaction\n");
	process = start_cat(loop, &input, grace_ns, script, &seen);
	while (stat(path, &st) < 0)
		event_base_loop(loop, EVLOOP_NONBLOCK);
	process_cancel(process);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	assert_int_equal(stat(path, &st), 0);
	unlink(path);
	rmdir(template);
	event_base_free(loop);
	return st.st_size > 0;
}

static void cancelling_gives_a_writer_its_grace(void **state attr_unused)
{
	static const char *const busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";

	assert_true(cancelled_writer_finishes(20 * CLOCK_NS_PER_SECOND, busy));
	assert_false(cancelled_writer_finishes(0, "exec sleep 1000"));
	assert_false(cancelled_writer_finishes(CLOCK_NS_PER_MS, "exec sleep 1000"));
}

static _Noreturn void die_in_mid_program(const char *script)
{
	struct event_base *loop = event_base_new();
	struct seen seen = {0};

	start_cat(loop, NULL, 0, script, &seen);
	event_base_loop(loop, EVLOOP_ONCE); /* its first words */
	kill(getpid(), SIGKILL);
	abort();
}

/* A daemon that is killed in mid-sync leaves no program behind that writes later. */
static void a_program_dies_with_its_parent(void **state attr_unused)
{
	char template[] = "/tmp/portolan-test-XXXXXX";
	cleanup_free char *fifo = xasprintf("%s/fifo", mkdtemp(template));
	cleanup_free char *script =
		xasprintf("exec 9>%s; echo here >&9; echo; exec sleep 1000", fifo);
	char said[16] = "";
	pid_t parent;
	int fd;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	parent = fork();
	if (parent == 0)
		die_in_mid_program(script);
	fd = open(fifo, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, said, sizeof(said)), 5);
	assert_string_equal(said, "here\n");
	assert_int_equal(read(fd, said, sizeof(said)), 0); /* the only writer is gone */
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	close(fd);
	unlink(fifo);
	rmdir(template);
}

static void the_loop_is_not_blocked_while_it_runs(void **state attr_unused)
{
	struct seen seen[2] = {{0}};
	struct event_base *loop = event_base_new();
	char template[] = "/tmp/portolan-test-XXXXXX";
	cleanup_free char *fifo = xasprintf("%s/fifo", mkdtemp(template));
	cleanup_free char *reader = xasprintf("cat %s", fifo);
	cleanup_free char *writer = xasprintf("echo through >%s", fifo);

	assert_int_equal(mkfifo(fifo, 0600), 0);
	start_cat(loop, NULL, 0, reader, &seen[0]);
	start_cat(loop, NULL, 0, writer, &seen[1]); /* the first waits for the second */
	fake_wait(loop, &seen[0].done);
	fake_wait(loop, &seen[1].done);
	assert_string_equal(seen[0].output, "through\n");
	event_base_free(loop);
	unlink(fifo);
	rmdir(template);
	seen_done(&seen[0]);
	seen_done(&seen[1]);
}

static void how_it_ended_is_said_in_one_line(void **state attr_unused)
{
	struct process_result result = {.exit_code = 2,
					.errors = "tool v1: \nline 4: bad thing\n\nmore\n"};
	struct err err;

	assert_int_equal(process_check("tool -x", &result, &err), -EIO);
	assert_string_equal(err.text,
			    "tool -x failed with status 2: tool v1: line 4: bad thing; more");
	result.exit_code = 4;
	assert_int_equal(process_check("tool", &result, &err), -EAGAIN);
	result = (struct process_result){.exit_code = -1, .signal = 9, .errors = ""};
	assert_int_equal(process_check("tool", &result, &err), -EIO);
	assert_string_equal(err.text, "tool was ended by signal 9");
	result = (struct process_result){.errors = "a warning"};
	assert_int_equal(process_check("tool", &result, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_errors_and_exit_status_are_delivered),
		cmocka_unit_test(a_program_gets_the_limit_of_open_files_that_we_began_with),
		cmocka_unit_test(a_signal_is_not_an_exit_status),
		cmocka_unit_test(large_input_comes_through_and_is_released),
		cmocka_unit_test(input_in_pieces_comes_through_and_is_not_heaped_up),
		cmocka_unit_test(pieces_end_when_nobody_reads),
		cmocka_unit_test(input_that_nobody_reads_does_no_harm),
		cmocka_unit_test(without_input_stdin_is_empty),
		cmocka_unit_test(output_comes_line_by_line),
		cmocka_unit_test(too_much_output_ends_the_program),
		cmocka_unit_test(too_many_errors_are_cut),
		cmocka_unit_test(a_program_that_takes_too_long_is_ended),
		cmocka_unit_test(a_grandchild_does_not_hold_it_up),
		cmocka_unit_test(environment_stays_but_for_the_locale),
		cmocka_unit_test(variables_of_its_own_count_before_the_daemons),
		cmocka_unit_test(no_descriptor_and_no_signal_setting_leaks_into_it),
		cmocka_unit_test(programs_are_found_in_path),
		cmocka_unit_test(a_missing_program_is_an_error_of_the_start),
		cmocka_unit_test(cancelling_ends_it_without_a_callback),
		cmocka_unit_test(cancelling_gives_a_writer_its_grace),
		cmocka_unit_test(a_program_dies_with_its_parent),
		cmocka_unit_test(the_loop_is_not_blocked_while_it_runs),
		cmocka_unit_test(how_it_ended_is_said_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
