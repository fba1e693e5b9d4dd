/* SPDX-License-Identifier: Apache-2.0 */

/* Rules of table kube-proxy as values: as messages and back, and in nft's words. */

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "backends/nftables/layout.h"
#include "backends/nftables/statement_put.h"
#include "backends/nftables/statement_read.h"
#include "backends/nftables/statement_text.h"
#include "backends/nftables/user_data.h"
#include "build.h"
#include "kernel/nft_expr.h"
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

static struct nlmsghdr *write_rule(char *buffer, enum family family, const struct nft_rule *rule)
{
	struct nlmsghdr *message = begin_rule(buffer);
	char chain[CHAIN_NAME_MAX];

	chain_name(rule->chain, chain);
	mnl_attr_put_strz(message, NFTA_RULE_CHAIN, chain);
	statement_put_all(message, family, rule);
	if (rule->comment)
		user_data_comment(message, NFTA_RULE_USERDATA, rule->comment);
	return message;
}

static void expect_words(const struct nft_rule *rule, enum family family, const char *expected)
{
	cleanup_text struct text text = {0};
	cleanup_free char *words = NULL;

	statement_text_rule(&text, family, rule);
	words = text_dup(&text);
	assert_string_equal(words, expected);
}

static bool has_raw(const struct nft_rule *rule)
{
	for (size_t i = 0; i < rule->n; i++)
		if (rule->v[i].kind == STATEMENT_RAW)
			return true;
	return false;
}

/* -- what is written is read */

/* With one byte changed it is another value, or the same one; but what is not raw is always what we would write. */
static void change_bytes(const struct nlmsghdr *message, enum family family)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE], again[MESSAGE_SIZE];

	for (size_t i = MNL_NLMSG_HDRLEN + sizeof(struct nfgenmsg); i < message->nlmsg_len; i++) {
		cleanup_arena struct arena *arena = arena_new(4096);
		struct nft_rule rule, second;

		memcpy(buffer, message, message->nlmsg_len);
		buffer[i] = (char)(buffer[i] ^ (1 << i % 8));
		statement_read_rule(arena, family, (const struct nlmsghdr *)buffer, &rule);
		if (has_raw(&rule))
			continue;
		statement_read_rule(arena, family, write_rule(again, family, &rule), &second);
		assert_true(nft_rule_equal(&rule, &second));
	}
}

static void check_rule(struct writer *writer, const struct nft_rule *rule)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	const struct nlmsghdr *message = write_rule(buffer, writer->family, rule);
	cleanup_arena struct arena *arena = arena_new(4096);
	struct nft_rule read;

	statement_read_rule(arena, writer->family, message, &read);
	assert_false(has_raw(&read));
	assert_true(nft_rule_equal(&read, rule));
	assert_int_equal(read.chain.id, rule->chain.id);
	assert_int_equal(read.chain.number, rule->chain.number);
	if (n_rules++ % 8 == 0)
		change_bytes(message, writer->family);
}

static void skip_chain(struct writer *writer attr_unused, struct chain chain attr_unused)
{
}

static const struct writer_ops checking = {.chain = skip_chain, .rule = check_rule};

static void check_layout(enum family family, const struct detector *detector, bool masquerade_all)
{
	struct settings settings = {.family = family,
				    .mode.localhost_proxy = true,
				    .masquerade_mark = 0x4000,
				    .masquerade_all = masquerade_all,
				    .detector = *detector};
	const struct prefix cidr =
		build_prefix(family == FAMILY_IPV4 ? "10.96.0.0/12" : "fd00:96::/108");
	const struct layout_facts facts = {&settings, &cidr, 1, true};
	const struct layout_affinity affinity = {
		.number = 7, .seconds = 10800, .protocol = PROTOCOL_SCTP, .local = true};
	struct writer writer = {.ops = &checking, .family = family};

	node_ports_init(&settings.node_ports, family, NULL, 0);
	for (enum chain_id id = 0; id < CHAIN_FIXED_COUNT; id++)
		layout_rules(&writer, &facts, id);
	for (enum chain_id id = CHAIN_PICK; id < CHAIN_PICKS_END; id++)
		layout_numbered(&writer, &settings, (struct chain){id, 10800});
	for (enum chain_id id = CHAIN_RECALL; id <= CHAIN_REMEMBER_PORT; id++)
		layout_affinity_rules(&writer, &affinity, id);
	node_ports_done(&settings.node_ports);
}

