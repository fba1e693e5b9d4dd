/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What nft_rule.h leaves in the kernel is what iptables-restore leaves there: to iptables-save, to
 * nft, to a dump of the bytes, to iptables -C and -D, and to a newer iptables.
 */

#include "nft_lab.h"

#define RANDOM_ROUNDS 40 /* about 60 rules each, for each family */

/* What was written in which namespace. */
struct lab {
	int sides[LAB_SIDES];
	struct shapes shapes;
};

static void lab_begin(struct lab *lab, enum family family)
{
	bool nfacct = false;

	for (int side = 0; side < LAB_SIDES; side++) {
		lab_enter_new();
		lab->sides[side] = lab_namespace();
		nfacct = lab_nfacct();
	}
	shapes_init(&lab->shapes, family, nfacct);
}

static void lab_write(struct lab *lab)
{
	lab_enter(lab->sides[LAB_TOOL]);
	lab_write_with_tool(&lab->shapes);
	lab_enter(lab->sides[LAB_OURS]);
	assert_int_equal(lab_write_ours(&lab->shapes), 0);
}

static void lab_end(struct lab *lab)
{
	for (int side = 0; side < LAB_SIDES; side++)
		close(lab->sides[side]);
	shapes_done(&lab->shapes);
}

/* -- comparisons */

static void same_text(const char *a, const char *b)
{
	size_t line = 1;

	for (; *a && *a == *b; a++, b++)
		line += *a == '\n';
	if (*a || *b)
		fail_msg("line %zu: \"%.200s\" here, \"%.200s\" there", line, a, b);
}

static void same_output(const struct lab *lab, const char *command)
{
	char *out[LAB_SIDES];

	for (int side = 0; side < LAB_SIDES; side++) {
		lab_enter(lab->sides[side]);
		out[side] = shell_output(command);
	}
	assert_non_null(strchr(out[LAB_TOOL], '\n'));
	same_text(out[LAB_TOOL], out[LAB_OURS]);
	for (int side = 0; side < LAB_SIDES; side++)
		free(out[side]);
}

/* The family and all attributes; not the generation, which is how often the kernel was written. */
static void keep_message(void *arg, const struct nlmsghdr *message)
{
	const struct nfgenmsg *head = mnl_nlmsg_get_payload(message);
	const uint8_t *bytes = mnl_nlmsg_get_payload_offset(message, sizeof(*head));
	size_t n = mnl_nlmsg_get_payload_len(message) - sizeof(*head);

	text_printf(arg, "%u %u:", message->nlmsg_type, head->nfgen_family);
	for (size_t i = 0; i < n; i++)
		text_printf(arg, "%02x", bytes[i]);
	text_str(arg, "\n");
}

static void same_bytes(const struct lab *lab)
{
	static const int types[] = {NFT_MSG_GETTABLE, NFT_MSG_GETCHAIN, NFT_MSG_GETRULE};
	char *out[LAB_SIDES];

	for (int side = 0; side < LAB_SIDES; side++) {
		cleanup_text struct text text = {0};

		lab_enter(lab->sides[side]);
		for (size_t i = 0; i < ARRAY_SIZE(types); i++)
			lab_dump(lab->shapes.family, types[i], keep_message, &text);
		out[side] = text_dup(&text);
	}
	assert_true(strlen(out[LAB_TOOL]) > 500 * lab->shapes.n);
	same_text(out[LAB_TOOL], out[LAB_OURS]);
	for (int side = 0; side < LAB_SIDES; side++)
		free(out[side]);
}

/* iptables-save heads and ends its output with the time. */
static char *save_command(enum family family)
{
	return xasprintf("%s-save -c | grep -v '^#'", lab_tool(family));
}

static void same_everywhere(const struct lab *lab)
{
	cleanup_free char *save = save_command(lab->shapes.family);

	same_output(lab, save);
	same_output(lab, "nft --debug=netlink -a list ruleset 2>&1");
	same_bytes(lab);
}

/* -- tests */

static void each_shape_equals(enum family family)
{
	struct lab lab;

	lab_begin(&lab, family);
	shapes_jumps(&lab.shapes);
	shapes_add(&lab.shapes);
	lab_write(&lab);
	same_everywhere(&lab);
	lab_end(&lab);
}

static void each_shape_equals_that_of_iptables_restore(void **state attr_unused)
{
	each_shape_equals(FAMILY_IPV4);
}

static void each_shape_equals_that_of_ip6tables_restore(void **state attr_unused)
{
	each_shape_equals(FAMILY_IPV6);
}

/* PORTOLAN_RANDOM_ROUNDS: fewer, for machines that are slow because they are emulated. */
static int random_rounds(void)
{
	const char *wanted = getenv("PORTOLAN_RANDOM_ROUNDS");

	return wanted ? atoi(wanted) : RANDOM_ROUNDS;
}

