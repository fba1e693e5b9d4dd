/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/ruleset.h"

#include <stdlib.h>

#include "backends/iptables/chain_set.h"
#include "backends/iptables/fixed_rules.h"
#include "backends/iptables/rule_output.h"
#include "backends/iptables/service_rules.h"

/*
 * The wanted state is kept as one sorted array of planned services. A partial sync plans and hashes
 * only what changed; a full one plans everything anew, since what makes it full (another zone, a
 * failure, an hour gone by) may concern every plan.
 *
 * The order of services is by namespace, then name, so that the same cluster always gives the same
 * text. New services are merged into the array in one pass, however many there are.
 */

struct ruleset {
	const struct settings *settings;
	const struct ruleset_host *host;

	struct service_rules **services; /* sorted by key, see compare_keys() */
	size_t n_services;
	size_t capacity;

	bool need_full;
	bool full;          /* the sync that has begun */
	bool large_cluster; /* as of the sync that has begun, or the last */
	int64_t last_full_ns;
	bool searched; /* for stale chains, at last_search_ns */
	int64_t last_search_ns;
	size_t n_shared_rules[TABLE_COUNT]; /* when they were last written */
};

struct ruleset *ruleset_new(const struct settings *settings, const struct ruleset_host *host)
{
	struct ruleset *ruleset = xcalloc(1, sizeof(*ruleset));

	ruleset->settings = settings;
	ruleset->host = host;
	ruleset->need_full = true;
	return ruleset;
}

static void forget_services(struct ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->n_services; i++)
		service_rules_free(ruleset->services[i]);
	ruleset->n_services = 0;
}

struct ruleset *ruleset_free(struct ruleset *ruleset)
{
	if (!ruleset)
		return NULL;
	forget_services(ruleset);
	free(ruleset->services);
	free(ruleset);
	return NULL;
}

void ruleset_need_full_sync(struct ruleset *ruleset)
{
	ruleset->need_full = true;
}

/* By namespace, then name: the slash between them counts less than any letter of either. */
static unsigned int weight(char c)
{
	return c == '/' ? 1 : (unsigned char)c;
}

static int compare_keys(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (int)weight(*a) - (int)weight(*b);
}

static const char *service_key(const struct service_rules *service)
{
	return service->plan->key;
}

static int compare_services(const void *a, const void *b)
{
	const struct service_rules *const *x = a;
	const struct service_rules *const *y = b;

	return compare_keys(service_key(*x), service_key(*y));
}

static void sort_services(struct service_rules **services, size_t n)
{
	if (n > 1)
		qsort(services, n, sizeof(struct service_rules *), compare_services);
}

static struct service_rules **find_service(const struct ruleset *ruleset, const char *key)
{
	size_t low = 0, high = ruleset->n_services;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_keys(service_key(ruleset->services[middle]), key);

