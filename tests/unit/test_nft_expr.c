/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each expression as nft would have it: a rule that nft makes of words and one of the same meaning
 * from nft_expr.h are listed by the kernel with the same bytes. Those of xtables are compared with
 * what iptables makes in test_nft_rule.c.
 */

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_nat.h>

#include "base/text.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_expr.h"
#include "nft_world.h"

#define R0 NFT_EXPR_WORD(0)
#define R1 NFT_EXPR_WORD(1)
#define R4 NFT_EXPR_WORD(4)

static const uint8_t address4[] = {10, 96, 0, 10};
static const uint8_t address6[] = {0xfd, 0, 0, 0x96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a};

static void equal(struct nlmsghdr *m, const void *bytes, size_t n)
{
	nft_expr_cmp(m, NFT_REG_1, NFT_CMP_EQ, bytes, n);
}

/* -- one function for each row below */

static void saddr(struct nlmsghdr *m)
{
	nft_expr_address(m, NFT_REG_1, FAMILY_IPV4, true);
	equal(m, address4, sizeof(address4));
}

static void not_daddr(struct nlmsghdr *m)
{
	nft_expr_address(m, NFT_REG_1, FAMILY_IPV4, false);
	nft_expr_cmp(m, NFT_REG_1, NFT_CMP_NEQ, address4, sizeof(address4));
}

static void saddr6(struct nlmsghdr *m)
{
	nft_expr_address(m, NFT_REG_1, FAMILY_IPV6, true);
	equal(m, address6, sizeof(address6));
}

static void daddr6(struct nlmsghdr *m)
{
	nft_expr_address(m, NFT_REG_1, FAMILY_IPV6, false);
	equal(m, address6, sizeof(address6));
}

static void prefix(struct nlmsghdr *m)
{
	static const uint8_t mask[] = {0xff, 0xf0, 0, 0}, network[] = {10, 96, 0, 0};

	nft_expr_address(m, NFT_REG_1, FAMILY_IPV4, false);
	nft_expr_bitwise(m, NFT_REG_1, mask, NULL, sizeof(mask));
	equal(m, network, sizeof(network));
}

static void dport(struct nlmsghdr *m)
{
	static const uint8_t port[] = {0, 53};

	nft_expr_dport(m, NFT_REG_1);
	equal(m, port, sizeof(port));
}

