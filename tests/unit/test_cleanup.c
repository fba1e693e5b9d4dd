/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/cleanup.h"
#include "backends/iptables/ruleset.h"
#include "base/arena.h"
#include "fake_tools.h"
#include "shell.h"
#include "xtables/restore_writer.h"

/* -- with pretended tools */

static struct fake fake;

static int set_up(void **state attr_unused)
{
	fake_start(&fake);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	fake_stop(&fake);
	return 0;
}

/* What is asked for the first 12 jump rules; with -D where the rule is there. */
static void expect_jumps(struct text *expected, bool present)
{
	for (size_t i = 0; i < RULESET_JUMPS_CLEANED; i++) {
		cleanup_arena struct arena *arena = arena_new(512);
		struct rule rule;
		char **words;
		size_t n;

		ruleset_jump(i, &rule);
		words = restore_rule_argv(&rule, arena, &n);
		for (const char *op = present ? "CD" : "C"; *op; op++) {
			text_printf(expected, "iptables -w 5 -%c %s -t %s", *op, rule.chain,
				    table_name(rule.table));
			for (size_t j = 0; j < n; j++)
				text_printf(expected, " %s", words[j]);
			text_str(expected, "\n");
		}
	}
}

static void removes_jumps_then_nat_then_filter_then_the_mangle_canary(void **state attr_unused)
{
	cleanup_text struct text expected = {0};
	cleanup_free char *commands = NULL;
	cleanup_free char *inputs = NULL;
	struct err err;

	fake_answer(&fake, "*-C *", 0, false, ""); /* all rules are there */
	fake_answer(&fake, "*-D *", 0, false, "");
	fake_write(&fake, "save.nat",
		   "*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n:KUBE-KUBELET-CANARY - "
		   "[0:0]\n"
		   ":KUBE-SEP-SXIVWICOYRO3J4NJ - [0:0]\n:KUBE-PROXY-CANARY - [0:0]\n:KUBE-FIREWALL "
		   "- [0:0]\nCOMMIT\n");
	fake_write(&fake, "save.filter",
		   "*filter\n:INPUT ACCEPT [0:0]\n:KUBE-FIREWALL - [0:0]\n:KUBE-FORWARD - [0:0]\n"
		   ":KUBE-SVC-XPGD46QRK7WJZT7O - [0:0]\nCOMMIT\n");
	assert_int_equal(cleanup_family(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &err), 0);
	text_str(&expected, "iptables --version\n");
	expect_jumps(&expected, true);
	text_str(&expected,
		 "iptables-save -t nat\niptables-restore -w 5 -T nat --noflush --counters\n"
		 "iptables-save -t filter\niptables-restore -w 5 -T filter --noflush --counters\n"
		 "iptables -w 5 -X KUBE-PROXY-CANARY -t mangle\n");
	commands = text_dup(&expected);
	fake_expect_log(&fake, commands);
	inputs = fake_read(&fake, "inputs");
	assert_string_equal(
		inputs,
		"*nat\n:KUBE-SERVICES - [0:0]\n:KUBE-SEP-SXIVWICOYRO3J4NJ - [0:0]\n"
		":KUBE-PROXY-CANARY - [0:0]\n-X KUBE-SERVICES\n-X KUBE-SEP-SXIVWICOYRO3J4NJ\n"
		"-X KUBE-PROXY-CANARY\nCOMMIT\n"
		"*filter\n:KUBE-FORWARD - [0:0]\n-X KUBE-FORWARD\nCOMMIT\n");
}

static void nothing_to_remove_is_no_error_and_deletes_nothing(void **state attr_unused)
{
	cleanup_text struct text expected = {0};
	cleanup_free char *commands = NULL;
	struct err err;

	assert_int_equal(cleanup_family(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &err), 0);
	text_str(&expected, "iptables --version\n");
	expect_jumps(&expected, false);
	text_str(&expected, "iptables-save -t nat\niptables-save -t filter\n"
			    "iptables -w 5 -X KUBE-PROXY-CANARY -t mangle\n");
	commands = text_dup(&expected);
	fake_expect_log(&fake, commands);
}