		if (order == 0)
			return &ruleset->services[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void append_service(struct ruleset *ruleset, struct service_plan *plan)
{
	array_grow(&ruleset->services, &ruleset->capacity, ruleset->n_services,
		   sizeof(struct service_rules *));
	ruleset->services[ruleset->n_services++] = service_rules_new(plan);
}

static void plan_all(struct ruleset *ruleset, struct model *model)
{
	const struct service *service;
	size_t at = 0;

	forget_services(ruleset);
	while ((service = model_next_service(model, &at))) {
		struct service_plan *plan = plan_service(ruleset->settings, model, service->key);

		if (plan)
			append_service(ruleset, plan);
	}
	sort_services(ruleset->services, ruleset->n_services);
}

/* Closes the gaps that removed services left. */
static void compact_services(struct ruleset *ruleset)
{
	size_t n = 0;

	for (size_t i = 0; i < ruleset->n_services; i++)
		if (ruleset->services[i])
			ruleset->services[n++] = ruleset->services[i];
	ruleset->n_services = n;
}

/* Merges n new services, sorted, from behind. */
static void merge_services(struct ruleset *ruleset, struct service_rules **added, size_t n)
{
	size_t old = ruleset->n_services;
	size_t to = old + n;

	while (ruleset->capacity < to)
		array_grow(&ruleset->services, &ruleset->capacity, ruleset->capacity,
			   sizeof(struct service_rules *));
	ruleset->n_services = to;
	while (n > 0) {
		struct service_rules **services = ruleset->services;

		if (old > 0 && compare_services(&services[old - 1], &added[n - 1]) > 0)
			services[--to] = services[--old];
		else
			services[--to] = added[--n];
	}
}

/*
 * Binary search works only while there are no gaps, so every change is looked up first and removed
 * services leave the array at the end, before the new ones come in.
 */
static void plan_changed(struct ruleset *ruleset, struct model *model,
			 const struct model_changes *changes)
{
	cleanup_free struct service_rules ***removed = NULL;
	cleanup_free struct service_rules **added = NULL;
	size_t n_removed = 0, n_added = 0;

	removed = xcalloc(changes->n_services + 1, sizeof(*removed));
	added = xcalloc(changes->n_services + 1, sizeof(struct service_rules *));
	for (size_t i = 0; i < changes->n_services; i++) {
		const char *key = changes->services[i];
		struct service_rules **old = find_service(ruleset, key);
		struct service_plan *plan = plan_service(ruleset->settings, model, key);

		if (old && plan) {
			service_rules_free(*old);
			*old = service_rules_new(plan);
		} else if (old) {
			removed[n_removed++] = old;
		} else if (plan) {
			added[n_added++] = service_rules_new(plan);
		}
	}
	for (size_t i = 0; i < n_removed; i++)
		*removed[i] = service_rules_free(*removed[i]);
	if (n_removed > 0)
		compact_services(ruleset);
	sort_services(added, n_added);
	merge_services(ruleset, added, n_added);
}

/* Is an unasked-for full sync due? Judged before the new size of the cluster is known. */
static bool full_sync_is_due(const struct ruleset *ruleset, int64_t now_ns)
{
	return !ruleset->large_cluster &&
	       now_ns - ruleset->last_full_ns > RULESET_FULL_SYNC_PERIOD_NS;
}

/* Listing chains is dear in a large cluster, and stale ones do no harm but take memory. */
static bool search_is_due(const struct ruleset *ruleset, int64_t now_ns)
{
	return !ruleset->large_cluster || !ruleset->searched ||
	       now_ns - ruleset->last_search_ns > ruleset->settings->sync_period_ns;
}

void ruleset_begin(struct ruleset *ruleset, struct model *model, int64_t now_ns,
		   struct model_changes *ret_changes, struct ruleset_begun *ret)
{
	enum family family = ruleset->settings->family;

	model_take_changes(model, family, ret_changes);
	ruleset->full = ruleset->need_full || full_sync_is_due(ruleset, now_ns);
	ruleset->need_full = false; /* who asks for one from here on gets another */
	ruleset->large_cluster = model_count_endpoints(model, family) > RULESET_LARGE_CLUSTER;
	if (ruleset->full)
		plan_all(ruleset, model);
	else
		plan_changed(ruleset, model, ret_changes);
	ret->full = ruleset->full;
	ret->wants_nat_chains = search_is_due(ruleset, now_ns);
	ret->wants_addresses = !ruleset->settings->node_ports.match_all;
}

static void mark_active(void *arg, enum chain_kind kind, const struct chain_hash *hash)
{
	chain_set_add(arg, kind, hash);
}

static void collect_active(const struct ruleset *ruleset, struct chain_set *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < ruleset->n_services; i++)
		n += service_rules_count_hashes(ruleset->services[i]);
	chain_set_init(ret, n);
	for (size_t i = 0; i < ruleset->n_services; i++)
		service_rules_each_chain(ruleset->services[i], mark_active, ret);
}

/* Chains that have the look of ours and no purpose any more. */
static size_t delete_stale_chains(const struct ruleset *ruleset, const struct ruleset_input *input,
				  struct txn *txn)
{
	cleanup_free const char **stale = xcalloc(input->n_nat_chains + 1, sizeof(char *));
	cleanup_chain_set struct chain_set active = {0};
	size_t n = 0, deleted = 0;

	collect_active(ruleset, &active);
	for (size_t i = 0; i < input->n_nat_chains; i++) {
		const char *name = input->nat_chains[i];

		if (chain_is_per_service(name) && !chain_set_has(&active, name))
			stale[n++] = name;
	}
	for (size_t i = 0; i < n; i++)
		txn_chain(txn, TABLE_NAT, stale[i]);
	for (size_t i = 0; i < n; i++) {
		if (input->held_chains && map_get(input->held_chains, stale[i]))
			continue;
		txn_delete_chain(txn, TABLE_NAT, stale[i]);
		deleted++;
	}
	return deleted;
}

static void count_refusals(const struct service_plan *plan, struct ruleset_stats *stats)
{
	for (size_t i = 0; i < plan->n_ports; i++) {
		stats->no_local_internal += plan->ports[i].internal == PLAN_DROP;
		stats->no_local_external += plan->ports[i].external == PLAN_DROP;
	}
}

/* Returns how many rules were left standing in the chains of unchanged services. */
static size_t write_services(struct ruleset *ruleset, struct rule_output *output,
			     struct ruleset_stats *stats)
{
	size_t standing = 0;

