/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_tools.h"
#include "kernel/interfaces.h"

/* "10.0.0.1 127.0.0.1 ": the addresses of this namespace. */
static char *addresses(enum family family)
{
	cleanup_free struct addr *list = NULL;
	cleanup_text struct text text = {0};
	char printed[ADDR_TEXT_MAX];
	struct err err;
	size_t n;

	assert_int_equal(interfaces_addresses(family, &list, &n, &err), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(list[i].family, family);
		addr_print(&list[i], printed);
		text_printf(&text, "%s ", printed);
	}
	return text_dup(&text);
}

static void a_fresh_namespace_has_none(void **state attr_unused)
{
	cleanup_free char *v4 = NULL;

	private_network();
	v4 = addresses(FAMILY_IPV4);
	assert_string_equal(v4, "");
}

static void each_family_gets_its_own(void **state attr_unused)
{
	cleanup_free char *v4 = NULL;
	cleanup_free char *v6 = NULL;

	private_network();
	assert_int_equal(
		system("ip link set lo up && ip link add d0 type bridge && ip addr add "
		       "10.20.30.40/24 dev d0 && "
		       "ip addr add 10.20.30.41/24 dev d0 && ip addr add fd00::1/64 dev d0 nodad"),
		0);
	v4 = addresses(FAMILY_IPV4);
	assert_string_equal(v4, "127.0.0.1 10.20.30.40 10.20.30.41 ");
	v6 = addresses(FAMILY_IPV6);
	assert_string_equal(v6, "::1 fd00::1 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fresh_namespace_has_none),
		cmocka_unit_test(each_family_gets_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