static void syn(struct nlmsghdr *m)
{
	static const uint8_t mask = 0x17, bits = 0x02;

	nft_expr_payload(m, NFT_REG_1, NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
	nft_expr_bitwise(m, NFT_REG_1, &mask, NULL, sizeof(mask));
	equal(m, &bits, sizeof(bits));
}

static void udp(struct nlmsghdr *m)
{
	nft_expr_protocol(m, NFT_REG_1, IPPROTO_UDP);
}

static void interface(struct nlmsghdr *m)
{
	static const char name[16] = "cni0";

	nft_expr_meta(m, NFT_REG_1, NFT_META_IIFNAME);
	equal(m, name, sizeof(name));
}

static void new_connection(struct nlmsghdr *m)
{
	nft_expr_ct(m, NFT_REG_1, NFT_CT_STATE);
	nft_expr_any_bit(m, NFT_REG_1, NFT_EXPR_CT_NEW);
}

/* nft knows what a port is of a protocol only. */
static void original_port(struct nlmsghdr *m)
{
	static const uint8_t port[] = {0, 53};

	udp(m);
	nft_expr_ct_original(m, NFT_REG_1, NFT_CT_PROTO_DST);
	equal(m, port, sizeof(port));
}

static void from_here(struct nlmsghdr *m)
{
	nft_expr_local(m, NFT_REG_1, NFTA_FIB_F_SADDR);
}

static void to_here(struct nlmsghdr *m)
{
	nft_expr_local(m, NFT_REG_1, NFTA_FIB_F_DADDR);
}

static void in_set(struct nlmsghdr *m)
{
	nft_expr_address(m, NFT_REG_1, FAMILY_IPV4, true);
	nft_expr_lookup(m, NFT_REG_1, "addresses", false);
}

static void not_in_set(struct nlmsghdr *m)
{
	nft_expr_address(m, NFT_REG_1, FAMILY_IPV4, true);
	nft_expr_lookup(m, NFT_REG_1, "addresses", true);
}

/* Fields of a key lie in words, one behind the other. */
static void in_pairs(struct nlmsghdr *m)
{
	nft_expr_address(m, R0, FAMILY_IPV4, false);
	nft_expr_dport(m, R1);
	nft_expr_lookup(m, R0, "pairs", false);
}

static void verdict_map(struct nlmsghdr *m)
{
	nft_expr_meta(m, NFT_REG_1, NFT_META_L4PROTO);
	nft_expr_lookup_map(m, NFT_REG_1, "verdicts", NFT_REG_VERDICT);
}

static void limit(struct nlmsghdr *m)
{
	nft_expr_limit(m, 10, 5);
}

static void set_trace(struct nlmsghdr *m)
{
	static const uint8_t on = 1;

	nft_expr_value(m, NFT_REG_1, &on, sizeof(on));
	nft_expr_meta_set(m, NFT_REG_1, NFT_META_NFTRACE);
}

static void set_mark(struct nlmsghdr *m)
{
	static const uint32_t mask = ~UINT32_C(0x4000), bit = 0x4000;

	nft_expr_meta(m, NFT_REG_1, NFT_META_MARK);
	nft_expr_bitwise(m, NFT_REG_1, &mask, &bit, sizeof(mask));
	nft_expr_meta_set(m, NFT_REG_1, NFT_META_MARK);
}

static void dnat(struct nlmsghdr *m)
{
	udp(m);
	nft_expr_random(m, NFT_REG_1, 3);
	nft_expr_lookup_map(m, NFT_REG_1, "endpoints", NFT_REG_1);
	nft_expr_dnat(m, FAMILY_IPV4, NFT_REG_1, R1);
}

static void dnat6(struct nlmsghdr *m)
{
	udp(m);
	nft_expr_random(m, NFT_REG_1, 3);
	nft_expr_lookup_map(m, NFT_REG_1, "endpoints", NFT_REG_1);
	nft_expr_dnat(m, FAMILY_IPV6, NFT_REG_1, R4);
}

static void masquerade(struct nlmsghdr *m)
{
	nft_expr_masquerade(m, NF_NAT_RANGE_PROTO_RANDOM_FULLY);
}

static void counter(struct nlmsghdr *m)
{
	nft_expr_counter(m);
}

static void update_set(struct nlmsghdr *m)
{
	nft_expr_address(m, NFT_REG_1, FAMILY_IPV4, true);
	nft_expr_dynset(m, &(struct nft_expr_update){.op = NFT_DYNSET_OP_UPDATE,
						     .set = "seen",
						     .key = NFT_REG_1,
						     .timeout_ms = 10800000});
}

static void change_map(struct nlmsghdr *m, uint32_t op, uint64_t timeout_ms)
{
	nft_expr_address(m, NFT_REG_1, FAMILY_IPV4, true);
	nft_expr_meta(m, NFT_REG_2, NFT_META_PRIORITY);
	nft_expr_dynset(m,
			&(struct nft_expr_update){op, "clients", NFT_REG_1, NFT_REG_2, timeout_ms});
}

static void update_map(struct nlmsghdr *m)
{
	change_map(m, NFT_DYNSET_OP_UPDATE, 5000);
}

static void delete_of_map(struct nlmsghdr *m)
{
	change_map(m, NFT_DYNSET_OP_DELETE, 0);
}

static void jump(struct nlmsghdr *m)
{
	nft_expr_verdict(m, NFT_JUMP, "target");
}

static void go_to(struct nlmsghdr *m)
{
	nft_expr_verdict(m, NFT_GOTO, "target");
}

static void go_back(struct nlmsghdr *m)
{
	nft_expr_verdict(m, NFT_RETURN, NULL);
}

static void drop(struct nlmsghdr *m)
{
	nft_expr_verdict(m, NF_DROP, NULL);
}

static void accept_it(struct nlmsghdr *m)
{
	nft_expr_verdict(m, NF_ACCEPT, NULL);
}

static void reject(struct nlmsghdr *m)
{
	nft_expr_reject(m, FAMILY_IPV4);
}

static void reject6(struct nlmsghdr *m)
{
	nft_expr_reject(m, FAMILY_IPV6);
}

static const struct row {
	enum family family;
	const char *words;
	void (*put)(struct nlmsghdr *m);
} rows[] = {
	{FAMILY_IPV4, "ip saddr 10.96.0.10", saddr},
	{FAMILY_IPV4, "ip daddr != 10.96.0.10", not_daddr},
	{FAMILY_IPV6, "ip6 saddr fd00:96::a", saddr6},
	{FAMILY_IPV6, "ip6 daddr fd00:96::a", daddr6},
	{FAMILY_IPV4, "ip daddr 10.96.0.0/12", prefix},
	{FAMILY_IPV4, "th dport 53", dport},
	{FAMILY_IPV4, "@th,104,8 & 0x17 == 0x02", syn},
	{FAMILY_IPV4, "meta l4proto udp", udp},
	{FAMILY_IPV4, "iifname \"cni0\"", interface},
	{FAMILY_IPV4, "ct state new", new_connection},
	{FAMILY_IPV4, "fib saddr type local", from_here},
	{FAMILY_IPV6, "fib daddr type local", to_here},
	{FAMILY_IPV4, "ip saddr @addresses", in_set},
	{FAMILY_IPV4, "ip saddr != @addresses", not_in_set},
	{FAMILY_IPV4, "ip daddr . th dport @pairs", in_pairs},
	{FAMILY_IPV4, "meta l4proto udp ct original proto-dst 53", original_port},
	{FAMILY_IPV4, "meta l4proto vmap @verdicts", verdict_map},
	{FAMILY_IPV4, "limit rate 10/second burst 5 packets", limit},
	{FAMILY_IPV4, "meta nftrace set 1", set_trace},
	{FAMILY_IPV4, "meta mark set meta mark | 0x4000", set_mark},
	{FAMILY_IPV4, "meta l4proto udp dnat ip to numgen random mod 3 map @endpoints", dnat},
	{FAMILY_IPV6, "meta l4proto udp dnat ip6 to numgen random mod 3 map @endpoints", dnat6},
	{FAMILY_IPV4, "masquerade fully-random", masquerade},
	{FAMILY_IPV4, "counter", counter},
	{FAMILY_IPV4, "update @seen { ip saddr timeout 3h }", update_set},
	{FAMILY_IPV4, "update @clients { ip saddr timeout 5s : meta priority }", update_map},
	{FAMILY_IPV4, "delete @clients { ip saddr : meta priority }", delete_of_map},
	{FAMILY_IPV4, "jump target", jump},
	{FAMILY_IPV4, "goto target", go_to},
	{FAMILY_IPV4, "return", go_back},
	{FAMILY_IPV4, "drop", drop},
	{FAMILY_IPV4, "accept", accept_it},
	{FAMILY_IPV4, "reject", reject},
	{FAMILY_IPV6, "reject", reject6},
};

/* -- both sides */

static const char *ip(enum family family)
{
	return family == FAMILY_IPV4 ? "ip" : "ip6";
}

static void make_table(enum family family)
{
	const char *addr = family == FAMILY_IPV4 ? "ipv4_addr" : "ipv6_addr";
	cleanup_free char *command =
		xasprintf("nft 'table %s test {"
			  " set addresses { type %s; };"
			  " set pairs { type %s . inet_service; };"
			  " set seen { type %s; flags dynamic, timeout; };"
			  " map verdicts { type inet_proto : verdict; };"
			  " map endpoints { typeof numgen random mod 2 : %s daddr . udp dport; };"
			  " map clients { type %s : classid; flags dynamic, timeout; };"
			  " chain target { }; chain theirs { }; chain ours { }; }'",
			  ip(family), addr, addr, addr, ip(family), addr);

	assert_int_equal(system(command), 0);
}

static void write_theirs(const struct row *row)
{
	cleanup_free char *command =
		xasprintf("nft 'flush chain %s test theirs; add rule %s test theirs %s'",
			  ip(row->family), ip(row->family), row->words);

	if (system(command) != 0)
		fail_msg("nft refuses \"%s\"", row->words);
}

static void write_ours(struct nft_socket *socket, const struct row *row)
{
	cleanup_nft_batch struct nft_batch *batch = nft_batch_new();
	struct nlmsghdr *m = nft_batch_message(batch, NFT_MSG_DELRULE, row->family, 0);
	struct nlattr *list;

	mnl_attr_put_strz(m, NFTA_RULE_TABLE, "test");
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, "ours");
	m = nft_batch_message(batch, NFT_MSG_NEWRULE, row->family, NLM_F_CREATE | NLM_F_APPEND);
	mnl_attr_put_strz(m, NFTA_RULE_TABLE, "test");
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, "ours");
	list = mnl_attr_nest_start(m, NFTA_RULE_EXPRESSIONS);
	row->put(m);
	mnl_attr_nest_end(m, list);
	commit(socket, batch);
}

