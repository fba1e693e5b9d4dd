/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/ruleset.h"

#include <stdlib.h>

#include "backends/iptables/chain_set.h"
#include "backends/iptables/fixed_rules.h"
#include "backends/iptables/index_rules.h"
#include "backends/iptables/rule_delta.h"
#include "backends/iptables/service_set.h"

/*
 * The wanted state is kept as plans, by key. A full sync writes all of it. Any other sync is the
 * difference between what stands and what is wanted. It costs what changed, not what there is: it
 * keeps the old rules of services that changed beside the new ones until it has ended, and walks no
 * others; sums are kept up by difference.
 *
 * A small delta is one transaction, and the lists of a Service are made once. A large one may take several:
 * first chains of Services, then, in one transaction, whatever leads to them, last the chains that nothing
 * leads to any more. The lists are then made once for each of these, because keeping all of them at a
 * time would take more memory than all plans do.
 *
 * What stands was written with flags that may have changed since: those of the host are remembered,
 * and a change makes the next sync full; comments on endpoints are remembered for each Service.
 */

#define LARGE_DELTA 200 /* chains of endpoints: about 2 KB each in messages */

struct change {
	struct service_rules *old; /* owned; NULL: none */
	struct service_rules *new; /* in the set; NULL: gone */
};

/* How far a delta has been written. */
struct delta_walk {
	enum rule_delta_phase phase;
	size_t at;                    /* of the next change in it */
	struct rule_list old, wanted; /* of the change in hand; without an arena: none is */
	size_t chain;                 /* the next one of it */
	struct rule_delta_stats stats;
};

struct ruleset {
	const struct settings *settings;
	const struct ruleset_host *host;
	struct ruleset_host applied_host; /* as it was when the rules were written */

	struct service_set services;
	struct change *changes; /* since the sync before the one that has begun */
	size_t n_changes, changes_capacity;
	struct delta_walk walk;
	size_t n_rules[TABLE_COUNT]; /* of all services, as of the last sync that went well */
	struct service_index *index; /* NULL: none */
	/* the rules of no Service: they are kept, because the node's addresses are not */
	struct rule_list *fixed;         /* wanted */
	struct rule_list *applied_fixed; /* they stand; may be the same list */

	const char **stale; /* of a full sync that has begun: input's; NULL: not looked for yet */
	size_t n_stale;
	size_t n_deleted; /* of them */

	bool need_full;
	bool full;          /* the sync that has begun */
	bool large_cluster; /* as of the sync that has begun, or the last */
	int64_t last_full_ns;
	struct chain_name key; /* of a chain of the index that was asked for */
};

struct ruleset *ruleset_new(const struct settings *settings, const struct ruleset_host *host)
{
	struct ruleset *ruleset = xcalloc(1, sizeof(*ruleset));

	ruleset->settings = settings;
	ruleset->host = host;
	ruleset->need_full = true;
	return ruleset;
}

void ruleset_rewind(struct ruleset *ruleset)
{
	rule_list_done(&ruleset->walk.old);
	rule_list_done(&ruleset->walk.wanted);
	ruleset->walk = (struct delta_walk){0};
}

static void forget_changes(struct ruleset *ruleset)
{
	ruleset_rewind(ruleset);
	for (size_t i = 0; i < ruleset->n_changes; i++)
		service_rules_free(ruleset->changes[i].old);
	ruleset->n_changes = 0;
}

static void free_list(struct rule_list *list)
{
	if (list)
		rule_list_done(list);
	free(list);
}

struct ruleset *ruleset_free(struct ruleset *ruleset)
{
	if (!ruleset)
		return NULL;
	forget_changes(ruleset);
	free(ruleset->changes);
	free(ruleset->stale);
	service_set_done(&ruleset->services);
	service_index_free(ruleset->index);
	if (ruleset->fixed != ruleset->applied_fixed)
		free_list(ruleset->fixed);
	free_list(ruleset->applied_fixed);
	free(ruleset);
	return NULL;
}

void ruleset_need_full_sync(struct ruleset *ruleset)
{
	ruleset->need_full = true;
}

