/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A rule value (rule.h) as the nf_tables message that iptables-nft would send for it, and the
 * way back.
 *
 * The kernel's state must not betray who wrote it: `iptables-save`, `iptables -C` and `-D`, `nft
 * list ruleset` and a dump see the very bytes that `iptables-restore` would have left there. All
 * of it goes into the message in place; nothing is allocated.
 *
 * A prefix of length 0 matches everything and is left out, as the tool does. Inverted it matches
 * nothing: there the tool sends what the kernel refuses, and we a comparison that never holds,
 * which lists as the words say ("! -s 0.0.0.0/0").
 *
 * Texts are cut at what their place in the kernel holds: comments at RULE_COMMENT_MAX bytes,
 * interface names at 15, names of nfacct counters at 31, of recent lists at 199.
 */

#include <linux/netlink.h>

#include "xtables/rule.h"

#define NFT_RULE_MESSAGE_MAX 4096 /* no rule needs more, headers included */

/*
 * Puts TABLE, CHAIN, EXPRESSIONS and COMPAT into a message of type NFT_MSG_NEWRULE whose header
 * and nfgenmsg are there already (mnl_nlmsg_put_header, mnl_nlmsg_put_extra_header), and behind
 * which there is room. Flags: NLM_F_CREATE | NLM_F_APPEND for -A, NLM_F_CREATE for -I.
 */
void nft_rule_put(struct nlmsghdr *message, enum family family, const struct rule *rule);

/* A rule that the kernel told of. It borrows texts from the message, and must not be copied. */
struct nft_rule_read {
	enum family family;
	const char *table; /* rule.table is TABLE_COUNT where no rule of ours can be */
	uint64_t handle;
	struct rule rule;
	char interface[RULE_INTERFACE_MAX + 1]; /* of the rule */
};

/*
 * Reads a NFT_MSG_NEWRULE or NFT_MSG_DELRULE of a dump, an echo or a notification, of which
 * nlmsg_len bytes can be read: the value that nft_rule_put() would have put, also for a rule of iptables.
 * The order of attributes, padding, counter values and the fields of xt structures that the kernel
 * uses for itself do not count. What is not as we would have put it becomes a match or target of kind
 * OTHER, so that the rule equals none of ours.
 *
 * Returns 0, or -EBADMSG when it is no such message or not well formed; -EAFNOSUPPORT for one of
 * another family (inet, bridge, arp...), which is no iptables rule.
 */
int nft_rule_read(const struct nlmsghdr *message, struct nft_rule_read *ret);

/* The same, of which the value is known by its hash (rule_compare.h). Texts are borrowed. */
struct nft_rule_seen {
	enum family family;
	const char *table;
	const char *chain;
	uint64_t handle;
	uint64_t digest;
};

int nft_rule_digest_message(const struct nlmsghdr *message, struct nft_rule_seen *ret);
