/* SPDX-License-Identifier: Apache-2.0 */

/* The tool's spelling of each rule. test_save_tools.c asks the tool itself. */

#include "build.h"
#include "xtables/rule_store.h"

static char *finish(struct rule_store *store)
{
	cleanup_text struct text text = {0};

	rule_store_save(store, &text);
	rule_store_free(store);
	return text_dup(&text);
}

/* One rule of nat CHAIN as it is shown, without "-A CHAIN". */
static void check_rule(enum family family, const struct rule *rule, const char *expected)
{
	struct rule_store *store = rule_store_new(family);
	cleanup_free char *text = NULL, *line = NULL;

	txn_chain(rule_store_txn(store), TABLE_NAT, "CHAIN");
	txn_rule(rule_store_txn(store), rule);
	text = finish(store);
	line = xasprintf("\n-A CHAIN%s\nCOMMIT\n", expected);
	assert_non_null(strstr(text, line));
}

static void begin(struct rule *rule)
{
	rule_init(rule, TABLE_NAT, "CHAIN");
}

static void addresses_interface_and_protocol_come_first(void **state attr_unused)
{
	struct addr addr = build_addr("172.30.0.41");
	struct prefix range = build_prefix("10.0.0.0/8");
	struct rule rule;

	begin(&rule);
	rule_comment(&rule, "ns/svc:p80 cluster IP");
	rule_protocol(&rule, PROTOCOL_TCP);
	rule_destination_addr(&rule, &addr);
	rule_port(&rule, 80);
	rule_interface(&rule, true, "veth+");
	rule_source(&rule, true, &range);
	rule_jump(&rule, "OTHER");
	check_rule(FAMILY_IPV4, &rule,
		   " ! -s 10.0.0.0/8 -d 172.30.0.41/32 ! -i veth+ -p tcp -m comment"
		   " --comment \"ns/svc:p80 cluster IP\" -m tcp --dport 80 -j OTHER");
}

static void a_prefix_of_length_zero_is_not_shown(void **state attr_unused)
{
	struct prefix all = build_prefix("::/0");
	struct rule rule;

	begin(&rule);
	rule_source(&rule, false, &all);
	rule_jump(&rule, "OTHER");
	check_rule(FAMILY_IPV6, &rule, " -j OTHER");
}

static void extensions_keep_their_order(void **state attr_unused)
{
	struct prefix loopback = build_prefix("127.0.0.0/8");
	struct rule rule;

	begin(&rule);
	rule_comment(&rule, "ns/svc:p80");
	rule_protocol(&rule, PROTOCOL_SCTP);
	rule_destination(&rule, false, &loopback);
	rule_port(&rule, 30080);
	rule_nfacct(&rule, "counter");
	rule_jump(&rule, "OTHER");
	check_rule(FAMILY_IPV4, &rule,
		   " -d 127.0.0.0/8 -p sctp -m comment --comment \"ns/svc:p80\" -m sctp"
		   " --dport 30080 -m nfacct --nfacct-name  counter -j OTHER");
	begin(&rule);
	rule_comment(&rule, "a b");
	rule_destination_local(&rule);
	rule_protocol(&rule, PROTOCOL_UDP);
	rule_port(&rule, 53);
	rule_verdict(&rule, TARGET_DROP);
	check_rule(FAMILY_IPV4, &rule,
		   " -p udp -m comment --comment \"a b\" -m addrtype --dst-type LOCAL"
		   " -m udp --dport 53 -j DROP");
}

static void comments_are_quoted_unless_plain(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_comment(&rule, "ns/svc");
	check_rule(FAMILY_IPV4, &rule, " -m comment --comment \"ns/svc\"");
	begin(&rule);
	rule_comment(&rule, "plain_TEXT-09");
	check_rule(FAMILY_IPV4, &rule, " -m comment --comment plain_TEXT-09");
}

static void marks_are_short_and_set(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_mark(&rule, true, 0x4000);
	rule_verdict(&rule, TARGET_RETURN);
	check_rule(FAMILY_IPV4, &rule, " -m mark ! --mark 0x4000/0x4000 -j RETURN");
	begin(&rule);
	rule_mark_xor(&rule, 0x4000);
	check_rule(FAMILY_IPV4, &rule, " -j MARK --set-xmark 0x4000/0x0");
	begin(&rule);
	rule_mark_or(&rule, 0x80000000);
	check_rule(FAMILY_IPV4, &rule, " -j MARK --set-xmark 0x80000000/0x80000000");
}

static void reject_names_its_answer(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_verdict(&rule, TARGET_REJECT);
	check_rule(FAMILY_IPV4, &rule, " -j REJECT --reject-with icmp-port-unreachable");
	check_rule(FAMILY_IPV6, &rule, " -j REJECT --reject-with icmp6-port-unreachable");
}