/* -- begin */

static struct rule_facts facts_of(const struct ruleset *ruleset)
{
	return (struct rule_facts){
		.settings = ruleset->settings,
		.host = ruleset->full ? ruleset->host : &ruleset->applied_host,
		.localhost_node_ports = settings_localhost_node_ports(ruleset->settings),
		.indexed = ruleset->index != NULL,
	};
}

/* In a full sync nobody asks for the old ones. */
static void note_change(struct ruleset *ruleset, struct service_rules *old,
			struct service_rules *new)
{
	if (ruleset->full) {
		service_rules_free(old);
		return;
	}
	array_grow(&ruleset->changes, &ruleset->changes_capacity, ruleset->n_changes,
		   sizeof(*ruleset->changes));
	ruleset->changes[ruleset->n_changes++] = (struct change){old, new};
}

static void take_change(struct ruleset *ruleset, const struct plan_change *change)
{
	struct service_rules *old, *new = NULL;

	if (change->wanted)
		new = service_rules_new(change->wanted, !ruleset->large_cluster);
	old = new ? service_set_put(&ruleset->services, new)
		  : service_set_remove(&ruleset->services, change->key);
	if (old || new)
		note_change(ruleset, old, new);
}

static void take_renewed(struct ruleset *ruleset, const struct plan_change *change)
{
	struct service_rules *rules = service_set_get(&ruleset->services, change->key);

	struct service_plan *old = rules->plan;

	if (rules->endpoint_comments == ruleset->large_cluster) {
		take_change(ruleset, change);
		return;
	}
	rules->plan = service_plan_ref(change->wanted);
	service_set_put(&ruleset->services, rules); /* the key is that of the plan */
	service_plan_unref(old);
}

static void take_delta(struct ruleset *ruleset, const struct plan_delta *delta)
{
	const struct service_set *services = &ruleset->services;

	if (delta->full)
		service_set_done(&ruleset->services);
	for (size_t i = 0; i < delta->n_changes; i++)
		take_change(ruleset, &delta->changes[i]);
	for (size_t i = 0; i < delta->n_renewed; i++)
		take_renewed(ruleset, &delta->renewed[i]);
	if (!ruleset->full)
		return;
	for (size_t i = 0; i < services->n; i++)
		services->v[i]->endpoint_comments = !ruleset->large_cluster;
	service_set_sort(&ruleset->services);
}

static void index_all(struct ruleset *ruleset)
{
	struct rule_facts facts;

	ruleset->index = service_index_free(ruleset->index);
	if (!ruleset->settings->mode.service_index)
		return;
	ruleset->index = service_index_new();
	facts = facts_of(ruleset);
	for (size_t i = 0; i < ruleset->services.n; i++)
		index_rules_change(ruleset->index, NULL, ruleset->services.v[i], &facts);
	service_index_settle(ruleset->index);
}

static void index_changed(struct ruleset *ruleset)
{
	struct rule_facts facts = facts_of(ruleset);

	if (!ruleset->index)
		return;
	for (size_t i = 0; i < ruleset->n_changes; i++)
		index_rules_change(ruleset->index, ruleset->changes[i].old, ruleset->changes[i].new,
				   &facts);
	service_index_settle(ruleset->index);
}

/* Is an unasked-for full sync due? Judged before the new size of the cluster is known. */
static bool full_sync_is_due(const struct ruleset *ruleset, int64_t now_ns)
{
	return !ruleset->large_cluster &&
	       now_ns - ruleset->last_full_ns > RULESET_FULL_SYNC_PERIOD_NS;
}

static bool host_changed(const struct ruleset *ruleset)
{
	const struct ruleset_host *a = ruleset->host;
	const struct ruleset_host *b = &ruleset->applied_host;

	return a->random_fully != b->random_fully || a->be_liberal != b->be_liberal ||
	       a->nfacct_invalid != b->nfacct_invalid || a->nfacct_localhost != b->nfacct_localhost;
}

