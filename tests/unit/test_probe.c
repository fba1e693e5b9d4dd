/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The question at the start whether this kernel can do nftables mode, in a network namespace of its
 * own. A kernel that lacks something is played by a table of the probe's name that is in the way.
 */

#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "backends/nftables/probe.h"
#include "fake_tools.h"
#include "kernel/nft_socket.h"

static struct nft_socket *open_socket(void)
{
	struct nft_socket *socket;
	struct err err;

	private_network();
	assert_int_equal(nft_socket_open(&socket, &err), 0);
	return socket;
}

static void this_kernel_can_and_nothing_is_left(void **state attr_unused)
{
	cleanup_nft_socket struct nft_socket *socket = open_socket();
	struct err err;

	for (enum family family = 0; family < FAMILY_COUNT; family++)
		if (probe(socket, family, &err) != 1)
			fail_msg("%s", err.text);
	assert_int_equal(system("test -z \"$(nft list ruleset)\""), 0);
}

/* What is in the way, and what the answer says is missing. */
static void assert_missing(const char *command, const char *missing)
{
	cleanup_nft_socket struct nft_socket *socket = open_socket();
	cleanup_free char *line = xasprintf("nft '%s'", command);
	struct utsname system_name;
	struct err err;

	assert_int_equal(system("nft add table ip portolan-probe"), 0);
	assert_int_equal(system(line), 0);
	assert_int_equal(probe(socket, FAMILY_IPV4, &err), 0);
	assert_int_equal(system("nft delete table ip portolan-probe"), 0);
	uname(&system_name);
	if (!strstr(err.text, missing) || !strstr(err.text, system_name.release) ||
	    !strstr(err.text, "5.13 has all"))
		fail_msg("%s", err.text);
}

static void what_is_missing_is_named_with_the_kernel_that_has_it(void **state attr_unused)
{
	assert_missing("add set ip portolan-probe source-ranges { type ipv4_addr; }",
		       "sets of ranges in concatenations, there since Linux 5.6;");
	assert_missing("add map ip portolan-probe clients-1 { type ipv4_addr : ipv4_addr; }",
		       "maps that packets write, with time-outs, there since Linux 4.17;");
	assert_missing("add map ip portolan-probe endpoints { type ipv4_addr : ipv4_addr; }",
		       "maps of concatenations, there since Linux 4.17;");
	assert_missing("add chain ip portolan-probe nat-output { type filter hook output priority "
		       "0; }",
		       "chains of type nat (CONFIG_NFT_NAT), there since Linux 4.18;");
}

static void drop_net_admin(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2] = {0};

	if (syscall(SYS_capset, &head, sets) < 0)
		_exit(2);
}

/* In a child: rights that are gone do not come back. */
static void without_the_right_that_is_said(void **state attr_unused)
{
	cleanup_nft_socket struct nft_socket *socket = NULL;
	int status = -1;
	pid_t child;

	private_network();
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct err err;

		drop_net_admin();
		if (nft_socket_open(&socket, &err) < 0 || probe(socket, FAMILY_IPV4, &err) != 0)
			_exit(3);
		_exit(strstr(err.text, "nftables mode needs CAP_NET_ADMIN") ? 0 : 4);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_kernel_can_and_nothing_is_left),
		cmocka_unit_test(what_is_missing_is_named_with_the_kernel_that_has_it),
		cmocka_unit_test(without_the_right_that_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