	for (size_t i = 0; i < ruleset->n_services; i++) {
		struct service_rules *service = ruleset->services[i];
		bool own_chains = ruleset->full || service->changed;

		if (!own_chains)
			standing += service->n_own_rules;
		service_rules_write(service, output,
				    SERVICE_RULES_ENTRIES | (own_chains ? SERVICE_RULES_OWN : 0));
		count_refusals(service->plan, stats);
	}
	return standing;
}

static struct rule_output begin_output(const struct ruleset *ruleset, struct txn *txn)
{
	return (struct rule_output){
		.settings = ruleset->settings,
		.host = ruleset->host,
		.localhost_node_ports = settings_localhost_node_ports(ruleset->settings),
		.endpoint_comments = !ruleset->large_cluster,
		.txn = txn,
	};
}

void ruleset_write(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn,
		   struct ruleset_stats *ret)
{
	struct ruleset_stats stats = {
		.full = ruleset->full,
		.large_cluster = ruleset->large_cluster,
	};
	struct rule_output output = begin_output(ruleset, txn);
	size_t standing;

	fixed_rules_chains(&output);
	fixed_rules_head(&output);
	standing = write_services(ruleset, &output, &stats);
	if (input->nat_chains) {
		stats.chains_deleted = delete_stale_chains(ruleset, input, txn);
		ruleset->searched = true;
		ruleset->last_search_ns = input->now_ns;
	}
	fixed_rules_tail(&output, input);
	memcpy(stats.rules_written, output.written, sizeof(stats.rules_written));
	memcpy(stats.rules_total, output.written, sizeof(stats.rules_total));
	stats.rules_total[TABLE_NAT] += standing;
	*ret = stats;
}

void ruleset_end(struct ruleset *ruleset, bool success, int64_t now_ns)
{
	if (!success)
		ruleset->need_full = true;
	else if (ruleset->full)
		ruleset->last_full_ns = now_ns;
}

size_t ruleset_n_services(const struct ruleset *ruleset)
{
	return ruleset->n_services;
}

const char *ruleset_service_key(const struct ruleset *ruleset, size_t index)
{
	return service_key(ruleset->services[index]);
}

void ruleset_write_own(struct ruleset *ruleset, size_t index, struct txn *txn)
{
	struct rule_output output = begin_output(ruleset, txn);

	service_rules_write(ruleset->services[index], &output, SERVICE_RULES_OWN);
}

void ruleset_write_shared(struct ruleset *ruleset, const struct ruleset_input *input,
			  struct txn *txn)
{
	struct rule_output output = begin_output(ruleset, txn);

	fixed_rules_chains(&output);
	fixed_rules_head(&output);
	for (size_t i = 0; i < ruleset->n_services; i++)
		service_rules_write(ruleset->services[i], &output, SERVICE_RULES_ENTRIES);
	fixed_rules_tail(&output, input);
	memcpy(ruleset->n_shared_rules, output.written, sizeof(output.written));
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

bool ruleset_find_chain(const struct ruleset *ruleset, const char *nat_chain, size_t *ret_index)
{
	struct chain_search search = {0};

	if (!chain_name_parse(nat_chain, &search.kind, &search.hash))
		return false;
	for (size_t i = 0; i < ruleset->n_services; i++) {
		service_rules_each_chain(ruleset->services[i], compare_chain, &search);
		if (search.found) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

void ruleset_count(const struct ruleset *ruleset, struct ruleset_stats *ret)
{
	*ret = (struct ruleset_stats){
		.full = ruleset->full,
		.large_cluster = ruleset->large_cluster,
	};
	memcpy(ret->rules_total, ruleset->n_shared_rules, sizeof(ret->rules_total));
	for (size_t i = 0; i < ruleset->n_services; i++) {
		ret->rules_total[TABLE_NAT] += ruleset->services[i]->n_own_rules;
		count_refusals(ruleset->services[i]->plan, ret);
	}
}