void ruleset_begin(struct ruleset *ruleset, const struct plan_delta *delta, int64_t now_ns,
		   struct ruleset_begun *ret)
{
	ruleset->full = delta->full || ruleset->need_full || full_sync_is_due(ruleset, now_ns) ||
			host_changed(ruleset);
	ruleset->need_full = false; /* who asks for one from here on gets another */
	ruleset->large_cluster = delta->n_endpoints > RULESET_LARGE_CLUSTER;
	forget_changes(ruleset);
	take_delta(ruleset, delta);
	if (ruleset->full)
		index_all(ruleset);
	else
		index_changed(ruleset);
	ret->full = ruleset->full;
	ret->wants_nat_chains = ruleset->full;
	ret->wants_addresses = !ruleset->settings->node_ports.match_all;
}

/* -- lists */

/* The counts of a Service are those of the list that was made last for each part. */
static void count_parts(struct service_rules *service, unsigned int parts,
			const struct rule_list *list)
{
	uint32_t leading[TABLE_COUNT] = {0}, following[TABLE_COUNT] = {0}, own = 0;

	for (const struct rule_item *item = list->items; item; item = item->next) {
		if (item->chain->own)
			own++;
		else
			(item->rule.leading ? leading : following)[item->rule.table]++;
	}
	if (parts & RULESET_LEADING)
		memcpy(service->n_leading, leading, sizeof(leading));
	if (parts & RULESET_FOLLOWING)
		memcpy(service->n_following, following, sizeof(following));
	if (parts & RULESET_OWN_RULES)
		service->n_own_rules = own;
}

/* service: NULL: an empty list */
static void make_service(const struct ruleset *ruleset, struct service_rules *service,
			 unsigned int parts, struct rule_list *ret)
{
	struct rule_facts facts = facts_of(ruleset);

	rule_list_init(ret, parts & RULESET_OWN_RULES ? 4000
						      : 1000); /* for a Service of few endpoints */
	if (!service)
		return;
	service_rules_make(service, &facts, parts, ret);
	count_parts(service, parts, ret);
}

static void make_index_chain(struct ruleset *ruleset, size_t number, struct rule_list *ret)
{
	struct rule_facts facts = facts_of(ruleset);
	struct index_rules rules = {&ruleset->services, &facts};
	const struct service_index_rules source = index_rules_of(&rules);

	rule_list_init(ret, 4096);
	service_index_make(ruleset->index, number, &source, ret);
	ret->subject = NULL;
}

static void make_fixed(struct ruleset *ruleset, const struct ruleset_input *input)
{
	struct rule_facts facts = facts_of(ruleset);

	if (ruleset->fixed != ruleset->applied_fixed)
		free_list(ruleset->fixed);
	ruleset->fixed = xcalloc(1, sizeof(*ruleset->fixed));
	rule_list_init(ruleset->fixed, 4096);
	fixed_rules_make(&facts, input, ruleset->fixed);
}

/* -- counting */

static void add_rules(size_t rules[static TABLE_COUNT], const struct service_rules *service,
		      size_t times)
{
	for (size_t i = 0; service && i < TABLE_COUNT; i++)
		rules[i] += times * (service->n_leading[i] + service->n_following[i]);
	if (service)
		rules[TABLE_NAT] += times * service->n_own_rules;
}

/* Of all services. */
static void count_rules(const struct ruleset *ruleset, size_t ret[static TABLE_COUNT])
{
	memset(ret, 0, TABLE_COUNT * sizeof(*ret));
	if (!ruleset->full)
		memcpy(ret, ruleset->n_rules, sizeof(ruleset->n_rules));
	for (size_t i = 0; ruleset->full && i < ruleset->services.n; i++)
		add_rules(ret, ruleset->services.v[i], 1);
	for (size_t i = 0; i < ruleset->n_changes; i++) {
		add_rules(ret, ruleset->changes[i].old, (size_t)-1);
		add_rules(ret, ruleset->changes[i].new, 1);
	}
}

