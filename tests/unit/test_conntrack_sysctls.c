/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>

#include "fake_tools.h"
#include "kernel/conntrack_sysctls.h"
#include "kernel/sysctl.h"

#define FOLDER      "sys/net/netfilter/"
#define LIMIT       FOLDER "nf_conntrack_max"
#define ESTABLISHED FOLDER "nf_conntrack_tcp_timeout_established"
#define CLOSE_WAIT  FOLDER "nf_conntrack_tcp_timeout_close_wait"
#define LIBERAL     FOLDER "nf_conntrack_tcp_be_liberal"
#define UDP         FOLDER "nf_conntrack_udp_timeout"
#define UDP_STREAM  FOLDER "nf_conntrack_udp_timeout_stream"

static const char *const files[] = {LIMIT, ESTABLISHED, CLOSE_WAIT, LIBERAL, UDP, UDP_STREAM};

static struct fake fake;
static char *buckets;

static int set_up(void **state attr_unused)
{
	cleanup_free char *command = NULL;

	fake_start(&fake);
	command = xasprintf("mkdir -p %s/" FOLDER, fake.folder);
	assert_int_equal(system(command), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		fake_write(&fake, files[i], "5\n");
	fake_write(&fake, "hashsize", "1000\n");
	buckets = xasprintf("%s/hashsize", fake.folder);
	sysctl_set_proc(fake.folder);
	conntrack_sysctls_set_file(buckets);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	sysctl_set_proc(NULL);
	conntrack_sysctls_set_file(NULL);
	free(take(buckets));
	fake_stop(&fake);
	return 0;
}

static void assert_file(const char *name, const char *text)
{
	cleanup_free char *path = xasprintf("%s/%s", fake.folder, name);
	char found[64] = "";
	FILE *file = fopen(path, "re");

	assert_non_null(file);
	assert_non_null(fgets(found, sizeof(found), file));
	fclose(file);
	found[strcspn(found, "\n")] = '\0';
	if (!streq(found, text))
		fail_msg("%s holds %s, not %s", name, found, text);
}

static void remove_file(const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", fake.folder, name);

	assert_int_equal(unlink(path), 0);
}

static void the_limit_follows_the_cores(void **state attr_unused)
{
	assert_int_equal(conntrack_sysctls_max(0, 131072, 8), 0);
	assert_int_equal(conntrack_sysctls_max(32768, 131072, 2), 131072);
	assert_int_equal(conntrack_sysctls_max(32768, 131072, 8), 262144);
	assert_int_equal(conntrack_sysctls_max(32768, 0, 1), 32768);
	assert_int_equal(conntrack_sysctls_max(32768, 131072, 64), 1048576);
	assert_int_equal(conntrack_sysctls_max(INT32_MAX, 0, 4096), 1048576);
	/* the ceiling is for what follows from the cores, and then goes before the least */
	assert_int_equal(conntrack_sysctls_max(1, 2000000, 1), 2000000);
	assert_int_equal(conntrack_sysctls_max(1048577, 2000000, 1), 1048576);
}

static void nothing_asked_nothing_touched(void **state attr_unused)
{
	const struct conntrack_limits none = {0};
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		remove_file(files[i]); /* to touch one would be an error */
	remove_file("hashsize");
	assert_int_equal(conntrack_sysctls_set(&none, &err), 0);
}

static void each_is_set_on_its_own(void **state attr_unused)
{
	static const struct {
		const char *file;
		struct conntrack_limits limits;
		const char *value;
	} cases[] = {
		{ESTABLISHED, {.tcp_established_s = 86400}, "86400"},
		{CLOSE_WAIT, {.tcp_close_wait_s = 3600}, "3600"},
		{LIBERAL, {.tcp_be_liberal = true}, "1"},
		{UDP, {.udp_s = 10}, "10"},
		{UDP_STREAM, {.udp_stream_s = 120}, "120"},
	};
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(files); j++)
			fake_write(&fake, files[j], "5\n");
		assert_int_equal(conntrack_sysctls_set(&cases[i].limits, &err), 0);
		for (size_t j = 0; j < ARRAY_SIZE(files); j++)
			assert_file(files[j],
				    streq(files[j], cases[i].file) ? cases[i].value : "5");
		assert_file("hashsize", "1000");
	}
}

static void a_larger_table_gets_more_buckets(void **state attr_unused)
{
	struct err err;

	assert_int_equal(conntrack_sysctls_set(&(struct conntrack_limits){.max = 4000}, &err), 0);
	assert_file(LIMIT, "4000");
	assert_file("hashsize", "1000");
	assert_int_equal(conntrack_sysctls_set(&(struct conntrack_limits){.max = 8000}, &err), 0);
	assert_file(LIMIT, "8000");
	assert_file("hashsize", "2000");
	assert_int_equal(conntrack_sysctls_set(&(struct conntrack_limits){.max = 100}, &err), 0);
	assert_file("hashsize", "2000");
}

static void the_first_error_ends_it(void **state attr_unused)
{
	struct conntrack_limits limits = {.max = 10, .tcp_established_s = 7, .udp_s = 8};
	struct err err;

	remove_file(ESTABLISHED);
	assert_int_equal(conntrack_sysctls_set(&limits, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nf_conntrack_tcp_timeout_established"));
	assert_file(LIMIT, "10");
	assert_file(UDP, "5");
	limits.tcp_established_s = 0;
	remove_file("hashsize");
	assert_int_equal(conntrack_sysctls_set(&limits, &err), -ENOENT);
	assert_non_null(strstr(err.text, "hashsize"));
	assert_file(UDP, "5");
}

/* The kernel shows the file to root alone; a limit that is already set needs no more of it. */
static void another_user_reads_the_buckets_elsewhere(void **state attr_unused)
{
	const struct conntrack_limits limits = {.max = 4000};
	struct err err;
	int status = -1;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	fake_write(&fake, LIMIT, "4000\n");
	fake_write(&fake, FOLDER "nf_conntrack_buckets", "1000\n");
	assert_int_equal(chmod(fake.folder, 0755), 0);
	assert_int_equal(chmod(buckets, 0600), 0);
	pid = fork();
	if (pid == 0)
		_exit(setresuid(65534, 65534, 65534) < 0 ? 1
							 : -conntrack_sysctls_set(&limits, &err));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_limit_follows_the_cores), TEST(nothing_asked_nothing_touched),
		TEST(each_is_set_on_its_own),      TEST(a_larger_table_gets_more_buckets),
		TEST(the_first_error_ends_it),     TEST(another_user_reads_the_buckets_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
