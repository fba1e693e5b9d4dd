/* SPDX-License-Identifier: Apache-2.0 */
#include "build.h"
#include "xtables/rule_compare.h"
#include "xtables/rule_list.h"

/* Rules that differ in one thing each. Texts are copies: what they say counts, not where they are. */

#define N_KINDS 38

static void make_match(struct rule *rule, unsigned int kind, struct arena *arena)
{
	const struct addr address = build_addr("10.0.0.1");
	struct prefix prefix = {.addr = address, .length = 32};

	switch (kind) {
	case 0:
		rule_comment(rule, arena_strdup(arena, "one"));
		break;
	case 1:
		rule_comment(rule, arena_strdup(arena, "two"));
		break;
	case 2:
		rule_protocol(rule, PROTOCOL_TCP);
		break;
	case 3:
		rule_protocol(rule, PROTOCOL_UDP);
		break;
	case 4:
		rule_source(rule, false, &prefix);
		break;
	case 5:
		rule_source(rule, true, &prefix);
		break;
	case 6:
		prefix.length = 30;
		rule_source(rule, false, &prefix);
		break;
	case 7:
		rule_destination_addr(rule, &address);
		break;
	case 8:
		prefix.length = 31;
		rule_source(rule, false, &prefix);
		break;
	case 9:
		rule_interface(rule, false, arena_strdup(arena, "one"));
		break;
	case 10:
		rule_protocol(rule, PROTOCOL_TCP);
		rule_port(rule, 1);
		break;
	case 11:
		rule_protocol(rule, PROTOCOL_TCP);
		rule_port(rule, 2);
		break;
	case 12:
		rule_ctstate(rule, false, CTSTATE_NEW);
		break;
	case 13:
		rule_ctstate(rule, false, CTSTATE_INVALID);
		break;
	case 14:
		rule_mark(rule, false, 1);
		break;
	case 15:
		rule_mark(rule, false, 2);
		break;
	case 16:
		rule_source_local(rule);
		break;
	case 17:
		rule_destination_local(rule);
		break;
	case 18:
		rule_statistic(rule, 2);
		break;
	case 19:
		rule_statistic(rule, 3);
		break;
	case 20:
		rule_recent_check(rule, arena_strdup(arena, "one"), 1);
		break;
	case 21:
		rule_recent_check(rule, arena_strdup(arena, "one"), 2);
		break;
	case 22:
		rule_recent_check(rule, arena_strdup(arena, "two"), 1);
		break;
	case 23:
		rule_recent_set(rule, arena_strdup(arena, "one"));
		break;
	case 24:
		rule_nfacct(rule, arena_strdup(arena, "one"));
		break;
	case 25:
		rule_jump(rule, arena_strdup(arena, "one"));
		break;
	case 26:
		rule_jump(rule, arena_strdup(arena, "two"));
		break;
	case 27:
		rule_verdict(rule, TARGET_ACCEPT);
		break;
	case 28:
		rule_verdict(rule, TARGET_DROP);
		break;
	case 29:
		rule_mark_xor(rule, 1);
		break;
	case 30:
		rule_mark_xor(rule, 2);
		break;
	case 31:
		rule_mark_or(rule, 1);
		break;
	case 32:
		rule_masquerade(rule, false);
		break;
	case 33:
		rule_masquerade(rule, true);
		break;
	case 34:
		rule_dnat(rule, &address, 1);
		break;
	case 35:
		rule_dnat(rule, &address, 2);
		break;
	case 36:
		rule_dnat(rule, &(struct addr){.family = FAMILY_IPV4}, 1);
		break;
	default: /* 37: nothing */
		break;
	}
}

static void make_rule(struct rule *rule, unsigned int kind, struct arena *arena)
{
	memset(rule, (int)kind, sizeof(*rule)); /* what is not set does not count */
	rule_init(rule, TABLE_NAT, "A");
	make_match(rule, kind, arena);
}

static void rules_are_equal_when_they_say_the_same(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(1024);

	for (unsigned int i = 0; i < N_KINDS; i++) {
		for (unsigned int j = 0; j < N_KINDS; j++) {
			struct rule a, b;

			make_rule(&a, i, arena);
			make_rule(&b, j, arena);
			if (rule_equal(&a, &b) != (i == j))
				fail_msg("rules %u and %u", i, j);
		}
	}
}

