/* SPDX-License-Identifier: Apache-2.0 */
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernel/foreign_changes.h"
#include "kernel/nfnetlink.h"
#include "kernel/nft_message.h"

/* Notifications, made by hand, and the words for them. */

static uint32_t buffer[1024];

static struct nlmsghdr *begin(uint8_t type)
{
	struct nlmsghdr *message =
		nfnetlink_begin(buffer, NFNL_SUBSYS_NFTABLES, type, nft_family(FAMILY_IPV4), 0, 1);

	mnl_attr_put_strz(message, NFTA_TABLE_NAME, "kube-proxy");
	return message;
}

static void take_named(struct foreign_changes *foreign_changes, uint8_t type, uint16_t attribute,
		       const char *name)
{
	struct nlmsghdr *message = begin(type);

	mnl_attr_put_strz(message, attribute, name);
	foreign_changes_take(foreign_changes, message);
}

static void take_elements(struct foreign_changes *foreign_changes, uint8_t type, const char *set,
			  int n, bool data)
{
	struct nlmsghdr *message = begin(type);
	struct nlattr *list;

	mnl_attr_put_strz(message, NFTA_SET_ELEM_LIST_SET, set);
	list = mnl_attr_nest_start(message, NFTA_SET_ELEM_LIST_ELEMENTS);
	for (int i = 0; i < n; i++) {
		struct nlattr *element = mnl_attr_nest_start(message, NFTA_LIST_ELEM);

		nft_put_value(message, NFTA_SET_ELEM_KEY, "key", 4);
		if (data)
			nft_put_value(message, NFTA_SET_ELEM_DATA, "data", 4);
		mnl_attr_nest_end(message, element);
	}
	mnl_attr_nest_end(message, list);
	foreign_changes_take(foreign_changes, message);
}

static void expect(const struct foreign_changes *foreign_changes, const char *words)
{
	cleanup_free char *text = foreign_changes_text(foreign_changes);

	assert_string_equal(text, words);
}

static void test_each_kind_has_its_words(void **state attr_unused)
{
	struct foreign_changes foreign_changes = {0};

	expect(&foreign_changes, "");
	foreign_changes_take(&foreign_changes, begin(NFT_MSG_DELTABLE));
	take_named(&foreign_changes, NFT_MSG_DELCHAIN, NFTA_CHAIN_NAME, "nat-prerouting");
	take_named(&foreign_changes, NFT_MSG_NEWRULE, NFTA_RULE_CHAIN, "services");
	expect(&foreign_changes, "table kube-proxy deleted, chain nat-prerouting deleted, "
				 "rule of chain services added");
}

static void test_elements_are_counted_and_maps_told_from_sets(void **state attr_unused)
{
	struct foreign_changes foreign_changes = {0};

	take_elements(&foreign_changes, NFT_MSG_DELSETELEM, "service-ips", 1, true);
	take_elements(&foreign_changes, NFT_MSG_NEWSETELEM, "cluster-ips", 3, false);
	expect(&foreign_changes,
	       "element of map service-ips deleted, element of set cluster-ips added (3 times)");
	take_elements(&foreign_changes, NFT_MSG_DELSETELEM, "service-ips", 4, true);
	expect(&foreign_changes, "element of map service-ips deleted (5 times), "
				 "element of set cluster-ips added (3 times)");
}

static void test_a_map_is_known_by_its_flags(void **state attr_unused)
{
	struct foreign_changes foreign_changes = {0};
	struct nlmsghdr *message = begin(NFT_MSG_NEWSET);

	mnl_attr_put_strz(message, NFTA_SET_NAME, "mine");
	nft_put_u32(message, NFTA_SET_FLAGS, NFT_SET_MAP);
	foreign_changes_take(&foreign_changes, message);
	take_named(&foreign_changes, NFT_MSG_DELSET, NFTA_SET_NAME, "yours");
	expect(&foreign_changes, "map mine added, set yours deleted");
}

static void test_of_many_the_first_are_named(void **state attr_unused)
{
	struct foreign_changes foreign_changes = {0};
	char name[8];

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		take_named(&foreign_changes, NFT_MSG_DELCHAIN, NFTA_CHAIN_NAME, name);
	}
	expect(&foreign_changes,
	       "chain c0 deleted, chain c1 deleted, chain c2 deleted, chain c3 deleted, "
	       "chain c4 deleted, chain c5 deleted, and 994 more");
}

static void test_what_has_no_words_is_counted(void **state attr_unused)
{
	struct foreign_changes foreign_changes = {0};

	foreign_changes_take(&foreign_changes, begin(NFT_MSG_DELCHAIN)); /* which one? */
	foreign_changes_take(&foreign_changes, begin(NFT_MSG_NEWFLOWTABLE));
	expect(&foreign_changes, "2 changes");
}

static void test_long_words_are_cut_and_still_counted(void **state attr_unused)
{
	struct foreign_changes foreign_changes = {0};
	char words[2 * sizeof(foreign_changes.v[0].words)];

	memset(words, 'x', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	foreign_changes_add(&foreign_changes, words, 1);
	foreign_changes_add(&foreign_changes, words, 1);
	assert_int_equal(foreign_changes.n, 1);
	assert_int_equal(foreign_changes.v[0].n, 2);
	assert_int_equal(strlen(foreign_changes.v[0].words),
			 sizeof(foreign_changes.v[0].words) - 1);
}

static void test_merging_adds_counts_and_leaves_nothing(void **state attr_unused)
{
	struct foreign_changes foreign_changes = {0}, from = {0};

	take_named(&foreign_changes, NFT_MSG_DELRULE, NFTA_RULE_CHAIN, "a");
	take_named(&from, NFT_MSG_DELRULE, NFTA_RULE_CHAIN, "a");
	take_named(&from, NFT_MSG_DELRULE, NFTA_RULE_CHAIN, "b");
	foreign_changes_take(&from, begin(NFT_MSG_NEWFLOWTABLE));
	foreign_changes_merge(&foreign_changes, &from);
	expect(&from, "");
	expect(&foreign_changes,
	       "rule of chain a deleted (2 times), rule of chain b deleted, and 1 more");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind_has_its_words),
		cmocka_unit_test(test_elements_are_counted_and_maps_told_from_sets),
		cmocka_unit_test(test_a_map_is_known_by_its_flags),
		cmocka_unit_test(test_of_many_the_first_are_named),
		cmocka_unit_test(test_what_has_no_words_is_counted),
		cmocka_unit_test(test_long_words_are_cut_and_still_counted),
		cmocka_unit_test(test_merging_adds_counts_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
