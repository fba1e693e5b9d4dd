/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_shared.h"

#include <assert.h>
#include <stdlib.h>

#include "xtables/nft_rule.h"

/*
 * The ruleset tells all shared rules in one go, always in the same order. The first time their
 * digests are noted, one `struct wanted` each; later they are told again and counted along, and
 * those that are due go into the batch. So no rule is ever kept.
 */

enum when {
	WHEN_NEVER = 0, /* it is there, or its chain is not looked at */
	WHEN_ADD,
	WHEN_LAST,
};

struct wanted {
	uint64_t digest;
	uint64_t handle;   /* of the rule that is there; 0: none */
	uint32_t position; /* of that rule in the kernel's chain */
	uint32_t subject;  /* counted from 1; 0: fixed */
	uint16_t chain;
	uint8_t when; /* enum when */
	bool left;    /* of a Service that is left as it is */
	bool leading; /* as the rule is */
};

struct leaving {
	uint64_t digest;
	uint64_t handle;
	uint16_t chain;
};

enum mode {
	MODE_COLLECT = 0,
	MODE_ADD,
	MODE_FINISH,
};

struct nft_shared {
	struct txn txn;
	struct nft_link *link;
	const struct map *left;
	nft_difference_fn *differs;
	void *arg;

	enum mode mode;
	struct nft_shared_chain *chains;
	size_t n_chains, chains_capacity;
	struct wanted *wanted;
	size_t n_wanted, wanted_capacity;
	struct leaving *leaving;
	size_t n_leaving, leaving_capacity;
	struct nft_link_rules rules; /* the kernel's, of one chain */

	/* while it is told */
	uint32_t subject, n_subjects;
	bool subject_left;
	size_t at; /* of the next rule in `wanted` */
	size_t from, size;
	bool full;
	uint16_t last_chain;
};

/* -- what is told */

static uint16_t find_chain(struct nft_shared *shared, enum table table, const char *name)
{
	for (size_t i = 0; i < shared->n_chains; i++) {
		size_t at = (shared->last_chain + i) % shared->n_chains;

		if (shared->chains[at].table == table && streq(shared->chains[at].name, name))
			return shared->last_chain = (uint16_t)at;
	}
	assert(!"a rule of a shared chain that was not declared");
	return 0;
}

static void take_chain(struct txn *txn, enum table table, const char *name)
{
	struct nft_shared *shared = (struct nft_shared *)txn;
	struct nft_shared_chain *chain;

	if (shared->mode != MODE_COLLECT)
		return;
	array_grow(&shared->chains, &shared->chains_capacity, shared->n_chains,
		   sizeof(*shared->chains));
	chain = &shared->chains[shared->n_chains++];
	*chain = (struct nft_shared_chain){
		.table = table,
		.number = nft_state_chain(shared->link->state, table, name),
	};
	strncpy(chain->name, name, sizeof(chain->name) - 1);
}

static void collect_rule(struct nft_shared *shared, const struct rule *rule)
{
	uint16_t chain = find_chain(shared, rule->table, rule->chain);

	array_grow(&shared->wanted, &shared->wanted_capacity, shared->n_wanted,
		   sizeof(*shared->wanted));
	shared->wanted[shared->n_wanted++] = (struct wanted){
		.digest = nft_rule_digest(shared->link->family, rule),
		.subject = shared->subject,
		.chain = chain,
		.left = shared->subject_left,
		.leading = rule->leading,
	};
	shared->chains[chain].n_rules++;
	shared->chains[chain].n_entries += shared->subject != 0;
}

static void add_rule(struct nft_shared *shared, const struct rule *rule)
{
	size_t at = shared->at++;

	if (at < shared->from || shared->full || shared->wanted[at].when != WHEN_ADD ||
	    shared->subject_left)
		return;
	if (rule->leading && shared->chains[shared->wanted[at].chain].followed)
		nft_link_prepend(shared->link, rule);
	else
		nft_link_append(shared->link, rule);
	if (nft_batch_size(shared->link->batch) >= shared->size) {
		shared->full = true;
		shared->from = at + 1;
	}
}

static void finish_rule(struct nft_shared *shared, const struct rule *rule)
{
	if (shared->wanted[shared->at++].when == WHEN_LAST && !shared->subject_left)
		nft_link_append(shared->link, rule);
}

static void take_rule(struct txn *txn, const struct rule *rule)
{
	struct nft_shared *shared = (struct nft_shared *)txn;

	switch (shared->mode) {
	case MODE_COLLECT:
		collect_rule(shared, rule);
		break;
	case MODE_ADD:
		add_rule(shared, rule);
		break;
	case MODE_FINISH:
		finish_rule(shared, rule);
		break;
	}
}

