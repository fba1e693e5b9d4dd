/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_own.h"

#include <assert.h>
#include <stdlib.h>

#include "xtables/nft_rule.h"

/*
 * A Service is told to the listener in two groups: its chains, then their rules. When the first rule
 * comes and none of the chains exists, everything goes straight into the batch: that is a cold
 * start. Otherwise digests are collected, the chains that exist are read, and the Service is told a
 * second time if something has to be written, of which only the rules of wrong chains are heard.
 */

struct chain {
	struct chain_name name;
	bool there; /* or may be */
	bool wrong;
	size_t n_rules; /* wanted */
	size_t first;   /* place of the first one in `sorted` */
};

struct wanted {
	uint64_t digest;
	size_t chain;
};

enum mode {
	MODE_CHAINS = 0, /* no rule so far */
	MODE_STRAIGHT,   /* nothing exists: write all */
	MODE_COLLECT,
	MODE_WRITE, /* the second time */
};

struct nft_own {
	struct txn txn;
	struct nft_link *link;
	const struct map *left;
	bool skip; /* what is told now is about one of those */
	nft_difference_fn *differs;
	void *arg;

	/* of the Service in hand */
	enum mode mode;
	struct nft_found *found;
	struct chain *chains;
	size_t n_chains, chains_capacity;
	size_t at; /* the chain of the last rule */
	struct wanted *wanted;
	size_t n_wanted, wanted_capacity;
	uint64_t *sorted; /* digests by chain, each chain's in order */
	size_t sorted_capacity;
	struct nft_link_rules rules; /* the kernel's, of one chain */
};

static void take_chain(struct txn *txn, enum table table, const char *name)
{
	struct nft_own *own = (struct nft_own *)txn;
	struct chain *chain;

	assert(table == TABLE_NAT);
	if (own->mode == MODE_WRITE)
		return;
	array_grow(&own->chains, &own->chains_capacity, own->n_chains, sizeof(*own->chains));
	chain = &own->chains[own->n_chains++];
	*chain = (struct chain){.there = !own->found || nft_found_has(own->found, table, name)};
	strncpy(chain->name.text, name, sizeof(chain->name.text) - 1);
	if (own->found)
		nft_found_want(own->found, name);
}

/* Rules of one chain mostly follow each other, and chains the order of their declaration. */
static size_t find_chain(struct nft_own *own, const char *name)
{
	for (size_t i = 0; i < own->n_chains; i++) {
		size_t at = (own->at + i) % own->n_chains;

		if (streq(own->chains[at].name.text, name))
			return own->at = at;
	}
	assert(!"a rule of a chain that was not declared");
	return 0;
}

static void tell(struct nft_own *own, const struct chain *chain, size_t missing, size_t extra)
{
	own->differs(own->arg, &(struct nft_difference){
				       .table = TABLE_NAT,
				       .chain = chain->name.text,
				       .missing = missing,
				       .extra = extra,
			       });
}

static void declare_chains(struct nft_own *own)
{
	for (size_t i = 0; i < own->n_chains; i++)
		if (own->chains[i].wrong)
			nft_link_new_chain(own->link, TABLE_NAT, own->chains[i].name.text);
	for (size_t i = 0; i < own->n_chains; i++)
		if (own->chains[i].wrong && own->chains[i].there)
			nft_link_flush(own->link, TABLE_NAT, own->chains[i].name.text);
}

/* All chains are known: read any of them, or write them all? */
static void choose_mode(struct nft_own *own)
{
	own->mode = MODE_STRAIGHT;
	for (size_t i = 0; i < own->n_chains; i++)
		if (own->chains[i].there)
			own->mode = MODE_COLLECT;
	if (own->mode == MODE_COLLECT)
		return;
	for (size_t i = 0; i < own->n_chains; i++)
		own->chains[i].wrong = true;
	declare_chains(own);
}

static void take_rule(struct txn *txn, const struct rule *rule)
{
	struct nft_own *own = (struct nft_own *)txn;
	size_t at = find_chain(own, rule->chain);

	if (own->skip)
		return;
	if (own->mode == MODE_CHAINS)
		choose_mode(own);
	if (own->mode == MODE_COLLECT) {
		array_grow(&own->wanted, &own->wanted_capacity, own->n_wanted,
			   sizeof(*own->wanted));
		own->wanted[own->n_wanted++] =
			(struct wanted){nft_rule_digest(own->link->family, rule), at};
	} else if (own->chains[at].wrong) {
		nft_link_append(own->link, rule);
	}
	if (own->mode != MODE_WRITE)
		own->chains[at].n_rules++;
}

static void take_subject(struct txn *txn, const char *key)
{
	struct nft_own *own = (struct nft_own *)txn;

	own->skip = key && map_get(own->left, key);
	nft_link_subject(own->link, key);
}

/* What is compared with the kernel is a whole wanted state: nothing is ever taken out of it. */
static void refuse_remove_rule(struct txn *txn attr_unused, const struct rule *rule attr_unused)
{
	assert(!"a wanted state removes no rule");
}

static void refuse_delete_chain(struct txn *txn attr_unused, enum table table attr_unused,
				const char *name attr_unused)
{
	assert(!"a wanted state deletes no chain");
}

static const struct txn_ops own_ops = {
	.chain = take_chain,
	.rule = take_rule,
	.remove_rule = refuse_remove_rule,
	.delete_chain = refuse_delete_chain,
	.subject = take_subject,
};

