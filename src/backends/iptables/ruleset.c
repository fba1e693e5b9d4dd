/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/ruleset.h"

#include <stdlib.h>

#include "backends/iptables/fixed_rules.h"
#include "backends/iptables/index_rules.h"
#include "backends/iptables/ruleset_parts.h"

/*
 * The wanted state is kept as plans, by key. A full sync writes all of it. Any other sync is the
 * difference between what stands and what is wanted. It costs what changed, not what there is: it
 * keeps the old rules of services that changed beside the new ones until it has ended, and walks no
 * others; sums are kept up by difference.
 *
 * What stands was written with flags that may have changed since: those of the host are remembered,
 * and a change makes the next sync full; comments on endpoints are remembered for each Service.
 */

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

struct rule_facts ruleset_facts(const struct ruleset *ruleset)
{
	return (struct rule_facts){
		.settings = ruleset->settings,
		.host = ruleset->full ? ruleset->host : &ruleset->applied_host,
		.localhost_node_ports = settings_localhost_node_ports(ruleset->settings),
		.indexed = ruleset->index != NULL,
	};
}

/* A full sync does not ask for the old ones. */
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
	facts = ruleset_facts(ruleset);
	for (size_t i = 0; i < ruleset->services.n; i++)
		index_rules_change(ruleset->index, NULL, ruleset->services.v[i], &facts);
	service_index_settle(ruleset->index);
}

static void index_changed(struct ruleset *ruleset)
{
	struct rule_facts facts = ruleset_facts(ruleset);

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

	return a->be_liberal != b->be_liberal || a->nfacct_invalid != b->nfacct_invalid ||
	       a->nfacct_localhost != b->nfacct_localhost;
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
void ruleset_make_rules(const struct ruleset *ruleset, struct service_rules *service,
			unsigned int parts, struct rule_list *ret)
{
	struct rule_facts facts = ruleset_facts(ruleset);

	rule_list_init(ret, parts & RULESET_OWN_RULES ? 4000
						      : 1000); /* for a Service of few endpoints */
	if (!service)
		return;
	service_rules_make(service, &facts, parts, ret);
	count_parts(service, parts, ret);
}

void ruleset_make_index(struct ruleset *ruleset, size_t number, struct rule_list *ret)
{
	struct rule_facts facts = ruleset_facts(ruleset);
	struct index_rules rules = {&ruleset->services, &facts};
	const struct service_index_rules source = index_rules_of(&rules);

	rule_list_init(ret, 4096);
	service_index_make(ruleset->index, number, &source, ret);
	ret->subject = NULL;
}

void ruleset_make_fixed(struct ruleset *ruleset, const struct ruleset_input *input)
{
	struct rule_facts facts = ruleset_facts(ruleset);

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
	ruleset_forget_stale(ruleset);
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
		ruleset_make_rules(ruleset, ruleset->services.v[index], parts, ret);
	else if (parts & RULESET_OWN)
		ruleset_make_index(ruleset, index - ruleset->services.n, ret);
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
		ruleset_make_fixed(ruleset, input ? input : &(struct ruleset_input){0});
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
		ruleset_make_rules(ruleset, ruleset->services.v[source % n],
				   source < n ? RULESET_LEADING : RULESET_FOLLOWING, ret);
		return;
	}
	if (ruleset->index)
		ruleset_make_index(ruleset, SERVICE_INDEX_ROOT, ret);
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