static void take_subject(struct txn *txn, const char *key)
{
	struct nft_shared *shared = (struct nft_shared *)txn;

	shared->subject = key ? ++shared->n_subjects : 0;
	shared->subject_left = key && map_get(shared->left, key);
	if (shared->mode != MODE_COLLECT)
		nft_link_subject(shared->link, key);
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

static const struct txn_ops shared_ops = {
	.chain = take_chain,
	.rule = take_rule,
	.remove_rule = refuse_remove_rule,
	.delete_chain = refuse_delete_chain,
	.subject = take_subject,
};

struct nft_shared *nft_shared_new(struct nft_link *link, const struct map *left,
				  nft_difference_fn *differs, void *arg)
{
	struct nft_shared *shared = xcalloc(1, sizeof(*shared));

	shared->txn.ops = &shared_ops;
	shared->link = link;
	shared->left = left;
	shared->differs = differs;
	shared->arg = arg;
	return shared;
}

struct nft_shared *nft_shared_free(struct nft_shared *shared)
{
	if (!shared)
		return NULL;
	free(shared->chains);
	free(shared->wanted);
	free(shared->leaving);
	nft_link_rules_done(&shared->rules);
	free(shared);
	return NULL;
}

static void tell(struct nft_shared *shared, enum mode mode, struct ruleset *ruleset,
		 const struct ruleset_input *input)
{
	shared->mode = mode;
	shared->subject = shared->n_subjects = 0;
	shared->subject_left = false;
	shared->at = 0;
	shared->last_chain = 0;
	ruleset_write_shared(ruleset, input, &shared->txn);
}

void nft_shared_collect(struct nft_shared *shared, struct ruleset *ruleset,
			const struct ruleset_input *input)
{
	shared->n_chains = shared->n_wanted = shared->n_leaving = 0;
	tell(shared, MODE_COLLECT, ruleset, input);
}

size_t nft_shared_n_chains(const struct nft_shared *shared)
{
	return shared->n_chains;
}

const struct nft_shared_chain *nft_shared_chain(const struct nft_shared *shared, size_t index)
{
	return &shared->chains[index];
}

/* -- comparing */

struct by_digest {
	uint64_t digest;
	struct wanted *wanted;
};

static int compare_by_digest(const void *a, const void *b)
{
	const struct by_digest *x = a;
	const struct by_digest *y = b;

	if (x->digest != y->digest)
		return x->digest < y->digest ? -1 : 1;
	return x->wanted < y->wanted ? -1 : x->wanted > y->wanted;
}

/* The first that wants this digest and has no rule yet. */
static struct wanted *find_wanted(const struct by_digest *index, size_t n, uint64_t digest)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index[middle].digest < digest)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < n && index[low].digest == digest && index[low].wanted->handle)
		low++;
	return low < n && index[low].digest == digest ? index[low].wanted : NULL;
}

static void leave(struct nft_shared *shared, size_t chain, uint64_t digest, uint64_t handle)
{
	array_grow(&shared->leaving, &shared->leaving_capacity, shared->n_leaving,
		   sizeof(*shared->leaving));
	shared->leaving[shared->n_leaving++] = (struct leaving){digest, handle, (uint16_t)chain};
	shared->chains[chain].n_remove++;
}

/* Gives each rule that is there to one that wants it. Returns how many nobody wants. */
static size_t match_rules(struct nft_shared *shared, size_t index)
{
	size_t n = shared->chains[index].n_rules;
	cleanup_free struct by_digest *sorted = xcalloc(n + 1, sizeof(*sorted));
	size_t at = 0, extra = 0;

	for (size_t i = 0; i < shared->n_wanted; i++)
		if (shared->wanted[i].chain == index)
			sorted[at++] =
				(struct by_digest){shared->wanted[i].digest, &shared->wanted[i]};
	if (n > 1)
		qsort(sorted, n, sizeof(*sorted), compare_by_digest);
	for (size_t i = 0; i < shared->rules.n; i++) {
		const struct nft_link_rule *rule = &shared->rules.v[i];
		struct wanted *wanted = find_wanted(sorted, n, rule->digest);

		if (wanted) {
			wanted->handle = rule->handle;
			wanted->position = (uint32_t)i;
			continue;
		}
		extra++;
		if (shared->left->count == 0)
			leave(shared, index, rule->digest, rule->handle);
	}
	return extra;
}