static void add(struct rule_list *list, const char *chain, unsigned int kind)
{
	struct rule rule;

	make_rule(&rule, kind, list->arena);
	rule.chain = chain;
	rule_list_add(list, &rule);
}

static void a_list_has_its_rules_in_order_and_by_chain(void **state attr_unused)
{
	static const char *const chains[] = {"own", "shared", "own", "shared", "own"};
	cleanup_rule_list struct rule_list list;
	const struct rule_item *item;
	struct rule_chain *own;
	size_t n = 0;

	rule_list_init(&list, 16);
	rule_list_declare(&list, TABLE_NAT, "own", true);
	rule_list_declare(&list, TABLE_NAT, "empty", true);
	for (unsigned int i = 0; i < ARRAY_SIZE(chains); i++) {
		list.group = i / 2;
		add(&list, chains[i], i);
	}
	for (item = list.items; item; item = item->next, n++) {
		assert_string_equal(item->rule.chain, chains[n]);
		assert_ptr_equal(item->chain, rule_list_find(&list, TABLE_NAT, chains[n]));
		assert_int_equal(item->group, n / 2);
	}
	assert_int_equal(n, ARRAY_SIZE(chains));
	own = rule_list_find(&list, TABLE_NAT, "own");
	assert_true(own->own);
	assert_int_equal(own->n, 3);
	assert_int_equal(own->items[2]->rule.n_matches, 1);
	assert_false(rule_list_find(&list, TABLE_NAT, "shared")->own);
	assert_int_equal(rule_list_find(&list, TABLE_NAT, "empty")->n, 0);
	assert_null(rule_list_find(&list, TABLE_FILTER, "own"));
}

/* By name, in however many chains: a map takes over at some number of them. */
static void a_chain_is_found_among_many(void **state attr_unused)
{
	cleanup_rule_list struct rule_list list;

	rule_list_init(&list, 16);
	for (unsigned int n = 0; n < 64; n++) {
		char *name = arena_printf(list.arena, "chain%u", n);

		rule_list_declare(&list, TABLE_NAT, name, true);
		rule_list_declare(&list, TABLE_NAT, arena_strdup(list.arena, name), false);
		add(&list, arena_strdup(list.arena, "chain0"), n % 10);
		for (unsigned int i = 0; i <= n; i++) {
			cleanup_free char *wanted = xasprintf("chain%u", i);

			assert_string_equal(rule_list_find(&list, TABLE_NAT, wanted)->name, wanted);
			assert_true(rule_list_find(&list, TABLE_NAT, wanted)->own);
			assert_null(rule_list_find(&list, TABLE_FILTER, wanted));
		}
	}
	assert_int_equal(rule_list_find(&list, TABLE_NAT, "chain0")->n, 64);
}

static void two_lists_know_what_differs(void **state attr_unused)
{
	cleanup_rule_list struct rule_list a, b;

	rule_list_init(&a, 16);
	rule_list_init(&b, 16);
	rule_list_declare(&a, TABLE_NAT, "only", true);
	for (unsigned int i = 0; i < 3; i++) {
		add(&a, "same", i);
		add(&b, "same", i);
		add(&a, "order", i);
		add(&b, "order", 2 - i);
		add(&a, "longer", i);
	}
	add(&b, "longer", 0);
	rule_list_compare(&a, &b);
	assert_false(rule_list_find(&a, TABLE_NAT, "same")->differs);
	assert_false(rule_list_find(&b, TABLE_NAT, "same")->differs);
	assert_true(rule_list_find(&a, TABLE_NAT, "order")->differs);
	assert_true(rule_list_find(&b, TABLE_NAT, "longer")->differs);
	assert_ptr_equal(rule_list_find(&b, TABLE_NAT, "longer")->twin,
			 rule_list_find(&a, TABLE_NAT, "longer"));
	assert_true(rule_list_find(&a, TABLE_NAT, "only")->differs);
	assert_null(rule_list_find(&a, TABLE_NAT, "only")->twin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_equal_when_they_say_the_same),
		cmocka_unit_test(a_list_has_its_rules_in_order_and_by_chain),
		cmocka_unit_test(a_chain_is_found_among_many),
		cmocka_unit_test(two_lists_know_what_differs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
