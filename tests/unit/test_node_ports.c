/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan/settings.h"

#define MAX_ITEMS 6

static size_t parse_cidrs(const char *const *texts, struct prefix *ret)
{
	size_t n = 0;

	for (; n < MAX_ITEMS && texts[n]; n++)
		assert_int_equal(prefix_parse(texts[n], &ret[n]), 0);
	return n;
}

static struct node_ports make(enum family family, const char *const *texts)
{
	struct prefix cidrs[MAX_ITEMS];
	struct node_ports node_ports;
	size_t n = parse_cidrs(texts, cidrs);

	node_ports_init(&node_ports, family, cidrs, n);
	return node_ports;
}

static void assert_selected(const struct node_ports *node_ports, const char *const *interfaces,
			    const char *expected)
{
	struct addr addresses[MAX_ITEMS];
	cleanup_free struct addr *found = NULL;
	char text[MAX_ITEMS * ADDR_TEXT_MAX] = "", one[ADDR_TEXT_MAX];
	size_t n = 0, n_found, used = 0;

	for (; n < MAX_ITEMS && interfaces[n]; n++)
		assert_int_equal(addr_parse(interfaces[n], &addresses[n]), 0);
	found = node_ports_select(node_ports, addresses, n, &n_found);
	for (size_t i = 0; i < n_found; i++) {
		addr_print(&found[i], one);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
					 one);
	}
	assert_string_equal(text, expected);
}

struct select_case {
	const char *name;
	const char *cidrs[MAX_ITEMS];
	const char *interfaces[MAX_ITEMS];
	struct {
		bool match_all;
		const char *selected;
	} expected[FAMILY_COUNT];
};

static const struct select_case select_cases[] = {
	{"IPv4 single",
	 {"10.20.30.0/24"},
	 {"10.20.30.51", "100.200.201.1"},
	 {{false, "10.20.30.51"}, {true, ""}}},
	{"IPv4 zero CIDR",
	 {"0.0.0.0/0"},
	 {"10.20.30.51", "127.0.0.1"},
	 {{true, "10.20.30.51 127.0.0.1"}, {true, ""}}},
	{"IPv6 multiple",
	 {"2001:db8::/64", "::1/128"},
	 {"2001:db8::1", "::1"},
	 {{true, ""}, {false, "::1 2001:db8::1"}}},
	{"IPv6 zero CIDR",
	 {"::/0"},
	 {"2001:db8::1", "::1"},
	 {{true, ""}, {true, "::1 2001:db8::1"}}},
	{"IPv4 localhost exact",
	 {"127.0.0.1/32"},
	 {"10.20.30.51", "127.0.0.1"},
	 {{false, "127.0.0.1"}, {true, ""}}},
	{"IPv4 localhost subnet",
	 {"127.0.0.0/8"},
	 {"127.0.1.1"},
	 {{false, "127.0.1.1"}, {true, ""}}},
	{"IPv4 multiple",
	 {"10.20.30.0/24", "100.200.201.0/24"},
	 {"10.20.30.51", "100.200.201.1"},
	 {{false, "10.20.30.51 100.200.201.1"}, {true, ""}}},
	{"IPv4 multiple, no match",
	 {"10.20.30.0/24", "100.200.201.0/24"},
	 {"192.168.1.2", "127.0.0.1"},
	 {{false, ""}, {true, ""}}},
	{"empty list, IPv4 addresses",
	 {NULL},
	 {"192.168.1.2", "127.0.0.1"},
	 {{true, "127.0.0.1 192.168.1.2"}, {true, ""}}},
	{"empty list, IPv6 addresses",
	 {NULL},
	 {"2001:db8::1", "::1"},
	 {{true, ""}, {true, "::1 2001:db8::1"}}},
	{"IPv4 redundant CIDRs",
	 {"1.2.3.0/24", "0.0.0.0/0"},
	 {"1.2.3.4"},
	 {{true, "1.2.3.4"}, {true, ""}}},
	{"dual-stack, redundant IPv4",
	 {"0.0.0.0/0", "1.2.3.0/24", "2001:db8::1/128"},
	 {"1.2.3.4", "2001:db8::1", "127.0.0.1", "::1"},
	 {{true, "1.2.3.4 127.0.0.1"}, {false, "2001:db8::1"}}},
	{"dual-stack, redundant IPv6",
	 {"::/0", "1.2.3.0/24", "2001:db8::1/128"},
	 {"1.2.3.4", "2001:db8::1", "127.0.0.1", "::1"},
	 {{false, "1.2.3.4"}, {true, "::1 2001:db8::1"}}},
	{"an address on two interfaces and in two CIDRs",
	 {"1.2.3.0/24", "1.2.0.0/16"},
	 {"1.2.3.9", "1.2.3.4", "1.2.3.9"},
	 {{false, "1.2.3.4 1.2.3.9"}, {true, ""}}},
};

