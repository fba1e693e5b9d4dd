/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tree of KUBE-SERVICES by itself: which rule a packet meets and how many it passes on the way,
 * what a change writes, and how chains are named. (test_ruleset_delta.c has it within a ruleset.)
 */

#include "backends/iptables/service_index.h"
#include "fake_kernel.h"

struct lab {
	struct service_index *index;
	struct fake_kernel kernel;
	struct fake_txn txn;
};

static void lab_init(struct lab *lab)
{
	*lab = (struct lab){.index = service_index_new()};
	fake_txn_init(&lab->txn, &lab->kernel);
	fake_declare(&lab->kernel, TABLE_NAT, CHAIN_SERVICES);
}

static void lab_done(struct lab *lab)
{
	service_index_free(lab->index);
	fake_txn_done(&lab->txn);
	fake_kernel_done(&lab->kernel);
}

/* One rule for each item stands for all of a Service's, and leads. */
static void make_rule(void *arg attr_unused, const char *key, const struct addr *addr,
		      const char *chain, unsigned int parts, struct rule_list *list)
{
	struct rule rule;

	if (!(parts & RULESET_LEADING))
		return;
	rule_init(&rule, TABLE_NAT, chain);
	rule_comment(&rule, key);
	rule_destination_addr(&rule, addr);
	rule_verdict(&rule, TARGET_ACCEPT);
	rule_list_add(list, &rule);
}

/* Returns how many operations it took. */
static size_t apply(struct lab *lab)
{
	static const struct service_index_rules rules = {.make = make_rule};
	cleanup_rule_list struct rule_list differ, gone;
	size_t before = lab->kernel.operations;

	service_index_settle(lab->index);
	rule_list_init(&differ, 4096);
	rule_list_init(&gone, 4096);
	service_index_difference(lab->index, &rules, &differ, &gone);
	txn_chains(&lab->txn.txn, &differ);
	txn_chains(&lab->txn.txn, &gone);
	txn_rules(&lab->txn.txn, &differ);
	for (const struct rule_chain *chain = gone.chains; chain; chain = chain->next)
		txn_delete_chain(&lab->txn.txn, TABLE_NAT, chain->name);
	service_index_applied(lab->index);
	return lab->kernel.operations - before;
}

static bool matches(const char *line, const struct addr *addr)
{
	struct prefix prefix;

	return !fake_destination(line, &prefix) || prefix_contains(&prefix, addr);
}

/* Goes the way of a packet; the rules it passes are counted. Returns the rule that takes it. */
static const char *walk(const struct lab *lab, const char *chain, const struct addr *addr,
			size_t *visited)
{
	const struct fake_chain *at = fake_kernel_need(&lab->kernel, TABLE_NAT, chain);

	for (size_t i = 0; i < at->n; i++) {
		cleanup_free char *target = fake_target(at->lines[i]);
		const char *found;

		++*visited;
		if (!matches(at->lines[i], addr))
			continue;
		if (!target)
			return at->lines[i];
		found = walk(lab, target, addr, visited);
		if (found)
			return found;
	}
	return NULL;
}

static void address(enum family family, uint32_t n, struct addr *ret)
{
	*ret = (struct addr){.family = (uint8_t)family, .bytes = {10}};
	if (family == FAMILY_IPV6) {
		memcpy(ret->bytes, (const uint8_t[]){0xfd, 0, 0, 0x10, 0x96}, 5);
		memcpy(ret->bytes + 12, (const uint8_t[]){(uint8_t)(n >> 24), (uint8_t)(n >> 16)},
		       2);
		memcpy(ret->bytes + 14, (const uint8_t[]){(uint8_t)(n >> 8), (uint8_t)n}, 2);
		return;
	}
	ret->bytes[1] = (uint8_t)(96 | (n >> 16 & 15));
	ret->bytes[2] = (uint8_t)(n >> 8);
	ret->bytes[3] = (uint8_t)n;
}

