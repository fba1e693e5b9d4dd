/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/iptables/netlink/nft_damage.h"
#include "kernel/nfnetlink.h"
#include "kernel/nft_message.h"
#include "xtables/nft_rule.h"
#include "xtables/rule_compare.h"

/* Notifications, as others' transactions would bring them, and what is noted of them. */
struct fixture {
	struct nft_link link;
	struct nft_damage_jumps jumps;
	struct nft_damage damage;
	struct foreign_changes changes;
	uint32_t buffer[NFT_RULE_MESSAGE_MAX / 4];
};

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->link.family = FAMILY_IPV4;
	f->link.state = nft_state_new();
	nft_state_chain(f->link.state, TABLE_NAT, CHAIN_SERVICES);
	nft_damage_jumps_init(&f->jumps);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	nft_damage_done(&f->damage);
	nft_state_free(f->link.state);
	free(f);
	return 0;
}

static struct nlmsghdr *begin(struct fixture *f, uint8_t type, enum family family)
{
	return nfnetlink_begin(f->buffer, NFNL_SUBSYS_NFTABLES, type, nft_family(family), 0, 1);
}

static bool take_message(struct fixture *f)
{
	size_t before = f->damage.n_messages;

	nft_damage_take(&f->damage, &f->link, &f->jumps, (struct nlmsghdr *)f->buffer, &f->changes);
	return f->damage.n_messages > before;
}

static bool take_chain(struct fixture *f, uint8_t type, const char *table, const char *chain)
{
	struct nlmsghdr *message = begin(f, type, FAMILY_IPV4);

	mnl_attr_put_strz(message, NFTA_CHAIN_TABLE, table);
	mnl_attr_put_strz(message, NFTA_CHAIN_NAME, chain);
	return take_message(f);
}

static bool take_rule(struct fixture *f, uint8_t type, const struct rule *rule)
{
	struct nlmsghdr *message = begin(f, type, FAMILY_IPV4);

	nft_rule_put(message, FAMILY_IPV4, rule);
	mnl_attr_put_u64(message, NFTA_RULE_HANDLE, htobe64(7));
	return take_message(f);
}

static bool take_return(struct fixture *f, uint8_t type, enum table table, const char *chain)
{
	struct rule rule;

	rule_init(&rule, table, chain);
	rule_verdict(&rule, TARGET_RETURN);
	return take_rule(f, type, &rule);
}

#define SERVICE_CHAIN "KUBE-SVC-XPGD46QRK7WJZT7O"

static void test_rules_of_our_chains_are_damage(void **state)
{
	struct fixture *f = *state;

	assert_true(take_return(f, NFT_MSG_NEWRULE, TABLE_NAT, SERVICE_CHAIN));
	assert_true(take_return(f, NFT_MSG_DELRULE, TABLE_NAT, SERVICE_CHAIN));
	assert_int_equal(f->damage.chains.count, 1);
	assert_non_null(map_get(&f->damage.chains, SERVICE_CHAIN));
	assert_true(take_return(f, NFT_MSG_DELRULE, TABLE_NAT, CHAIN_SERVICES));
	assert_true(f->damage.shared[0].touched);
	assert_false(f->damage.shared_missing || f->damage.jumps || f->damage.flushed);
}

/* The handle of take_return()'s rules, in the chain with number 0. */
static void know_return(struct fixture *f)
{
	struct rule rule;

	rule_init(&rule, TABLE_NAT, CHAIN_SERVICES);
	rule_verdict(&rule, TARGET_RETURN);
	nft_state_add(f->link.state, 0, rule_hash(&rule), 7);
}

static void test_known_rules_that_are_lost_are_counted(void **state)
{
	struct fixture *f = *state;
	struct nft_damage other = {0};

	know_return(f);
	take_return(f, NFT_MSG_DELRULE, TABLE_NAT, CHAIN_SERVICES);
	assert_int_equal(f->damage.shared[0].n_lost, 1);
	assert_false(f->damage.shared[0].unclear);
	assert_int_equal(nft_state_count(f->link.state), 0);
	nft_damage_merge(&other, &f->damage);
	assert_int_equal(other.shared[0].n_lost, 1);
	assert_false(other.shared[0].unclear);
	nft_damage_done(&other);
}

static void test_what_else_happens_to_a_shared_chain_is_unclear(void **state)
{
	struct fixture *f = *state;
	struct nft_damage other = {0};

	know_return(f);
	take_return(f, NFT_MSG_DELRULE, TABLE_NAT, CHAIN_SERVICES);
	take_return(f, NFT_MSG_NEWRULE, TABLE_NAT, CHAIN_SERVICES);
	assert_true(f->damage.shared[0].unclear);
	nft_damage_merge(&other, &f->damage);
	assert_true(other.shared[0].unclear);
	take_return(f, NFT_MSG_DELRULE, TABLE_NAT, CHAIN_SERVICES); /* nobody knew it */
	assert_true(f->damage.shared[0].unclear);
	nft_damage_done(&other);
}