static void every_rule_is_read_as_it_was_written(void **state attr_unused)
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

/* -- any statement */

static uint32_t dice;

static uint32_t throw(uint32_t n)
{
	dice = dice * 1664525 + 1013904223;
	return (dice >> 8) % n;
}

static struct prefix any_prefix(enum family family)
{
	struct prefix prefix = {.addr.family = (uint8_t)family,
				.length = (uint8_t) throw(addr_bits(family) + 1u)};
	uint8_t mask[16];

	prefix_mask(prefix.length, mask);
	for (size_t i = 0; i < addr_bytes(family); i++)
		prefix.addr.bytes[i] = (uint8_t) throw(256) & mask[i];
	return prefix;
}

static void any_key(struct statement *statement, enum container from, enum container to)
{
	statement->container = from + throw(to - from);
	statement->map = statement->container >= CONTAINER_FIXED_COUNT ? 1 + throw(1000) : 0;
	for (size_t i = 0; i < 1 + throw(STATEMENT_KEY - 1); i++) {
		statement->key[i] = 1 + throw(OPERAND_COUNT - 1);
		if (statement->key[i] == OPERAND_RANDOM)
			statement->number = 1 + throw(5000);
	}
}

static struct chain any_chain(void)
{
	enum chain_id id = throw(CHAIN_COUNT);

	return (struct chain){id, id < CHAIN_FIXED_COUNT ? 0 : 1 + throw(5000)};
}

static struct statement any_statement(enum family family, enum statement_kind kind)
{
	struct statement statement = {.kind = kind};

	switch (kind) {
	case STATEMENT_PROTOCOL:
	case STATEMENT_NAMED_COUNTER:
		statement.protocol = throw(PROTOCOL_COUNT);
		break;
	case STATEMENT_SOURCE:
	case STATEMENT_DESTINATION:
		statement.not = throw(2);
		statement.prefix = any_prefix(family);
		break;
	case STATEMENT_INTERFACE:
		statement.not = throw(2);
		statement.is_prefix = throw(2);
		statement.interface = throw(2) ? "cali" : "a-name-of-15-by";
		break;
	case STATEMENT_IN:
		statement.not = throw(2);
		any_key(&statement, CONTAINER_CLUSTER_IPS, CONTAINER_NODEPORT_IPS + 1);
		break;
	case STATEMENT_VMAP:
		any_key(&statement, CONTAINER_SERVICE_IPS, CONTAINER_SERVICE_NODEPORTS + 1);
		break;
	case STATEMENT_DNAT:
		any_key(&statement, CONTAINER_ENDPOINTS, CONTAINER_NODEPORT_LOCAL_ENDPOINTS + 1);
		break;
	case STATEMENT_TAKE_ID:
		any_key(&statement, CONTAINER_CLIENTS, CONTAINER_COUNT);
		break;
	case STATEMENT_ID:
		statement.not = throw(2);
		statement.number = throw(100000);
		break;
	case STATEMENT_MARKED:
	case STATEMENT_SET_MARK:
	case STATEMENT_TOGGLE_MARK:
		statement.number = 1u << throw(32);
		break;
	case STATEMENT_SET_ID:
		statement.number = throw(3);
		break;
	case STATEMENT_UPDATE:
	case STATEMENT_NOTE_FULL:
	case STATEMENT_FORGET:
		statement.container = CONTAINER_CLIENTS + throw(2);
		statement.map = 1 + throw(1000);
		statement.number = throw(86400);
		break;
	case STATEMENT_JUMP:
	case STATEMENT_GOTO:
		statement.chain = any_chain();
		break;
	default:
		break;
	}
	return statement;
}

static void any_statement_is_read_as_it_was_written(void **state attr_unused)
{
	for (size_t i = 0; i < 5000; i++) {
		struct writer writer = {.ops = &checking, .family = i % FAMILY_COUNT};
		struct nft_rule rule = {.chain = any_chain(), .comment = i % 3 ? NULL : "why"};

		dice = (uint32_t)i * 2654435761u;
		rule.n = 1 + throw(STATEMENTS_MAX);
		for (size_t j = 0; j < rule.n; j++)
			rule.v[j] = any_statement(writer.family, 1 + throw(STATEMENT_RAW - 1));
		check_rule(&writer, &rule);
	}
}

