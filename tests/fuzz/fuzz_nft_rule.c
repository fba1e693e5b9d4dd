/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as a rule that the kernel lists or tells of: whatever they are, nothing behind them is read, and
 * the digest of the same bytes is the same twice. A rule that is all understood is the same when it is
 * written and read again. As a notification, too, it is either damage to our chains or none.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_nft_rule
 *	build-fuzz/tests/fuzz/fuzz_nft_rule tests/fuzz/corpus/nft_rule
 */

#include <assert.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>

#include "backends/iptables/netlink/nft_damage.h"
#include "xtables/nft_rule.h"
#include "xtables/rule_compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct nlmsghdr *message, const char *text)
{
	const char *first = (const char *)message, *last = first + message->nlmsg_len;

	assert(text > first && text < last);
	assert(memchr(text, '\0', (size_t)(last - text)));
}

static bool is_text(const struct match *match)
{
	return match->kind == MATCH_COMMENT || match->kind == MATCH_NFACCT;
}

/* Could it be one of ours? */
static bool is_understood(const struct rule *rule)
{
	for (size_t i = 0; i < rule->n_matches; i++)
		if (rule->matches[i].kind == MATCH_OTHER || rule->matches[i].bare)
			return false;
	return rule->table != TABLE_COUNT && rule->target.kind < TARGET_GOTO;
}

static void write_again(const struct nft_rule_read *read)
{
	_Alignas(struct nlmsghdr) uint8_t room[2 * NFT_RULE_MESSAGE_MAX];
	struct nlmsghdr *message = mnl_nlmsg_put_header(room);
	struct nfgenmsg *head = mnl_nlmsg_put_extra_header(message, sizeof(*head));
	struct nft_rule_read again;

	message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE;
	head->nfgen_family = read->family == FAMILY_IPV4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
	mnl_attr_put_u64(message, NFTA_RULE_HANDLE, UINT64_MAX);
	if (strlen(read->rule.chain) > RULE_COMMENT_MAX ||
	    (read->rule.target.kind == TARGET_CHAIN &&
	     strlen(read->rule.target.chain) > RULE_COMMENT_MAX))
		return; /* no chain has such a name */
	nft_rule_put(message, read->family, &read->rule);
	assert(message->nlmsg_len <= NFT_RULE_MESSAGE_MAX);
	assert(nft_rule_read(message, &again) == 0);
	assert(rule_equal(&read->rule, &again.rule));
}

static void read_value(const struct nlmsghdr *message)
{
	struct nft_rule_read read;

	if (nft_rule_read(message, &read) < 0)
		return;
	assert(read.rule.n_matches <= RULE_MATCH_MAX);
	for (size_t i = 0; i < read.rule.n_matches; i++)
		if (is_text(&read.rule.matches[i]))
			check_text(message, read.rule.matches[i].text);
	if (read.rule.target.kind == TARGET_CHAIN || read.rule.target.kind == TARGET_GOTO)
		check_text(message, read.rule.target.chain);
	if (is_understood(&read.rule))
		write_again(&read);
}

static void notify(const struct nlmsghdr *message)
{
	static struct nft_link link;
	static struct nft_damage_jumps jumps;
	struct foreign_changes changes = {0};
	struct nft_damage damage = {0};

	if (!link.state) {
		link.state = nft_state_new();
		nft_state_chain(link.state, TABLE_NAT, CHAIN_SERVICES);
		nft_damage_jumps_init(&jumps);
	}
	for (link.family = 0; link.family < FAMILY_COUNT; link.family++)
		nft_damage_take(&damage, &link, &jumps, message, &changes);
	assert(damage.n_messages <= 1);
	nft_damage_done(&damage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nft_rule_seen seen, again;
	struct nlmsghdr *message;
	int r;

	if (size < sizeof(*message))
		return 0;
	message = xmalloc(size); /* of its exact size, and aligned */
	memcpy(message, data, size);
	message->nlmsg_len = (uint32_t)size;
	r = nft_rule_digest_message(message, &seen);
	assert(r == 0 || r == -EBADMSG || r == -EAFNOSUPPORT);
	if (r == 0) {
		check_text(message, seen.table);
		check_text(message, seen.chain);
		assert(nft_rule_digest_message(message, &again) == 0);
		assert(seen.digest == again.digest && seen.handle == again.handle);
	}
	read_value(message);
	notify(message);
	free(message);
	return 0;
}
