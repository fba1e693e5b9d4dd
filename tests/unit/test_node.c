/* SPDX-License-Identifier: Apache-2.0 */
#include "build.h"
#include "model/node.h"

static struct node *make_node(const char *const *addresses, size_t n)
{
	struct node *node = node_new("node-a");

	node->addresses = arena_array(node->arena, n, sizeof(*node->addresses));
	node->n_addresses = n;
	for (size_t i = 0; i < n; i++)
		node->addresses[i] = build_addr(addresses[i]);
	node->zone = arena_strdup(node->arena, "zone-a");
	node->pod_cidrs = arena_array(node->arena, 1, sizeof(*node->pod_cidrs));
	node->pod_cidrs[0] = build_prefix("10.244.1.0/24");
	node->n_pod_cidrs = 1;
	return node;
}

static void new_node_knows_nothing_but_its_name(void **state attr_unused)
{
	struct node *node = node_new("node-a");

	assert_string_equal(node->name, "node-a");
	assert_string_equal(node->zone, "");
	assert_null(node_primary_address(node, FAMILY_IPV4));
	assert_ptr_equal(node_ref(node), node);
	assert_null(node_unref(node));
	assert_null(node_unref(node));
	assert_null(node_unref(NULL));
}

static void primary_address_is_the_first_of_its_family(void **state attr_unused)
{
	static const char *const addresses[] = {"fd00::5", "fd00::6", "10.0.0.5", "1.2.3.4"};
	struct node *node = make_node(addresses, ARRAY_SIZE(addresses));

	assert_ptr_equal(node_primary_address(node, FAMILY_IPV6), &node->addresses[0]);
	assert_ptr_equal(node_primary_address(node, FAMILY_IPV4), &node->addresses[2]);
	node_unref(node);
}

static void assert_ips(const char *const *addresses, size_t n, const char *wanted)
{
	struct node *node = make_node(addresses, n);
	char text[NODE_IPS_TEXT_MAX];

	node_print_ips(node, text);
	assert_string_equal(text, wanted);
	node_unref(node);
}

static void ips_are_the_primary_address_and_the_first_of_the_other_family(void **state attr_unused)
{
	static const char *const mixed[] = {"fd00::5", "fd00::6", "10.0.0.5", "1.2.3.4"};
	static const char *const longest[] = {"1111:2222:3333:4444:5555:6666:7777:8888",
					      "255.255.255.255"};
	char text[NODE_IPS_TEXT_MAX];

	assert_ips(mixed, ARRAY_SIZE(mixed), "fd00::5,10.0.0.5");
	assert_ips(&mixed[2], 2, "10.0.0.5");
	assert_ips(mixed, 2, "fd00::5");
	assert_ips(longest, 2, "1111:2222:3333:4444:5555:6666:7777:8888,255.255.255.255");
	assert_ips(mixed, 0, "");
	node_print_ips(NULL, text);
	assert_string_equal(text, "");
}

static void nodes_are_equal_when_all_facts_are(void **state attr_unused)
{
	static const char *const addresses[] = {"10.0.0.5", "1.2.3.4"};
	static const char *const others[] = {"10.0.0.5", "1.2.3.5"};
	struct node *a = make_node(addresses, 2), *b = make_node(addresses, 2);
	struct node *c = make_node(others, 2), *d = make_node(addresses, 1);

	assert_true(node_equal(a, b));
	assert_false(node_equal(a, c));
	assert_false(node_equal(a, d));
	b->being_deleted = true;
	assert_false(node_equal(a, b));
	b->being_deleted = false;
	b->autoscaler_taint = true;
	assert_false(node_equal(a, b));
	b->autoscaler_taint = false;
	b->zone = "zone-b";
	assert_false(node_equal(a, b));
	b->zone = "zone-a";
	b->pod_cidrs[0] = build_prefix("10.244.2.0/24");
	assert_false(node_equal(a, b));
	node_unref(a);
	node_unref(b);
	node_unref(c);
	node_unref(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_node_knows_nothing_but_its_name),
		cmocka_unit_test(primary_address_is_the_first_of_its_family),
		cmocka_unit_test(ips_are_the_primary_address_and_the_first_of_the_other_family),
		cmocka_unit_test(nodes_are_equal_when_all_facts_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