static void every_part_of_a_statement_counts(void **state attr_unused)
{
	const struct statement plain = {.kind = STATEMENT_SOURCE};
	struct statement others[] = {plain, plain, plain, plain, plain, plain,
				     plain, plain, plain, plain, plain};
	struct nft_rule a = {.n = 1, .v = {plain}}, b = a;

	others[0].kind = STATEMENT_DESTINATION;
	others[1].not = true;
	others[2].is_prefix = true;
	others[3].protocol = PROTOCOL_UDP;
	others[4].container = CONTAINER_FIREWALLED;
	others[5].map = 1;
	others[6].chain.number = 1;
	others[7].number = 1;
	others[8].key[4] = OPERAND_DPORT;
	others[9].prefix.length = 1;
	others[10].interface = "eth0";
	assert_true(nft_rule_equal(&a, &b));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		b.v[0] = others[i];
		assert_false(nft_rule_equal(&a, &b));
	}
	b = a;
	b.comment = "more";
	assert_false(nft_rule_equal(&a, &b));
}

/* -- rules of other programs */

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

static void what_is_not_ours_is_raw(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	cleanup_arena struct arena *arena = arena_new(4096);
	struct nlmsghdr *message = begin_rule(buffer);
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);
	struct nft_rule rule, other;

	put_expression(message, "counter", NULL, 0);
	put_expression(message, "quota", NULL, 0);
	put_expression(message, "masq", (const uint32_t[]){4}, 1);
	nft_expr_masquerade(message, 0x10);
	nft_expr_verdict(message, NFT_JUMP, "their-chain");
	put_expression(message, "meta", (const uint32_t[]){NFT_REG_1, NFT_META_MARK}, 2);
	mnl_attr_nest_end(message, list);
	statement_read_rule(arena, FAMILY_IPV4, message, &rule);
	assert_int_equal(rule.n, 4); /* of what is raw and stands together one is made */
	expect_words(&rule, FAMILY_IPV4,
		     "counter [quota] [masq 4] masquerade fully-random "
		     "[immediate 0 "
		     "0x1c00028008000100fffffffd1000020074686569722d636861696e00] [meta 1 3]");
	statement_read_rule(arena, FAMILY_IPV4, message, &other);
	assert_true(nft_rule_equal(&rule, &other));
	((char *)other.v[1].raw)[other.v[1].raw_size - 1] = 5;
	assert_false(nft_rule_equal(&rule, &other));
}

static void what_is_like_ours_is_told_in_words(void **state attr_unused)
{
	static const struct prefix client = {.addr = {FAMILY_IPV4, {192, 0, 2, 77}}, .length = 32};
	const struct nft_rule rule = {.n = 3,
				      .v = {{.kind = STATEMENT_SOURCE, .prefix = client},
					    {.kind = STATEMENT_COUNTER},
					    {.kind = STATEMENT_ACCEPT}},
				      .comment = "a\nb"};

	expect_words(&rule, FAMILY_IPV4, "ip saddr 192.0.2.77 counter accept comment \"a?b\"");
}

/* A comparison with something else than we compare with, and the like. */
static void almost_is_raw(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	cleanup_arena struct arena *arena = arena_new(4096);
	struct nlmsghdr *message = begin_rule(buffer);
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);
	const uint32_t mask = 0x3, port = 80, reg = NFT_EXPR_WORD(0);
	struct nft_rule rule;

	nft_expr_ct(message, reg, NFT_CT_STATE); /* new or established */
	nft_expr_any_bit(message, reg, NFT_EXPR_CT_NEW | mask);
	nft_expr_protocol(message, reg, 1); /* icmp */
	nft_expr_dport(message, reg);
	nft_expr_cmp(message, reg, NFT_CMP_EQ, &port, 2);
	nft_expr_address(message, reg, FAMILY_IPV4, true);
	nft_expr_cmp(message, reg, NFT_CMP_LT, &port, 4);
	nft_expr_lookup(message, reg, "their-set", false);
	nft_expr_lookup(message, reg, "endpoints", false); /* a map, asked as a set */
	mnl_attr_nest_end(message, list);
	statement_read_rule(arena, FAMILY_IPV4, message, &rule);
	assert_int_equal(rule.n, 1);
	assert_int_equal(rule.v[0].kind, STATEMENT_RAW);
}