static void not_found_texts_are_tolerated(void **state attr_unused)
{
	static const char *const texts[] = {
		"iptables: No chain/target/match by that name.",
		"Couldn't load target `KUBE-FORWARD':No such file or directory",
		"iptables: Bad rule (does a matching rule exist in that chain?).",
		"iptables v1.8.9 (nf_tables): Chain 'KUBE-FORWARD' does not exist",
	};
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		fake_no_answers(&fake);
		fake_answer(&fake, "*-C*", 2, false, texts[i]);
		assert_int_equal(cleanup_family(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &err), 0);
	}
}

static void a_failing_step_does_not_stop_the_others(void **state attr_unused)
{
	cleanup_free char *log = NULL;
	struct err err;

	fake_answer(&fake, "*-C INPUT*", 4, true, "Another app is holding the xtables lock.");
	fake_answer(&fake, "iptables-save -t nat*", 1, true, "no nat");
	fake_write(&fake, "save.filter", ":KUBE-FORWARD - [0:0]\n");
	assert_int_equal(cleanup_family(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &err), -EAGAIN);
	assert_true(has_prefix(
		err.text,
		"removing the jump from chain INPUT to KUBE-EXTERNAL-SERVICES in table filter: "));
	log = fake_log(&fake);
	assert_null(strstr(log, "-T nat"));
	assert_non_null(strstr(log, "-T filter"));
	assert_non_null(strstr(log, "-t mangle"));
}

static void a_failing_restore_is_told(void **state attr_unused)
{
	struct err err;

	fake_write(&fake, "save.nat", ":KUBE-SERVICES - [0:0]\n");
	fake_answer(&fake, "iptables-restore*", 1, true, "iptables-restore: line 3 failed");
	assert_int_equal(cleanup_family(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &err), -EIO);
	assert_string_equal(
		err.text,
		"removing the chains of table nat: iptables-restore -w 5 -T nat --noflush "
		"--counters, line 3 '-X KUBE-SERVICES', failed with status 1: "
		"iptables-restore: line 3 failed");
}

static void a_chain_that_a_foreign_rule_leads_to_is_emptied_and_told(void **state attr_unused)
{
	cleanup_free char *inputs = NULL;
	struct err err;

	fake_write(&fake, "save.nat",
		   "*nat\n:PREROUTING ACCEPT [0:0]\n:MINE - [0:0]\n:KUBE-SERVICES - [0:0]\n"
		   ":KUBE-MARK-MASQ - [0:0]\n:KUBE-SVC-XPGD46QRK7WJZT7O - [0:0]\n"
		   "-A MINE -s 10.0.0.1/32 -j KUBE-MARK-MASQ\n-A MINE -g KUBE-MARK-MASQ\n"
		   "-A KUBE-SERVICES -j KUBE-SVC-XPGD46QRK7WJZT7O\nCOMMIT\n");
	assert_int_equal(cleanup_family(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &err), -EBUSY);
	assert_string_equal(err.text,
			    "chain KUBE-MARK-MASQ of table nat is emptied but stays, because a "
			    "rule that is not ours leads to it: "
			    "-A MINE -s 10.0.0.1/32 -j KUBE-MARK-MASQ");
	inputs = fake_read(&fake, "inputs");
	assert_string_equal(inputs, "*nat\n:KUBE-SERVICES - [0:0]\n:KUBE-MARK-MASQ - [0:0]\n"
				    ":KUBE-SVC-XPGD46QRK7WJZT7O - [0:0]\n-X KUBE-SERVICES\n"
				    "-X KUBE-SVC-XPGD46QRK7WJZT7O\nCOMMIT\n");
}

/* -- with the real ones, in a network namespace of their own */