void ruleset_count(const struct ruleset *ruleset, struct ruleset_stats *ret)
{
	const struct rule_item *item;

	*ret = (struct ruleset_stats){
		.full = ruleset->full,
		.large_cluster = ruleset->large_cluster,
		.chains_deleted = ruleset->n_deleted,
	};
	count_rules(ruleset, ret->rules_total);
	for (item = ruleset->fixed ? ruleset->fixed->items : NULL; item; item = item->next)
		ret->rules_total[item->rule.table]++;
	if (ruleset->index)
		ret->rules_total[TABLE_NAT] += service_index_rules(ruleset->index);
}

/* -- write */

static void mark_active(void *arg, enum chain_kind kind, const struct chain_hash *hash)
{
	chain_set_add(arg, kind, hash);
}

static void collect_active(const struct ruleset *ruleset, struct chain_set *ret)
{
	const struct service_set *services = &ruleset->services;
	size_t n = 0;

	for (size_t i = 0; i < services->n; i++)
		n += service_rules_count_hashes(services->v[i]);
	if (ruleset->index)
		n += service_index_n_chains(ruleset->index);
	chain_set_init(ret, n);
	for (size_t i = 0; i < services->n; i++)
		service_rules_each_chain(services->v[i], mark_active, ret);
	for (size_t i = 0; ruleset->index && i < service_index_n_chains(ruleset->index); i++) {
		struct chain_hash hash;

		service_index_chain_hash(ruleset->index, i, &hash);
		chain_set_add(ret, CHAIN_KIND_INDEX, &hash);
	}
}

static bool is_held(const struct ruleset_input *input, const char *chain)
{
	return input->held_chains && map_get(input->held_chains, chain);
}

/* Chains that have the look of ours and no purpose any more. */
static void find_stale_chains(struct ruleset *ruleset, const struct ruleset_input *input)
{
	cleanup_chain_set struct chain_set active = {0};

	free(ruleset->stale);
	ruleset->stale = xcalloc(input->n_nat_chains + 1, sizeof(*ruleset->stale));
	ruleset->n_stale = ruleset->n_deleted = 0;
	if (!input->nat_chains)
		return;
	collect_active(ruleset, &active);
	for (size_t i = 0; i < input->n_nat_chains; i++) {
		const char *name = input->nat_chains[i];

		if (!chain_is_per_service(name) || chain_set_has(&active, name))
			continue;
		ruleset->stale[ruleset->n_stale++] = name;
		ruleset->n_deleted += !is_held(input, name);
	}
}

static void forget_stale_chains(struct ruleset *ruleset)
{
	free(take(ruleset->stale));
	ruleset->n_stale = ruleset->n_deleted = 0;
}

static void delete_stale_chains(const struct ruleset *ruleset, const struct ruleset_input *input,
				struct txn *txn)
{
	for (size_t i = 0; i < ruleset->n_stale; i++)
		txn_chain(txn, TABLE_NAT, ruleset->stale[i]);
	for (size_t i = 0; i < ruleset->n_stale; i++)
		if (!is_held(input, ruleset->stale[i]))
			txn_delete_chain(txn, TABLE_NAT, ruleset->stale[i]);
}

static void write_fixed(const struct ruleset *ruleset, enum fixed_rules_group group,
			struct txn *txn)
{
	for (const struct rule_item *item = ruleset->fixed->items; item; item = item->next)
		if (item->group == group)
			txn_rule(txn, &item->rule);
}

void ruleset_write_head(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn)
{
	if (!ruleset->stale)
		find_stale_chains(ruleset, input);
	make_fixed(ruleset, input);
	txn_chains(txn, ruleset->fixed);
	write_fixed(ruleset, FIXED_RULES_HEAD, txn);
}

static void write_index_root(struct ruleset *ruleset, struct txn *txn)
{
	cleanup_rule_list struct rule_list list = {0};

	if (!ruleset->index)
		return;
	make_index_chain(ruleset, SERVICE_INDEX_ROOT, &list);
	txn_rules(txn, &list);
}

void ruleset_write_tail(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn)
{
	delete_stale_chains(ruleset, input, txn);
	write_index_root(ruleset, txn);
	write_fixed(ruleset, FIXED_RULES_TAIL, txn);
}

