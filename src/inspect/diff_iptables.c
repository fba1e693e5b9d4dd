/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/diff_iptables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "backends/iptables/host.h"
#include "backends/iptables/ruleset.h"
#include "base/arena.h"
#include "inspect/kernel_rules.h"
#include "kernel/nfacct.h"
#include "kernel/sysctl.h"
#include "xtables/chains.h"
#include "xtables/rule_compare.h"

#define TRIES             10 /* to read rules while other programs change them */
#define SYSCTL_BE_LIBERAL "net/netfilter/nf_conntrack_tcp_be_liberal"

struct comparison {
	struct diff *diff;
	struct rule_store *wanted;
	struct kernel_rules *kernel;
	struct arena *arena; /* of keys and names */
};

/* -- whose chains they are */

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (streq(name, names[i]))
			return true;
	return false;
}

static bool is_ours(enum table table, const char *name)
{
	static const char *const nat[] = {CHAIN_SERVICES, CHAIN_NODEPORTS, CHAIN_POSTROUTING,
					  CHAIN_MARK_MASQ};
	static const char *const filter[] = {CHAIN_SERVICES, CHAIN_EXTERNAL_SERVICES, CHAIN_FORWARD,
					     CHAIN_NODEPORTS, CHAIN_PROXY_FIREWALL};

	if (table == TABLE_FILTER)
		return is_one_of(name, filter, ARRAY_SIZE(filter));
	return is_one_of(name, nat, ARRAY_SIZE(nat)) || chain_is_per_service(name);
}

static bool is_base(const char *name)
{
	return !has_prefix(name, "KUBE-");
}

/* Entries of many Services, or of other programs, stand in any order. */
static bool has_order(const char *name)
{
	struct chain_hash hash;
	enum chain_kind kind;

	if (chain_name_parse(name, &kind, &hash))
		return kind != CHAIN_KIND_INDEX;
	return streq(name, CHAIN_POSTROUTING) || streq(name, CHAIN_FORWARD) ||
	       streq(name, CHAIN_MARK_MASQ);
}

/* -- lines */

/* "namespace/name" in a comment, which may have ":port" behind; NULL: none. */
static const char *service_of(struct arena *arena, const struct stored_rule *rule)
{
	const struct match *comment = rule_match(&rule->rule, MATCH_COMMENT);
	const char *at = comment ? comment->text : "";

	while (*at) {
		size_t word = strcspn(at, " ");
		const char *slash = memchr(at, '/', word);

		if (slash && slash > at && slash + 1 < at + word)
			return arena_printf(arena, "%.*s", (int)MIN(strcspn(at, ":"), word), at);
		at += word + (at[word] != '\0');
	}
	return NULL;
}

/* What is compared: in chains of a Service without the comment. */
static void compared_value(const struct stored_rule *kept, struct rule *ret)
{
	bool comments = !chain_is_per_service(kept->rule.chain);
	size_t n = 0;

	memcpy(ret, &kept->rule, rule_size(&kept->rule));
	iptables_rules_strip(ret);
	for (size_t i = 0; i < ret->n_matches; i++)
		if (comments || ret->matches[i].kind != MATCH_COMMENT)
			ret->matches[n++] = ret->matches[i];
	ret->n_matches = n;
}

static const char *key_of(struct arena *arena, const struct stored_rule *kept)
{
	struct rule rule;

	compared_value(kept, &rule);
	return arena_printf(arena, "%" PRIx64, rule_hash(&rule));
}

static bool same_rules(const struct stored_chain *wanted, const struct stored_chain *kernel)
{
	for (size_t i = 0; i < wanted->n && wanted->n == kernel->n; i++) {
		struct rule a, b;

		compared_value(wanted->v[i], &a);
		compared_value(kernel->v[i], &b);
		if (!rule_equal(&a, &b))
			return false;
	}
	return wanted->n == kernel->n;
}

static bool leads_to(const struct stored_rule *rule, const char *chain)
{
	return rule->rule.target.kind == TARGET_CHAIN && streq(rule->rule.target.chain, chain);
}

static void add_wanted(const struct comparison *comparison, const struct stored_chain *chain,
		       struct diff_texts *ret)
{
	const uint64_t walks = comparison->wanted->walks;
	size_t n_ways = 0;

	for (size_t i = 0; i < chain->n; i++) {
		struct diff_text *line = diff_texts_add(
			ret, key_of(comparison->arena, chain->v[i]),
			rule_store_text(comparison->wanted, chain->v[i]), chain->v[i]->service);

		line->unmet = chain->v[i]->met != walks;
		line->last = leads_to(chain->v[i], CHAIN_NODEPORTS) && i + 1 == chain->n;
		n_ways += leads_to(chain->v[i], CHAIN_NODEPORTS);
	}
	/* of several ways to NodePorts, one for each address, any may be the last */
	if (chain->n > 0 && n_ways != 1)
		ret->v[ret->n - 1].last = false;
}

