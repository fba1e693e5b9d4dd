/* SPDX-License-Identifier: Apache-2.0 */

/* A rule is a value: what was said, in the order in which it was said. */

#include "backends/iptables/ruleset.h"
#include "build.h"
#include "xtables/rule.h"
#include "xtables/rule_compare.h"
#include "xtables/rule_text.h"

static void a_rule_keeps_its_matches_in_order(void **state attr_unused)
{
	struct prefix range = build_prefix("10.0.0.0/8");
	struct addr addr = build_addr("172.30.0.41");
	struct rule rule;

	rule_init(&rule, TABLE_NAT, "CHAIN");
	rule_comment(&rule, "text");
	rule_protocol(&rule, PROTOCOL_UDP);
	rule_destination_addr(&rule, &addr);
	rule_port(&rule, 53);
	rule_source(&rule, true, &range);
	rule_jump(&rule, "OTHER");
	assert_int_equal(rule.table, TABLE_NAT);
	assert_string_equal(rule.chain, "CHAIN");
	assert_int_equal(rule.n_matches, 5);
	assert_int_equal(rule.matches[0].kind, MATCH_COMMENT);
	assert_int_equal(rule.matches[1].protocol, PROTOCOL_UDP);
	assert_int_equal(rule.matches[3].port, 53);
	assert_int_equal(rule.matches[4].kind, MATCH_SOURCE);
	assert_true(rule.matches[4].invert);
	assert_int_equal(rule.target.kind, TARGET_CHAIN);
	assert_string_equal(rule.target.chain, "OTHER");
}

/* A writer of messages needs the length; only the text leaves it out. */
static void an_address_is_a_prefix_of_full_length(void **state attr_unused)
{
	struct addr ipv4 = build_addr("10.0.0.1"), ipv6 = build_addr("fd00::1");
	struct prefix single = build_prefix("10.0.0.1/32");
	struct rule rule;

	rule_init(&rule, TABLE_NAT, "CHAIN");
	rule_source_addr(&rule, &ipv4);
	rule_destination_addr(&rule, &ipv6);
	rule_source(&rule, false, &single);
	assert_int_equal(rule.matches[0].prefix.length, 32);
	assert_true(rule.matches[0].bare);
	assert_int_equal(rule.matches[1].prefix.length, 128);
	assert_true(rule.matches[1].bare);
	assert_true(prefix_equal(&rule.matches[2].prefix, &rule.matches[0].prefix));
	assert_false(rule.matches[2].bare);
}

static void a_rule_without_a_target_only_counts(void **state attr_unused)
{
	struct rule rule;

	rule_init(&rule, TABLE_FILTER, "CHAIN");
	assert_int_equal(rule.n_matches, 0);
	assert_int_equal(rule.target.kind, TARGET_NONE);
}

static void jumps_are_those_of_the_table(void **state attr_unused)
{
	static const struct {
		enum table table;
		const char *from, *to;
		bool only_new, comment;
	} jumps[RULESET_JUMPS] = {
		{TABLE_FILTER, "INPUT", "KUBE-EXTERNAL-SERVICES", true, true},
		{TABLE_FILTER, "FORWARD", "KUBE-EXTERNAL-SERVICES", true, true},
		{TABLE_FILTER, "INPUT", "KUBE-NODEPORTS", false, true},
		{TABLE_FILTER, "FORWARD", "KUBE-SERVICES", true, true},
		{TABLE_FILTER, "OUTPUT", "KUBE-SERVICES", true, true},
		{TABLE_FILTER, "FORWARD", "KUBE-FORWARD", false, true},
		{TABLE_FILTER, "INPUT", "KUBE-PROXY-FIREWALL", true, true},
		{TABLE_FILTER, "OUTPUT", "KUBE-PROXY-FIREWALL", true, true},
		{TABLE_FILTER, "FORWARD", "KUBE-PROXY-FIREWALL", true, true},
		{TABLE_NAT, "OUTPUT", "KUBE-SERVICES", false, true},
		{TABLE_NAT, "PREROUTING", "KUBE-SERVICES", false, true},
		{TABLE_NAT, "POSTROUTING", "KUBE-POSTROUTING", false, true},
		{TABLE_FILTER, "INPUT", "KUBE-FIREWALL", false, false},
		{TABLE_FILTER, "OUTPUT", "KUBE-FIREWALL", false, false},
	};

	for (size_t i = 0; i < RULESET_JUMPS; i++) {
		struct rule rule;

		ruleset_jump(i, &rule);
		assert_int_equal(rule.table, jumps[i].table);
		assert_string_equal(rule.chain, jumps[i].from);
		assert_int_equal(rule.target.kind, TARGET_CHAIN);
		assert_string_equal(rule.target.chain, jumps[i].to);
		assert_int_equal(rule.n_matches, jumps[i].only_new + jumps[i].comment);
		if (jumps[i].only_new) {
			assert_int_equal(rule.matches[0].kind, MATCH_CTSTATE);
			assert_int_equal(rule.matches[0].ctstate, CTSTATE_NEW);
		}
	}
}

