/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/detector.h"

#define MAX_CIDRS 4

/* The prefix that the detector of a family looks at, as text; "" when there is no detector. */
static const char *cidr_of(enum detect_mode mode, enum family family, const char *const *cidrs,
			   size_t n)
{
	static char text[PREFIX_TEXT_MAX];
	struct prefix prefixes[MAX_CIDRS];
	struct detector detector;
	struct err err;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(prefix_parse(cidrs[i], &prefixes[i]), 0);
	assert_int_equal(detector_make(mode, family, prefixes, n, NULL, &detector, &err), 0);
	text[0] = '\0';
	if (detector.kind != DETECTOR_NONE) {
		assert_int_equal(detector.kind, DETECTOR_CIDR);
		prefix_print(&detector.cidr, text);
	}
	return text;
}

struct cidr_case {
	const char *name;
	const char *cidrs[MAX_CIDRS];
	size_t n;
	const char *ipv4, *ipv6;
};

static const struct cidr_case cidr_cases[] = {
	{"IPv4 only", {"10.0.0.0/14"}, 1, "10.0.0.0/14", ""},
	{"IPv6 only", {"2002:0:0:1234::/64"}, 1, "", "2002:0:0:1234::/64"},
	{"IPv4 then IPv6",
	 {"10.0.0.0/14", "2002:0:0:1234::/64"},
	 2,
	 "10.0.0.0/14",
	 "2002:0:0:1234::/64"},
	{"IPv6 then IPv4",
	 {"2002:0:0:1234::/64", "10.0.0.0/14"},
	 2,
	 "10.0.0.0/14",
	 "2002:0:0:1234::/64"},
	{"none", {NULL}, 0, "", ""},
	{"first of each family",
	 {"10.1.0.0/16", "2002::/64", "10.2.0.0/16", "2003::/64"},
	 4,
	 "10.1.0.0/16",
	 "2002::/64"},
	{"host bits are masked", {"10.7.8.9/14"}, 1, "10.4.0.0/14", ""},
	{"node range", {"2002::1234:abcd:ffff:0:0/96"}, 1, "", "2002::1234:abcd:ffff:0:0/96"},
};

static void check_cidr_cases(enum detect_mode mode)
{
	for (size_t i = 0; i < ARRAY_SIZE(cidr_cases); i++) {
		const struct cidr_case *c = &cidr_cases[i];

		print_message("# %s: %s\n", detect_mode_name(mode), c->name);
		assert_string_equal(cidr_of(mode, FAMILY_IPV4, c->cidrs, c->n), c->ipv4);
		assert_string_equal(cidr_of(mode, FAMILY_IPV6, c->cidrs, c->n), c->ipv6);
	}
}

static void detector_cluster_cidr_first_of_each_family(void **state attr_unused)
{
	check_cidr_cases(DETECT_CLUSTER_CIDR);
}

static void detector_node_cidr_first_of_each_family(void **state attr_unused)
{
	check_cidr_cases(DETECT_NODE_CIDR);
}

static void detector_bridge_interface_both_families(void **state attr_unused)
{
	for (enum family family = FAMILY_IPV4; family < FAMILY_COUNT; family++) {
		struct detector detector;
		struct err err;

		assert_int_equal(detector_make(DETECT_BRIDGE_INTERFACE, family, NULL, 0, "eth0",
					       &detector, &err),
				 0);
		assert_int_equal(detector.kind, DETECTOR_BRIDGE);
		assert_string_equal(detector.interface, "eth0");
		assert_false(detector_local_match_all(&detector));
	}
}

static void detector_interface_name_prefix_both_families(void **state attr_unused)
{
	for (enum family family = FAMILY_IPV4; family < FAMILY_COUNT; family++) {
		struct detector detector;
		struct err err;

		assert_int_equal(detector_make(DETECT_INTERFACE_NAME_PREFIX, family, NULL, 0,
					       "veth", &detector, &err),
				 0);
		assert_int_equal(detector.kind, DETECTOR_INTERFACE);
		assert_string_equal(detector.interface, "veth");
	}
}