static void write_full(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn,
		       struct ruleset_stats *ret)
{
	ruleset_write_head(ruleset, input, txn);
	for (size_t i = 0; i < ruleset_n_services(ruleset); i++)
		ruleset_write_service(ruleset, i, RULESET_LEADING | RULESET_OWN_CHAINS, txn);
	for (size_t i = 0; i < ruleset_n_services(ruleset); i++)
		ruleset_write_service(ruleset, i, RULESET_FOLLOWING | RULESET_OWN_RULES, txn);
	ruleset_write_tail(ruleset, input, txn);
	ruleset_count(ruleset, ret);
	memcpy(ret->rules_written, ret->rules_total, sizeof(ret->rules_written));
}

static void open_change(struct ruleset *ruleset)
{
	const struct change *change = &ruleset->changes[ruleset->walk.at];
	struct delta_walk *walk = &ruleset->walk;

	make_service(ruleset, change->old, RULESET_ALL, &walk->old);
	make_service(ruleset, change->new, RULESET_ALL, &walk->wanted);
	rule_list_compare(&walk->old, &walk->wanted);
	walk->chain = 0;
}

static void close_change(struct delta_walk *walk)
{
	rule_list_done(&walk->old);
	rule_list_done(&walk->wanted);
	walk->at++;
}

static bool write_phase(struct ruleset *ruleset, enum rule_delta_phase phase, struct txn *txn)
{
	struct delta_walk *walk = &ruleset->walk;
	const struct rule_list *named = walk->wanted.subject ? &walk->wanted : &walk->old;
	bool full;

	txn_subject(txn, named->subject);
	full = rule_delta_write(&walk->old, &walk->wanted, phase, &walk->chain, txn, &walk->stats);
	txn_subject(txn, NULL);
	return full;
}

/* One phase of all changes. True: it has to go on in another transaction. */
static bool write_changes(struct ruleset *ruleset, enum rule_delta_phase phase, struct txn *txn)
{
	struct delta_walk *walk = &ruleset->walk;

	while (walk->at < ruleset->n_changes) {
		if (!walk->wanted.arena)
			open_change(ruleset);
		if (write_phase(ruleset, phase, txn))
			return true;
		close_change(walk);
	}
	walk->at = 0;
	return false;
}

/* All phases of one change after the other. */
static void write_whole_changes(struct ruleset *ruleset, struct txn *txn)
{
	struct delta_walk *walk = &ruleset->walk;

	while (walk->at < ruleset->n_changes) {
		open_change(ruleset);
		for (unsigned int phase = 0; phase < RULE_DELTA_PHASES; phase++, walk->chain = 0)
			while (write_phase(ruleset, (enum rule_delta_phase)phase, txn))
				; /* no matter how large */
		close_change(walk);
	}
}

/*
 * The rules at the end of nat KUBE-SERVICES are taken away and put there again when they change, or when
 * others came behind them. With an index they may be gone: the chain is being written anew.
 */
static void write_fixed_delta(struct ruleset *ruleset, bool gone, struct txn *txn,
			      struct rule_delta_stats *stats)
{
	size_t at = 0;
	struct rule_chain *last = rule_list_find(ruleset->fixed, TABLE_NAT, CHAIN_SERVICES);

	rule_list_compare(ruleset->applied_fixed, ruleset->fixed);
	if (gone) {
		last->twin->differs = false;
		last->differs = true;
	} else if (stats->enters_services) {
		last->twin->differs = last->differs = true;
	}
	while (rule_delta_write(ruleset->applied_fixed, ruleset->fixed, RULE_DELTA_OWN, &at, txn,
				stats))
		; /* they are few */
	rule_delta_write(ruleset->applied_fixed, ruleset->fixed, RULE_DELTA_ENTRIES, &at, txn,
			 stats);
}

/* Does it have so many chains that they may not fit into one transaction? */
static bool is_large(const struct ruleset *ruleset)
{
	size_t n = 0;

	for (size_t i = 0; i < ruleset->n_changes && n < LARGE_DELTA; i++) {
		const struct change *change = &ruleset->changes[i];

		n += change->old ? service_rules_count_hashes(change->old) : 0;
		n += change->new ? service_rules_count_hashes(change->new) : 0;
	}
	return n >= LARGE_DELTA;
}