/* Every number below 2^20 becomes another one of them: odd factors and shifts can be undone. */
static uint32_t scatter(uint32_t n)
{
	n = n * 0x6b43a9U & 0xfffff;
	n ^= n >> 10;
	return n * 0x52fb2dU & 0xfffff;
}

/* The nth address, one after another or scattered over 20 bits. */
static void nth(enum family family, uint32_t n, bool scattered, struct addr *ret)
{
	address(family, scattered ? scatter(n) : n, ret);
}

static void key_of(uint32_t n, char key[32])
{
	snprintf(key, 32, "ns/s%u", n);
}

static void check_lookup(const struct lab *lab, enum family family, uint32_t n, uint32_t total,
			 bool scattered, size_t *worst)
{
	char key[32], word[64];
	const char *found;
	struct addr addr;
	size_t visited = 0;

	key_of(n, key);
	nth(family, n, scattered, &addr);
	found = walk(lab, CHAIN_SERVICES, &addr, &visited);
	snprintf(word, sizeof(word), "--comment %s ", key);
	if (n < total) {
		assert_non_null(found);
		assert_non_null(strstr(found, word));
	} else {
		assert_null(found); /* comes back and goes on to what is behind */
	}
	*worst = MAX(*worst, visited);
}

static void check_size(enum family family, uint32_t total, bool scattered)
{
	size_t worst = 0;
	struct addr addr;
	struct lab lab;
	char key[32];

	lab_init(&lab);
	for (uint32_t i = 0; i < total; i++) {
		key_of(i, key);
		nth(family, i, scattered, &addr);
		service_index_add(lab.index, key, &addr);
	}
	apply(&lab);
	for (uint32_t i = 0; i < total + 500; i += total / 500 + 1)
		check_lookup(&lab, family, i, total, scattered, &worst);
	assert_true(worst <= 64);
	assert_true(service_index_n_chains(lab.index) <= total / 2);
	/* one Service more costs the same, however many there are */
	nth(family, total, scattered, &addr);
	service_index_add(lab.index, "ns/more", &addr);
	assert_true(apply(&lab) <= 4 * (SERVICE_INDEX_SPLIT + 2));
	lab_done(&lab);
}

static void a_packet_passes_few_rules_whatever_the_number_of_services(void **state attr_unused)
{
	static const uint32_t sizes[] = {100, 1000, 10000, 30000};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		check_size(FAMILY_IPV4, sizes[i], true);
		check_size(FAMILY_IPV4, sizes[i], false);
		check_size(FAMILY_IPV6, sizes[i], true);
	}
}

static void add(struct lab *lab, const char *key, const char *ip)
{
	struct addr addr = build_addr(ip);

	service_index_add(lab->index, key, &addr);
}

static void drop(struct lab *lab, const char *key, const char *ip)
{
	struct addr addr = build_addr(ip);

	service_index_remove(lab->index, key, &addr);
}

static void few_services_stand_in_the_chain_itself(void **state attr_unused)
{
	struct lab lab;
	char ip[32];

	lab_init(&lab);
	for (int i = 1; i <= SERVICE_INDEX_SPLIT; i++) {
		snprintf(ip, sizeof(ip), "10.96.%d.1", i);
		add(&lab, "ns/a", ip);
	}
	apply(&lab);
	assert_int_equal(service_index_n_chains(lab.index), 0);
	assert_int_equal(service_index_rules(lab.index), SERVICE_INDEX_SPLIT);
	assert_int_equal(fake_kernel_chain(&lab.kernel, TABLE_NAT, CHAIN_SERVICES)->n,
			 SERVICE_INDEX_SPLIT);
	lab_done(&lab);
}