static const char foreign_before[] =
	"iptables -N KUBE-FIREWALL && iptables -N KUBE-KUBELET-CANARY && iptables -t nat -N "
	"KUBE-KUBELET-CANARY && "
	"iptables -t mangle -N KUBE-IPTABLES-HINT && iptables -t mangle -N KUBE-KUBELET-CANARY && "
	"iptables -A INPUT -s 1.2.3.4 -m comment --comment \"someone else's input rule\" -j DROP "
	"&& "
	"iptables -A FORWARD -s 1.2.3.4 -m comment --comment \"someone else's forward rule\" -j "
	"DROP && "
	"iptables -A INPUT -s 1.2.3.5 -j ACCEPT && "
	"iptables -t nat -A PREROUTING -d 1.2.3.4 -j RETURN && "
	"iptables -A KUBE-FIREWALL -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m comment --comment "
	"\"block incoming localnet connections\" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT "
	"-j DROP";

static const char proxy_chains[] =
	"*filter\n:KUBE-EXTERNAL-SERVICES - [0:0]\n:KUBE-FORWARD - [0:0]\n:KUBE-PROXY-CANARY - "
	"[0:0]\n"
	":KUBE-NODEPORTS - [0:0]\n:KUBE-SERVICES - [0:0]\n:KUBE-PROXY-FIREWALL - [0:0]\n"
	"-A KUBE-NODEPORTS -m comment --comment \"ns2/svc2:p80 health check node port\" -m tcp -p "
	"tcp --dport 30000 -j ACCEPT\n"
	"-A KUBE-SERVICES -m comment --comment \"ns6/svc6:p80 has no endpoints\" -m tcp -p tcp -d "
	"172.30.0.46 --dport 80 -j REJECT\n"
	"-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n"
	"*nat\n:KUBE-EXT-4SW47YFZTEDKD3PK - [0:0]\n:KUBE-FW-NUKIZ6OKUXPJNT4C - "
	"[0:0]\n:KUBE-MARK-MASQ - [0:0]\n"
	":KUBE-NODEPORTS - [0:0]\n:KUBE-POSTROUTING - [0:0]\n:KUBE-PROXY-CANARY - [0:0]\n"
	":KUBE-SEP-C6EBXVWJJZMIWKLZ - [0:0]\n:KUBE-SERVICES - [0:0]\n:KUBE-SVC-4SW47YFZTEDKD3PK - "
	"[0:0]\n"
	":KUBE-SVL-GNZBNJ2PO5MGZ6GT - [0:0]\n"
	"-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN\n"
	"-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000\n"
	"-A KUBE-SERVICES -d 172.30.0.44 -j KUBE-SVC-4SW47YFZTEDKD3PK\n"
	"-A KUBE-SVC-4SW47YFZTEDKD3PK -j KUBE-SEP-C6EBXVWJJZMIWKLZ\n"
	"-A KUBE-EXT-4SW47YFZTEDKD3PK -j KUBE-MARK-MASQ\n"
	"-A KUBE-EXT-4SW47YFZTEDKD3PK -j KUBE-SVC-4SW47YFZTEDKD3PK\n"
	"-A KUBE-FW-NUKIZ6OKUXPJNT4C -s 203.0.113.0/25 -j KUBE-EXT-4SW47YFZTEDKD3PK\n"
	"-A KUBE-SEP-C6EBXVWJJZMIWKLZ -s 10.180.0.5 -j KUBE-MARK-MASQ\nCOMMIT\n"
	"*mangle\n:KUBE-PROXY-CANARY - [0:0]\nCOMMIT\n";

/* Without comments and counters; for the caller to free. */
static char *save_all(void)
{
	return shell_output("iptables-save | grep -v '^#' | sed 's/\\[[0-9]*:[0-9]*\\]//'");
}

/* The jumps as the daemon makes them, from the first to the last. */
static void add_jumps(void)
{
	for (size_t i = 0; i < RULESET_JUMPS; i++) {
		cleanup_free char *command = NULL;
		char line[RULE_TEXT_MAX];
		struct rule rule;

		ruleset_jump(i, &rule);
		rule_print(&rule, RULE_FORM_RESTORE, line);
		command = xasprintf("iptables -t %s -I%s", table_name(rule.table),
				    line + strlen("-A"));
		assert_int_equal(system(command), 0);
	}
}

