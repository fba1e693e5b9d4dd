/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/iptables/netlink/nft_state.h"

static void test_a_chain_has_one_number_in_each_table(void **context attr_unused)
{
	struct nft_state *state = nft_state_new();
	unsigned int nat = nft_state_chain(state, TABLE_NAT, "KUBE-SERVICES");
	unsigned int filter = nft_state_chain(state, TABLE_FILTER, "KUBE-SERVICES");
	unsigned int found;

	assert_int_not_equal(nat, filter);
	assert_int_equal(nft_state_chain(state, TABLE_NAT, "KUBE-SERVICES"), nat);
	assert_true(nft_state_find_chain(state, TABLE_FILTER, "KUBE-SERVICES", &found));
	assert_int_equal(found, filter);
	assert_false(nft_state_find_chain(state, TABLE_MANGLE, "KUBE-SERVICES", &found));
	assert_string_equal(nft_state_chain_name(state, nat), "KUBE-SERVICES");
	assert_int_equal(nft_state_chain_table(state, nat), TABLE_NAT);
	assert_int_equal(nft_state_n_chains(state), 2);
	nft_state_free(state);
}

static void test_equal_rules_have_an_entry_each(void **context attr_unused)
{
	struct nft_state *state = nft_state_new();
	unsigned int chain = nft_state_chain(state, TABLE_NAT, "A");
	uint64_t first, second, third;

	nft_state_add(state, chain, 7, 100);
	nft_state_add(state, chain, 7, 101);
	assert_true(nft_state_take(state, chain, 7, &first));
	assert_true(nft_state_take(state, chain, 7, &second));
	assert_int_not_equal(first, second);
	assert_int_equal(first + second, 201);
	assert_false(nft_state_take(state, chain, 7, &third));
	assert_int_equal(nft_state_count(state), 0);
	nft_state_free(state);
}

static void test_an_entry_can_be_removed_by_its_handle(void **context attr_unused)
{
	struct nft_state *state = nft_state_new();
	unsigned int chain = nft_state_chain(state, TABLE_NAT, "A");
	unsigned int other = nft_state_chain(state, TABLE_NAT, "B");
	uint64_t handle;

	nft_state_add(state, chain, 7, 100);
	nft_state_add(state, chain, 7, 101);
	nft_state_add(state, other, 7, 101);
	assert_true(nft_state_remove(state, chain, 7, 101));
	assert_false(nft_state_remove(state, chain, 7, 101));
	assert_true(nft_state_take(state, chain, 7, &handle));
	assert_int_equal(handle, 100);
	assert_true(nft_state_take(state, other, 7, &handle));
	nft_state_free(state);
}

static void count(void *arg, unsigned int chain attr_unused, uint64_t digest attr_unused,
		  uint64_t handle attr_unused)
{
	++*(size_t *)arg;
}

static void test_a_chain_is_forgotten_as_a_whole(void **context attr_unused)
{
	struct nft_state *state = nft_state_new();
	unsigned int chain = nft_state_chain(state, TABLE_NAT, "A");
	unsigned int other = nft_state_chain(state, TABLE_NAT, "B");
	uint64_t handle;
	size_t told = 0;

	for (uint64_t i = 1; i <= 1000; i++)
		nft_state_add(state, i % 2 ? chain : other, i * 0x9e3779b97f4a7c15ULL, i);
	nft_state_forget(state, chain, count, &told);
	assert_int_equal(told, 500);
	assert_int_equal(nft_state_count(state), 500);
	for (uint64_t i = 2; i <= 1000; i += 2) {
		assert_true(nft_state_take(state, other, i * 0x9e3779b97f4a7c15ULL, &handle));
		assert_int_equal(handle, i);
	}
	nft_state_forget(state, chain, NULL, NULL); /* nothing there */
	nft_state_free(state);
}

/* A plain list of what should be there, beside it; digests that crowd the same places. */
static void test_many_changes_lose_nothing(void **context attr_unused)
{
	struct nft_state *state = nft_state_new();
	unsigned int chain = nft_state_chain(state, TABLE_FILTER, "A");
	struct {
		uint64_t digest, handle;
	} list[400];
	size_t n = 0;
	uint64_t next_handle = 1, handle;
	unsigned int seed = 20261116;

	for (size_t i = 0; i < 50000; i++) {
		if (n == 0 || (n < ARRAY_SIZE(list) && rand_r(&seed) % 2)) {
			list[n].digest = (uint64_t)rand_r(&seed) % 600;
			list[n].handle = next_handle++;
			nft_state_add(state, chain, list[n].digest, list[n].handle);
			n++;
		} else {
			size_t at = (size_t)rand_r(&seed) % n;

			assert_true(
				nft_state_remove(state, chain, list[at].digest, list[at].handle));
			list[at] = list[--n];
		}
		assert_int_equal(nft_state_count(state), n);
	}
	for (size_t i = 0; i < n; i++)
		assert_true(nft_state_remove(state, chain, list[i].digest, list[i].handle));
	assert_false(nft_state_take(state, chain, 5, &handle));
	nft_state_forget_all(state);
	assert_int_equal(nft_state_count(state), 0);
	nft_state_free(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_chain_has_one_number_in_each_table),
		cmocka_unit_test(test_equal_rules_have_an_entry_each),
		cmocka_unit_test(test_an_entry_can_be_removed_by_its_handle),
		cmocka_unit_test(test_a_chain_is_forgotten_as_a_whole),
		cmocka_unit_test(test_many_changes_lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