/* tcp dport 22 drop, as people write it */
static void raw_values_are_bytes(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	cleanup_arena struct arena *arena = arena_new(4096);
	struct nlmsghdr *message = begin_rule(buffer);
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);
	const uint16_t port = htons(22);
	struct nft_rule rule;

	nft_expr_protocol(message, NFT_REG_1, 6);
	nft_expr_dport(message, NFT_REG_1);
	nft_expr_cmp(message, NFT_REG_1, NFT_CMP_EQ, &port, sizeof(port));
	nft_expr_verdict(message, NF_DROP, NULL);
	mnl_attr_nest_end(message, list);
	statement_read_rule(arena, FAMILY_IPV4, message, &rule);
	expect_words(&rule, FAMILY_IPV4,
		     "meta l4proto tcp [payload 1 2 2 2] [cmp 1 0 0x0016] drop");
}

static void a_long_rule_ends_raw(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	cleanup_arena struct arena *arena = arena_new(4096);
	struct nlmsghdr *message = begin_rule(buffer);
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);
	struct nl_attrs left;
	struct nft_rule rule;
	struct nft_expr expr;

	for (size_t i = 0; i < 3 * STATEMENTS_MAX; i++)
		nft_expr_masquerade(message, 0x10);
	mnl_attr_nest_end(message, list);
	statement_read_rule(arena, FAMILY_IPV4, message, &rule);
	assert_int_equal(rule.n, STATEMENTS_MAX);
	assert_int_equal(rule.v[STATEMENTS_MAX - 2].kind, STATEMENT_MASQUERADE);
	left = (struct nl_attrs){rule.v[STATEMENTS_MAX - 1].raw,
				 rule.v[STATEMENTS_MAX - 1].raw_size};
	for (size_t i = 0; i < 2 * STATEMENTS_MAX + 1; i++)
		assert_int_equal(nft_expr_next(&left, &expr), 1);
	assert_int_equal(nft_expr_next(&left, &expr), 0);
}

/* Loads without end, an attribute that is none, and each message that is cut. */
static void hostile_bytes_are_bounded(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_SIZE] = {0};
	cleanup_arena struct arena *arena = arena_new(4096);
	struct nlmsghdr *message = begin_rule(buffer);
	struct nlattr *list = mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS);
	struct nft_rule rule;

	for (uint32_t i = 0; i < 40; i++)
		nft_expr_dport(message, i);
	mnl_attr_put_u32(message, NFTA_LIST_ELEM, UINT32_MAX);
	mnl_attr_nest_end(message, list);
	statement_read_rule(arena, FAMILY_IPV4, message, &rule);
	assert_int_equal(rule.n, 1);
	for (uint32_t n = sizeof(*message); n < message->nlmsg_len; n++) {
		cleanup_free struct nlmsghdr *copy = xmalloc(n); /* of its exact size */
		cleanup_text struct text text = {0};

		memcpy(copy, message, n);
		copy->nlmsg_len = n;
		statement_read_rule(arena, FAMILY_IPV6, copy, &rule);
		statement_text_rule(&text, FAMILY_IPV6, &rule);
	}
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

static void names_of_containers_are_read(void **state attr_unused)
{
	static const char *const others[] = {"", "clients", "clients-0", "clients-x", "endpoint"};
	char name[CONTAINER_NAME_MAX];
	enum container found;
	uint32_t number;

	for (enum container i = 0; i < CONTAINER_COUNT; i++) {
		container_name(i, 17, name);
		assert_true(container_parse(name, &found, &number));
		assert_int_equal(found, i);
		assert_int_equal(number, i < CONTAINER_FIXED_COUNT ? 0 : 17);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(container_parse(others[i], &found, &number));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_is_read_as_it_was_written),
		cmocka_unit_test(any_statement_is_read_as_it_was_written),
		cmocka_unit_test(every_part_of_a_statement_counts),
		cmocka_unit_test(what_is_not_ours_is_raw),
		cmocka_unit_test(what_is_like_ours_is_told_in_words),
		cmocka_unit_test(almost_is_raw),
		cmocka_unit_test(raw_values_are_bytes),
		cmocka_unit_test(a_long_rule_ends_raw),
		cmocka_unit_test(hostile_bytes_are_bounded),
		cmocka_unit_test(names_of_chains_are_read),
		cmocka_unit_test(names_of_containers_are_read),
	};

	return cmocka_run_group_tests_name("statement", tests, NULL, NULL);
}
