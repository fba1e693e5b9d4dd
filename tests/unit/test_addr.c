/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "build.h"

static void assert_addr(const char *in, const char *out)
{
	char text[ADDR_TEXT_MAX];
	struct addr addr;

	assert_int_equal(addr_parse(in, &addr), 0);
	assert_int_equal(addr_print(&addr, text), strlen(out));
	assert_string_equal(text, out);
}

static void assert_prefix(const char *in, const char *out)
{
	char text[PREFIX_TEXT_MAX];
	struct prefix prefix;

	assert_int_equal(prefix_parse(in, &prefix), 0);
	assert_int_equal(prefix_print(&prefix, text), strlen(out));
	assert_string_equal(text, out);
}

static void ipv4_octets_are_decimal_whatever_their_zeros(void **state attr_unused)
{
	assert_addr("10.0.0.1", "10.0.0.1");
	assert_addr("010.001.000.08", "10.1.0.8");
	assert_addr("255.255.255.255", "255.255.255.255");
	assert_addr("0.0.0.0", "0.0.0.0");
}

static void ipv4_mapped_ipv6_is_ipv4(void **state attr_unused)
{
	assert_int_equal(build_addr("::ffff:10.1.2.3").family, FAMILY_IPV4);
	assert_addr("::ffff:10.1.2.3", "10.1.2.3");
	assert_addr("::FFFF:a01:203", "10.1.2.3");
	assert_addr("0:0:0:0:0:ffff:1.2.3.4", "1.2.3.4");
}

