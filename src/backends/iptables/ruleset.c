/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/ruleset.h"

#include <stdlib.h>

#include "backends/iptables/chain_set.h"
#include "backends/iptables/fixed_delta.h"
#include "backends/iptables/index_rules.h"
#include "backends/iptables/service_delta.h"
#include "backends/iptables/service_set.h"

/*
 * The wanted state is kept as plans, by key. A full sync writes all of it. Any other sync is the
 * difference between what stands and what is wanted. It costs what changed, not what there is: it
 * keeps the old rules of services that changed beside the new ones until it has ended, and walks no
 * others; sums are kept up by difference.
 *
 * What stands was written with flags that may have changed since: those of the host are remembered,
 * and a change makes the next sync full; comments on endpoints are remembered for each Service.
 */

struct change {
	struct service_rules *old; /* owned; NULL: none */
	struct service_rules *new; /* in the set; NULL: gone */
};

struct ruleset {
	const struct settings *settings;
	const struct ruleset_host *host;
	struct ruleset_host applied_host; /* as it was when the rules were written */

	struct service_set services;
	struct change *changes; /* since the sync before the one that has begun */
	size_t n_changes, changes_capacity;
	size_t n_rules[TABLE_COUNT]; /* of all services, as of the last sync that went well */
	struct service_index *index; /* NULL: none */
	struct fixed_list fixed;     /* wanted; applied_fixed stand */
	struct fixed_list applied_fixed;

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

static void forget_changes(struct ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->n_changes; i++)
		service_rules_free(ruleset->changes[i].old);
	ruleset->n_changes = 0;
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
	fixed_list_done(&ruleset->fixed);
	fixed_list_done(&ruleset->applied_fixed);
	free(ruleset);
	return NULL;
}

void ruleset_need_full_sync(struct ruleset *ruleset)
{
	ruleset->need_full = true;
}

/* -- begin */

/* Where rules of services go. */
static struct rule_output begin_output(const struct ruleset *ruleset, struct txn *txn)
{
	return (struct rule_output){
		.settings = ruleset->settings,
		.host = ruleset->full ? ruleset->host : &ruleset->applied_host,
		.localhost_node_ports = settings_localhost_node_ports(ruleset->settings),
		.indexed = ruleset->index != NULL,
		.txn = txn,
	};
}

/* Where others go, and those of the index. */
static struct rule_output begin_fixed_output(const struct ruleset *ruleset, struct txn *txn)
{
	struct rule_output output = begin_output(ruleset, txn);

	output.indexed = false;
	return output;
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
	struct rule_output output;

	ruleset->index = service_index_free(ruleset->index);
	if (!ruleset->settings->mode.service_index)
		return;
	ruleset->index = service_index_new();
	output = begin_output(ruleset, NULL);
	for (size_t i = 0; i < ruleset->services.n; i++)
		index_rules_change(ruleset->index, NULL, ruleset->services.v[i], &output);
	service_index_settle(ruleset->index);
}

