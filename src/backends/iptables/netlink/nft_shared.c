/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_shared.h"

#include <assert.h>
#include <stdlib.h>

#include "xtables/rule_compare.h"

/*
 * Of each wanted rule a digest is kept, and where it came from: so many bytes for 10,000 Services are
 * little, their rules are not. A rule that has to be written is made again, with the list that it is in.
 */

enum when {
	WHEN_NEVER = 0, /* it is there, or its chain is not looked at */
	WHEN_ADD,
	WHEN_LAST,
};

struct wanted {
	uint64_t digest;
	uint64_t handle;       /* of the rule that is there; 0: none */
	uint32_t position;     /* of that rule in the kernel's chain */
	uint32_t source, item; /* of ruleset_make_shared(), and its place in that list */
	uint32_t group;        /* counted from 1, of all chains; 0: fixed */
	uint8_t when;          /* enum when */
	bool left;             /* of a Service that is left as it is */
	bool leading;          /* as the rule is */
};

struct chain {
	const struct rule_chain *fixed; /* its name, and more than that */
	unsigned int number;            /* in link->state */
	struct wanted *v;
	size_t n, capacity;
	size_t n_entries; /* of Services, among them */
	/* what was decided */
	bool refill; /* empty it and write all of it */
	bool changes;
	bool appends;  /* some of what is added goes to the end */
	bool followed; /* other rules than leading ones stand there: those go to the head */
	struct nft_link_rules leaving;
};

struct nft_shared {
	struct nft_link *link;
	struct ruleset *ruleset;
	const struct refused_services *refused;
	nft_difference_fn *differs;
	void *arg;

	struct chain *chains;
	size_t n_chains, chains_capacity;
	/* the list that was made last, and how far it was gone through */
	struct rule_list list; /* without an arena: none */
	size_t source, at;
	const struct rule_item *item;
};

struct nft_shared *nft_shared_new(struct nft_link *link, struct ruleset *ruleset,
				  const struct refused_services *refused,
				  nft_difference_fn *differs, void *arg)
{
	struct nft_shared *shared = xcalloc(1, sizeof(*shared));

	shared->link = link;
	shared->ruleset = ruleset;
	shared->refused = refused;
	shared->differs = differs;
	shared->arg = arg;
	return shared;
}

static void forget(struct nft_shared *shared)
{
	for (size_t i = 0; i < shared->n_chains; i++) {
		free(shared->chains[i].v);
		nft_link_rules_done(&shared->chains[i].leaving);
	}
	shared->n_chains = 0;
	rule_list_done(&shared->list);
}

struct nft_shared *nft_shared_free(struct nft_shared *shared)
{
	if (!shared)
		return NULL;
	forget(shared);
	free(shared->chains);
	free(shared);
	return NULL;
}

/* -- what is wanted */

static struct chain *find_chain(const struct nft_shared *shared, const struct rule *rule)
{
	for (size_t i = 0; i < shared->n_chains; i++)
		if (shared->chains[i].fixed->table == rule->table &&
		    streq(shared->chains[i].fixed->name, rule->chain))
			return &shared->chains[i];
	assert(!"a rule of a shared chain that was not declared");
	return shared->chains;
}

static bool is_left(const struct nft_shared *shared, const struct rule_item *item)
{
	return item->subject && refused_services_wait(shared->refused, item->subject);
}

static void collect_rule(struct nft_shared *shared, const struct wanted *wanted,
			 const struct rule_item *item)
{
	struct chain *chain = find_chain(shared, &item->rule);

	array_grow(&chain->v, &chain->capacity, chain->n, sizeof(*chain->v));
	chain->v[chain->n] = *wanted;
	chain->v[chain->n].digest = rule_hash(&item->rule);
	chain->v[chain->n].left = is_left(shared, item);
	chain->v[chain->n].leading = item->rule.leading;
	chain->n++;
	chain->n_entries += wanted->group != 0;
}

