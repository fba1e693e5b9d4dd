/* SPDX-License-Identifier: Apache-2.0 */

/* The words of each match and target as iptables-restore reads them, and the frame around them. */

#include "build.h"
#include "xtables/restore_writer.h"

static void begin(struct rule *rule)
{
	rule_init(rule, TABLE_NAT, "CHAIN");
}

static void check_words(const struct rule *rule, const char *expected)
{
	cleanup_free char *line =
		xasprintf("-A %s%s%s", rule->chain, *expected ? " " : "", expected);
	char words[RULE_TEXT_MAX];

	rule_print(rule, RULE_FORM_RESTORE, words);
	assert_string_equal(words, line);
}

static void a_comment_is_quoted_when_it_holds_a_blank(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_comment(&rule, "ns/svc:p80");
	check_words(&rule, "-m comment --comment ns/svc:p80");
	begin(&rule);
	rule_comment(&rule, "ns/svc:p80 cluster IP");
	check_words(&rule, "-m comment --comment \"ns/svc:p80 cluster IP\"");
}

static void addresses_have_no_length_and_prefixes_always_one(void **state attr_unused)
{
	struct prefix range = build_prefix("10.0.0.0/8"), single = build_prefix("::1/128");
	struct addr addr = build_addr("fd00::1");
	struct rule rule;

	begin(&rule);
	rule_source(&rule, true, &range);
	rule_destination_addr(&rule, &addr);
	check_words(&rule, "! -s 10.0.0.0/8 -d fd00::1");
	begin(&rule);
	rule_source_addr(&rule, &addr);
	rule_destination(&rule, true, &single);
	check_words(&rule, "-s fd00::1 ! -d ::1/128");
}

static void protocols_and_ports(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_protocol(&rule, PROTOCOL_TCP);
	rule_port(&rule, 65535);
	check_words(&rule, "-m tcp -p tcp --dport 65535");
	begin(&rule);
	rule_protocol(&rule, PROTOCOL_UDP);
	rule_port(&rule, 1);
	check_words(&rule, "-m udp -p udp --dport 1");
	begin(&rule);
	rule_protocol(&rule, PROTOCOL_SCTP);
	check_words(&rule, "-m sctp -p sctp");
}

static void interfaces(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_interface(&rule, true, "veth+");
	check_words(&rule, "! -i veth+");
	begin(&rule);
	rule_interface(&rule, false, "cni0");
	check_words(&rule, "-i cni0");
}

static void connection_states_in_their_order(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_ctstate(&rule, true, CTSTATE_DNAT | CTSTATE_ESTABLISHED | CTSTATE_RELATED);
	check_words(&rule, "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT");
	begin(&rule);
	rule_ctstate(&rule, false, CTSTATE_NEW);
	check_words(&rule, "-m conntrack --ctstate NEW");
	begin(&rule);
	rule_ctstate(&rule, false, CTSTATE_INVALID);
	check_words(&rule, "-m conntrack --ctstate INVALID");
}

static void marks_have_eight_digits(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_mark(&rule, true, 0x4000);
	rule_verdict(&rule, TARGET_RETURN);
	check_words(&rule, "-m mark ! --mark 0x00004000/0x00004000 -j RETURN");
	begin(&rule);
	rule_mark(&rule, false, 0x80000000);
	check_words(&rule, "-m mark --mark 0x80000000/0x80000000");
	begin(&rule);
	rule_mark_xor(&rule, 1);
	check_words(&rule, "-j MARK --xor-mark 0x00000001");
	begin(&rule);
	rule_mark_or(&rule, 0xabcd);
	check_words(&rule, "-j MARK --or-mark 0x0000abcd");
}

static void address_types(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_source_local(&rule);
	rule_destination_local(&rule);
	check_words(&rule, "-m addrtype --src-type LOCAL -m addrtype --dst-type LOCAL");
}

static void statistic_has_ten_decimals(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_statistic(&rule, 3);
	check_words(&rule, "-m statistic --mode random --probability 0.3333333333");
	begin(&rule);
	rule_statistic(&rule, 100001);
	check_words(&rule, "-m statistic --mode random --probability 0.0000099999");
}

static void affinity(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_recent_check(&rule, "LIST", 10800);
	check_words(&rule, "-m recent --name LIST --rcheck --seconds 10800 --reap");
	begin(&rule);
	rule_recent_set(&rule, "LIST");
	check_words(&rule, "-m recent --name LIST --set");
}

static void counters_by_name(void **state attr_unused)
{
	struct rule rule;

	begin(&rule);
	rule_nfacct(&rule, "packets");
	check_words(&rule, "-m nfacct --nfacct-name packets");
}

static void targets(void **state attr_unused)
{
	struct addr ipv4 = build_addr("10.0.0.1"), ipv6 = build_addr("fd00::1");
	struct rule rule;

	begin(&rule);
	check_words(&rule, "");
	rule_jump(&rule, "OTHER");
	check_words(&rule, "-j OTHER");
	begin(&rule);
	rule_verdict(&rule, TARGET_ACCEPT);
	check_words(&rule, "-j ACCEPT");
	begin(&rule);
	rule_verdict(&rule, TARGET_DROP);
	check_words(&rule, "-j DROP");
	begin(&rule);
	rule_verdict(&rule, TARGET_REJECT);
	check_words(&rule, "-j REJECT");
	begin(&rule);
	rule_masquerade(&rule, false);
	check_words(&rule, "-j MASQUERADE");
	begin(&rule);
	rule_masquerade(&rule, true);
	check_words(&rule, "-j MASQUERADE --random-fully");
	begin(&rule);
	rule_dnat(&rule, &ipv4, 8080);
	check_words(&rule, "-j DNAT --to-destination 10.0.0.1:8080");
	begin(&rule);
	rule_dnat(&rule, &ipv6, 8080);
	check_words(&rule, "-j DNAT --to-destination [fd00::1]:8080");
}