/* Rules of one owner in one chain: wanted[first], and on to `end`, of this chain. */
static void replace_group(struct nft_shared *shared, size_t index, size_t first, size_t end,
			  enum when when)
{
	for (size_t i = first; i < end; i++) {
		struct wanted *wanted = &shared->wanted[i];

		if (wanted->chain != index)
			continue;
		if (wanted->handle)
			leave(shared, index, wanted->digest, wanted->handle);
		wanted->handle = 0;
		wanted->when = (uint8_t)when;
		shared->chains[index].n_add++;
		shared->chains[index].appends = shared->chains[index].appends || !wanted->leading;
	}
}

struct order {
	bool complete;        /* all are there, */
	bool right;           /* and one behind the other */
	bool any;             /* is there: */
	uint32_t first, last; /* positions of the foremost and the hindmost */
};

static struct order look_at_group(const struct nft_shared *shared, size_t index, size_t first,
				  size_t end)
{
	struct order order = {.complete = true, .right = true};

	for (size_t i = first; i < end; i++) {
		const struct wanted *wanted = &shared->wanted[i];

		if (wanted->chain != index)
			continue;
		order.complete = order.complete && wanted->handle;
		order.right = order.complete && order.right &&
			      (!order.any || wanted->position > order.last);
		if (!wanted->handle)
			continue;
		order.first = order.any ? MIN(order.first, wanted->position) : wanted->position;
		order.last = order.any ? MAX(order.last, wanted->position) : wanted->position;
		order.any = true;
	}
	return order;
}

/* The end of the group that begins at first: the next rule of another owner. */
static size_t group_end(const struct nft_shared *shared, size_t first)
{
	size_t end = first + 1;

	while (end < shared->n_wanted &&
	       shared->wanted[end].subject == shared->wanted[first].subject)
		end++;
	return end;
}

static bool has_rule_of(const struct nft_shared *shared, size_t index, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (shared->wanted[i].chain == index)
			return true;
	return false;
}

/* Behind which place no rule leads. 0: none is there. */
static uint32_t end_of_leading(const struct nft_shared *shared, size_t index)
{
	uint32_t end = 0;

	for (size_t i = 0; i < shared->n_wanted; i++) {
		const struct wanted *wanted = &shared->wanted[i];

		if (wanted->chain == index && wanted->leading && wanted->handle)
			end = MAX(end, wanted->position + 1);
	}
	return end;
}

/* Do rules stand there that lead before none? */
static bool is_followed(const struct nft_shared *shared, size_t index, size_t extra)
{
	for (size_t i = 0; i < shared->n_wanted; i++) {
		const struct wanted *wanted = &shared->wanted[i];

		if (wanted->chain == index && !wanted->leading && wanted->handle)
			return true;
	}
	return extra > 0;
}

/*
 * Entries of Services may stand anywhere, each Service's in order, as long as those that lead stand before
 * all others: what follows too early moves to the end. Fixed rules before them mean that the chain is
 * filled anew when anything else would be wrong; those behind them must be the last, in any order.
 */
static void decide_entries(struct nft_shared *shared, size_t index)
{
	struct nft_shared_chain *chain = &shared->chains[index];
	uint32_t early = end_of_leading(shared, index);
	uint32_t last = 0;
	bool any = false, seen_entry = false;

	for (size_t first = 0, end; first < shared->n_wanted; first = end) {
		bool fixed = shared->wanted[first].subject == 0;
		struct order order;

		end = group_end(shared, first);
		if (!has_rule_of(shared, index, first, end))
			continue;
		seen_entry = seen_entry || !fixed;
		if (shared->wanted[first].left)
			continue;
		order = look_at_group(shared, index, first, end);
		if (fixed && !seen_entry && (!order.right || order.first > 0))
			chain->refill = true;
		else if (fixed && seen_entry &&
			 (!order.complete || chain->appends || (any && order.first < last)))
			replace_group(shared, index, first, end, WHEN_LAST);
		else if (!fixed &&
			 (!order.right || (!shared->wanted[first].leading && order.first < early)))
			replace_group(shared, index, first, end, WHEN_ADD);
		else if (!fixed)
			last = any ? MAX(last, order.last) : order.last;
		any = any || (!fixed && order.right);
	}
}

static void decide(struct nft_shared *shared, size_t index, size_t extra)
{
	struct nft_shared_chain *chain = &shared->chains[index];

	chain->followed = is_followed(shared, index, extra);
	if (chain->n_entries == 0)
		chain->refill = (extra > 0 && shared->left->count == 0) ||
				!look_at_group(shared, index, 0, shared->n_wanted).right;
	else
		decide_entries(shared, index);
	if (!chain->refill)
		return;
	for (size_t i = 0; i < shared->n_wanted; i++)
		if (shared->wanted[i].chain == index)
			shared->wanted[i].when = WHEN_LAST;
}