static void collect_source(struct nft_shared *shared, size_t source, uint32_t *n_groups)
{
	struct wanted wanted = {.source = (uint32_t)source};
	cleanup_rule_list struct rule_list list;
	const struct rule_item *last = NULL;

	ruleset_make_shared(shared->ruleset, source, &list);
	for (const struct rule_item *item = list.items; item; item = item->next, wanted.item++) {
		if (!item->subject)
			wanted.group = 0;
		else if (!last || item->subject != last->subject || item->group != last->group)
			wanted.group = ++*n_groups;
		collect_rule(shared, &wanted, item);
		last = item;
	}
}

void nft_shared_collect(struct nft_shared *shared, const struct rule_list *fixed)
{
	uint32_t n_groups = 0;

	forget(shared);
	for (const struct rule_chain *chain = fixed->chains; chain; chain = chain->next) {
		array_grow(&shared->chains, &shared->chains_capacity, shared->n_chains,
			   sizeof(*shared->chains));
		shared->chains[shared->n_chains++] = (struct chain){
			.fixed = chain,
			.number = nft_state_chain(shared->link->state, chain->table, chain->name),
		};
	}
	for (size_t i = 0; i < ruleset_n_shared(shared->ruleset); i++)
		collect_source(shared, i, &n_groups);
}

size_t nft_shared_n_chains(const struct nft_shared *shared)
{
	return shared->n_chains;
}