static void check_text(struct restore_writer *writer, const char *expected)
{
	cleanup_text struct text text = {0};
	cleanup_free char *all = NULL;

	restore_writer_finish(writer, &text);
	restore_writer_done(writer);
	all = text_dup(&text);
	assert_string_equal(all, expected);
}

/* Chain lines first in each table, filter before nat, whatever the order of saying. */
static void a_transaction_is_framed_by_table(void **state attr_unused)
{
	struct restore_writer writer;
	struct rule rule;

	restore_writer_init(&writer);
	txn_chain(&writer.txn, TABLE_NAT, "ONE");
	rule_init(&rule, TABLE_NAT, "ONE");
	rule_jump(&rule, "TWO");
	txn_rule(&writer.txn, &rule);
	txn_chain(&writer.txn, TABLE_FILTER, "THREE");
	txn_chain(&writer.txn, TABLE_NAT, "TWO");
	txn_chain(&writer.txn, TABLE_NAT, "OLD");
	txn_delete_chain(&writer.txn, TABLE_NAT, "OLD");
	rule_init(&rule, TABLE_NAT, "TWO");
	rule_verdict(&rule, TARGET_ACCEPT);
	txn_rule(&writer.txn, &rule);
	check_text(&writer, "*filter\n"
			    ":THREE - [0:0]\n"
			    "COMMIT\n"
			    "*nat\n"
			    ":ONE - [0:0]\n"
			    ":TWO - [0:0]\n"
			    ":OLD - [0:0]\n"
			    "-A ONE -j TWO\n"
			    "-X OLD\n"
			    "-A TWO -j ACCEPT\n"
			    "COMMIT\n");
}

static void nothing_said_is_nothing_written(void **state attr_unused)
{
	struct restore_writer writer;

	restore_writer_init(&writer);
	check_text(&writer, "");
}

/* Lines that lie across the blocks of a text come out whole. */
static void many_rules_fill_many_blocks(void **state attr_unused)
{
	static const char line[] = "-A CHAIN -m comment --comment \"a b c\" -j ACCEPT\n";
	enum { RULES = 5000 };
	cleanup_text struct text text = {0};
	cleanup_free char *all = NULL;
	struct restore_writer writer;
	struct rule rule;

	restore_writer_init(&writer);
	begin(&rule);
	rule_comment(&rule, "a b c");
	rule_verdict(&rule, TARGET_ACCEPT);
	for (size_t i = 0; i < RULES; i++)
		txn_rule(&writer.txn, &rule);
	restore_writer_finish(&writer, &text);
	all = text_dup(&text);
	assert_int_equal(text.size, strlen("*nat\nCOMMIT\n") + RULES * strlen(line));
	for (size_t i = 0; i < RULES; i++)
		assert_memory_equal(all + strlen("*nat\n") + i * strlen(line), line, strlen(line));
	restore_writer_done(&writer);
}

static void arguments_are_words_without_quotes(void **state attr_unused)
{
	static const char *const expected[] = {
		"-m", "conntrack", "--ctstate", "NEW",
		"-m", "comment",   "--comment", "kubernetes service portals",
		"-j", "OTHER",
	};
	cleanup_arena struct arena *arena = arena_new(256);
	struct rule rule;
	char **argv;
	size_t n;

	begin(&rule);
	rule_ctstate(&rule, false, CTSTATE_NEW);
	rule_comment(&rule, "kubernetes service portals");
	rule_jump(&rule, "OTHER");
	argv = restore_rule_argv(&rule, arena, &n);
	assert_int_equal(n, ARRAY_SIZE(expected));
	for (size_t i = 0; i < n; i++)
		assert_string_equal(argv[i], expected[i]);
	assert_null(argv[n]);
}

static void no_words_are_no_arguments(void **state attr_unused)
{
	cleanup_arena struct arena *arena = arena_new(256);
	struct rule rule;
	char **argv;
	size_t n;

	begin(&rule);
	argv = restore_rule_argv(&rule, arena, &n);
	assert_int_equal(n, 0);
	assert_null(argv[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_comment_is_quoted_when_it_holds_a_blank),
		cmocka_unit_test(addresses_have_no_length_and_prefixes_always_one),
		cmocka_unit_test(protocols_and_ports),
		cmocka_unit_test(interfaces),
		cmocka_unit_test(connection_states_in_their_order),
		cmocka_unit_test(marks_have_eight_digits),
		cmocka_unit_test(address_types),
		cmocka_unit_test(statistic_has_ten_decimals),
		cmocka_unit_test(affinity),
		cmocka_unit_test(counters_by_name),
		cmocka_unit_test(targets),
		cmocka_unit_test(a_transaction_is_framed_by_table),
		cmocka_unit_test(nothing_said_is_nothing_written),
		cmocka_unit_test(many_rules_fill_many_blocks),
		cmocka_unit_test(arguments_are_words_without_quotes),
		cmocka_unit_test(no_words_are_no_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
