/* SPDX-License-Identifier: Apache-2.0 */
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/nftables/damage.h"
#include "kernel/nfnetlink.h"
#include "kernel/nft_message.h"

/* Notifications about table kube-proxy, made by hand, and what is noted of them. */

static uint32_t buffer[1024];

static void take_named(struct damage *damage, uint8_t type, uint16_t attribute, const char *name)
{
	struct nlmsghdr *message =
		nfnetlink_begin(buffer, NFNL_SUBSYS_NFTABLES, type, nft_family(FAMILY_IPV4), 0, 1);

	mnl_attr_put_strz(message, NFTA_TABLE_NAME, "kube-proxy");
	mnl_attr_put_strz(message, attribute, name);
	damage_take(damage, FAMILY_IPV4, message);
}

/* One element, whose key is a number: 4 bytes are an address. */
static void take_element(struct damage *damage, uint8_t type, const char *set, uint32_t key,
			 size_t key_size)
{
	struct nlmsghdr *message =
		nfnetlink_begin(buffer, NFNL_SUBSYS_NFTABLES, type, nft_family(FAMILY_IPV4), 0, 1);
	uint8_t bytes[ELEMENT_BYTES] = {0};
	struct nlattr *list, *element;

	memcpy(bytes, &key, sizeof(key));
	mnl_attr_put_strz(message, NFTA_SET_ELEM_LIST_TABLE, "kube-proxy");
	mnl_attr_put_strz(message, NFTA_SET_ELEM_LIST_SET, set);
	list = mnl_attr_nest_start(message, NFTA_SET_ELEM_LIST_ELEMENTS);
	element = mnl_attr_nest_start(message, NFTA_LIST_ELEM);
	if (key_size > 0)
		nft_put_value(message, NFTA_SET_ELEM_KEY, bytes, key_size);
	mnl_attr_nest_end(message, element);
	mnl_attr_nest_end(message, list);
	damage_take(damage, FAMILY_IPV4, message);
}

static struct element cluster_ip(uint32_t key)
{
	struct element element;

	element_begin(&element, CONTAINER_CLUSTER_IPS);
	memcpy(element.bytes, &key, sizeof(key));
	element.key_size = sizeof(key);
	return element;
}

static bool covers(const struct damage *damage, uint32_t key)
{
	struct element element = cluster_ip(key);

	return damage_covers(damage, &element);
}

/* -- tests */

static void of_a_key_the_last_notification_counts(void **state attr_unused)
{
	struct damage damage = {0};

	take_element(&damage, NFT_MSG_DELSETELEM, "cluster-ips", 7, 4);
	take_element(&damage, NFT_MSG_NEWSETELEM, "cluster-ips", 7, 4);
	assert_int_equal(damage.n_keys, 1);
	assert_true(damage.keys[0].there);
	take_element(&damage, NFT_MSG_DELSETELEM, "cluster-ips", 7, 4);
	take_element(&damage, NFT_MSG_NEWSETELEM, "cluster-ips", 8, 4);
	assert_int_equal(damage.n_keys, 2);
	assert_false(damage.keys[0].there);
	assert_true(damage.keys[1].there);
	assert_true(covers(&damage, 7) && covers(&damage, 8) && !covers(&damage, 9));
	assert_true(damage.any && !damage.everything);
}

static void too_many_keys_are_a_container(void **state attr_unused)
{
	struct damage damage = {0};

	for (uint32_t i = 0; i < DAMAGE_KEYS_MAX; i++)
		take_element(&damage, NFT_MSG_DELSETELEM, "cluster-ips", i, 4);
	assert_false(damage.containers[CONTAINER_CLUSTER_IPS]);
	assert_false(covers(&damage, DAMAGE_KEYS_MAX));
	take_element(&damage, NFT_MSG_DELSETELEM, "cluster-ips", DAMAGE_KEYS_MAX, 4);
	assert_true(damage.containers[CONTAINER_CLUSTER_IPS]);
	assert_true(covers(&damage, UINT32_MAX));
	assert_false(damage.everything);
}