const struct rule_chain *nft_shared_chain(const struct nft_shared *shared, size_t index,
					  unsigned int *ret_number)
{
	*ret_number = shared->chains[index].number;
	return shared->chains[index].fixed;
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

static void leave(struct chain *chain, uint64_t digest, uint64_t handle)
{
	struct nft_link_rules *leaving = &chain->leaving;

	array_grow(&leaving->v, &leaving->capacity, leaving->n, sizeof(*leaving->v));
	leaving->v[leaving->n++] = (struct nft_link_rule){digest, handle};
	chain->changes = true;
}

/* Gives each rule that is there to one that wants it. Returns how many are wanted by none. */
static size_t match_rules(struct nft_shared *shared, struct chain *chain,
			  const struct nft_link_rules *there)
{
	cleanup_free struct by_digest *sorted = xcalloc(chain->n + 1, sizeof(*sorted));
	size_t extra = 0;

	for (size_t i = 0; i < chain->n; i++)
		sorted[i] = (struct by_digest){chain->v[i].digest, &chain->v[i]};
	if (chain->n > 1)
		qsort(sorted, chain->n, sizeof(*sorted), compare_by_digest);
	for (size_t i = 0; i < there->n; i++) {
		struct wanted *wanted = find_wanted(sorted, chain->n, there->v[i].digest);

		if (wanted) {
			wanted->handle = there->v[i].handle;
			wanted->position = (uint32_t)i;
			continue;
		}
		extra++;
		if (refused_services_count_waiting(shared->refused) == 0)
			leave(chain, there->v[i].digest, there->v[i].handle);
	}
	return extra;
}

/* Rules of one owner: v[first], and on to `end`. */
static void replace_group(struct chain *chain, size_t first, size_t end, enum when when)
{
	for (size_t i = first; i < end; i++) {
		struct wanted *wanted = &chain->v[i];

		if (wanted->handle)
			leave(chain, wanted->digest, wanted->handle);
		wanted->handle = 0;
		wanted->when = (uint8_t)when;
		chain->changes = true;
		chain->appends = chain->appends || !wanted->leading;
	}
}

struct order {
	bool complete;        /* all are there, */
	bool right;           /* and one behind the other */
	bool any;             /* is there: */
	uint32_t first, last; /* positions of the foremost and the hindmost */
};

static struct order look_at_group(const struct chain *chain, size_t first, size_t end)
{
	struct order order = {.complete = true, .right = true};

	for (size_t i = first; i < end; i++) {
		const struct wanted *wanted = &chain->v[i];

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
static size_t group_end(const struct chain *chain, size_t first)
{
	size_t end = first + 1;

	while (end < chain->n && chain->v[end].group == chain->v[first].group)
		end++;
	return end;
}

/* Behind which place no rule leads. 0: none is there. */
static uint32_t end_of_leading(const struct chain *chain)
{
	uint32_t end = 0;

	for (size_t i = 0; i < chain->n; i++)
		if (chain->v[i].leading && chain->v[i].handle)
			end = MAX(end, chain->v[i].position + 1);
	return end;
}

/* Do rules stand there that lead before none? */
static bool is_followed(const struct chain *chain, size_t extra)
{
	for (size_t i = 0; i < chain->n; i++)
		if (!chain->v[i].leading && chain->v[i].handle)
			return true;
	return extra > 0;
}

/*
 * Entries of Services may stand anywhere, each Service's in order, as long as those that lead stand before
 * all others: what follows too early moves to the end. Fixed rules before them mean that the chain is
 * filled anew when anything else would be wrong; those behind them must be the last, in any order.
 */
static void decide_entries(struct chain *chain)
{
	uint32_t early = end_of_leading(chain);
	uint32_t last = 0;
	bool any = false, seen_entry = false;

	for (size_t first = 0, end; first < chain->n; first = end) {
		bool fixed = chain->v[first].group == 0;
		struct order order;

		end = group_end(chain, first);
		seen_entry = seen_entry || !fixed;
		if (chain->v[first].left)
			continue;
		order = look_at_group(chain, first, end);
		if (fixed && !seen_entry && (!order.right || order.first > 0))
			chain->refill = true;
		else if (fixed && seen_entry &&
			 (!order.complete || chain->appends || (any && order.first < last)))
			replace_group(chain, first, end, WHEN_LAST);
		else if (!fixed &&
			 (!order.right || (!chain->v[first].leading && order.first < early)))
			replace_group(chain, first, end, WHEN_ADD);
		else if (!fixed)
			last = any ? MAX(last, order.last) : order.last;
		any = any || (!fixed && order.right);
	}
}

static void decide(const struct nft_shared *shared, struct chain *chain, size_t extra)
{
	chain->followed = is_followed(chain, extra);
	if (chain->n_entries == 0)
		chain->refill =
			(extra > 0 && refused_services_count_waiting(shared->refused) == 0) ||
			!look_at_group(chain, 0, chain->n).right;
	else
		decide_entries(chain);
	for (size_t i = 0; chain->refill && i < chain->n; i++)
		chain->v[i].when = WHEN_LAST;
}

static size_t count_missing(const struct chain *chain)
{
	size_t n = 0;

	for (size_t i = 0; i < chain->n; i++)
		n += !chain->v[i].handle;
	return n;
}

/*
 * Gives each known handle to one that wants it; the order is what it was. False, and nothing is
 * given: another number of rules is missing than are said to be lost.
 */
static bool match_known(const struct nft_shared *shared, struct chain *chain, size_t n_lost)
{
	struct nft_state *state = shared->link->state;
	uint32_t position = 0;
	bool right;

	for (size_t i = 0; i < chain->n; i++)
		if (nft_state_take(state, chain->number, chain->v[i].digest, &chain->v[i].handle))
			chain->v[i].position = position++;
	right = count_missing(chain) == n_lost;
	for (size_t i = 0; i < chain->n; i++) {
		struct wanted *wanted = &chain->v[i];

		if (!wanted->handle)
			continue;
		nft_state_add(state, chain->number, wanted->digest, wanted->handle);
		if (!right)
			wanted->handle = 0;
	}
	return right;
}

/* The handles of what is there are known from now on. */
static int match_read(struct nft_shared *shared, struct chain *chain, bool there, size_t *ret_extra,
		      struct err *err)
{
	cleanup_nft_link_rules struct nft_link_rules rules = {0};
	const struct rule_chain *fixed = chain->fixed;
	int r = 0;

	if (there)
		r = nft_link_read(shared->link, fixed->table, fixed->name, &rules, err);
	if (r < 0)
		return err_wrap(err, r, "reading chain %s of table %s", fixed->name,
				table_name(fixed->table));
	nft_link_know(shared->link, chain->number, &rules);
	*ret_extra = match_rules(shared, chain, &rules);
	return 0;
}

int nft_shared_compare(struct nft_shared *shared, size_t index, bool there, size_t n_lost,
		       struct err *err)
{
	struct chain *chain = &shared->chains[index];
	size_t missing, extra = 0;
	int r = 0;

	if (n_lost == 0 || !there || !match_known(shared, chain, n_lost))
		r = match_read(shared, chain, there, &extra, err);
	if (r < 0)
		return r;
	missing = count_missing(chain);
	decide(shared, chain, extra);
	if (!chain->refill && !chain->changes)
		return 0;
	shared->differs(shared->arg, &(struct nft_difference){
					     .table = chain->fixed->table,
					     .chain = chain->fixed->name,
					     .missing = missing,
					     .extra = extra,
				     });
	return 1;
}

/* -- writing */

/* The rule that is wanted. Asked for in order, the lists are made once for each chain. */
static const struct rule_item *fetch(struct nft_shared *shared, const struct wanted *wanted)
{
	if (!shared->list.arena || shared->source != wanted->source) {
		rule_list_done(&shared->list);
		ruleset_make_shared(shared->ruleset, wanted->source, &shared->list);
		shared->source = wanted->source;
		shared->item = NULL;
	}
	if (!shared->item || shared->at > wanted->item) {
		shared->item = shared->list.items;
		shared->at = 0;
	}
	for (; shared->at < wanted->item; shared->at++)
		shared->item = shared->item->next;
	return shared->item;
}

static void write_rule(struct nft_shared *shared, const struct chain *chain,
		       const struct wanted *wanted)
{
	const struct rule_item *item = fetch(shared, wanted);

	if (is_left(shared, item))
		return;
	nft_link_subject(shared->link, item->subject);
	if (wanted->when == WHEN_ADD && wanted->leading && chain->followed)
		nft_link_prepend(shared->link, &item->rule);
	else
		nft_link_append(shared->link, &item->rule);
}

/* From the at-th rule of all chains on, until the batch is that large. */
static bool write_due(struct nft_shared *shared, enum when when, size_t size, size_t *at)
{
	size_t from = *at, before = 0;

	for (size_t i = 0; i < shared->n_chains; before += shared->chains[i].n, i++) {
		const struct chain *chain = &shared->chains[i];

		for (size_t j = MAX(from, before) - before; j < chain->n; j++) {
			if (nft_batch_size(shared->link->batch) >= size) {
				*at = before + j;
				return true;
			}
			if (chain->v[j].when == when)
				write_rule(shared, chain, &chain->v[j]);
		}
	}
	*at = MAX(from, before);
	rule_list_done(&shared->list);
	return false;
}

bool nft_shared_add(struct nft_shared *shared, size_t size, size_t *at)
{
	return write_due(shared, WHEN_ADD, size, at);
}

static void remove_leaving(struct nft_shared *shared, const struct chain *chain)
{
	for (size_t i = 0; i < chain->leaving.n; i++) {
		const struct nft_link_rule *rule = &chain->leaving.v[i];

		nft_link_delete_rule(shared->link, chain->fixed->table, chain->fixed->name,
				     rule->handle);
		nft_state_remove(shared->link->state, chain->number, rule->digest, rule->handle);
	}
}

void nft_shared_finish(struct nft_shared *shared)
{
	size_t at = 0;

	nft_link_subject(shared->link, NULL);
	for (size_t i = 0; i < shared->n_chains; i++) {
		const struct chain *chain = &shared->chains[i];

		if (!chain->refill) {
			remove_leaving(shared, chain);
			continue;
		}
		nft_link_flush(shared->link, chain->fixed->table, chain->fixed->name);
		nft_state_forget(shared->link->state, chain->number, NULL, NULL);
	}
	write_due(shared, WHEN_LAST, SIZE_MAX, &at);
}