static void make_index_difference(struct ruleset *ruleset, struct rule_list *ret_differ,
				  struct rule_list *ret_gone)
{
	struct rule_facts facts = facts_of(ruleset);
	struct index_rules rules = {&ruleset->services, &facts};
	const struct service_index_rules source = index_rules_of(&rules);

	rule_list_init(ret_differ, 4096);
	rule_list_init(ret_gone, 64);
	if (ruleset->index)
		service_index_difference(ruleset->index, &source, ret_differ, ret_gone);
}

/*
 * What makes chains reachable, or unreachable: all in one transaction. Chains of the index that differ are emptied
 * first, so that nothing leads to chains that services delete.
 */
static void write_entries(struct ruleset *ruleset, const struct ruleset_input *input, bool large,
			  struct txn *txn)
{
	struct rule_delta_stats *stats = &ruleset->walk.stats;
	cleanup_rule_list struct rule_list differ, gone;

	make_fixed(ruleset, input);
	make_index_difference(ruleset, &differ, &gone);
	txn_chains(txn, &differ);
	txn_chains(txn, &gone);
	if (large)
		write_changes(ruleset, RULE_DELTA_ENTRIES, txn);
	else
		write_whole_changes(ruleset, txn);
	stats->rules[TABLE_NAT] += txn_rules(txn, &differ);
	for (const struct rule_chain *chain = gone.chains; chain; chain = chain->next) {
		txn_delete_chain(txn, chain->table, chain->name);
		stats->chains_deleted++;
	}
	write_fixed_delta(ruleset, rule_list_find(&differ, TABLE_NAT, CHAIN_SERVICES), txn, stats);
}

static bool write_delta(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn)
{
	struct delta_walk *walk = &ruleset->walk;
	bool large = txn->ops->full && is_large(ruleset);

	if (walk->phase == RULE_DELTA_OWN) {
		if (large && write_changes(ruleset, RULE_DELTA_OWN, txn))
			return true;
		write_entries(ruleset, input, large, txn);
		walk->phase = RULE_DELTA_CLEAR;
		if (large && txn_full(txn))
			return true;
	}
	return large && write_changes(ruleset, RULE_DELTA_CLEAR, txn);
}

bool ruleset_write(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn,
		   struct ruleset_stats *ret)
{
	if (ruleset->full) {
		write_full(ruleset, input, txn, ret);
		return false;
	}
	if (write_delta(ruleset, input, txn))
		return true;
	ruleset_count(ruleset, ret);
	memcpy(ret->rules_written, ruleset->walk.stats.rules, sizeof(ret->rules_written));
	ret->chains_deleted = ruleset->walk.stats.chains_deleted;
	ruleset_rewind(ruleset);
	return false;
}

/* -- end */

static void note_applied(struct ruleset *ruleset, int64_t now_ns)
{
	size_t n_rules[TABLE_COUNT];

	count_rules(ruleset, n_rules);
	memcpy(ruleset->n_rules, n_rules, sizeof(n_rules));
	if (ruleset->index)
		service_index_applied(ruleset->index);
	if (ruleset->applied_fixed != ruleset->fixed)
		free_list(ruleset->applied_fixed);
	ruleset->applied_fixed = ruleset->fixed;
	if (!ruleset->full)
		return;
	ruleset->applied_host = *ruleset->host;
	ruleset->last_full_ns = now_ns;
}

void ruleset_end(struct ruleset *ruleset, bool success, int64_t now_ns)
{
	if (success)
		note_applied(ruleset, now_ns);
	else
		ruleset->need_full = true;
	forget_changes(ruleset);
	forget_stale_chains(ruleset);
}

/* -- in pieces */

/* Behind the services come the chains of the index, each as if it were one. */
size_t ruleset_n_services(const struct ruleset *ruleset)
{
	return ruleset->services.n + (ruleset->index ? service_index_n_chains(ruleset->index) : 0);
}

