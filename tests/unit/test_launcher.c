/* SPDX-License-Identifier: Apache-2.0 */

/* Programs started by another process, and what that one refuses. This program is the launcher too. */

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "build.h"
#include "kernel/capabilities.h"
#include "kernel/launcher.h"
#include "kernel/process.h"

#define SH  "/bin/sh"
#define CAT "/bin/cat"

/* A plugin as a kubeconfig has it. */
static const char *const plugin_argv[] = {"plugin", "-c",
					  "echo $REGION $KUBERNETES_EXEC_INFO; "
					  "grep CapEff /proc/self/status",
					  NULL};
static const char *const plugin_env[] = {"REGION=here", "KUBERNETES_EXEC_INFO={1}", NULL};

struct fixture {
	struct launcher *launcher;
	char *folder;
	char *script;
	char output[4096];
	char errors[4096];
	struct process_result result; /* its texts are in the two above */
};

static struct fixture f;

static void write_script(void)
{
	FILE *file;

	f.folder = xstrdup("/tmp/portolan-launcher-XXXXXX");
	assert_non_null(mkdtemp(f.folder));
	f.script = xasprintf("%s/iptables", f.folder);
	file = fopen(f.script, "we");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\ncat /dev/null && echo \"script $1\"\n");
	fchmod(fileno(file), 0755);
	fclose(file);
}

static int set_up(void **state attr_unused)
{
	struct err err;

	f = (struct fixture){0};
	write_script();
	const struct launcher_program programs[] = {
		{.path = CAT},
		{.path = f.script},
		{.path = SH, .argv = plugin_argv, .env = plugin_env},
	};
	if (launcher_start(programs, ARRAY_SIZE(programs), capability_bit(CAP_NET_ADMIN),
			   &f.launcher, &err) < 0)
		fail_msg("%s", err.text);
	process_use_launcher(f.launcher);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	process_use_launcher(NULL);
	launcher_free(f.launcher);
	unlink(f.script);
	rmdir(f.folder);
	free(f.script);
	free(f.folder);
	return 0;
}

static void on_done(void *arg attr_unused, const struct process_result *result)
{
	f.result = *result;
	snprintf(f.output, sizeof(f.output), "%s", result->output);
	snprintf(f.errors, sizeof(f.errors), "%s", result->errors);
}

static int run_for(int64_t timeout_ns, const char *path, const char *const *argv,
		   const char *const *env, struct text *input, struct err *err)
{
	return process_run(&(struct process_spec){.path = path,
						  .argv = argv,
						  .env = env,
						  .input = input,
						  .output_max = 65536,
						  .timeout_ns = timeout_ns,
						  .done = on_done},
			   err);
}

