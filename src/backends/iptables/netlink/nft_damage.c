/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_damage.h"

#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "base/arena.h"
#include "kernel/nft_message.h"
#include "xtables/nft_chain.h"
#include "xtables/nft_rule.h"
#include "xtables/rule_compare.h"

void nft_damage_done(struct nft_damage *damage)
{
	map_done(&damage->chains);
	arena_free(damage->names);
	free(damage->shared);
	*damage = (struct nft_damage){0};
}

bool nft_damage_any(const struct nft_damage *damage)
{
	return damage->n_messages > 0 || damage->unknown;
}

void nft_damage_jumps_init(struct nft_damage_jumps *jumps)
{
	struct rule jump;

	for (size_t i = 0; i < RULESET_JUMPS; i++) {
		ruleset_jump(i, &jump);
		jumps->digests[i] = rule_hash(&jump);
	}
}

static bool is_jump(const struct nft_damage_jumps *jumps, const struct nlmsghdr *message)
{
	struct nft_rule_seen seen;

	if (nft_rule_digest_message(message, &seen) < 0)
		return false;
	for (size_t i = 0; i < RULESET_JUMPS; i++)
		if (jumps->digests[i] == seen.digest)
			return true;
	return false;
}

static void add_chain(struct nft_damage *damage, const char *name)
{
	char *copy;

	if (damage->unknown || map_get(&damage->chains, name))
		return;
	if (damage->chains.count >= NFT_DAMAGE_CHAINS_MAX) {
		damage->unknown = true;
		return;
	}
	if (!damage->names)
		damage->names = arena_new(1024);
	copy = arena_strdup(damage->names, name);
	map_set(&damage->chains, copy, copy);
}

/* n_lost: how many known rules are gone; 0: something else happened. */
static void add_shared(struct nft_damage *damage, unsigned int number, size_t n_lost)
{
	struct nft_damage_shared *shared;

	if (number >= damage->n_shared) {
		damage->shared = xrealloc(damage->shared, (number + 1) * sizeof(*damage->shared));
		memset(damage->shared + damage->n_shared, 0,
		       (number + 1 - damage->n_shared) * sizeof(*damage->shared));
		damage->n_shared = number + 1;
	}
	shared = &damage->shared[number];
	shared->touched = true;
	shared->unclear |= n_lost == 0;
	shared->n_lost += n_lost;
}

static bool is_jump_target(enum table table, const char *chain)
{
	struct rule jump;

	for (size_t i = 0; i < RULESET_JUMPS; i++) {
		ruleset_jump(i, &jump);
		if (jump.table == table && streq(jump.target.chain, chain))
			return true;
	}
	return false;
}

static void note_canary(struct nft_damage *damage, enum table table,
			struct foreign_changes *changes)
{
	cleanup_free char *words =
		xasprintf("chain " CHAIN_CANARY " of table %s deleted", table_name(table));

	damage->flushed = true;
	foreign_changes_add(changes, words, 1);
}

/* A chain came or went. Who empties and refills a chain says that it is there, which is no damage. */
static bool take_chain(struct nft_damage *damage, const struct nft_link *link, enum table table,
		       const char *chain, bool deleted, struct foreign_changes *changes)
{
	unsigned int number;

	if (!deleted)
		return false;
	if (streq(chain, CHAIN_CANARY)) {
		note_canary(damage, table, changes);
	} else if (nft_chain_is_base(table, chain)) {
		damage->jumps = true;
	} else if (table == TABLE_NAT && chain_is_per_service(chain)) {
		add_chain(damage, chain);
	} else if (nft_state_find_chain(link->state, table, chain, &number)) {
		add_shared(damage, number, 0);
		damage->shared_missing = damage->jumps = true;
	} else if (is_jump_target(table, chain)) {
		damage->shared_missing = damage->jumps = true;
	} else {
		return false;
	}
	return true;
}

/* Whether it tells the end of a rule whose handle was known, and is no more. */
static bool lose_rule(const struct nft_link *link, unsigned int chain,
		      const struct nlmsghdr *message)
{
	struct nft_rule_seen seen;

	return nft_message_type(message) == NFT_MSG_DELRULE &&
	       nft_rule_digest_message(message, &seen) >= 0 &&
	       nft_state_remove(link->state, chain, seen.digest, seen.handle);
}

static bool take_rule(struct nft_damage *damage, const struct nft_link *link,
		      const struct nft_damage_jumps *jumps, enum table table, const char *chain,
		      const struct nlmsghdr *message)
{
	bool deleted = nft_message_type(message) == NFT_MSG_DELRULE;
	unsigned int number;

	if (nft_chain_is_base(table, chain)) {
		if (!deleted || !is_jump(jumps, message))
			return false;
		damage->jumps = true;
	} else if (table == TABLE_NAT && chain_is_per_service(chain)) {
		add_chain(damage, chain);
	} else if (nft_state_find_chain(link->state, table, chain, &number)) {
		add_shared(damage, number, lose_rule(link, number, message));
	} else {
		return false;
	}
	return true;
}

void nft_damage_take(struct nft_damage *damage, const struct nft_link *link,
		     const struct nft_damage_jumps *jumps, const struct nlmsghdr *message,
		     struct foreign_changes *changes)
{
	int type = nft_message_type(message);
	const char *table_text, *chain;
	enum table table;
	bool ours;

	if (nft_message_family(message) != nft_family(link->family))
		return;
	/* the first attribute of tables, chains and rules alike is the name of the table */
	table_text = nft_message_string(message, NFTA_RULE_TABLE);
	if (!table_text || !table_parse(table_text, &table))
		return;
	switch (type) {
	case NFT_MSG_DELTABLE:
		ours = damage->flushed = true;
		foreign_changes_take(changes, message);
		break;
	case NFT_MSG_NEWCHAIN:
	case NFT_MSG_DELCHAIN:
		chain = nft_message_string(message, NFTA_CHAIN_NAME);
		ours = chain &&
		       take_chain(damage, link, table, chain, type == NFT_MSG_DELCHAIN, changes);
		break;
	case NFT_MSG_NEWRULE:
	case NFT_MSG_DELRULE:
		chain = nft_message_string(message, NFTA_RULE_CHAIN);
		ours = chain && take_rule(damage, link, jumps, table, chain, message);
		break;
	default:
		ours = false;
		break;
	}
	damage->n_messages += ours;
}

void nft_damage_merge(struct nft_damage *damage, struct nft_damage *from)
{
	const char *name;
	size_t at = 0;

	damage->flushed |= from->flushed;
	damage->unknown |= from->unknown;
	damage->shared_missing |= from->shared_missing;
	damage->jumps |= from->jumps;
	damage->n_messages += from->n_messages;
	while ((name = map_next_key(&from->chains, &at)))
		add_chain(damage, name);
	for (size_t i = 0; i < from->n_shared; i++)
		if (from->shared[i].touched)
			add_shared(damage, (unsigned int)i,
				   from->shared[i].unclear ? 0 : from->shared[i].n_lost);
	nft_damage_done(from);
}