static void a_key_that_cannot_be_used_is_a_container(void **state attr_unused)
{
	static const struct {
		const char *name;
		enum container container;
		size_t key_size;
	} keys[] = {
		{"cluster-ips", CONTAINER_CLUSTER_IPS, 8}, /* of another size */
		{"service-ips", CONTAINER_SERVICE_IPS, 0}, /* none: the element for all others */
		{"source-ranges", CONTAINER_SOURCE_RANGES, 16}, /* the start of a range */
	};
	struct damage damage = {0};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		take_element(&damage, NFT_MSG_NEWSETELEM, keys[i].name, 1, keys[i].key_size);
		assert_true(damage.containers[keys[i].container]);
	}
	assert_int_equal(damage.n_keys, 0);
	assert_false(damage.everything);
}

static void chains_are_noted_once(void **state attr_unused)
{
	struct damage damage = {0};

	take_named(&damage, NFT_MSG_NEWRULE, NFTA_RULE_CHAIN, "services");
	take_named(&damage, NFT_MSG_DELRULE, NFTA_RULE_CHAIN, "services");
	take_named(&damage, NFT_MSG_DELCHAIN, NFTA_CHAIN_NAME, "pick-12");
	assert_int_equal(damage.n_chains, 2);
	assert_int_equal(damage.chains[0].id, CHAIN_SERVICES);
	assert_int_equal(damage.chains[1].id, CHAIN_PICK);
	assert_int_equal(damage.chains[1].number, 12);
	assert_false(damage.everything);
}

static void clients_alone_are_nothing_to_write(void **state attr_unused)
{
	struct damage damage = {0};

	take_element(&damage, NFT_MSG_DELSETELEM, "clients-7", 1, 4);
	take_element(&damage, NFT_MSG_NEWSETELEM, "local-clients-12", 1, 4);
	take_element(&damage, NFT_MSG_NEWSETELEM, "full-clients", 1, 4);
	assert_true(damage.any && !damage.everything);
	assert_int_equal(damage.n_keys, 0);
	for (enum container i = 0; i < CONTAINER_COUNT; i++)
		assert_false(damage.containers[i]);
}

static void what_has_no_name_of_ours_is_everything(void **state attr_unused)
{
	static const struct {
		uint8_t type;
		uint16_t attribute;
		const char *name;
	} foreign_changes[] = {
		{NFT_MSG_NEWTABLE, NFTA_TABLE_USERDATA, "x"},
		{NFT_MSG_DELTABLE, NFTA_TABLE_USERDATA, "x"},
		{NFT_MSG_NEWCHAIN, NFTA_CHAIN_NAME, "mine"},
		{NFT_MSG_NEWRULE, NFTA_RULE_CHAIN, "mine"},
		{NFT_MSG_NEWRULE, NFTA_RULE_USERDATA, "no chain"},
		{NFT_MSG_NEWSET, NFTA_SET_NAME, "cluster-ips"},
		{NFT_MSG_DELSET, NFTA_SET_NAME, "cluster-ips"},
		{NFT_MSG_NEWSETELEM, NFTA_SET_ELEM_LIST_SET, "mine"},
		{NFT_MSG_NEWSETELEM, NFTA_SET_ELEM_LIST_SET, "clients-x"},
		{NFT_MSG_NEWOBJ, NFTA_OBJ_NAME, "mine"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(foreign_changes); i++) {
		struct damage damage = {0};

		take_named(&damage, foreign_changes[i].type, foreign_changes[i].attribute,
			   foreign_changes[i].name);
		assert_true(damage.any && damage.everything);
	}
}

static void too_many_chains_are_everything(void **state attr_unused)
{
	struct damage damage = {0};

	for (int i = 1; i <= DAMAGE_CHAINS_MAX + 1; i++) {
		cleanup_free char *name = xasprintf("pick-%d", i);

		assert_false(damage.everything);
		take_named(&damage, NFT_MSG_NEWRULE, NFTA_RULE_CHAIN, name);
	}
	assert_true(damage.everything);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_key_the_last_notification_counts),
		cmocka_unit_test(too_many_keys_are_a_container),
		cmocka_unit_test(a_key_that_cannot_be_used_is_a_container),
		cmocka_unit_test(chains_are_noted_once),
		cmocka_unit_test(clients_alone_are_nothing_to_write),
		cmocka_unit_test(what_has_no_name_of_ours_is_everything),
		cmocka_unit_test(too_many_chains_are_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
