/* SPDX-License-Identifier: Apache-2.0 */

/* How long the daemon waits in mode NodeCIDR; it ends before any rule would be written. */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "build.h"
#include "daemon/daemon.h"

#define NODE "apiVersion: v1\nkind: Node\nmetadata: {name: node-a}\n"

struct fixture {
	char *folder;
	int log;
};

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	char template[] = "/tmp/portolan-test-XXXXXX";

	f->folder = xstrdup(mkdtemp(template));
	f->log = memfd_create("log", 0);
	log_set_fd(f->log);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *node = xasprintf("%s/node.yaml", f->folder);

	unlink(node);
	assert_int_equal(rmdir(f->folder), 0);
	log_set_fd(STDERR_FILENO);
	close(f->log);
	free(f->folder);
	free(f);
	return 0;
}

static void write_node(const struct fixture *f, const char *text)
{
	cleanup_free char *path = xasprintf("%s/node.yaml", f->folder);
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void assert_logged(const struct fixture *f, const char *part)
{
	char text[8192] = "";

	assert_true(pread(f->log, text, sizeof(text) - 1, 0) >= 0);
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in the log:\n%s", part, text);
}

/* Runs the daemon with so much patience; returns its exit code. */
static int run(const struct fixture *f, int64_t patience_ms)
{
	char mode[] = "--detect-local-mode=NodeCIDR";
	char name[] = "--hostname-override=node-a";
	cleanup_free char *manifests = xasprintf("--manifests=%s", f->folder);
	char *words[] = {mode, name, manifests, NULL};
	cleanup_options struct options options = {0};
	cleanup_config struct config config = {0};
	cleanup_problems struct problems problems = {0};
	struct err err;

	assert_int_equal(options_parse(COMMAND_RUN, 3, words, &options, &err), 0);
	assert_int_equal(options_config(&options, &config, &problems), 0);
	return daemon_run(&(struct daemon_input){
		.options = &options,
		.config = &config,
		.manifests = f->folder,
		.pod_cidrs_timeout_ms = patience_ms,
	});
}

static void a_node_that_does_not_appear_in_time_is_fatal(void **state)
{
	int64_t start = clock_now_ns();

	assert_int_equal(run(*state, 300), 1);
	assert_true(clock_now_ns() - start >= 300 * CLOCK_NS_PER_MS);
	assert_logged(*state, "Waiting for the Node's podCIDRs");
	assert_logged(*state, "the Node did not appear in time");
}

static void a_node_that_gets_no_pod_cidrs_in_time_is_fatal(void **state)
{
	int64_t start = clock_now_ns();

	write_node(*state, NODE);
	assert_int_equal(run(*state, 300), 1);
	assert_true(clock_now_ns() - start >= 300 * CLOCK_NS_PER_MS);
	assert_logged(*state, "the Node was given no podCIDRs in time");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_node_that_does_not_appear_in_time_is_fatal),
		TEST(a_node_that_gets_no_pod_cidrs_in_time_is_fatal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
