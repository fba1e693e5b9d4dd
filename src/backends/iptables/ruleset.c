/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/ruleset.h"

#include <stdlib.h>

#include "backends/iptables/chain_set.h"
#include "backends/iptables/fixed_delta.h"
#include "backends/iptables/index_rules.h"
#include "backends/iptables/service_delta.h"
#include "backends/iptables/service_set.h"
#include "plan/address_owners.h"

/*
 * The wanted state is kept as plans, by key. A full sync plans everything anew, since what makes it
 * full (another zone, a failure, an hour gone by) may concern every plan, and writes all of it. Any
 * other sync is the difference between what stands and what is wanted. It costs what changed, not
 * what there is: it plans the services that changed, keeps their old rules beside the new ones until
 * it has ended, and walks no others; sums are kept up by difference.
 *
 * A destination that two Services ask for has entries of its owner alone. When another one becomes that, the
 * two are written with those that changed: their plans are the same, what is withheld of them is not.
 *
 * What stands was written with flags that may have changed since: those of the host are remembered,
 * and a change makes the next sync full; comments on endpoints are remembered for each Service.
 */

struct change {
	struct service_rules *old; /* owned; NULL: none */
	struct service_rules *new; /* in the set; NULL: gone */
};

/* What all services together have. */
struct sums {
	size_t rules[TABLE_COUNT];
	size_t no_local_internal, no_local_external;
};

struct ruleset {
	const struct settings *settings;
	const struct ruleset_host *host;
	struct ruleset_host applied_host; /* as it was when the rules were written */

	struct service_set services;
	struct address_owners owners; /* of what those ask for */
	struct conflicts conflicts;
	conflict_fn *on_conflict; /* or NULL */
	void *conflict_arg;
	struct addr *node_addresses; /* as the Node says */
	size_t n_node_addresses;
	struct change *changes; /* since the sync before the one that has begun */
	size_t n_changes, changes_capacity;
	struct sums sums;            /* as of the last sync that went well */
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
	for (size_t i = 0; i < ruleset->n_changes; i++) {
		service_rules_free(ruleset->changes[i].old);
		if (ruleset->changes[i].new)
			ruleset->changes[i].new->fresh = false;
	}
	ruleset->n_changes = 0;
}