static int make_interface(enum detect_mode mode, const char *name, struct err *err)
{
	struct detector detector = {.kind = DETECTOR_COUNT};
	int r = detector_make(mode, FAMILY_IPV4, NULL, 0, name, &detector, err);

	assert_true(r == 0 || detector.kind == DETECTOR_COUNT); /* untouched on failure */
	return r;
}

static void detector_interface_name_lengths(void **state attr_unused)
{
	struct err err;

	assert_int_equal(make_interface(DETECT_BRIDGE_INTERFACE, "a23456789012345", &err), 0);
	assert_int_equal(make_interface(DETECT_BRIDGE_INTERFACE, "a234567890123456", &err),
			 -ENAMETOOLONG);
	assert_string_equal(
		err.text,
		"bridge interface name \"a234567890123456\" is longer than 15 characters");
	assert_int_equal(make_interface(DETECT_INTERFACE_NAME_PREFIX, "a2345678901234", &err), 0);
	assert_int_equal(make_interface(DETECT_INTERFACE_NAME_PREFIX, "a23456789012345", &err),
			 -ENAMETOOLONG);
	assert_string_equal(
		err.text, "interface name prefix \"a23456789012345\" is longer than 14 characters");
}

static void detector_interface_name_must_be_possible(void **state attr_unused)
{
	static const char *const bad[] = {"", "eth 0", "a/b", "eth0\n", "a:1", "\"x\""};
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(make_interface(DETECT_BRIDGE_INTERFACE, bad[i], &err), -EINVAL);
		assert_int_equal(make_interface(DETECT_INTERFACE_NAME_PREFIX, bad[i], &err),
				 -EINVAL);
	}
	assert_int_equal(make_interface(DETECT_BRIDGE_INTERFACE, NULL, &err), -EINVAL);
	assert_string_equal(
		err.text,
		"local traffic detection by BridgeInterface needs a bridge interface name");
}

static void detector_zero_cidr_everything_is_local(void **state attr_unused)
{
	static const char *const texts[] = {"0.0.0.0/0", "::/0", "10.0.0.0/8"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct detector detector;
		struct prefix cidr;
		struct err err;

		assert_int_equal(prefix_parse(texts[i], &cidr), 0);
		assert_int_equal(detector_make(DETECT_CLUSTER_CIDR, cidr.addr.family, &cidr, 1,
					       NULL, &detector, &err),
				 0);
		assert_int_equal(detector.kind, DETECTOR_CIDR);
		assert_int_equal(detector_local_match_all(&detector), cidr.length == 0);
	}
}

static void detector_none_matches_nothing(void **state attr_unused)
{
	struct detector detector = {0};

	assert_int_equal(detector.kind, DETECTOR_NONE);
	assert_false(detector_local_match_all(&detector));
}

static void detector_mode_names_and_unknown_mode(void **state attr_unused)
{
	enum detect_mode mode = DETECT_MODE_COUNT;

	for (enum detect_mode m = DETECT_CLUSTER_CIDR; m < DETECT_MODE_COUNT; m++) {
		assert_int_equal(detect_mode_parse(detect_mode_name(m), &mode), 0);
		assert_int_equal(mode, m);
	}
	assert_int_equal(detect_mode_parse("abcd", &mode), -EINVAL);
	assert_int_equal(detect_mode_parse("clustercidr", &mode), -EINVAL);
	assert_int_equal(mode, DETECT_INTERFACE_NAME_PREFIX); /* untouched */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(detector_cluster_cidr_first_of_each_family),
		cmocka_unit_test(detector_node_cidr_first_of_each_family),
		cmocka_unit_test(detector_bridge_interface_both_families),
		cmocka_unit_test(detector_interface_name_prefix_both_families),
		cmocka_unit_test(detector_interface_name_lengths),
		cmocka_unit_test(detector_interface_name_must_be_possible),
		cmocka_unit_test(detector_zero_cidr_everything_is_local),
		cmocka_unit_test(detector_none_matches_nothing),
		cmocka_unit_test(detector_mode_names_and_unknown_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
