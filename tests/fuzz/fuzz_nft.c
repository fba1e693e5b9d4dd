/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as what the kernel's nf_tables part sends. The first byte says as what: the answers to a
 * transaction, a list, or notifications.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_nft
 *	build-fuzz/tests/fuzz/fuzz_nft tests/fuzz/corpus/nft
 */

#include <assert.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>

#include "backends/nftables/damage.h"
#include "backends/nftables/statement_put.h"
#include "backends/nftables/statement_read.h"
#include "backends/nftables/statement_text.h"
#include "inspect/diff_elements.h"
#include "inspect/trace_rules.h"
#include "kernel/foreign_changes.h"
#include "kernel/nft_batch.h"
#include "kernel/nft_describe.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_listener.h"
#include "kernel/nft_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MESSAGES 4

/* What is read can be written, and is read as the same again; a raw statement is all that cannot. */
static void check_rule(struct arena *arena, enum family family, const struct nft_rule *rule)
{
	_Alignas(struct nlmsghdr) char buffer[8192];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct nft_rule known = {.n = 0}, again;

	for (size_t i = 0; i < rule->n; i++)
		if (rule->v[i].kind != STATEMENT_RAW)
			known.v[known.n++] = rule->v[i];
	message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE;
	mnl_nlmsg_put_extra_header(message, sizeof(struct nfgenmsg));
	statement_put_all(message, family, &known);
	statement_read_rule(arena, family, message, &again);
	assert(nft_rule_equal(&known, &again));
}

/* Whatever a rule is made of, its words are on one line. */
static void read_rule(const struct nlmsghdr *message)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		cleanup_arena struct arena *arena = arena_new(4096);
		cleanup_text struct text text = {0};
		cleanup_free char *line = NULL;
		struct trace_rule effect;
		struct nft_rule rule;

		trace_rules_read(arena, family, true, message, &effect);
		assert(effect.effect < EFFECT_COUNT && !effect.text);
		trace_rules_read(arena, family, false, message, &effect);
		assert(effect.effect < EFFECT_COUNT && effect.text);
		statement_read_rule(arena, family, message, &rule);
		statement_text_rule(&text, family, &rule);
		line = text_dup(&text);
		assert(!strchr(line, '\n'));
		check_rule(arena, family, &rule);
	}
}

/* Elements as each of the containers would have them, each of them a line of a diff; but those that
 * linger are none where they are not wanted. */
static void read_elements(const struct nlmsghdr *message)
{
	struct nftables_rules *none = nftables_rules_new(FAMILY_IPV4);

	for (enum container container = 0; container < CONTAINER_COUNT; container++) {
		const struct diff_place place = {FAMILY_IPV4, "kube-proxy", "map", "any"};
		cleanup_diff struct diff diff = {0};
		struct diff_elements elements;
		struct err ignored;
		size_t n = 0;

		diff_elements_init(&elements, FAMILY_IPV4, container);
		diff_elements_take(&elements, message, &ignored);
		diff_elements_compare(&diff, &place, none, &elements);
		for (size_t i = 0; i < diff.n; i++)
			n += diff.v[i].n_lines;
		assert(n == elements.n || (n < elements.n && container_types[container].lingers));
		diff_elements_done(&elements);
	}
	nftables_rules_free(none);
}

/* The same change twice is one. */
static void read_change(const struct nlmsghdr *message)
{
	struct foreign_changes foreign_changes = {0};
	cleanup_free char *words = NULL;

	foreign_changes_take(&foreign_changes, message);
	foreign_changes_take(&foreign_changes, message);
	assert(foreign_changes.n + foreign_changes.n_more > 0 && foreign_changes.n <= 1);
	words = foreign_changes_text(&foreign_changes);
	assert(words[0]);
}

/* The same damage twice is one; keys of a container that is noted as a whole need not be kept. */
static void read_damage(const struct nlmsghdr *message)
{
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		struct damage once = {0}, twice = {0};

		damage_take(&once, family, message);
		damage_take(&twice, family, message);
		damage_take(&twice, family, message);
		assert(twice.any && twice.n_keys <= once.n_keys && twice.n_chains == once.n_chains);
		for (size_t i = 0; i < twice.n_keys; i++)
			assert(damage_covers(&once, &twice.keys[i].element));
	}
}