static void test_what_is_not_ours_is_no_damage(void **state)
{
	struct fixture *f = *state;

	assert_false(take_return(f, NFT_MSG_NEWRULE, TABLE_NAT, "CNI-HOSTPORT-DNAT"));
	assert_false(take_return(f, NFT_MSG_DELRULE, TABLE_FILTER, SERVICE_CHAIN));
	assert_false(take_return(f, NFT_MSG_NEWRULE, TABLE_NAT, "PREROUTING"));
	assert_false(take_return(f, NFT_MSG_DELRULE, TABLE_NAT, "PREROUTING"));
	assert_false(take_chain(f, NFT_MSG_NEWCHAIN, "nat", SERVICE_CHAIN));
	assert_false(take_chain(f, NFT_MSG_DELCHAIN, "nat", "CNI-HOSTPORT-DNAT"));
	assert_false(take_chain(f, NFT_MSG_DELCHAIN, "mine", SERVICE_CHAIN));
	mnl_attr_put_strz(begin(f, NFT_MSG_DELTABLE, FAMILY_IPV6), NFTA_TABLE_NAME, "nat");
	assert_false(take_message(f)); /* the other family's */
	begin(f, NFT_MSG_DELTABLE, FAMILY_IPV4);
	assert_false(take_message(f)); /* which one? */
	assert_false(nft_damage_any(&f->damage));
}

static void test_a_lost_jump_is_damage_and_another_rule_is_not(void **state)
{
	struct fixture *f = *state;
	struct rule jump;

	ruleset_jump(10, &jump);
	assert_false(take_rule(f, NFT_MSG_NEWRULE, &jump));
	assert_true(take_rule(f, NFT_MSG_DELRULE, &jump));
	assert_true(f->damage.jumps);
}

static void test_deleted_chains_are_damage(void **state)
{
	struct fixture *f = *state;

	assert_true(take_chain(f, NFT_MSG_DELCHAIN, "nat", SERVICE_CHAIN));
	assert_false(f->damage.shared_missing);
	assert_true(take_chain(f, NFT_MSG_DELCHAIN, "nat", CHAIN_SERVICES));
	assert_true(f->damage.shared_missing && f->damage.jumps);
	assert_false(f->damage.flushed);
}

static void expect_foreign_changes(const struct fixture *f, const char *words)
{
	cleanup_free char *text = foreign_changes_text(&f->changes);

	assert_string_equal(text, words);
}

static void test_a_flush_is_told_by_tables_and_canaries(void **state)
{
	struct fixture *f = *state;

	assert_true(take_chain(f, NFT_MSG_DELCHAIN, "mangle", CHAIN_CANARY));
	assert_true(f->damage.flushed);
	expect_foreign_changes(f, "chain " CHAIN_CANARY " of table mangle deleted");
	nft_damage_done(&f->damage);
	f->changes = (struct foreign_changes){0};
	mnl_attr_put_strz(begin(f, NFT_MSG_DELTABLE, FAMILY_IPV4), NFTA_TABLE_NAME, "nat");
	assert_true(take_message(f));
	assert_true(f->damage.flushed);
	expect_foreign_changes(f, "table nat deleted");
}

static void touch_chains(struct fixture *f, unsigned int first, unsigned int n)
{
	for (unsigned int i = first; i < first + n; i++) {
		struct chain_hash hash = {.bytes = {(uint8_t)i, (uint8_t)(i >> 8), 1}};
		struct chain_name name;

		chain_name_make(CHAIN_KIND_SVC, &hash, &name);
		take_return(f, NFT_MSG_DELRULE, TABLE_NAT, name.text);
	}
}

static void test_too_many_chains_mean_all(void **state)
{
	struct fixture *f = *state;

	touch_chains(f, 0, NFT_DAMAGE_CHAINS_MAX);
	assert_false(f->damage.unknown);
	touch_chains(f, 0, NFT_DAMAGE_CHAINS_MAX); /* the same again */
	assert_false(f->damage.unknown);
	touch_chains(f, NFT_DAMAGE_CHAINS_MAX, 1);
	assert_true(f->damage.unknown);
}

static void test_damage_can_be_put_together(void **state)
{
	struct fixture *f = *state;
	struct nft_damage other = {0};

	touch_chains(f, 0, 3);
	take_return(f, NFT_MSG_DELRULE, TABLE_NAT, CHAIN_SERVICES);
	nft_damage_merge(&other, &f->damage);
	assert_false(nft_damage_any(&f->damage));
	assert_int_equal(other.chains.count, 3);
	assert_true(other.shared[0].touched);
	touch_chains(f, 2, 3);
	nft_damage_merge(&other, &f->damage);
	assert_int_equal(other.chains.count, 5);
	nft_damage_done(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rules_of_our_chains_are_damage),
		TEST(test_known_rules_that_are_lost_are_counted),
		TEST(test_what_else_happens_to_a_shared_chain_is_unclear),
		TEST(test_what_is_not_ours_is_no_damage),
		TEST(test_a_lost_jump_is_damage_and_another_rule_is_not),
		TEST(test_deleted_chains_are_damage),
		TEST(test_a_flush_is_told_by_tables_and_canaries),
		TEST(test_too_many_chains_mean_all),
		TEST(test_damage_can_be_put_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