static int run(const char *path, const char *const *argv, const char *const *env, struct err *err)
{
	return run_for(0, path, argv, env, NULL, err);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void its_input_and_output_are_the_programs(void **state attr_unused)
{
	struct text input;
	struct err err;

	text_init(&input);
	text_str(&input, "through the pipe");
	assert_int_equal(run_for(0, CAT, WORDS("cat", "-"), NULL, &input, &err), 0);
	assert_int_equal(f.result.exit_code, 0);
	assert_string_equal(f.output, "through the pipe");
}

static void how_it_ended_is_told(void **state attr_unused)
{
	struct err err;

	assert_int_equal(run(CAT, WORDS("cat", "/does/not/exist"), NULL, &err), 0);
	assert_int_equal(f.result.exit_code, 1);
	assert_non_null(strstr(f.errors, "/does/not/exist"));
}

static void one_that_takes_too_long_is_killed(void **state attr_unused)
{
	cleanup_free char *path = xasprintf("%s/fifo", f.folder); /* which has no other end */
	struct err err;

	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(run_for(100 * CLOCK_NS_PER_MS, CAT, WORDS("cat", path), NULL, NULL, &err),
			 0);
	unlink(path);
	assert_int_equal(f.result.error, -ETIMEDOUT);
	assert_int_equal(f.result.signal, SIGKILL);
}

static void assert_refused(const char *path, const char *const *argv, const char *const *env)
{
	struct err err;

	assert_int_equal(run(path, argv, env, &err), -EPERM);
	assert_non_null(strstr(err.text, "differs from what was allowed"));
}

static void other_programs_are_refused(void **state attr_unused)
{
	assert_refused("/bin/ls", WORDS("ls"), NULL);
	assert_refused("/bin/../bin/cat", WORDS("cat"), NULL);
	assert_refused(SH, WORDS("sh", "-c", "echo free"), NULL);
}

static void a_tool_goes_by_its_own_name(void **state attr_unused)
{
	assert_refused(CAT, WORDS("cat-save", "/dev/null"), NULL);
}

static void a_tool_gets_no_environment(void **state attr_unused)
{
	assert_refused(CAT, WORDS("cat"), WORDS("LD_PRELOAD=/tmp/own.so"));
}

/* The real one would write to it: iptables-save -f FILE. */
static void saving_and_restoring_names_no_file(void **state attr_unused)
{
	cleanup_free char *path = xasprintf("%s/iptables-save", f.folder);
	const struct launcher_program tool = {.path = path};
	struct launcher *other;
	struct err err;

	assert_int_equal(symlink(CAT, path), 0);
	assert_int_equal(launcher_start(&tool, 1, 0, &other, &err), 0);
	process_use_launcher(other);
	assert_refused(path, WORDS("iptables-save", "-f", "/etc/motd"), NULL);
	assert_refused(path, WORDS("iptables-save", "--file=/etc/motd"), NULL);
	assert_refused(path, WORDS("iptables-save", "-t", "../etc/motd"), NULL);
	assert_refused(path, WORDS("iptables-save", "-M", "sh"), NULL);
	assert_int_equal(run(path, WORDS("iptables-save", "-t", "nat"), NULL, &err), 0);
	assert_non_null(strstr(f.errors, "nat: No such file")); /* of the root, not of ours */
	launcher_free(other);
	unlink(path);
}

static void a_plugin_runs_with_the_words_it_had(void **state attr_unused)
{
	const char *const *changed = WORDS("REGION=here", "KUBERNETES_EXEC_INFO={2}");
	struct err err;

	assert_int_equal(run(SH, plugin_argv, changed, &err), 0);
	assert_int_equal(f.result.exit_code, 0);
	assert_non_null(strstr(f.output, "here {2}\n"));
	assert_refused(SH, WORDS("plugin", "-c", "echo"), plugin_env);
	assert_refused(SH, plugin_argv, WORDS("REGION=there", "KUBERNETES_EXEC_INFO={1}"));
	assert_refused(SH, plugin_argv, WORDS("REGION=here", "LD_PRELOAD=/tmp/own.so"));
	assert_refused(SH, plugin_argv,
		       WORDS("REGION=here", "KUBERNETES_EXEC_INFO={1}", "PATH=/tmp"));
}

static void a_tool_has_the_capabilities_and_a_plugin_none(void **state attr_unused)
{
	uint64_t kept = capability_bit(CAP_NET_ADMIN) & capabilities_permitted();
	cleanup_free char *line = xasprintf("CapEff:\t%016llx\n", (unsigned long long)kept);
	struct err err;

	assert_int_equal(run(CAT, WORDS("cat", "/proc/self/status"), NULL, &err), 0);
	assert_non_null(strstr(f.output, line));
	assert_non_null(strstr(f.output, "NoNewPrivs:\t1\n"));
	assert_non_null(strstr(f.output, "Seccomp:\t2\n"));
	assert_int_equal(run(SH, plugin_argv, plugin_env, &err), 0);
	assert_non_null(strstr(f.output, "CapEff:\t0000000000000000\n"));
}

/* The script starts cat; a program of the machine's own format could not, see the next one. */
static void a_script_may_start_programs(void **state attr_unused)
{
	struct err err;

	assert_int_equal(run(f.script, WORDS("iptables", "-S"), NULL, &err), 0);
	assert_int_equal(f.result.exit_code, 0);
	assert_string_equal(f.output, "script -S\n");
}

static void a_tool_that_is_no_script_starts_none(void **state attr_unused)
{
	const struct launcher_program shell = {.path = SH};
	struct launcher *other;
	struct err err;

	assert_int_equal(launcher_start(&shell, 1, 0, &other, &err), 0);
	process_use_launcher(other);
	assert_int_equal(run(SH, WORDS("sh", "-c", "/bin/true; echo on"), NULL, &err), 0);
	assert_int_not_equal(f.result.exit_code, 0);
	assert_string_equal(f.output, "");
	launcher_free(other);
}

static void wild_requests_do_not_end_it(void **state attr_unused)
{
	struct drand48_data random;
	char bytes[256];
	struct err err;
	long word;

	srand48_r(15, &random);
	for (int i = 0; i < 2000; i++) {
		size_t n = 1 + (size_t)i % sizeof(bytes);

		for (size_t k = 0; k < n; k++) {
			lrand48_r(&random, &word);
			bytes[k] = (char)(word % 3 ? 0 : word >> 8);
		}
		bytes[0] = 3; /* a request to run something */
		assert_int_equal(send(launcher_fd(f.launcher), bytes, n, MSG_NOSIGNAL), n);
	}
	assert_int_equal(run(CAT, WORDS("cat", "/dev/null"), NULL, &err), 0);
	assert_int_equal(f.result.exit_code, 0);
}

static void a_request_that_is_too_long_is_an_error(void **state attr_unused)
{
	cleanup_free char *word = xmalloc(200000);
	struct err err;

	memset(word, 'x', 199999);
	word[199999] = '\0';
	assert_int_equal(run(CAT, WORDS("cat", word), NULL, &err), -E2BIG);
	assert_int_equal(run(CAT, WORDS("cat", "/dev/null"), NULL, &err), 0);
}

static void without_it_nothing_is_started(void **state attr_unused)
{
	struct err err;

	kill(launcher_pid(f.launcher), SIGKILL);
	assert_int_equal(recv(launcher_fd(f.launcher), &err, sizeof(err), 0), 0); /* its end */
	assert_true(run(CAT, WORDS("cat", "/dev/null"), NULL, &err) < 0);
}

#define LAUNCHER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc attr_unused, char **argv)
{
	const struct CMUnitTest tests[] = {
		LAUNCHER_TEST(its_input_and_output_are_the_programs),
		LAUNCHER_TEST(how_it_ended_is_told),
		LAUNCHER_TEST(one_that_takes_too_long_is_killed),
		LAUNCHER_TEST(other_programs_are_refused),
		LAUNCHER_TEST(a_tool_goes_by_its_own_name),
		LAUNCHER_TEST(a_tool_gets_no_environment),
		LAUNCHER_TEST(saving_and_restoring_names_no_file),
		LAUNCHER_TEST(a_plugin_runs_with_the_words_it_had),
		LAUNCHER_TEST(a_tool_has_the_capabilities_and_a_plugin_none),
		LAUNCHER_TEST(a_script_may_start_programs),
		LAUNCHER_TEST(a_tool_that_is_no_script_starts_none),
		LAUNCHER_TEST(wild_requests_do_not_end_it),
		LAUNCHER_TEST(a_request_that_is_too_long_is_an_error),
		LAUNCHER_TEST(without_it_nothing_is_started),
	};

	if (streq(argv[0], LAUNCHER_NAME))
		launcher_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
