/* SPDX-License-Identifier: Apache-2.0 */

#include "build.h"
#include "config/node_port_addresses.h"

#define MAX_CIDRS 8
#define DUAL      "192.168.1.1", "fd00::1"
#define IPV4_ONLY "192.168.1.1", "::1"
#define IPV6_ONLY "127.0.0.1", "fd00::1"

struct row {
	const char *ipv4;
	const char *ipv6;
	const char *given[MAX_CIDRS];
	const char *wanted[MAX_CIDRS];
};

static size_t parse_all(const char *const *texts, struct node_port_address *ret)
{
	size_t n = 0;

	for (; texts[n]; n++)
		assert_int_equal(node_port_address_parse(texts[n], &ret[n]), 0);
	return n;
}

static void assert_expands(const struct row *row)
{
	const struct addr node[] = {build_addr(row->ipv4), build_addr(row->ipv6)};
	struct node_port_address list[MAX_CIDRS];
	size_t n = parse_all(row->given, list);
	cleanup_free struct prefix *cidrs = node_port_addresses_expand(list, n, node, &n);

	for (size_t i = 0; i < n; i++) {
		char text[PREFIX_TEXT_MAX];

		prefix_print(&cidrs[i], text);
		assert_non_null(row->wanted[i]);
		assert_string_equal(text, row->wanted[i]);
	}
	assert_null(row->wanted[n]);
}

/* cmd/kube-proxy/app: Test_expandNodePortAddressKeywords */
static void words_are_replaced_where_they_stand(void **state)
{
	static const struct row rows[] = {
		{DUAL, {"10.0.0.0/8", "fd01::/64"}, {"10.0.0.0/8", "fd01::/64"}},
		{DUAL, {"primary"}, {"192.168.1.1/32", "fd00::1/128"}},
		{IPV4_ONLY, {"primary"}, {"192.168.1.1/32"}},
		{DUAL, {"localhost"}, {"127.0.0.0/8", "::1/128"}},
		{IPV6_ONLY, {"localhost"}, {"127.0.0.0/8", "::1/128"}},
		{DUAL, {"all"}, {"0.0.0.0/0", "::/0"}},
		{DUAL,
		 {"primary", "localhost"},
		 {"192.168.1.1/32", "fd00::1/128", "127.0.0.0/8", "::1/128"}},
		{IPV4_ONLY, {"localhost", "10.0.0.0/8"}, {"127.0.0.0/8", "::1/128", "10.0.0.0/8"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_expands(&rows[i]);
}

static void order_and_duplicates_are_kept(void **state)
{
	static const struct row row = {
		IPV6_ONLY,
		{"10.0.0.0/8", "primary", "10.0.0.0/8", "::1/128", "localhost"},
		{"10.0.0.0/8", "fd00::1/128", "10.0.0.0/8", "::1/128", "127.0.0.0/8", "::1/128"},
	};

	(void)state;
	assert_expands(&row);
}

static void nothing_stays_nothing(void **state)
{
	static const struct row row = {IPV4_ONLY, {NULL}, {NULL}};

	(void)state;
	assert_expands(&row);
}

static void words_are_whole_and_lower_case(void **state)
{
	static const char *const texts[] = {"Localhost", "locahost", "ALL",     "primary ",
					    "",          "all/8",    "10.0.0.1"};
	struct node_port_address address;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_true(node_port_address_parse(texts[i], &address) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_replaced_where_they_stand),
		cmocka_unit_test(order_and_duplicates_are_kept),
		cmocka_unit_test(nothing_stays_nothing),
		cmocka_unit_test(words_are_whole_and_lower_case),
	};

	return cmocka_run_group_tests_name("node_port_addresses", tests, NULL, NULL);
}