/* The handles of what is there are known from now on. */
static void learn(struct nft_shared *shared, const struct nft_shared_chain *chain)
{
	struct nft_state *state = shared->link->state;

	nft_state_forget(state, chain->number, NULL, NULL);
	for (size_t i = 0; i < shared->rules.n; i++)
		nft_state_add(state, chain->number, shared->rules.v[i].digest,
			      shared->rules.v[i].handle);
}

static size_t count_missing(const struct nft_shared *shared, size_t index)
{
	size_t n = 0;

	for (size_t i = 0; i < shared->n_wanted; i++)
		n += shared->wanted[i].chain == index && !shared->wanted[i].handle;
	return n;
}

/*
 * Gives each known handle to one that wants it; the order is what it was. False, and nothing is
 * given: another number of rules is missing than are said to be lost.
 */
static bool match_known(struct nft_shared *shared, size_t index, size_t n_lost)
{
	struct nft_state *state = shared->link->state;
	unsigned int number = shared->chains[index].number;
	uint32_t position = 0;
	bool right;

	for (size_t i = 0; i < shared->n_wanted; i++) {
		struct wanted *wanted = &shared->wanted[i];

		if (wanted->chain == index &&
		    nft_state_take(state, number, wanted->digest, &wanted->handle))
			wanted->position = position++;
	}
	right = count_missing(shared, index) == n_lost;
	for (size_t i = 0; i < shared->n_wanted; i++) {
		struct wanted *wanted = &shared->wanted[i];

		if (wanted->chain != index || !wanted->handle)
			continue;
		nft_state_add(state, number, wanted->digest, wanted->handle);
		if (!right)
			wanted->handle = 0;
	}
	return right;
}

static int match_read(struct nft_shared *shared, size_t index, bool there, size_t *ret_extra,
		      struct err *err)
{
	const struct nft_shared_chain *chain = &shared->chains[index];
	int r = 0;

	shared->rules.n = 0;
	if (there)
		r = nft_link_read(shared->link, chain->table, chain->name, &shared->rules, err);
	if (r < 0)
		return err_wrap(err, r, "reading chain %s of table %s", chain->name,
				table_name(chain->table));
	learn(shared, chain);
	*ret_extra = match_rules(shared, index);
	return 0;
}

int nft_shared_compare(struct nft_shared *shared, size_t index, bool there, size_t n_lost,
		       struct err *err)
{
	struct nft_shared_chain *chain = &shared->chains[index];
	size_t missing, extra = 0;
	int r = 0;

	if (n_lost == 0 || !there || !match_known(shared, index, n_lost))
		r = match_read(shared, index, there, &extra, err);
	if (r < 0)
		return r;
	chain->compared = true;
	missing = count_missing(shared, index);
	decide(shared, index, extra);
	if (!chain->refill && chain->n_add == 0 && chain->n_remove == 0)
		return 0;
	shared->differs(shared->arg, &(struct nft_difference){
					     .table = chain->table,
					     .chain = chain->name,
					     .missing = missing,
					     .extra = extra,
				     });
	return 1;
}

/* -- writing */

bool nft_shared_add(struct nft_shared *shared, struct ruleset *ruleset,
		    const struct ruleset_input *input, size_t size, size_t *at)
{
	shared->from = *at;
	shared->size = size;
	shared->full = false;
	tell(shared, MODE_ADD, ruleset, input);
	*at = shared->full ? shared->from : shared->n_wanted;
	return shared->full;
}

void nft_shared_finish(struct nft_shared *shared, struct ruleset *ruleset,
		       const struct ruleset_input *input)
{
	nft_link_subject(shared->link, NULL);
	for (size_t i = 0; i < shared->n_leaving; i++) {
		const struct leaving *leaving = &shared->leaving[i];
		const struct nft_shared_chain *chain = &shared->chains[leaving->chain];

		if (chain->refill)
			continue;
		nft_link_delete_rule(shared->link, chain->table, chain->name, leaving->handle);
		nft_state_remove(shared->link->state, chain->number, leaving->digest,
				 leaving->handle);
	}
	for (size_t i = 0; i < shared->n_chains; i++) {
		const struct nft_shared_chain *chain = &shared->chains[i];

		if (!chain->refill)
			continue;
		nft_link_flush(shared->link, chain->table, chain->name);
		nft_state_forget(shared->link->state, chain->number, NULL, NULL);
	}
	tell(shared, MODE_FINISH, ruleset, input);
}