static void probabilities_are_shares_of_two_to_the_31(void **state attr_unused)
{
	static const struct {
		unsigned int one_in;
		const char *text;
	} examples[] = {
		{2, "0.50000000000"},
		{3, "0.33333333349"},
		{6, "0.16666666651"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		cleanup_free char *expected =
			xasprintf(" -m statistic --mode random --probability %s", examples[i].text);
		struct rule rule;

		begin(&rule);
		rule_statistic(&rule, examples[i].one_in);
		check_rule(FAMILY_IPV4, &rule, expected);
	}
}

static void affinity_shows_its_defaults(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_recent_check(&rule, "LIST", 600);
	check_rule(FAMILY_IPV4, &rule,
		   " -m recent --rcheck --seconds 600 --reap --name LIST"
		   " --mask 255.255.255.255 --rsource");
	begin(&rule);
	rule_recent_set(&rule, "LIST");
	check_rule(FAMILY_IPV6, &rule,
		   " -m recent --set --name LIST"
		   " --mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource");
}

static void targets_with_options(void **state attr_unused)
{
	struct addr addr = build_addr("fd00::1");
	struct rule rule;

	begin(&rule);
	rule_protocol(&rule, PROTOCOL_TCP);
	rule_dnat(&rule, &addr, 8080);
	check_rule(FAMILY_IPV6, &rule, " -p tcp -m tcp -j DNAT --to-destination [fd00::1]:8080");
	begin(&rule);
	rule_masquerade(&rule, true);
	check_rule(FAMILY_IPV4, &rule, " -j MASQUERADE --random-fully");
}

/* Base chains first, then the others by name; tables in the tool's order; -I goes to the front. */
static void chains_and_tables_are_in_the_order_of_the_tool(void **state attr_unused)
{
	struct rule_store *store = rule_store_new(FAMILY_IPV4);
	struct txn *txn = rule_store_txn(store);
	cleanup_free char *text = NULL;
	struct rule rule;

	txn_chain(txn, TABLE_NAT, "B");
	txn_chain(txn, TABLE_NAT, "A");
	txn_chain(txn, TABLE_MANGLE, "C");
	txn_chain(txn, TABLE_FILTER, "D");
	rule_init(&rule, TABLE_NAT, "B");
	rule_jump(&rule, "A");
	txn_rule(txn, &rule);
	rule_init(&rule, TABLE_NAT, "OUTPUT");
	rule_jump(&rule, "A");
	rule_store_prepend(store, &rule);
	rule_init(&rule, TABLE_NAT, "OUTPUT");
	rule_jump(&rule, "B");
	rule_store_prepend(store, &rule);
	text = finish(store);
	assert_string_equal(text, "*mangle\n"
				  ":PREROUTING ACCEPT [0:0]\n"
				  ":INPUT ACCEPT [0:0]\n"
				  ":FORWARD ACCEPT [0:0]\n"
				  ":OUTPUT ACCEPT [0:0]\n"
				  ":POSTROUTING ACCEPT [0:0]\n"
				  ":C - [0:0]\n"
				  "COMMIT\n"
				  "*filter\n"
				  ":INPUT ACCEPT [0:0]\n"
				  ":FORWARD ACCEPT [0:0]\n"
				  ":OUTPUT ACCEPT [0:0]\n"
				  ":D - [0:0]\n"
				  "COMMIT\n"
				  "*nat\n"
				  ":PREROUTING ACCEPT [0:0]\n"
				  ":INPUT ACCEPT [0:0]\n"
				  ":OUTPUT ACCEPT [0:0]\n"
				  ":POSTROUTING ACCEPT [0:0]\n"
				  ":A - [0:0]\n"
				  ":B - [0:0]\n"
				  "-A OUTPUT -j B\n"
				  "-A OUTPUT -j A\n"
				  "-A B -j A\n"
				  "COMMIT\n");
}

static void declaring_empties_and_deleting_removes(void **state attr_unused)
{
	struct rule_store *store = rule_store_new(FAMILY_IPV4);
	struct txn *txn = rule_store_txn(store);
	cleanup_free char *text = NULL;
	struct rule rule;

	txn_chain(txn, TABLE_FILTER, "A");
	txn_chain(txn, TABLE_FILTER, "B");
	rule_init(&rule, TABLE_FILTER, "A");
	rule_verdict(&rule, TARGET_DROP);
	txn_rule(txn, &rule);
	txn_chain(txn, TABLE_FILTER, "A");
	txn_delete_chain(txn, TABLE_FILTER, "B");
	text = finish(store);
	assert_string_equal(text, "*filter\n"
				  ":INPUT ACCEPT [0:0]\n"
				  ":FORWARD ACCEPT [0:0]\n"
				  ":OUTPUT ACCEPT [0:0]\n"
				  ":A - [0:0]\n"
				  "COMMIT\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_interface_and_protocol_come_first),
		cmocka_unit_test(a_prefix_of_length_zero_is_not_shown),
		cmocka_unit_test(extensions_keep_their_order),
		cmocka_unit_test(comments_are_quoted_unless_plain),
		cmocka_unit_test(marks_are_short_and_set),
		cmocka_unit_test(reject_names_its_answer),
		cmocka_unit_test(probabilities_are_shares_of_two_to_the_31),
		cmocka_unit_test(affinity_shows_its_defaults),
		cmocka_unit_test(targets_with_options),
		cmocka_unit_test(chains_and_tables_are_in_the_order_of_the_tool),
		cmocka_unit_test(declaring_empties_and_deleting_removes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
