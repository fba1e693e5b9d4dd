/* SPDX-License-Identifier: Apache-2.0 */

/* Lines of iptables-save as values: what is printed is read as it was, and anything else as none of ours. */

#include "base/arena.h"
#include "nft_shapes.h"
#include "xtables/rule_compare.h"
#include "xtables/rule_parse.h"
#include "xtables/rule_text.h"

static bool is_other(const struct rule *rule)
{
	return rule->n_matches > 0 && rule->matches[rule->n_matches - 1].kind == MATCH_OTHER;
}

static void each_rule_is_read_as_it_was_printed(void **state attr_unused)
{
	for (int family = 0; family < FAMILY_COUNT; family++) {
		cleanup_arena struct arena *arena = arena_new(65536);
		struct shapes shapes;

		shapes_init(&shapes, (enum family)family, true);
		shapes_jumps(&shapes);
		shapes_add(&shapes);
		shapes.seed = 777 + (uint64_t)family;
		for (int i = 0; i < 30; i++)
			shapes_add(&shapes);
		assert_true(shapes.n > 1000);
		for (size_t i = 0; i < shapes.n; i++) {
			char line[RULE_TEXT_MAX];
			struct rule rule;

			rule_print(&shapes.rules[i], rule_form_save((enum family)family), line);
			assert_true(rule_parse(line, (enum family)family, arena, &rule));
			assert_string_equal(rule.chain, shapes.rules[i].chain);
			if (!rule_equal(&rule, &shapes.rules[i]))
				fail_msg("another rule: %s", line);
		}
		shapes_done(&shapes);
	}
}

/* Whatever is understood of them, they are none of ours. */
static void lines_of_others_are_none_of_ours(void **state attr_unused)
{
	static const char *const lines[] = {
		"-A INPUT -o eth0 -j ACCEPT",
		"-A INPUT -p icmp -j ACCEPT",
		"-A INPUT -p tcp -m tcp --sport 80 -j DROP",
		"-A INPUT -p tcp -m tcp --dport 80:90 -j DROP",
		"-A INPUT -m recent --rcheck --name x --rsource",
		"-A INPUT -s 10.0.0.0/255.0.255.0 -j DROP",
		"-A INPUT -m mark --mark 0x1/0x3 -j DROP",
		"-A INPUT -j REJECT --reject-with icmp-net-unreachable",
		"-A INPUT -j MARK --set-xmark 0x1/0x3",
		"-A INPUT -j DNAT --to-destination 10.0.0.1",
		"-A INPUT -m statistic --mode nth --every 3 --packet 0",
		"-A INPUT -m comment --comment \"a \\\"quoted\\\" word\" -j KUBE-A",
		"-A INPUT -j LOG --log-prefix \"-j KUBE-A\"",
		("-A INPUT -s 1.1.1.1/32 -s 1.1.1.1/32 -s 1.1.1.1/32 -s 1.1.1.1/32 -s 1.1.1.1/32 "
		 "-s 1.1.1.1/32 -s 1.1.1.1/32 -s 1.1.1.1/32 -s 1.1.1.1/32 -s 1.1.1.1/32 -j X"),
		"-A INPUT --comment",
		"-A INPUT -j",
		"-A INPUT !",
		"-A INPUT \"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		cleanup_arena struct arena *arena = arena_new(1024);
		struct rule rule;

		assert_true(rule_parse(lines[i], FAMILY_IPV4, arena, &rule));
		assert_string_equal(rule.chain, "INPUT");
		if (!is_other(&rule))
			fail_msg("one of ours: %s", lines[i]);
	}
}

static void what_is_understood_of_others_is_there(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(1024);
	struct rule rule;

	assert_true(rule_parse("-A A -m comment --comment \"say \\\"x\\\" -j Z\" -m foo -j B",
			       FAMILY_IPV4, arena, &rule));
	assert_int_equal(rule.matches[0].kind, MATCH_COMMENT);
	assert_string_equal(rule.matches[0].text, "say \"x\" -j Z");
	assert_int_equal(rule.target.kind, TARGET_CHAIN);
	assert_string_equal(rule.target.chain, "B");
	assert_true(rule_parse("-A A -m state ! --state RELATED,ESTABLISHED -g B", FAMILY_IPV4,
			       arena, &rule));
	assert_int_equal(rule.matches[0].ctstate, CTSTATE_RELATED | CTSTATE_ESTABLISHED);
	assert_true(rule.matches[0].invert && rule.matches[0].bare);
	assert_int_equal(rule.target.kind, TARGET_GOTO);
	assert_true(rule_parse("-A A -p tcp -j ACCEPT", FAMILY_IPV4, arena, &rule));
	assert_true(rule.n_matches == 1 && rule.matches[0].bare);
}

static void other_lines_are_no_rules(void **state attr_unused)
{
	static const char *const lines[] = {"",       "# -A X", "*nat", ":X - [0:0]",
					    "COMMIT", "-A ",    "-A",   "[1:2] -A X"};
	cleanup_arena struct arena *arena = arena_new(1024);
	struct rule rule;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_false(rule_parse(lines[i], FAMILY_IPV4, arena, &rule));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_is_read_as_it_was_printed),
		cmocka_unit_test(lines_of_others_are_none_of_ours),
		cmocka_unit_test(what_is_understood_of_others_is_there),
		cmocka_unit_test(other_lines_are_no_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