static void pipe_into(const char *command, const char *input)
{
	FILE *pipe = popen(command, "we");

	assert_non_null(pipe);
	assert_int_equal(fputs(input, pipe) < 0, 0);
	assert_int_equal(pclose(pipe), 0);
}

static void test_cleanup_leftovers_real_iptables(void **state attr_unused)
{
	cleanup_free char *expected = NULL;
	cleanup_free char *full = NULL;
	cleanup_free char *after = NULL;
	struct err err;

	private_network();
	assert_int_equal(system(foreign_before), 0);
	assert_int_equal(
		system("iptables -I INPUT -j KUBE-FIREWALL && iptables -I OUTPUT -j KUBE-FIREWALL"),
		0);
	expected = save_all();
	assert_int_equal(
		system("iptables -D INPUT -j KUBE-FIREWALL && iptables -D OUTPUT -j KUBE-FIREWALL"),
		0);
	pipe_into("iptables-restore --noflush", proxy_chains);
	add_jumps();
	full = save_all();
	assert_non_null(strstr(full, "-j KUBE-PROXY-FIREWALL"));
	assert_int_equal(cleanup_family(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &err), 0);
	after = save_all();
	assert_string_equal(after, expected);
	/* and a second time there is nothing to do */
	assert_int_equal(cleanup_family(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &err), 0);
	free(take(after));
	after = save_all();
	assert_string_equal(after, expected);
}

static void cleanup_of_an_empty_host_real_iptables(void **state attr_unused)
{
	struct err err;

	private_network();
	assert_int_equal(cleanup_family(FAMILY_IPV6, IPTABLES_VARIANT_AUTO, &err), 0);
	assert_int_equal(cleanup_family(FAMILY_IPV6, IPTABLES_VARIANT_AUTO, &err), 0);
}

static void cleanup_with_a_foreign_jump_real_iptables(void **state attr_unused)
{
	cleanup_free char *after = NULL;
	struct err err;

	private_network();
	pipe_into("iptables-restore", "*nat\n:MINE - [0:0]\nCOMMIT\n*filter\n"
				      ":KUBE-FIREWALL - [0:0]\nCOMMIT\n");
	pipe_into("iptables-restore --noflush", proxy_chains);
	add_jumps();
	assert_int_equal(system("iptables -t nat -A MINE -j KUBE-SVC-4SW47YFZTEDKD3PK && "
				"iptables -A OUTPUT -s 1.2.3.4 -g KUBE-FORWARD"),
			 0);
	assert_int_equal(cleanup_family(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &err), -EBUSY);
	assert_non_null(strstr(err.text, "-A MINE -j KUBE-SVC-4SW47YFZTEDKD3PK"));
	after = save_all();
	assert_non_null(strstr(after, ":KUBE-SVC-4SW47YFZTEDKD3PK"));
	assert_non_null(strstr(after, ":KUBE-FORWARD"));
	assert_null(strstr(after, "-A KUBE-"));
	assert_null(strstr(after, "KUBE-SEP-"));
	assert_null(strstr(after, "KUBE-SERVICES"));
	/* without the rules they go */
	assert_int_equal(system("iptables -t nat -F MINE && iptables -D OUTPUT -s 1.2.3.4 -g "
				"KUBE-FORWARD"),
			 0);
	assert_int_equal(cleanup_family(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &err), 0);
	free(take(after));
	after = save_all();
	assert_null(strstr(after, "KUBE-FORWARD"));
	assert_null(strstr(after, "KUBE-SVC"));
}

#define fake_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(removes_jumps_then_nat_then_filter_then_the_mangle_canary),
		fake_test(nothing_to_remove_is_no_error_and_deletes_nothing),
		fake_test(not_found_texts_are_tolerated),
		fake_test(a_failing_step_does_not_stop_the_others),
		fake_test(a_failing_restore_is_told),
		fake_test(a_chain_that_a_foreign_rule_leads_to_is_emptied_and_told),
		cmocka_unit_test(test_cleanup_leftovers_real_iptables),
		cmocka_unit_test(cleanup_of_an_empty_host_real_iptables),
		cmocka_unit_test(cleanup_with_a_foreign_jump_real_iptables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
