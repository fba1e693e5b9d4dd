/* SPDX-License-Identifier: Apache-2.0 */

/* Each rule of table kube-proxy, as a message and back to nft's words. */

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "backends/nftables/expression_text.h"
#include "backends/nftables/layout.h"
#include "backends/nftables/statement_put.h"
#include "backends/nftables/statement_text.h"
#include "backends/nftables/user_data.h"
#include "build.h"
#include "kernel/nft_message.h"

#define MESSAGE_SIZE 8192

static size_t n_rules;

static struct nlmsghdr *begin_rule(char *buffer)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

	message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE;
	mnl_nlmsg_put_extra_header(message, sizeof(struct nfgenmsg));
	return message;
}

static void expect_words(const struct nlmsghdr *message, enum family family, const char *expected)
{
	cleanup_text struct text text = {0};
	cleanup_free char *words = NULL;

	expression_text_rule(&text, family, message);
	words = text_dup(&text);
	assert_string_equal(words, expected);
}

static void check_rule(struct writer *writer, const struct nft_rule *rule)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	struct nlmsghdr *message = begin_rule(buffer);
	cleanup_text struct text text = {0};
	cleanup_free char *words = NULL;

	statement_put_all(message, writer->family, rule);
	if (rule->comment)
		user_data_comment(message, NFTA_RULE_USERDATA, rule->comment);
	statement_text_rule(&text, writer->family, rule);
	words = text_dup(&text);
	expect_words(message, writer->family, words);
	n_rules++;
}

static void skip_chain(struct writer *writer attr_unused, struct chain chain attr_unused)
{
}

static const struct writer_ops checking = {.chain = skip_chain, .rule = check_rule};

static void check_layout(enum family family, const struct detector *detector, bool masquerade_all)
{
	struct settings settings = {.family = family,
				    .masquerade_mark = 0x4000,
				    .masquerade_all = masquerade_all,
				    .detector = *detector};
	const struct prefix cidr =
		build_prefix(family == FAMILY_IPV4 ? "10.96.0.0/12" : "fd00:96::/108");
	const struct layout_facts facts = {&settings, &cidr, 1, true};
	struct writer writer = {.ops = &checking, .family = family};

	node_ports_init(&settings.node_ports, family, NULL, 0);
	for (enum chain_id id = 0; id < CHAIN_FIXED_COUNT; id++)
		layout_rules(&writer, &facts, id);
	for (enum chain_id id = CHAIN_FIXED_COUNT; id < CHAIN_COUNT; id++)
		layout_numbered(&writer, &settings, (struct chain){id, 10800});
	node_ports_done(&settings.node_ports);
}

static void every_rule_reads_as_it_was_meant(void **state attr_unused)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		const struct detector detectors[] = {
			{.kind = DETECTOR_NONE},
			{.kind = DETECTOR_CIDR,
			 .cidr = build_prefix(family == FAMILY_IPV4 ? "10.244.0.0/16"
								    : "fd00:244::/56")},
			{.kind = DETECTOR_BRIDGE, .interface = "cni0"},
			{.kind = DETECTOR_INTERFACE, .interface = "veth"},
		};

		for (size_t i = 0; i < ARRAY_SIZE(detectors); i++)
			check_layout(family, &detectors[i], false);
		check_layout(family, &detectors[0], true);
	}
	assert_true(n_rules > 300);
}

/* An expression of that name, with attributes that are numbers. */
static void put_expression(struct nlmsghdr *message, const char *name, const uint32_t *numbers,
			   size_t n)
{
	struct nlattr *one = mnl_attr_nest_start(message, NFTA_LIST_ELEM), *data;

	mnl_attr_put_strz(message, NFTA_EXPR_NAME, name);
	data = mnl_attr_nest_start(message, NFTA_EXPR_DATA);
	for (size_t i = 0; i < n; i++)
		mnl_attr_put_u32(message, (uint16_t)(i + 1), htonl(numbers[i]));
	mnl_attr_nest_end(message, data);
	mnl_attr_nest_end(message, one);
}

static void what_is_not_known_is_named(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	struct nlmsghdr *message = begin_rule(buffer);
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);

	put_expression(message, "quota", NULL, 0);
	put_expression(message, "counter", NULL, 0);
	put_expression(message, "masq", (const uint32_t[]){4}, 1);
	put_expression(message, "reject", (const uint32_t[]){NFT_REJECT_TCP_RST}, 1);
	mnl_attr_nest_end(message, list);
	expect_words(message, FAMILY_IPV4,
		     "[quota] counter masquerade flags 0x4 reject with type 1 code 0");
}

static void every_fourth_register_has_two_names(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	struct nlmsghdr *message = begin_rule(buffer);
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);

	put_expression(message, "meta", (const uint32_t[]){NFT_REG_1, NFT_META_MARK}, 2);
	put_expression(message, "meta", (const uint32_t[]){0, NFT_META_PRIORITY, NFT_REG32_00}, 3);
	mnl_attr_nest_end(message, list);
	expect_words(message, FAMILY_IPV4, "meta priority set meta mark");
}

static void names_of_chains_are_read(void **state attr_unused)
{
	static const char *const others[] = {"",       "pick",    "pick-",   "pick-0",
					     "pick-x", "pick-01", "service", "remember-9999999999"};
	struct chain chain, found;
	char name[CHAIN_NAME_MAX];

	for (enum chain_id id = 0; id < CHAIN_COUNT; id++) {
		chain = (struct chain){id, id < CHAIN_FIXED_COUNT ? 0 : 17};
		chain_name(chain, name);
		assert_true(chain_parse(name, &found));
		assert_int_equal(found.id, chain.id);
		assert_int_equal(found.number, chain.number);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(chain_parse(others[i], &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_reads_as_it_was_meant),
		cmocka_unit_test(what_is_not_known_is_named),
		cmocka_unit_test(every_fourth_register_has_two_names),
		cmocka_unit_test(names_of_chains_are_read),
	};

	return cmocka_run_group_tests_name("expression_text", tests, NULL, NULL);
}
