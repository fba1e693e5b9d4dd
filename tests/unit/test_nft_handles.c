/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/iptables/netlink/nft_handles.h"

#define SVC "KUBE-SVC-AAAAAAAAAAAAAAAA"
#define SVL "KUBE-SVL-AAAAAAAAAAAAAAAA"
#define SEP "KUBE-SEP-AAAAAAAAAAAAAAAA"

static void expect(const struct nft_handles *handles, const char *chain, const uint64_t *v,
		   size_t n)
{
	size_t found = 0;
	cleanup_free uint64_t *there = nft_handles_get(handles, chain, &found);

	assert_non_null(there);
	assert_int_equal(found, n);
	assert_memory_equal(there, v, n * sizeof(*v));
}

static void expect_unknown(const struct nft_handles *handles, const char *chain)
{
	size_t n;

	assert_null(nft_handles_get(handles, chain, &n));
}

static void test_lists_are_returned_as_they_were_set(void **state attr_unused)
{
	static const uint64_t run[] = {7, 8, 9}, list[] = {7, 9, 8}, one[] = {1};
	struct nft_handles *handles = nft_handles_new();

	nft_handles_set(handles, SVC, run, 3);
	nft_handles_set(handles, SVL, list, 3);
	expect(handles, SVC, run, 3);
	expect(handles, SVL, list, 3);
	nft_handles_set(handles, SVL, one, 1);
	expect(handles, SVL, one, 1);
	nft_handles_set(handles, SVC, list, 3);
	expect(handles, SVC, list, 3);
	assert_int_equal(nft_handles_count(handles), 2);
	nft_handles_forget(handles, SVC);
	expect_unknown(handles, SVC);
	expect(handles, SVL, one, 1);
	nft_handles_set(handles, SVL, NULL, 0);
	expect_unknown(handles, SVL);
	nft_handles_free(handles);
}

static void test_only_chains_that_spread_connections_are_kept(void **state attr_unused)
{
	static const char *const others[] = {SEP, "KUBE-SERVICES", "KUBE-SVC-",
					     "KUBE-SVC-IX-AAAAAAAAAAAAAAAA"};
	static const uint64_t v[] = {7};
	struct nft_handles *handles = nft_handles_new();

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		nft_handles_set(handles, others[i], v, 1);
		expect_unknown(handles, others[i]);
	}
	assert_int_equal(nft_handles_count(handles), 0);
	nft_handles_free(handles);
}

static void test_thousands_come_and_go(void **state attr_unused)
{
	struct nft_handles *handles = nft_handles_new();
	struct chain_name name;
	struct chain_hash hash;

	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			uint64_t v[] = {i + 1, i + 2 + i % 2};
			char id[16];

			snprintf(id, sizeof(id), "ns/%u", i);
			chain_hash_port(id, PROTOCOL_TCP, &hash);
			chain_name_make(CHAIN_KIND_SVC, &hash, &name);
			if (round == 1 && i % 3)
				nft_handles_forget(handles, name.text);
			else if (round == 0)
				nft_handles_set(handles, name.text, v, 2);
			else if (round == 2 && i % 3)
				expect_unknown(handles, name.text);
			else
				expect(handles, name.text, v, 2);
		}
	}
	assert_int_equal(nft_handles_count(handles), 1667);
	nft_handles_forget_all(handles);
	expect_unknown(handles, name.text);
	assert_int_equal(nft_handles_count(handles), 0);
	nft_handles_free(handles);
}

/* -- foretold */

/* Two chains are made, then rules of SVC, two of another chain between; the last place. */
static uint64_t write_chain(struct nft_handles *handles)
{
	uint64_t at = 0;

	nft_handles_begin(handles);
	(void)nft_handles_made(handles);
	(void)nft_handles_made(handles);
	for (int i = 0; i < 5; i++) {
		at = nft_handles_made(handles);
		nft_handles_append(handles, i < 3 ? SVC : SEP, at);
	}
	return at;
}

static void test_what_lies_between_two_that_were_told_is_known(void **state attr_unused)
{
	static const uint64_t v[] = {102, 103, 104};
	struct nft_handles *handles = nft_handles_new();
	uint64_t last = write_chain(handles);

	nft_handles_told(handles, 2, 102);
	nft_handles_told(handles, last, 106);
	nft_handles_end(handles);
	expect(handles, SVC, v, 3);
	nft_handles_free(handles);
}

/* Not so many were made; only a part lies between; nothing was told. */
static void test_without_proof_nothing_is_known(void **state attr_unused)
{
	static const uint64_t old[] = {1, 2, 3};
	static const uint64_t told[][4] = {
		{2, 102, 6, 105}, {3, 103, 6, 106}, {2, 102, 3, 103}, {6, 106, 6, 106}, {0}};
	struct nft_handles *handles = nft_handles_new();

	for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
		nft_handles_set(handles, SVC, old, 3);
		write_chain(handles);
		if (told[i][1]) {
			nft_handles_told(handles, told[i][0], told[i][1]);
			nft_handles_told(handles, told[i][2], told[i][3]);
		}
		nft_handles_end(handles);
		expect_unknown(handles, SVC);
	}
	nft_handles_free(handles);
}

static void test_a_plan_mixes_old_and_new(void **state attr_unused)
{
	static const uint64_t plan[] = {7, NFT_HANDLE_MADE, 9, NFT_HANDLE_MADE | 1};
	static const uint64_t v[] = {7, 50, 9, 51}, old[] = {7, 8, 9};
	struct nft_handles *handles = nft_handles_new();

	nft_handles_set(handles, SVC, old, 3);
	nft_handles_begin(handles);
	(void)nft_handles_made(handles);
	(void)nft_handles_made(handles);
	nft_handles_plan(handles, SVC, plan, 4);
	expect(handles, SVC, old, 3); /* it has not happened */
	nft_handles_told(handles, 0, 50);
	nft_handles_told(handles, 1, 51);
	nft_handles_end(handles);
	expect(handles, SVC, v, 4);
	nft_handles_begin(handles);
	(void)nft_handles_made(handles);
	nft_handles_plan(handles, SVC, plan, 2);
	nft_handles_begin(handles); /* nor has this one */
	expect(handles, SVC, v, 4);
	nft_handles_plan(handles, SVC, old, 3);
	nft_handles_end(handles); /* nothing new: nothing to prove */
	expect(handles, SVC, old, 3);
	nft_handles_free(handles);
}

static void test_a_chain_in_two_parts_is_never_taken_for_whole(void **state attr_unused)
{
	struct nft_handles *handles = nft_handles_new();
	static const char *const order[] = {SVC, SVL, SVC, SVC};
	cleanup_free uint64_t *v = NULL;
	size_t n = 0;

	nft_handles_begin(handles);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		nft_handles_append(handles, order[i], nft_handles_made(handles));
	nft_handles_told(handles, 0, 10);
	nft_handles_told(handles, 3, 13);
	nft_handles_end(handles);
	v = nft_handles_get(handles, SVC, &n);
	assert_true(n < 3);
	nft_handles_free(handles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_are_returned_as_they_were_set),
		cmocka_unit_test(test_only_chains_that_spread_connections_are_kept),
		cmocka_unit_test(test_thousands_come_and_go),
		cmocka_unit_test(test_what_lies_between_two_that_were_told_is_known),
		cmocka_unit_test(test_without_proof_nothing_is_known),
		cmocka_unit_test(test_a_plan_mixes_old_and_new),
		cmocka_unit_test(test_a_chain_in_two_parts_is_never_taken_for_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