static void index_changed(struct ruleset *ruleset)
{
	struct rule_output output = begin_output(ruleset, NULL);

	if (!ruleset->index)
		return;
	for (size_t i = 0; i < ruleset->n_changes; i++)
		index_rules_change(ruleset->index, ruleset->changes[i].old, ruleset->changes[i].new,
				   &output);
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
	*ret = (struct ruleset_stats){
		.full = ruleset->full,
		.large_cluster = ruleset->large_cluster,
		.chains_deleted = ruleset->n_deleted,
	};
	count_rules(ruleset, ret->rules_total);
	fixed_list_count(&ruleset->fixed, ret->rules_total);
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

void ruleset_write_head(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn)
{
	struct rule_output output = begin_fixed_output(ruleset, txn);

	if (!ruleset->stale)
		find_stale_chains(ruleset, input);
	fixed_list_collect(&ruleset->fixed, &output, input);
	fixed_rules_chains(&output);
	fixed_rules_head(&output);
}

void ruleset_write_tail(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn)
{
	struct rule_output output = begin_fixed_output(ruleset, txn);

	delete_stale_chains(ruleset, input, txn);
	if (ruleset->index)
		index_rules_write_root(ruleset->index, &ruleset->services, &output);
	fixed_rules_tail(&output, input);
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

/*
 * With an index: its chains are emptied first, so that nothing leads to chains that services delete,
 * and written when the services have declared theirs.
 */
static void write_delta(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn,
			struct ruleset_stats *ret)
{
	struct rule_output services = begin_output(ruleset, txn);
	struct rule_output others = begin_fixed_output(ruleset, txn);
	const struct service_index *index = ruleset->index;
	struct service_delta delta = {0};
	enum fixed_last last;

	fixed_list_collect(&ruleset->fixed, &others, input);
	if (index)
		service_index_declare(index, txn);
	for (size_t i = 0; i < ruleset->n_changes; i++)
		service_delta_write(ruleset->changes[i].old, ruleset->changes[i].new, &services,
				    &delta);
	last = delta.enters_services ? FIXED_LAST_OVERTAKEN : FIXED_LAST_STANDS;
	if (index) {
		index_rules_write(index, &ruleset->services, &others);
		delta.chains_deleted += service_index_delete(index, txn);
		if (service_index_rewrites_services(index))
			last = FIXED_LAST_GONE;
	}
	fixed_delta_write(&ruleset->applied_fixed, &ruleset->fixed, last, &others);
	ruleset_count(ruleset, ret);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		ret->rules_written[i] = services.written[i] + others.written[i];
	ret->chains_deleted = delta.chains_deleted;
}

void ruleset_write(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn,
		   struct ruleset_stats *ret)
{
	if (ruleset->full)
		write_full(ruleset, input, txn, ret);
	else
		write_delta(ruleset, input, txn, ret);
}

/* -- end */

static void note_applied(struct ruleset *ruleset, int64_t now_ns)
{
	size_t n_rules[TABLE_COUNT];

	count_rules(ruleset, n_rules);
	memcpy(ruleset->n_rules, n_rules, sizeof(n_rules));
	if (ruleset->index)
		service_index_applied(ruleset->index);
	fixed_list_copy(&ruleset->applied_fixed, &ruleset->fixed);
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

static void write_index_chain(struct ruleset *ruleset, size_t index, unsigned int parts,
			      struct txn *txn)
{
	struct rule_output output = begin_fixed_output(ruleset, txn);
	struct chain_name name;

	index_chain_name(ruleset, index, &name);
	if (parts & RULESET_OWN_CHAINS)
		txn_chain(txn, TABLE_NAT, name.text);
	if (parts & RULESET_OWN_RULES)
		index_rules_write_chain(ruleset->index, index - ruleset->services.n,
					&ruleset->services, &output);
}

void ruleset_write_service(struct ruleset *ruleset, size_t index, unsigned int parts,
			   struct txn *txn)
{
	struct rule_output output = begin_output(ruleset, txn);

	if (index < ruleset->services.n)
		service_rules_write(ruleset->services.v[index], &output, parts);
	else
		write_index_chain(ruleset, index, parts, txn);
}

void ruleset_write_own(struct ruleset *ruleset, size_t index, struct txn *txn)
{
	ruleset_write_service(ruleset, index, RULESET_OWN, txn);
}

void ruleset_write_shared(struct ruleset *ruleset, const struct ruleset_input *input,
			  struct txn *txn)
{
	struct rule_output output = begin_fixed_output(ruleset, txn);

	if (input)
		fixed_list_collect(&ruleset->fixed, &output, input);
	fixed_rules_chains(&output);
	for (size_t i = 0; i < ruleset->services.n; i++)
		ruleset_write_service(ruleset, i, RULESET_LEADING, txn);
	for (size_t i = 0; i < ruleset->services.n; i++)
		ruleset_write_service(ruleset, i, RULESET_FOLLOWING, txn);
	if (ruleset->index)
		index_rules_write_root(ruleset->index, &ruleset->services, &output);
	for (size_t i = 0; i < ruleset->fixed.n; i++)
		txn_rule(txn, &ruleset->fixed.v[i]);
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