static void index_chain_name(struct ruleset *ruleset, size_t index, struct chain_name *ret)
{
	struct chain_hash hash;

	service_index_chain_hash(ruleset->index, index - ruleset->services.n, &hash);
	chain_name_make(CHAIN_KIND_INDEX, &hash, ret);
}

const char *ruleset_service_key(struct ruleset *ruleset, size_t index)
{
	if (index < ruleset->services.n)
		return ruleset->services.v[index]->plan->key;
	index_chain_name(ruleset, index, &ruleset->key);
	return ruleset->key.text;
}

void ruleset_make_service(struct ruleset *ruleset, size_t index, unsigned int parts,
			  struct rule_list *ret)
{
	if (index < ruleset->services.n)
		make_service(ruleset, ruleset->services.v[index], parts, ret);
	else if (parts & RULESET_OWN)
		make_index_chain(ruleset, index - ruleset->services.n, ret);
	else
		rule_list_init(ret, 16);
}

void ruleset_write_service(struct ruleset *ruleset, size_t index, unsigned int parts,
			   struct txn *txn)
{
	unsigned int rules = index < ruleset->services.n ? RULESET_ENTRIES | RULESET_OWN_RULES
							 : RULESET_OWN_RULES;
	cleanup_rule_list struct rule_list list;

	ruleset_make_service(ruleset, index, parts, &list);
	txn_subject(txn, list.subject);
	for (const struct rule_chain *chain = list.chains; chain; chain = chain->next)
		if (chain->own && parts & RULESET_OWN_CHAINS)
			txn_chain(txn, chain->table, chain->name);
	if (parts & rules)
		txn_rules(txn, &list);
	txn_subject(txn, NULL);
}

const struct rule_list *ruleset_fixed(struct ruleset *ruleset, const struct ruleset_input *input)
{
	if (input || !ruleset->fixed)
		make_fixed(ruleset, input ? input : &(struct ruleset_input){0});
	return ruleset->fixed;
}

size_t ruleset_n_shared(const struct ruleset *ruleset)
{
	return 2 * ruleset->services.n + 1;
}

void ruleset_make_shared(struct ruleset *ruleset, size_t source, struct rule_list *ret)
{
	size_t n = ruleset->services.n;

	if (source < 2 * n) {
		make_service(ruleset, ruleset->services.v[source % n],
			     source < n ? RULESET_LEADING : RULESET_FOLLOWING, ret);
		return;
	}
	if (ruleset->index)
		make_index_chain(ruleset, SERVICE_INDEX_ROOT, ret);
	else
		rule_list_init(ret, 4096);
	for (const struct rule_item *item = ruleset->fixed->items; item; item = item->next)
		rule_list_add(ret, &item->rule);
}

struct chain_search {
	enum chain_kind kind;
	struct chain_hash hash;
	bool found;
};

static void compare_chain(void *arg, enum chain_kind kind, const struct chain_hash *hash)
{
	struct chain_search *search = arg;

	search->found = search->found ||
			(search->kind == kind && memcmp(&search->hash, hash, sizeof(*hash)) == 0);
}

static bool find_index_chain(const struct ruleset *ruleset, const struct chain_hash *wanted,
			     size_t *ret_index)
{
	for (size_t i = 0; ruleset->index && i < service_index_n_chains(ruleset->index); i++) {
		struct chain_hash hash;

		service_index_chain_hash(ruleset->index, i, &hash);
		if (memcmp(&hash, wanted, sizeof(hash)) != 0)
			continue;
		*ret_index = ruleset->services.n + i;
		return true;
	}
	return false;
}

bool ruleset_find_chain(const struct ruleset *ruleset, const char *nat_chain, size_t *ret_index)
{
	struct chain_search search = {0};

	if (!chain_name_parse(nat_chain, &search.kind, &search.hash))
		return false;
	if (search.kind == CHAIN_KIND_INDEX)
		return find_index_chain(ruleset, &search.hash, ret_index);
	for (size_t i = 0; i < ruleset->services.n; i++) {
		service_rules_each_chain(ruleset->services.v[i], compare_chain, &search);
		if (search.found) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}