static int take_rule(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	const struct nlattr *list = nft_message_attr(message, NFTA_RULE_EXPRESSIONS);
	const uint8_t *bytes = list ? mnl_attr_get_payload(list) : NULL;

	for (size_t i = 0; list && i < mnl_attr_get_payload_len(list); i++)
		text_printf(arg, "%02x", bytes[i]);
	text_str(arg, "\n");
	return 0;
}

static char *listed(struct nft_socket *socket, enum family family, const char *chain)
{
	static const struct nft_dump_ops ops = {.message = take_rule};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETRULE, .family = family, .table = "test", .chain = chain};
	cleanup_text struct text text = {0};
	struct err err;

	assert_int_equal(nft_dump(socket, &request, &ops, &text, &err), 0);
	return text_dup(&text);
}

static void each_expression_equals_that_of_nft(void **state attr_unused)
{
	cleanup_nft_socket struct nft_socket *socket = NULL;

	private_network();
	socket = open_socket();
	for (enum family family = 0; family < FAMILY_COUNT; family++)
		make_table(family);
	for (const struct row *row = rows; row < rows + ARRAY_SIZE(rows); row++) {
		cleanup_free char *theirs = NULL, *ours = NULL;

		write_theirs(row);
		write_ours(socket, row);
		theirs = listed(socket, row->family, "theirs");
		ours = listed(socket, row->family, "ours");
		assert_true(strlen(theirs) > 40);
		if (!streq(theirs, ours))
			fail_msg("%s:\n%s%s", row->words, theirs, ours);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_expression_equals_that_of_nft),
	};

	return cmocka_run_group_tests_name("nft_expr", tests, NULL, NULL);
}
