/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_tools.h"
#include "kernel/sysctl.h"

static struct fake fake;

static int set_up(void **state attr_unused)
{
	cleanup_free char *command = NULL;

	fake_start(&fake);
	command = xasprintf("mkdir -p %s/sys/net/ipv4 %s/net", fake.folder, fake.folder);
	assert_int_equal(system(command), 0);
	sysctl_set_proc(fake.folder);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	sysctl_set_proc(NULL);
	fake_stop(&fake);
	return 0;
}

static void reads_numbers(void **state attr_unused)
{
	struct err err;
	int64_t value = 0;

	fake_write(&fake, "sys/net/ipv4/a", "17\n");
	assert_int_equal(sysctl_read("net/ipv4/a", &value, &err), 0);
	assert_int_equal(value, 17);
	fake_write(&fake, "sys/net/ipv4/a", "-1");
	assert_int_equal(sysctl_read("net/ipv4/a", &value, &err), 0);
	assert_int_equal(value, -1);
}

static void what_is_not_a_number_is_an_error(void **state attr_unused)
{
	static const char *const texts[] = {"", "cubic\n", "1 2 3\n", "99999999999999999999\n"};
	struct err err;
	int64_t value = 5;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		fake_write(&fake, "sys/net/ipv4/a", texts[i]);
		assert_int_equal(sysctl_read("net/ipv4/a", &value, &err), -EINVAL);
	}
	assert_string_equal(err.text, "sysctl 'net/ipv4/a' is not a number");
	assert_int_equal(value, 5);
}

static void a_missing_one_is_named(void **state attr_unused)
{
	struct err err;
	int64_t value;

	assert_int_equal(sysctl_read("net/ipv4/none", &value, &err), -ENOENT);
	assert_string_equal(err.text, "reading sysctl 'net/ipv4/none': No such file or directory");
	assert_int_equal(sysctl_write("net/ipv4/none", 1, &err), -ENOENT);
	assert_string_equal(err.text,
			    "setting sysctl 'net/ipv4/none' to 1: No such file or directory");
}

static void ensure_writes_only_what_differs(void **state attr_unused)
{
	struct err err;
	cleanup_free char *text = NULL;

	fake_write(&fake, "sys/net/ipv4/a", "0");
	assert_int_equal(sysctl_ensure("net/ipv4/a", 1, &err), 1);
	text = fake_read(&fake, "sys/net/ipv4/a");
	assert_string_equal(text, "1");
	assert_int_equal(sysctl_ensure("net/ipv4/a", 1, &err), 0);
}

static void proc_files_are_looked_for_under_the_same_root(void **state attr_unused)
{
	assert_false(sysctl_proc_exists("net/if_inet6"));
	fake_write(&fake, "net/if_inet6", "");
	assert_true(sysctl_proc_exists("net/if_inet6"));
}

static void the_real_route_localnet_of_a_private_namespace(void **state attr_unused)
{
	static const char *const name = "net/ipv4/conf/all/route_localnet";
	struct err err;
	int64_t value = -1;

	private_network();
	sysctl_set_proc(NULL);
	assert_int_equal(sysctl_read(name, &value, &err), 0);
	assert_int_equal(value, 0);
	assert_int_equal(sysctl_ensure(name, 1, &err), 1);
	assert_int_equal(sysctl_ensure(name, 1, &err), 0);
}

#define sysctl_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		sysctl_test(reads_numbers),
		sysctl_test(what_is_not_a_number_is_an_error),
		sysctl_test(a_missing_one_is_named),
		sysctl_test(ensure_writes_only_what_differs),
		sysctl_test(proc_files_are_looked_for_under_the_same_root),
		sysctl_test(the_real_route_localnet_of_a_private_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