static void ipv6_prints_as_go_prints_it(void **state attr_unused)
{
	static const char *const texts[][2] = {
		{"::", "::"},
		{"::1", "::1"},
		{"1::", "1::"},
		{"0001:0:0:0:0:0:0:00001", "1::1"},
		{"FE80::ABCD", "fe80::abcd"},
		{"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
		{"1:0:0:2:0:0:3:4", "1::2:0:0:3:4"},    /* of two equal runs the first */
		{"1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"}, /* a run of one stays */
		{"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
		{"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
		{"1:2:3:4:5:6::", "1:2:3:4:5:6::"},
		{"::0.1.0.2", "::1:2"}, /* never a dotted tail */
		{"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
		{"64:ff9b::1.2.3.4", "64:ff9b::102:304"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_addr(texts[i][0], texts[i][1]);
}

static void text_that_is_no_address_is_refused(void **state attr_unused)
{
	static const char *const texts[] = {
		"",
		"1",
		"1.2.3",
		"1.2.3.4.5",
		"1.2.3.256",
		"1.2.3.",
		".1.2.3",
		"1..2.3",
		"1.2.3.4 ",
		" 1.2.3.4",
		"1.2.3.a",
		"1.2.3.4/8",
		"-1.2.3.4",
		":",
		":1",
		"1:",
		":::",
		"1:::2",
		"1::2::3",
		"1:2:3:4:5:6:7",
		"1:2:3:4:5:6:7:8:9",
		"1:2:3:4:5:6:7:8::",
		"12345::",
		"g::",
		"fe80::1%eth0",
		"[::1]",
		"1.2.3.4::",
		"1:2:3:4:5:6:7:1.2.3.4",
		"::1.2.3",
		"::1.2.3.4:5",
		"1:2:3:4:5:1.2.3.4",
		"99999999999999999999.1.1.1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct addr addr = {.family = 77};

		assert_int_equal(addr_parse(texts[i], &addr), -EINVAL);
		assert_int_equal(addr.family, 77); /* left alone */
	}
}

static void prefix_masks_host_bits(void **state attr_unused)
{
	assert_prefix("1.2.3.4/28", "1.2.3.0/28");
	assert_prefix("010.1.255.255/17", "10.1.128.0/17");
	assert_prefix("1.2.3.4/32", "1.2.3.4/32");
	assert_prefix("1.2.3.4/0", "0.0.0.0/0");
	assert_prefix("::/0", "::/0");
	assert_prefix("::1/128", "::1/128");
	assert_prefix("fe80::1/10", "fe80::/10");
	assert_prefix("2001:db8:ffff::/33", "2001:db8:8000::/33");
}

static void text_that_is_no_prefix_is_refused(void **state attr_unused)
{
	static const char *const texts[] = {
		"1.2.3.4", "1.2.3.4/", "1.2.3.4/33",         "1.2.3.4/-1", "1.2.3.4/1 ",
		"::/129",  "/8",       "::ffff:1.2.3.4/120", "1.2.3/8",    "1.2.3.4/8/8"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct prefix prefix = {.length = 77};

		assert_int_equal(prefix_parse(texts[i], &prefix), -EINVAL);
		assert_int_equal(prefix.length, 77);
	}
}

static void address_and_port_print_with_brackets_for_ipv6(void **state attr_unused)
{
	struct addr ipv4 = build_addr("10.1.2.3"), ipv6 = build_addr("fd00::1");
	struct addr longest = build_addr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
	char text[ADDR_PORT_TEXT_MAX];

	addr_port_print(&ipv4, 80, text);
	assert_string_equal(text, "10.1.2.3:80");
	addr_port_print(&ipv6, 0, text);
	assert_string_equal(text, "[fd00::1]:0");
	addr_port_print(&longest, 65535, text);
	assert_string_equal(text, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
}

static void loopback_and_unspecified_are_known(void **state attr_unused)
{
	struct addr addr;

	addr = build_addr("127.1.2.3");
	assert_true(addr_is_loopback(&addr));
	addr = build_addr("::1");
	assert_true(addr_is_loopback(&addr));
	assert_false(addr_is_unspecified(&addr));
	addr = build_addr("128.0.0.1");
	assert_false(addr_is_loopback(&addr));
	addr = build_addr("0.0.0.0");
	assert_true(addr_is_unspecified(&addr));
	addr = build_addr("::");
	assert_true(addr_is_unspecified(&addr));
	assert_false(addr_is_loopback(&addr));
}

static bool contains(const char *cidr, const char *ip)
{
	struct prefix prefix = build_prefix(cidr);
	struct addr addr = build_addr(ip);

	return prefix_contains(&prefix, &addr);
}

static void prefix_contains_only_its_own_family(void **state attr_unused)
{
	assert_true(contains("10.0.0.0/8", "10.255.255.255"));
	assert_false(contains("10.0.0.0/8", "11.0.0.0"));
	assert_true(contains("0.0.0.0/0", "1.2.3.4"));
	assert_false(contains("0.0.0.0/0", "::1"));
	assert_true(contains("fd00::/9", "fd7f::1"));
	assert_false(contains("fd00::/9", "fd80::1"));
}

static void addresses_are_ordered_and_compared(void **state attr_unused)
{
	struct addr a = build_addr("10.0.0.2"), b = build_addr("10.0.0.10"), c = build_addr("::1");
	struct prefix p = build_prefix("10.0.0.1/8"), q = build_prefix("10.9.9.9/8");
	struct prefix r = build_prefix("10.0.0.0/9");

	assert_true(addr_compare(&a, &b) < 0);
	assert_true(addr_compare(&b, &c) < 0);
	assert_int_equal(addr_compare(&c, &c), 0);
	assert_false(addr_equal(&a, &b));
	assert_true(addr_among((const struct addr[]){a, b}, 2, &b));
	assert_false(addr_among((const struct addr[]){a, b}, 2, &c));
	assert_false(addr_among(NULL, 0, &a));
	assert_true(prefix_equal(&p, &q));
	assert_false(prefix_equal(&p, &r));
	assert_string_equal(family_name(FAMILY_IPV4), "IPv4");
	assert_string_equal(family_name(FAMILY_IPV6), "IPv6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_octets_are_decimal_whatever_their_zeros),
		cmocka_unit_test(ipv4_mapped_ipv6_is_ipv4),
		cmocka_unit_test(ipv6_prints_as_go_prints_it),
		cmocka_unit_test(text_that_is_no_address_is_refused),
		cmocka_unit_test(prefix_masks_host_bits),
		cmocka_unit_test(text_that_is_no_prefix_is_refused),
		cmocka_unit_test(address_and_port_print_with_brackets_for_ipv6),
		cmocka_unit_test(loopback_and_unspecified_are_known),
		cmocka_unit_test(prefix_contains_only_its_own_family),
		cmocka_unit_test(addresses_are_ordered_and_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