struct ruleset *ruleset_free(struct ruleset *ruleset)
{
	if (!ruleset)
		return NULL;
	forget_changes(ruleset);
	free(ruleset->changes);
	free(ruleset->stale);
	address_owners_done(&ruleset->owners);
	conflicts_done(&ruleset->conflicts);
	free(ruleset->node_addresses);
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

void ruleset_on_conflict(struct ruleset *ruleset, conflict_fn *fn, void *arg)
{
	ruleset->on_conflict = fn;
	ruleset->conflict_arg = arg;
}

const size_t *ruleset_conflicts(const struct ruleset *ruleset)
{
	return ruleset->conflicts.counts;
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

static struct service_rules *make_service(const struct ruleset *ruleset, const struct model *model,
					  const char *key)
{
	struct service_plan *plan = plan_service(ruleset->settings, model, key);

	return plan ? service_rules_new(plan, !ruleset->large_cluster) : NULL;
}

/* -- who owns what */

struct judgement {
	struct ruleset *ruleset;
	struct service_rules *service; /* the one judged, if it is one alone */
	const struct destination *destination;
	const struct service *owner;
};

static void note_change(struct ruleset *ruleset, struct service_rules *old,
			struct service_rules *new)
{
	array_grow(&ruleset->changes, &ruleset->changes_capacity, ruleset->n_changes,
		   sizeof(*ruleset->changes));
	ruleset->changes[ruleset->n_changes++] = (struct change){old, new};
	if (new)
		new->fresh = true;
}

/* The rules that this sync writes for the Service; it becomes one that has changed. */
static struct service_rules *freshen(struct ruleset *ruleset, struct service_rules *old)
{
	struct service_rules *new;

	if (old->fresh || ruleset->full)
		return old;
	new = service_rules_again(old);
	service_set_put(&ruleset->services, new);
	note_change(ruleset, old, new);
	return new;
}

static void judge(void *arg, const struct service *service, bool external attr_unused,
		  bool balancer attr_unused)
{
	const struct judgement *judgement = arg;
	struct ruleset *ruleset = judgement->ruleset;
	struct service_rules *rules = service_set_get(&ruleset->services, service->key);
	bool lost = service != judgement->owner;

	if (withheld_has(rules->withheld, judgement->destination) != lost)
		withheld_set(&freshen(ruleset, rules)->withheld, judgement->destination, lost);
}

/* All that ask for a destination that is no longer the same one's. */
static void judge_all(void *arg, const struct destination *destination)
{
	struct ruleset *ruleset = arg;
	bool unused;
	struct judgement judgement = {
		.ruleset = ruleset,
		.destination = destination,
		.owner = address_owners_of(&ruleset->owners, destination, &unused),
	};

	if (!destination->whole)
		address_owners_each(&ruleset->owners, destination, judge, &judgement);
}

static bool asks_anew(const struct change *change)
{
	return !change->old || !change->new ||
	       change->old->plan->service != change->new->plan->service;
}

static void change_owners(struct ruleset *ruleset, const struct change *change)
{
	if (!asks_anew(change)) {
		change->new->withheld = withheld_copy(change->old->withheld);
		return;
	}
	if (change->old)
		address_owners_remove(&ruleset->owners, change->old->plan);
	if (change->new)
		address_owners_add(&ruleset->owners, change->new->plan);
}

static void judge_own(void *arg, const struct destination *destination)
{
	struct judgement *judgement = arg;
	struct service_rules *service = judgement->service;
	bool unused;

	if (address_owners_of(&judgement->ruleset->owners, destination, &unused) !=
	    service->plan->service)
		withheld_set(&service->withheld, destination, true);
}

/* Adds to the changes those Services that get or lose what others ask for. */
static void settle_owners(struct ruleset *ruleset)
{
	size_t n = ruleset->n_changes;

	for (size_t i = 0; i < n; i++)
		change_owners(ruleset, &ruleset->changes[i]);
	for (size_t i = 0; i < n; i++) {
		const struct change *change = &ruleset->changes[i];
		struct judgement judgement = {.ruleset = ruleset, .service = change->new};

		if (asks_anew(change) && change->new)
			destination_each(change->new->plan, judge_own, &judgement);
	}
	address_owners_each_moved(&ruleset->owners, judge_all, ruleset);
}

static void own_all(struct ruleset *ruleset)
{
	const struct service_set *services = &ruleset->services;

	for (size_t i = 0; i < services->n; i++)
		address_owners_add(&ruleset->owners, services->v[i]->plan);
	for (size_t i = 0; i < services->n; i++) {
		struct judgement judgement = {.ruleset = ruleset, .service = services->v[i]};

		destination_each(services->v[i]->plan, judge_own, &judgement);
	}
}

static void plan_all(struct ruleset *ruleset, struct model *model)
{
	const struct service *service;
	size_t at = 0;

	address_owners_done(&ruleset->owners);
	service_set_done(&ruleset->services);
	while ((service = model_next_service(model, &at))) {
		struct service_rules *rules = make_service(ruleset, model, service->key);

		if (rules)
			service_set_put(&ruleset->services, rules);
	}
	service_set_sort(&ruleset->services);
	own_all(ruleset);
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

static void plan_changed(struct ruleset *ruleset, struct model *model,
			 const struct model_changes *changes)
{
	for (size_t i = 0; i < changes->n_services; i++) {
		const char *key = changes->services[i];
		struct change change = {.new = make_service(ruleset, model, key)};

		change.old = change.new ? service_set_put(&ruleset->services, change.new)
					: service_set_remove(&ruleset->services, key);
		if (change.old || change.new)
			note_change(ruleset, change.old, change.new);
	}
	settle_owners(ruleset);
}

static void note_node(struct ruleset *ruleset, const struct node *node)
{
	ruleset->n_node_addresses = node ? node->n_addresses : 0;
	if (ruleset->n_node_addresses == 0)
		return;
	ruleset->node_addresses =
		xrealloc(ruleset->node_addresses, node->n_addresses * sizeof(*node->addresses));
	memcpy(ruleset->node_addresses, node->addresses,
	       node->n_addresses * sizeof(*node->addresses));
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

void ruleset_begin(struct ruleset *ruleset, struct model *model, int64_t now_ns,
		   struct model_changes *ret_changes, struct ruleset_begun *ret)
{
	enum family family = ruleset->settings->family;

	model_take_changes(model, family, ret_changes);
	ruleset->full =
		ruleset->need_full || full_sync_is_due(ruleset, now_ns) || host_changed(ruleset);
	ruleset->need_full = false; /* who asks for one from here on gets another */
	ruleset->large_cluster = model_count_endpoints(model, family) > RULESET_LARGE_CLUSTER;
	forget_changes(ruleset);
	note_node(ruleset, model_node(model));
	if (ruleset->full) {
		plan_all(ruleset, model);
		index_all(ruleset);
	} else {
		plan_changed(ruleset, model, ret_changes);
		index_changed(ruleset);
	}
	ret->full = ruleset->full;
	ret->wants_nat_chains = ruleset->full;
	ret->wants_addresses = !ruleset->settings->node_ports.match_all;
}

/* -- counting */

static void add_sums(struct sums *sums, const struct service_rules *service)
{
	for (size_t i = 0; i < TABLE_COUNT; i++)
		sums->rules[i] += service->n_leading[i] + service->n_following[i];
	sums->rules[TABLE_NAT] += service->n_own_rules;
	for (size_t i = 0; i < service->plan->n_ports; i++) {
		sums->no_local_internal += service->plan->ports[i].internal == PLAN_DROP;
		sums->no_local_external += service->plan->ports[i].external == PLAN_DROP;
	}
}

static void subtract_sums(struct sums *sums, const struct service_rules *service)
{
	struct sums own = {0};

	add_sums(&own, service);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		sums->rules[i] -= own.rules[i];
	sums->no_local_internal -= own.no_local_internal;
	sums->no_local_external -= own.no_local_external;
}

static struct sums sum_up(const struct ruleset *ruleset)
{
	struct sums sums = {0};

	if (ruleset->full) {
		for (size_t i = 0; i < ruleset->services.n; i++)
			add_sums(&sums, ruleset->services.v[i]);
		return sums;
	}
	sums = ruleset->sums;
	for (size_t i = 0; i < ruleset->n_changes; i++) {
		if (ruleset->changes[i].old)
			subtract_sums(&sums, ruleset->changes[i].old);
		if (ruleset->changes[i].new)
			add_sums(&sums, ruleset->changes[i].new);
	}
	return sums;
}

void ruleset_count(const struct ruleset *ruleset, struct ruleset_stats *ret)
{
	struct sums sums = sum_up(ruleset);

	*ret = (struct ruleset_stats){
		.full = ruleset->full,
		.large_cluster = ruleset->large_cluster,
		.no_local_internal = sums.no_local_internal,
		.no_local_external = sums.no_local_external,
		.chains_deleted = ruleset->n_deleted,
	};
	memcpy(ret->rules_total, sums.rules, sizeof(ret->rules_total));
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
	ruleset->sums = sum_up(ruleset);
	if (ruleset->index)
		service_index_applied(ruleset->index);
	fixed_list_copy(&ruleset->applied_fixed, &ruleset->fixed);
	if (!ruleset->full)
		return;
	ruleset->applied_host = *ruleset->host;
	ruleset->last_full_ns = now_ns;
}

static void look_at_changes(struct ruleset *ruleset, const struct conflicts_view *view)
{
	for (size_t i = 0; i < ruleset->n_changes; i++) {
		const struct change *change = &ruleset->changes[i];

		if (asks_anew(change))
			conflicts_look(&ruleset->conflicts, view,
				       change->old ? change->old->plan : NULL,
				       change->new ? change->new->plan : NULL);
	}
	conflicts_look_moved(&ruleset->conflicts, view);
}

static void look_for_conflicts(struct ruleset *ruleset)
{
	const struct conflicts_view view = {
		.owners = &ruleset->owners,
		.node_addresses = ruleset->node_addresses,
		.n_node_addresses = ruleset->n_node_addresses,
		.fn = ruleset->on_conflict,
		.arg = ruleset->conflict_arg,
	};

	if (!ruleset->full) {
		look_at_changes(ruleset, &view);
		return;
	}
	conflicts_begin_all(&ruleset->conflicts);
	for (size_t i = 0; i < ruleset->services.n; i++)
		conflicts_look_own(&ruleset->conflicts, &view, ruleset->services.v[i]->plan);
	conflicts_end_all(&ruleset->conflicts);
}

void ruleset_end(struct ruleset *ruleset, bool success, int64_t now_ns)
{
	if (success) {
		note_applied(ruleset, now_ns);
		look_for_conflicts(ruleset);
		address_owners_settle(&ruleset->owners);
	} else {
		ruleset->need_full = true;
	}
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
