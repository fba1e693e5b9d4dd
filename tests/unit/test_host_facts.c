/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of the host stays known while it cannot be asked. */

#include <sys/resource.h>

#include "backends/iptables/host_facts.h"
#include "fake_tools.h"

/* No socket can be opened while it is refused. */
static void refuse_sockets(bool refuse)
{
	static struct rlimit usual;
	struct rlimit none;

	if (!usual.rlim_cur)
		getrlimit(RLIMIT_NOFILE, &usual);
	none = (struct rlimit){0, usual.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, refuse ? &none : &usual), 0);
}

static void give_address(const char *command)
{
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own words */
}

static void addresses_that_cannot_be_read_stay_as_they_were(void **state attr_unused)
{
	struct host_addresses addresses = {0};

	private_network();
	give_address("ip link set lo up");
	host_facts_addresses(FAMILY_IPV4, &addresses);
	assert_true(addresses.known);
	assert_int_equal(addresses.n, 1);
	refuse_sockets(true);
	host_facts_addresses(FAMILY_IPV4, &addresses);
	refuse_sockets(false);
	assert_true(addresses.known);
	assert_int_equal(addresses.n, 1);
	give_address("ip addr add 192.0.2.1/32 dev lo");
	host_facts_addresses(FAMILY_IPV4, &addresses);
	assert_int_equal(addresses.n, 2);
	host_facts_addresses_done(&addresses);
}

static void addresses_that_could_never_be_read_are_not_known(void **state attr_unused)
{
	struct host_addresses addresses = {0};

	refuse_sockets(true);
	host_facts_addresses(FAMILY_IPV4, &addresses);
	refuse_sockets(false);
	assert_false(addresses.known);
	assert_int_equal(addresses.n, 0);
	host_facts_addresses_done(&addresses);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_that_cannot_be_read_stay_as_they_were),
		cmocka_unit_test(addresses_that_could_never_be_read_are_not_known),
	};

	return cmocka_run_group_tests_name("host_facts", tests, NULL, NULL);
}