static bool is_foreign(const struct stored_chain *chain, const struct stored_rule *rule)
{
	bool leads =
		rule->rule.target.kind == TARGET_CHAIN || rule->rule.target.kind == TARGET_GOTO;

	if (!is_base(chain->name))
		return streq(chain->name, CHAIN_KUBELET_FIREWALL);
	return !leads || !is_ours(chain->table, rule->rule.target.chain);
}

static void add_kernel(const struct comparison *comparison, struct stored_chain *chain,
		       struct diff_texts *ret)
{
	for (size_t i = 0; i < chain->n; i++) {
		const struct stored_rule *rule = chain->v[i];
		struct diff_text *text =
			diff_texts_add(ret, key_of(comparison->arena, rule),
				       kernel_rules_text(comparison->kernel, chain, i),
				       service_of(comparison->arena, rule));

		text->foreign = is_foreign(chain, rule);
	}
}

/* -- in the path of a packet */

/* A packet that matches such a rule of a base chain is done with the chain. */
static bool ends_way(const struct target *target)
{
	static const char *const names[] = {
		"QUEUE",      "NFQUEUE", "REDIRECT", "SNAT", "NETMAP", "SYNPROXY", "DNAT",
		"MASQUERADE", "REJECT",  "nat",      "masq", "redir",  "reject",   "queue",
	};

	if (target->kind != TARGET_CHAIN && target->kind != TARGET_OTHER)
		return target->kind != TARGET_MARK_XOR && target->kind != TARGET_MARK_OR;
	return is_one_of(target->chain, names, ARRAY_SIZE(names));
}

/* Is it for connections that are known? The packet in question opens one. */
static bool is_for_known(const struct stored_rule *rule)
{
	const struct match *match = rule_match(&rule->rule, MATCH_CTSTATE);

	return match && !match->invert && match->ctstate &&
	       !(match->ctstate & ~(unsigned int)(CTSTATE_RELATED | CTSTATE_ESTABLISHED));
}

/* Rules of other programs before the last of ours: behind it, whatever we do with a packet is done. */
static void put_obstacles(const struct comparison *comparison, struct stored_chain *chain)
{
	size_t n = chain->n;

	while (n > 0 && is_foreign(chain, chain->v[n - 1]))
		n--;
	for (size_t i = 0; i < n; i++) {
		const struct stored_rule *rule = chain->v[i];

		if (is_foreign(chain, rule) && rule->rule.target.kind != TARGET_NONE &&
		    !is_for_known(rule))
			diff_put_obstacle(comparison->diff, table_name(chain->table), chain->name,
					  kernel_rules_text(comparison->kernel, chain, i),
					  ends_way(&rule->rule.target));
	}
}

/* -- chains */

static void put_chain(const struct comparison *comparison, const struct diff_place *place,
		      char sign, const struct diff_texts *texts)
{
	cleanup_free char *declaration = xasprintf(":%s - [0:0]", place->name);
	size_t at[DIFF_SIDES] = {0}, *number = &at[sign == '-' ? DIFF_WANTED : DIFF_KERNEL];

	diff_put(comparison->diff, place, sign, at, declaration,
		 texts->n > 0 ? texts->v[0].service : NULL);
	for (size_t i = 0; i < texts->n; i++) {
		*number = i + 1;
		diff_put(comparison->diff, place, sign, at, texts->v[i].text, texts->v[i].service);
	}
}

static void compare_chain(const struct comparison *comparison, enum table table, const char *name)
{
	const struct stored_chain *wanted = rule_store_chain(comparison->wanted, table, name);
	struct stored_chain *kernel = kernel_rules_chain(comparison->kernel, table, name);
	cleanup_diff_texts struct diff_texts left = {0}, right = {0};
	const struct diff_place place = {comparison->wanted->family, table_name(table), "chain",
					 name};

	if (kernel && is_base(name) && comparison->wanted->walks > 0)
		put_obstacles(comparison, kernel);
	if (wanted && kernel && same_rules(wanted, kernel))
		return;
	if (wanted)
		add_wanted(comparison, wanted, &left);
	if (kernel)
		add_kernel(comparison, kernel, &right);
	if (!wanted && !is_base(name))
		put_chain(comparison, &place, '+', &right);
	else if (!kernel && !is_base(name))
		put_chain(comparison, &place, '-', &left);
	else if (has_order(name))
		diff_ordered(comparison->diff, &place, &left, &right);
	else
		diff_unordered(comparison->diff, &place, &left, &right);
}