static void one_service_to_and_fro_at_the_limit_neither_splits_nor_merges(void **state attr_unused)
{
	struct lab lab;
	size_t chains;
	char ip[32];

	lab_init(&lab);
	for (int i = 0; i <= SERVICE_INDEX_SPLIT; i++) {
		snprintf(ip, sizeof(ip), "10.96.0.%d", i);
		add(&lab, "ns/a", ip);
	}
	apply(&lab);
	chains = service_index_n_chains(lab.index);
	assert_true(chains > 0);
	for (int i = 0; i < 4; i++) {
		drop(&lab, "ns/a", "10.96.0.16");
		assert_true(apply(&lab) < 5); /* the leaf and the jump to it */
		add(&lab, "ns/a", "10.96.0.16");
		apply(&lab);
		assert_int_equal(service_index_n_chains(lab.index), chains);
	}
	for (int i = SERVICE_INDEX_MERGE; i <= SERVICE_INDEX_SPLIT; i++) {
		snprintf(ip, sizeof(ip), "10.96.0.%d", i);
		drop(&lab, "ns/a", ip);
	}
	apply(&lab);
	assert_int_equal(service_index_n_chains(lab.index), 0);
	assert_int_equal(lab.kernel.chains[TABLE_NAT].count, 1); /* all others are deleted */
	lab_done(&lab);
}

/* Ports do not divide: many rules with one address stay together. */
static void one_address_is_never_split(void **state attr_unused)
{
	struct lab lab;
	char key[32];

	lab_init(&lab);
	for (uint32_t i = 0; i < 100; i++) {
		key_of(i, key);
		add(&lab, key, "192.0.2.1");
	}
	apply(&lab);
	assert_int_equal(service_index_n_chains(lab.index), 0);
	add(&lab, "ns/other", "10.96.0.1");
	apply(&lab);
	assert_int_equal(service_index_n_chains(lab.index), 2);
	drop(&lab, "ns/other", "10.96.0.1");
	drop(&lab, "ns/other", "10.96.0.1"); /* not there: nothing */
	apply(&lab);
	assert_int_equal(service_index_n_chains(lab.index), 1);
	lab_done(&lab);
}

static void without_changes_nothing_is_said(void **state attr_unused)
{
	struct lab lab;

	lab_init(&lab);
	for (uint32_t i = 0; i < 50; i++) {
		struct addr addr;

		nth(FAMILY_IPV4, i, true, &addr);
		service_index_add(lab.index, "ns/a", &addr);
	}
	apply(&lab);
	assert_int_equal(apply(&lab), 0);
	lab_done(&lab);
}

/* kube-proxy takes such a name for one of its own, and clears it away when it comes after us. */
static void chains_are_named_as_services_are_and_can_be_told_apart(void **state attr_unused)
{
	const struct prefix prefix = build_prefix("10.96.0.0/12");
	struct chain_hash hash, parsed;
	struct chain_name name;
	enum chain_kind kind;

	chain_hash_prefix(&prefix, &hash);
	chain_name_make(CHAIN_KIND_INDEX, &hash, &name);
	assert_true(has_prefix(name.text, "KUBE-SVC-IX-"));
	assert_int_equal(strlen(name.text), 28);
	assert_true(chain_is_per_service(name.text));
	assert_true(chain_name_parse(name.text, &kind, &parsed));
	assert_int_equal(kind, CHAIN_KIND_INDEX);
	assert_memory_equal(&parsed, &hash, sizeof(hash));
	assert_true(chain_name_parse("KUBE-SVC-XPGD46QRK7WJZT7O", &kind, &parsed));
	assert_int_equal(kind, CHAIN_KIND_SVC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_passes_few_rules_whatever_the_number_of_services),
		cmocka_unit_test(few_services_stand_in_the_chain_itself),
		cmocka_unit_test(one_service_to_and_fro_at_the_limit_neither_splits_nor_merges),
		cmocka_unit_test(one_address_is_never_split),
		cmocka_unit_test(without_changes_nothing_is_said),
		cmocka_unit_test(chains_are_named_as_services_are_and_can_be_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