static void random_rules_equal(enum family family)
{
	uint64_t seed = 20261116 + (uint64_t)family;
	struct lab lab;

	lab_begin(&lab, family);
	lab.shapes.seed = seed;
	for (int i = 0; i < random_rounds(); i++)
		shapes_add(&lab.shapes);
	print_message("# %s: %zu rules of seed %llu\n", family_name(family), lab.shapes.n,
		      (unsigned long long)seed);
	lab_write(&lab);
	same_everywhere(&lab);
	lab_end(&lab);
}

static void random_rules_equal_those_of_iptables_restore(void **state attr_unused)
{
	random_rules_equal(FAMILY_IPV4);
}

static void random_rules_equal_those_of_ip6tables_restore(void **state attr_unused)
{
	random_rules_equal(FAMILY_IPV6);
}

static void count_message(void *arg, const struct nlmsghdr *message attr_unused)
{
	++*(size_t *)arg;
}

/* Rules may be equal (a mark target has nothing to differ in): each -D takes one. */
static void words_find_and_delete(enum family family)
{
	struct lab lab;
	size_t left = 0;

	lab_begin(&lab, family);
	shapes_jumps(&lab.shapes);
	shapes_add(&lab.shapes);
	assert_int_equal(lab_write_ours(&lab.shapes), 0);
	for (size_t i = 0; i < lab.shapes.n; i++)
		if (lab_iptables(family, "-C", &lab.shapes.rules[i]) != 0)
			fail_msg("rule %zu was not found by -C", i);
	for (size_t i = 0; i < lab.shapes.n; i++)
		if (lab_iptables(family, "-D", &lab.shapes.rules[i]) != 0)
			fail_msg("rule %zu was not found by -D", i);
	lab_dump(family, NFT_MSG_GETRULE, count_message, &left);
	assert_int_equal(left, 0);
	lab_end(&lab);
}

static void iptables_checks_and_deletes_each_shape(void **state attr_unused)
{
	words_find_and_delete(FAMILY_IPV4);
}

static void ip6tables_checks_and_deletes_each_shape(void **state attr_unused)
{
	words_find_and_delete(FAMILY_IPV6);
}

/*
 * "! -s 0.0.0.0/0": the tool sends what the kernel refuses, so there is nothing to compare with.
 * The kernel takes ours, it reads as the words say, and is found by them; with an interface that
 * cannot be, the tool knows a way of its own.
 */
static void nothing_can_be_said(void **state attr_unused)
{
	for (int family = 0; family < FAMILY_COUNT; family++) {
		struct prefix all = {.addr = {.family = (uint8_t)family}};
		cleanup_free char *save = NULL, *command = save_command((enum family)family);
		struct shapes shapes;

		lab_enter_new();
		shapes_init(&shapes, (enum family)family, false);
		for (int i = 0; i < 2; i++) {
			struct rule *rule = shape_rule(&shapes, TABLE_NAT, SHAPE_CHAIN);

			if (i == 0)
				rule_source(rule, true, &all);
			else
				rule_destination(rule, true, &all);
			rule_jump(rule, SHAPE_JUMP);
		}
		assert_int_equal(lab_write_ours(&shapes), 0);
		save = shell_output(command);
		assert_non_null(strstr(save, family == FAMILY_IPV4
						     ? "] -A KUBE-SHAPES ! -s 0.0.0.0/0 -j KUBE-SVC"
						     : "] -A KUBE-SHAPES ! -s ::/0 -j KUBE-SVC"));
		assert_non_null(strstr(save, family == FAMILY_IPV4
						     ? "] -A KUBE-SHAPES ! -d 0.0.0.0/0 -j KUBE-SVC"
						     : "] -A KUBE-SHAPES ! -d ::/0 -j KUBE-SVC"));
		for (size_t i = 0; i < shapes.n; i++)
			assert_int_equal(lab_iptables((enum family)family, "-C", &shapes.rules[i]),
					 0);
		shapes_done(&shapes);
	}
}

static void any_interface_and_none_equal_those_of_iptables_restore(void **state attr_unused)
{
	struct lab lab;

	lab_begin(&lab, FAMILY_IPV4);
	for (int i = 0; i < 4; i++) {
		struct rule *rule = shape_rule(&lab.shapes, TABLE_NAT, SHAPE_CHAIN);

		rule_interface(rule, i & 1, i & 2 ? "+" : "a-name-of-15-ch");
		rule_jump(rule, SHAPE_JUMP);
	}
	lab_write(&lab);
	same_everywhere(&lab);
	lab_end(&lab);
}

/* -- chains */

static void a_policy_stays_when_a_base_chain_is_said_again(void **state attr_unused)
{
	cleanup_free char *save = NULL;
	struct lab lab;

	lab_begin(&lab, FAMILY_IPV4);
	shapes_jumps(&lab.shapes);
	assert_int_equal(system("iptables-nft -P INPUT DROP"), 0);
	assert_int_equal(lab_write_ours(&lab.shapes), 0);
	save = shell_output("iptables-nft-save");
	assert_non_null(strstr(save, "\n:INPUT DROP ["));
	assert_non_null(strstr(save, "\n:FORWARD ACCEPT ["));
	lab_end(&lab);
}