/* Ten decimals, the same as any C printf gives; every number of endpoints has its own. */
static void compute_probability_ten_decimals_strictly_growing(void **state attr_unused)
{
	static const struct {
		unsigned int one_in;
		const char *text;
	} examples[] = {
		{1, "1.0000000000"},    {2, "0.5000000000"},     {3, "0.3333333333"},
		{6, "0.1666666667"},    {7, "0.1428571429"},     {100, "0.0100000000"},
		{255, "0.0039215686"},  {256, "0.0039062500"},   {1000, "0.0010000000"},
		{2048, "0.0004882812"}, {10000, "0.0001000000"}, {100001, "0.0000099999"},
	};
	double before = 0;

	for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
		assert_string_equal(probability_text(examples[i].one_in), examples[i].text);
	for (unsigned int n = 100001; n >= 1; n--) {
		double p = strtod(probability_text(n), NULL);

		assert_int_equal(strlen(probability_text(n)), PROBABILITY_LENGTH);
		assert_true(p > before);
		before = p;
	}
}

static void a_probability_is_a_share_of_two_to_the_31(void **state attr_unused)
{
	assert_int_equal(probability_value(1), 0x80000000);
	assert_int_equal(probability_value(2), 0x40000000);
	assert_int_equal(probability_value(3), 715827883); /* 0.3333333333 of it, rounded */
}

/* -- which rules are equal */

static void expect_equal(const struct rule *a, const struct rule *b, bool equal)
{
	assert_int_equal(rule_equal(a, b), equal);
	assert_int_equal(rule_equal(b, a), equal);
	assert_int_equal(rule_hash(a) == rule_hash(b), equal);
}

static void rules_that_do_the_same_are_equal(void **state attr_unused)
{
	struct prefix single = build_prefix("10.0.0.1/32"), everything = build_prefix("0.0.0.0/0");
	struct addr addr = build_addr("10.0.0.1");
	struct rule a, b;

	rule_init(&a, TABLE_NAT, "CHAIN");
	rule_comment(&a, "text");
	rule_protocol(&a, PROTOCOL_TCP);
	rule_source(&a, false, &everything);
	rule_destination_addr(&a, &addr);
	rule_port(&a, 80);
	rule_interface(&a, true, "cni0");
	rule_jump(&a, "KUBE-A");
	rule_init(&b, TABLE_FILTER, "ELSE");
	rule_interface(&b, true, "cni0");
	rule_destination(&b, false, &single);
	rule_comment(&b, "text");
	rule_protocol(&b, PROTOCOL_TCP);
	rule_port(&b, 80);
	rule_jump(&b, "KUBE-A");
	expect_equal(&a, &b, true);
	b.matches[4].port = 81;
	expect_equal(&a, &b, false);
}

static void the_place_of_other_matches_counts(void **state attr_unused)
{
	struct rule a, b;

	rule_init(&a, TABLE_NAT, "CHAIN");
	rule_comment(&a, "text");
	rule_protocol(&a, PROTOCOL_TCP);
	rule_init(&b, TABLE_NAT, "CHAIN");
	rule_protocol(&b, PROTOCOL_TCP);
	rule_comment(&b, "text");
	expect_equal(&a, &b, false);
	expect_equal(&a, &a, true);
}

static void texts_count_as_far_as_the_kernel_holds_them(void **state attr_unused)
{
	struct rule a, b;
	char text[RULE_COMMENT_MAX + 3];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	rule_init(&a, TABLE_NAT, "CHAIN");
	rule_comment(&a, text);
	rule_init(&b, TABLE_NAT, "CHAIN");
	rule_comment(&b, text + 1);
	expect_equal(&a, &b, true);
	b.matches[0].text = text + 3;
	expect_equal(&a, &b, false);
}

/* A text cannot end as another match begins. */
static void no_text_reads_as_something_else(void **state attr_unused)
{
	struct rule a, b;

	rule_init(&a, TABLE_NAT, "CHAIN");
	rule_nfacct(&a, "ab");
	rule_recent_set(&a, "c");
	rule_init(&b, TABLE_NAT, "CHAIN");
	rule_nfacct(&b, "a");
	rule_recent_set(&b, "bc");
	expect_equal(&a, &b, false);
}

static void tables_have_their_names(void **state attr_unused)
{
	assert_string_equal(table_name(TABLE_FILTER), "filter");
	assert_string_equal(table_name(TABLE_NAT), "nat");
	assert_string_equal(table_name(TABLE_MANGLE), "mangle");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_keeps_its_matches_in_order),
		cmocka_unit_test(an_address_is_a_prefix_of_full_length),
		cmocka_unit_test(a_rule_without_a_target_only_counts),
		cmocka_unit_test(jumps_are_those_of_the_table),
		cmocka_unit_test(compute_probability_ten_decimals_strictly_growing),
		cmocka_unit_test(a_probability_is_a_share_of_two_to_the_31),
		cmocka_unit_test(rules_that_do_the_same_are_equal),
		cmocka_unit_test(the_place_of_other_matches_counts),
		cmocka_unit_test(texts_count_as_far_as_the_kernel_holds_them),
		cmocka_unit_test(no_text_reads_as_something_else),
		cmocka_unit_test(tables_have_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