static void node_ports_match_all_and_selection(void **state attr_unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(select_cases); i++) {
		const struct select_case *c = &select_cases[i];

		print_message("# %s\n", c->name);
		for (enum family family = FAMILY_IPV4; family < FAMILY_COUNT; family++) {
			struct node_ports node_ports = make(family, c->cidrs);

			assert_int_equal(node_ports.match_all, c->expected[family].match_all);
			assert_selected(&node_ports, c->interfaces, c->expected[family].selected);
			node_ports_done(&node_ports);
		}
	}
}

static const struct loopback_case {
	const char *name;
	const char *cidrs[MAX_ITEMS];
	bool ipv4;
} loopback_cases[] = {
	{"empty", {NULL}, true},
	{"all zeros IPv4", {"224.0.0.0/24", "192.168.0.0/16", "fd00:1:d::/64", "0.0.0.0/0"}, true},
	{"all zeros IPv6", {"224.0.0.0/24", "192.168.0.0/16", "fd00:1:d::/64", "::/0"}, false},
	{"IPv4 loopback", {"224.0.0.0/24", "192.168.0.0/16", "fd00:1:d::/64", "127.0.0.0/8"}, true},
	{"IPv6 loopback", {"224.0.0.0/24", "192.168.0.0/16", "fd00:1:d::/64", "::1/128"}, false},
	{"IPv4 loopback, smaller range",
	 {"224.0.0.0/24", "192.168.0.0/16", "fd00:1:d::/64", "127.0.2.0/28"},
	 true},
	{"IPv4 loopback within a larger range",
	 {"224.0.0.0/24", "192.168.0.0/16", "fd00:1:d::/64", "64.0.0.0/2"},
	 true},
	{"no loopback", {"128.0.2.0/28", "224.0.0.0/24", "192.168.0.0/16", "fd00:1:d::/64"}, false},
};

static bool localhost_served(enum family family, bool asked, const char *const *cidrs)
{
	struct settings settings = {.family = family, .localhost_node_ports = asked};
	bool served;

	settings.node_ports = make(family, cidrs);
	served = settings_localhost_node_ports(&settings);
	node_ports_done(&settings.node_ports);
	return served;
}

static void node_ports_contain_ipv4_loopback(void **state attr_unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(loopback_cases); i++) {
		const struct loopback_case *c = &loopback_cases[i];
		struct node_ports node_ports = make(FAMILY_IPV4, c->cidrs);

		print_message("# %s\n", c->name);
		assert_int_equal(node_ports_contain_loopback(&node_ports, FAMILY_IPV4), c->ipv4);
		node_ports_done(&node_ports);
		node_ports = make(FAMILY_IPV6, c->cidrs); /* never, seen from the other family */
		assert_false(node_ports_contain_loopback(&node_ports, FAMILY_IPV4));
		node_ports_done(&node_ports);
	}
}

static void node_ports_contain_ipv6_loopback(void **state attr_unused)
{
	static const char *const all[] = {NULL};
	static const char *const exact[] = {"::1/128", NULL};
	static const char *const other[] = {"fd00::/8", NULL};
	struct node_ports node_ports = make(FAMILY_IPV6, all);

	assert_true(node_ports_contain_loopback(&node_ports, FAMILY_IPV6));
	node_ports_done(&node_ports);
	node_ports = make(FAMILY_IPV6, exact);
	assert_true(node_ports_contain_loopback(&node_ports, FAMILY_IPV6));
	node_ports_done(&node_ports);
	node_ports = make(FAMILY_IPV6, other);
	assert_false(node_ports_contain_loopback(&node_ports, FAMILY_IPV6));
	node_ports_done(&node_ports);
}

static void node_ports_localhost_needs_option_ipv4_and_loopback(void **state attr_unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(loopback_cases); i++) {
		const struct loopback_case *c = &loopback_cases[i];

		assert_int_equal(localhost_served(FAMILY_IPV4, true, c->cidrs), c->ipv4);
		assert_false(localhost_served(FAMILY_IPV4, false, c->cidrs));
		assert_false(localhost_served(FAMILY_IPV6, true, c->cidrs));
	}
}

/* Only length 0 is a zero CIDR, not an address of zeros. */
static void node_ports_zero_cidr(void **state attr_unused)
{
	static const struct {
		const char *cidr;
		bool zero;
	} cases[] = {
		{"172.10.0.0/16", false}, {"0.0.0.0/0", true}, {"0.0.0.0/32", false},
		{"10.1.2.3/0", true},     {"::/128", false},   {"::/0", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const list[] = {cases[i].cidr, NULL};
		enum family family = strchr(cases[i].cidr, ':') ? FAMILY_IPV6 : FAMILY_IPV4;
		struct node_ports node_ports = make(family, list);

		assert_int_equal(node_ports.match_all, cases[i].zero);
		node_ports_done(&node_ports);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_ports_match_all_and_selection),
		cmocka_unit_test(node_ports_contain_ipv4_loopback),
		cmocka_unit_test(node_ports_contain_ipv6_loopback),
		cmocka_unit_test(node_ports_localhost_needs_option_ipv4_and_loopback),
		cmocka_unit_test(node_ports_zero_cidr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