struct nft_own *nft_own_new(struct nft_link *link, const struct map *left,
			    nft_difference_fn *differs, void *arg)
{
	struct nft_own *own = xcalloc(1, sizeof(*own));

	own->txn.ops = &own_ops;
	own->link = link;
	own->left = left;
	own->differs = differs;
	own->arg = arg;
	return own;
}

struct nft_own *nft_own_free(struct nft_own *own)
{
	if (!own)
		return NULL;
	free(own->chains);
	free(own->wanted);
	free(own->sorted);
	nft_link_rules_done(&own->rules);
	free(own);
	return NULL;
}

static void sort_by_chain(struct nft_own *own)
{
	size_t first = 0;

	while (own->sorted_capacity < own->n_wanted)
		array_grow(&own->sorted, &own->sorted_capacity, own->sorted_capacity,
			   sizeof(*own->sorted));
	for (size_t i = 0; i < own->n_chains; i++) {
		own->chains[i].first = first;
		first += own->chains[i].n_rules;
		own->chains[i].n_rules = 0;
	}
	for (size_t i = 0; i < own->n_wanted; i++) {
		struct chain *chain = &own->chains[own->wanted[i].chain];

		own->sorted[chain->first + chain->n_rules++] = own->wanted[i].digest;
	}
}

static bool is_equal(const struct nft_own *own, const struct chain *chain)
{
	if (own->rules.n != chain->n_rules)
		return false;
	for (size_t i = 0; i < chain->n_rules; i++)
		if (own->rules.v[i].digest != own->sorted[chain->first + i])
			return false;
	return true;
}

static int compare_digests(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void nft_own_count(uint64_t *wanted, size_t n_wanted, uint64_t *there, size_t n_there,
		   size_t *ret_missing, size_t *ret_extra)
{
	size_t i = 0, j = 0, common = 0;

	if (n_wanted > 1)
		qsort(wanted, n_wanted, sizeof(*wanted), compare_digests);
	if (n_there > 1)
		qsort(there, n_there, sizeof(*there), compare_digests);
	while (i < n_wanted && j < n_there) {
		int order = compare_digests(&wanted[i], &there[j]);

		common += order == 0;
		i += order <= 0;
		j += order >= 0;
	}
	*ret_missing = n_wanted - common;
	*ret_extra = n_there - common;
}

/* A chain that is there but wrong. Its part of `sorted` is not needed any more. */
static void tell_difference(struct nft_own *own, const struct chain *chain)
{
	cleanup_free uint64_t *there = xcalloc(own->rules.n + 1, sizeof(*there));
	size_t missing, extra;

	for (size_t i = 0; i < own->rules.n; i++)
		there[i] = own->rules.v[i].digest;
	nft_own_count(own->sorted + chain->first, chain->n_rules, there, own->rules.n, &missing,
		      &extra);
	tell(own, chain, missing, extra);
}

/* The next delta can replace single rules of it. */
static void note_handles(struct nft_own *own, const struct chain *chain)
{
	cleanup_free uint64_t *v = xcalloc(own->rules.n + 1, sizeof(*v));

	for (size_t i = 0; i < own->rules.n; i++)
		v[i] = own->rules.v[i].handle;
	nft_handles_set(own->link->handles, chain->name.text, v, own->rules.n);
}

static int compare_chain(struct nft_own *own, struct chain *chain, struct err *err)
{
	int r;

	if (!chain->there) {
		chain->wrong = true;
		tell(own, chain, chain->n_rules, 0);
		return 1;
	}
	r = nft_link_read(own->link, TABLE_NAT, chain->name.text, &own->rules, err);
	if (r < 0)
		return err_wrap(err, r, "reading chain %s", chain->name.text);
	/* an empty list may be that of a chain that does not exist */
	chain->wrong = !is_equal(own, chain) || (!own->found && chain->n_rules == 0);
	if (!is_equal(own, chain))
		tell_difference(own, chain);
	else
		note_handles(own, chain);
	return chain->wrong;
}

static int compare_chains(struct nft_own *own, struct err *err)
{
	int n = 0;

	sort_by_chain(own);
	for (size_t i = 0; i < own->n_chains; i++) {
		int r = compare_chain(own, &own->chains[i], err);

		if (r < 0)
			return r;
		n += r;
	}
	return n;
}

int nft_own_compare(struct nft_own *own, struct ruleset *ruleset, size_t index,
		    struct nft_found *found, struct err *err)
{
	int n;

	own->mode = MODE_CHAINS;
	own->found = found;
	own->n_chains = own->n_wanted = own->at = 0;
	ruleset_write_own(ruleset, index, &own->txn);
	if (own->mode == MODE_CHAINS)
		choose_mode(own); /* chains, if any, and no rules */
	if (own->mode == MODE_STRAIGHT) {
		for (size_t i = 0; i < own->n_chains; i++)
			tell(own, &own->chains[i], own->chains[i].n_rules, 0);
		return (int)own->n_chains;
	}
	n = compare_chains(own, err);
	if (n <= 0)
		return n;
	own->mode = MODE_WRITE;
	nft_link_subject(own->link, ruleset_service_key(ruleset, index));
	declare_chains(own);
	ruleset_write_own(ruleset, index, &own->txn);
	return n;
}