static size_t count_rules(enum family family)
{
	size_t n = 0;

	lab_dump(family, NFT_MSG_GETRULE, count_message, &n);
	return n;
}

static void keep_handle(void *arg, const struct nlmsghdr *message)
{
	struct nft_rule_seen seen;

	assert_int_equal(nft_rule_digest_message(message, &seen), 0);
	*(uint64_t *)arg = seen.handle;
}

/* A transaction of one message. */
static int change(enum family family, int type, int flags, const char *chain, uint64_t handle)
{
	struct lab_batch batch = {0};
	struct nlmsghdr *message;

	lab_mark(&batch, NFNL_MSG_BATCH_BEGIN);
	message = lab_nft(&batch, type, family, flags);
	if (type == NFT_MSG_DELCHAIN)
		nft_chain_put(message, TABLE_NAT, chain);
	else if (handle)
		nft_delete_rule_put(message, TABLE_NAT, chain, handle);
	else
		nft_flush_put(message, TABLE_NAT, chain);
	lab_close(&batch, message);
	return lab_commit(&batch);
}

static void rules_and_chains_can_be_removed(void **state attr_unused)
{
	for (int i = 0; i < FAMILY_COUNT; i++) {
		enum family family = (enum family)i;
		uint64_t handle = 0;
		struct shapes shapes;

		lab_enter_new();
		shapes_init(&shapes, family, false);
		shapes_external(&shapes); /* all in table nat */
		assert_int_equal(lab_write_ours(&shapes), 0);
		assert_int_equal(count_rules(family), shapes.n);
		lab_dump(family, NFT_MSG_GETRULE, keep_handle, &handle);
		assert_int_equal(change(family, NFT_MSG_DELRULE, 0, SHAPE_CHAIN, handle), 0);
		assert_int_equal(count_rules(family), shapes.n - 1);
		assert_int_equal(change(family, NFT_MSG_DELRULE, 0, SHAPE_CHAIN, handle), -ENOENT);
		assert_int_equal(change(family, NFT_MSG_DELCHAIN, NLM_F_NONREC, SHAPE_CHAIN, 0),
				 -EBUSY);
		assert_int_equal(change(family, NFT_MSG_DELRULE, 0, SHAPE_CHAIN, 0), 0);
		assert_int_equal(count_rules(family), 0);
		assert_int_equal(change(family, NFT_MSG_DELCHAIN, NLM_F_NONREC, SHAPE_CHAIN, 0), 0);
		assert_int_equal(change(family, NFT_MSG_DELCHAIN, NLM_F_NONREC, SHAPE_CHAIN, 0),
				 -ENOENT);
		shapes_done(&shapes);
	}
}

/* -- another iptables than that which the messages were learnt from */

static void newer_reads_the_same(enum family family)
{
	cleanup_free char *command = save_command(family);
	cleanup_free char *usual = NULL, *newer = NULL, *version = NULL;
	struct lab lab;

	lab_begin(&lab, family);
	shapes_jumps(&lab.shapes);
	shapes_add(&lab.shapes);
	assert_int_equal(lab_write_ours(&lab.shapes), 0);
	usual = shell_output(command);
	lab_newer_tools();
	version = shell_output("iptables-nft --version");
	newer = shell_output(command);
	assert_string_equal(version, "iptables v1.8.11 (nf_tables)\n");
	same_text(usual, newer);
	for (size_t i = 0; i < lab.shapes.n; i++)
		if (lab_iptables(family, "-C", &lab.shapes.rules[i]) != 0)
			fail_msg("rule %zu was not found by -C", i);
	for (size_t i = 0; i < lab.shapes.n; i++)
		if (lab_iptables(family, "-D", &lab.shapes.rules[i]) != 0)
			fail_msg("rule %zu was not found by -D", i);
	lab_usual_tools();
	lab_end(&lab);
}

static void iptables_1_8_11_reads_the_same(void **state attr_unused)
{
	newer_reads_the_same(FAMILY_IPV4);
}

static void ip6tables_1_8_11_reads_the_same(void **state attr_unused)
{
	newer_reads_the_same(FAMILY_IPV6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_shape_equals_that_of_iptables_restore),
		cmocka_unit_test(each_shape_equals_that_of_ip6tables_restore),
		cmocka_unit_test(random_rules_equal_those_of_iptables_restore),
		cmocka_unit_test(random_rules_equal_those_of_ip6tables_restore),
		cmocka_unit_test(nothing_can_be_said),
		cmocka_unit_test(any_interface_and_none_equal_those_of_iptables_restore),
		cmocka_unit_test(iptables_checks_and_deletes_each_shape),
		cmocka_unit_test(ip6tables_checks_and_deletes_each_shape),
		cmocka_unit_test(a_policy_stays_when_a_base_chain_is_said_again),
		cmocka_unit_test(rules_and_chains_can_be_removed),
		cmocka_unit_test(iptables_1_8_11_reads_the_same),
		cmocka_unit_test(ip6tables_1_8_11_reads_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