/* Looks at everything that a reader might. */
static void look_at(const struct nlmsghdr *message)
{
	char words[128], place[8];
	uint32_t small;
	uint64_t large;

	assert(nft_message_type(message) >= 0);
	for (uint16_t type = 0; type < 12; type++) {
		const char *text = nft_message_string(message, type);

		assert(!text || strlen(text) < UINT16_MAX);
		nft_message_u32(message, type, &small);
		nft_message_u64(message, type, &large);
	}
	read_rule(message);
	read_elements(message);
	read_change(message);
	read_damage(message);
	nft_describe(message, words, sizeof(words));
	for (size_t offset = 0; offset < message->nlmsg_len + 8; offset += 4)
		nft_describe_attribute(message, offset, place, sizeof(place));
}

/* -- answers */

static void on_echo(void *arg attr_unused, size_t index, const struct nlmsghdr *message)
{
	assert(index < MESSAGES || index == NFT_BATCH_WHOLE);
	look_at(message);
}

static void put_messages(struct nft_batch *batch)
{
	for (int i = 0; i < MESSAGES; i++) {
		struct nlmsghdr *message =
			nft_batch_message(batch, NFT_MSG_NEWCHAIN, FAMILY_IPV6, NLM_F_CREATE);

		nft_batch_subject(batch, i % 2 ? "service 'a/b'" : NULL);
		mnl_attr_put_strz(message, NFTA_CHAIN_TABLE, "nat");
		mnl_attr_put_strz(message, NFTA_CHAIN_NAME, "KUBE-SVC-A");
	}
}

static void answers(const void *data, size_t n)
{
	cleanup_nft_batch struct nft_batch *batch = nft_batch_new();
	const struct nft_batch_failure *failure;
	struct nft_batch_outcome outcome = {0};
	struct err err;
	int r;

	put_messages(batch);
	nft_batch_answer(batch, data, n, on_echo, NULL, &outcome);
	r = nft_batch_judge(batch, &outcome, &err);
	failure = nft_batch_failure(batch);
	assert(!failure || (r < 0 && r == failure->error && failure->n_refused > 0));
	assert(!failure || failure->index < MESSAGES || failure->index == NFT_BATCH_WHOLE);
	assert(r >= 0 || failure || nft_batch_uncertain(batch));
	assert(r >= 0 || (err.code == r && err.text[0]));
}

/* -- a list */

static int on_object(void *arg, const struct nlmsghdr *message, struct err *err)
{
	size_t *seen = arg;

	look_at(message);
	return ++*seen > 1000 ? err_set(err, -E2BIG, "too many") : 0;
}

static void list(const void *data, size_t n)
{
	static const struct nft_dump_request request = {
		.type = NFT_MSG_GETRULE, .family = FAMILY_IPV4, .table = "test"};
	static const struct nft_dump_ops ops = {NULL, on_object};
	struct nft_dump_state state = {&request, &ops, NULL, 1, 0, false, false};
	struct err err = {0};
	size_t seen = 0;
	int r;

	state.arg = &seen;
	r = nft_dump_take(&state, data, n, &err);
	assert(r <= 1 && r > -4096);
}

/* -- notifications */

static void on_message(void *arg attr_unused, const struct nlmsghdr *message)
{
	assert(message->nlmsg_pid != 1);
	look_at(message);
}

static void on_generation(void *arg attr_unused, uint32_t id attr_unused, uint32_t pid attr_unused,
			  const char *process)
{
	assert(process && strlen(process) < UINT16_MAX);
}

static void on_own_generation(void *arg attr_unused, uint32_t id attr_unused)
{
}

static void on_lost(void *arg attr_unused)
{
	assert(false); /* that is for the socket to say */
}

static void notifications(const void *data, size_t n)
{
	static const struct nft_listener_events events = {on_message, on_generation,
							  on_own_generation, on_lost};

	nft_listener_take(&events, NULL, 1, data, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const readers[])(const void *, size_t) = {answers, list, notifications};
	cleanup_free char *copy = NULL; /* aligned, and of its exact size */

	if (size < 1)
		return 0;
	copy = xmalloc(MAX(size - 1, 1));
	memcpy(copy, data + 1, size - 1);
	readers[data[0] % ARRAY_SIZE(readers)](copy, size - 1);
	return 0;
}