/* -- tables */

struct names {
	const char **v;
	size_t n, capacity;
};

static void add_name(struct names *names, const char *name)
{
	array_grow(&names->v, &names->capacity, names->n, sizeof(*names->v));
	names->v[names->n++] = name;
}

/* Base chains first, as iptables-save has them. */
static int compare_names(const void *left, const void *right)
{
	const char *a = *(const char *const *)left, *b = *(const char *const *)right;

	return is_base(a) != is_base(b) ? is_base(b) - is_base(a) : strcmp(a, b);
}

static void compare_table(const struct comparison *comparison, enum table table)
{
	struct names names = {0};
	const struct stored_chain *wanted, *kernel;
	size_t at = 0;

	while ((wanted = map_next(&comparison->wanted->chains[table], &at)))
		if (wanted->met == comparison->wanted->walks)
			add_name(&names, wanted->name);
	at = 0;
	while (comparison->wanted->walks == 0 &&
	       (kernel = kernel_rules_next(comparison->kernel, table, &at)))
		if ((is_base(kernel->name) || is_ours(table, kernel->name)) &&
		    !rule_store_chain(comparison->wanted, table, kernel->name))
			add_name(&names, kernel->name);
	if (names.n > 1)
		qsort(names.v, names.n, sizeof(*names.v), compare_names);
	for (size_t i = 0; i < names.n; i++)
		compare_chain(comparison, table, names.v[i]);
	free(names.v);
}

void diff_iptables_compare(struct diff *diff, struct rule_store *wanted,
			   struct kernel_rules *kernel)
{
	cleanup_arena struct arena *arena = arena_new(65536);
	const struct comparison comparison = {diff, wanted, kernel, arena};

	compare_table(&comparison, TABLE_NAT);
	compare_table(&comparison, TABLE_FILTER);
}

/* -- this host */

static bool has_invalid_rule(struct kernel_rules *kernel)
{
	const struct stored_chain *chain = kernel_rules_chain(kernel, TABLE_FILTER, CHAIN_FORWARD);

	for (size_t i = 0; chain && i < chain->n; i++) {
		const struct match *match = rule_match(&chain->v[i]->rule, MATCH_CTSTATE);

		if (match && match->ctstate & CTSTATE_INVALID)
			return true;
	}
	return false;
}

/* What a daemon would find here; what it found when it started counts where that makes a rule. */
static struct ruleset_host host_features(struct kernel_rules *kernel)
{
	struct ruleset_host features = {0};
	bool counters = nfacct_supported() == 1;
	struct nfacct_counter counter;
	int64_t be_liberal = 0;
	struct err ignored;

	features.nfacct_invalid =
		counters && nfacct_get(NULL, NFACCT_INVALID, &counter, &ignored) >= 0;
	features.nfacct_localhost =
		counters && nfacct_get(NULL, NFACCT_LOCALHOST, &counter, &ignored) >= 0;
	if (sysctl_read(SYSCTL_BE_LIBERAL, &be_liberal, &ignored) >= 0)
		features.be_liberal = be_liberal != 0 && !has_invalid_rule(kernel);
	return features;
}

static void rules_cleanup(struct rule_store **rules)
{
	rule_store_free(*rules);
}

/* Appends what is found; 1, or 0 with nothing appended if the rules were changed meanwhile. */
static int try_diff(struct diff *diff, const struct inspect_question *question, struct err *err)
{
	const struct settings *settings = question->settings;
	cleanup_kernel_rules struct kernel_rules *kernel = NULL;
	attr_cleanup(rules_cleanup) struct rule_store *wanted = rule_store_new(settings->family);
	cleanup_diff struct diff found = {0};
	struct ruleset_host features;
	int r = kernel_rules_open(settings->family, question->backend_host->variant, &kernel, err);

	if (r < 0)
		return r;
	features = host_features(kernel);
	iptables_rules_plan(wanted, settings, question->delta, question->host, &features);
	if (question->packet)
		packet_path_free(iptables_rules_walk(wanted, question->packet, question->host));
	diff_iptables_compare(&found, wanted, kernel);
	r = kernel_rules_end(kernel, err);
	if (r > 0)
		diff_move(diff, &found);
	return r;
}

int diff_iptables(struct diff *diff, const struct inspect_question *question, struct err *err)
{
	int r = 0;

	for (size_t tries = 0; r == 0 && tries < TRIES; tries++)
		r = try_diff(diff, question, err);
	if (r == 0)
		return err_set(err, -EAGAIN, "other programs change the rules without a pause");
	return MIN(r, 0);
}
