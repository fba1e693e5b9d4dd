/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/diff_iptables.h"

#include <stdlib.h>

#include "backends/iptables/ruleset.h"
#include "base/arena.h"
#include "inspect/saved_rules.h"
#include "kernel/iptables_save.h"
#include "kernel/nfacct.h"
#include "kernel/sysctl.h"
#include "xtables/chains.h"

#define SYSCTL_BE_LIBERAL "net/netfilter/nf_conntrack_tcp_be_liberal"

struct comparison {
	struct diff *diff;
	struct iptables_rules *wanted;
	const struct saved_rules *kernel;
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

/* Entries of many Services, or of anybody: nobody promises an order. */
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

/* The words of a comment in a line of iptables-save; NULL: there is none. */
static const char *comment_of(const char *line, size_t *ret_n)
{
	static const char option[] = " --comment ";
	const char *at = strstr(line, option);

	if (!at)
		return NULL;
	at += strlen(option);
	if (*at != '"') {
		*ret_n = strcspn(at, " ");
		return at;
	}
	*ret_n = strcspn(++at, "\"");
	return at;
}

/* "namespace/name" in a comment, which may have ":port" behind; NULL: none. */
static const char *service_of(struct arena *arena, const char *line)
{
	size_t n = 0;
	const char *at = comment_of(line, &n);
	const char *end = at ? at + n : NULL;

	while (at < end) {
		size_t word = MIN(strcspn(at, " "), (size_t)(end - at));
		const char *slash = memchr(at, '/', word);

		if (slash && slash > at && slash + 1 < at + word)
			return arena_printf(arena, "%.*s", (int)MIN(strcspn(at, ":"), word), at);
		at += word + 1;
	}
	return NULL;
}

/* What is compared: in chains of a Service without the comment. */
static const char *key_of(struct arena *arena, const char *plain, bool comments)
{
	static const char match[] = " -m comment";
	size_t n = 0;
	const char *words = comment_of(plain, &n), *from = strstr(plain, match);

	if (comments || !words || !from || from > words)
		return arena_strdup(arena, plain);
	words += n + (words[n] == '"');
	return arena_printf(arena, "%.*s%s", (int)(from - plain), plain, words);
}

static void add_wanted(const struct comparison *comparison, const struct iptables_chain *chain,
		       struct diff_texts *ret)
{
	bool comments = !chain_is_per_service(chain->name);
	const uint64_t walks = comparison->wanted->walks;
	size_t n_ways = 0;

	for (size_t i = 0; i < chain->n; i++) {
		const char *text = iptables_rules_text(comparison->wanted, chain, chain->v[i]);
		cleanup_free char *plain = saved_rules_plain(text);
		struct diff_text *line =
			diff_texts_add(ret, key_of(comparison->arena, plain, comments), text,
				       chain->v[i]->service);

		line->unmet = chain->v[i]->met != walks;
		line->last = chain->v[i]->target.kind == TARGET_CHAIN &&
			     streq(chain->v[i]->target.chain, CHAIN_NODEPORTS) && i + 1 == chain->n;
		n_ways += chain->v[i]->target.kind == TARGET_CHAIN &&
			  streq(chain->v[i]->target.chain, CHAIN_NODEPORTS);
	}
	/* of several ways to NodePorts, one for each address, any may be the last */
	if (chain->n > 0 && n_ways != 1)
		ret->v[ret->n - 1].last = false;
}

static bool is_foreign(enum table table, const char *chain, const char *line)
{
	struct iptables_jump jump;

	if (!is_base(chain))
		return streq(chain, CHAIN_KUBELET_FIREWALL);
	return !iptables_save_jump(line, &jump) || !is_ours(table, jump.target);
}

static void add_kernel(const struct comparison *comparison, enum table table,
		       const struct saved_chain *chain, struct diff_texts *ret)
{
	bool comments = !chain_is_per_service(chain->name);

	for (size_t i = 0; i < chain->n; i++) {
		const struct saved_line *line = &chain->lines[i];
		struct diff_text *text =
			diff_texts_add(ret, key_of(comparison->arena, line->plain, comments),
				       line->text, service_of(comparison->arena, line->text));

		text->foreign = is_foreign(table, chain->name, line->text);
	}
}

/* -- in the way of a packet */

/* A packet that matches such a rule of a base chain is done with the chain. */
static bool ends_way(const struct iptables_jump *jump)
{
	static const char *const targets[] = {
		"ACCEPT", "DROP",     "REJECT",     "RETURN", "QUEUE",  "NFQUEUE",
		"DNAT",   "REDIRECT", "MASQUERADE", "SNAT",   "NETMAP", "SYNPROXY",
	};

	return jump->goes || is_one_of(jump->target, targets, ARRAY_SIZE(targets));
}

/* Is it for connections that are known? The packet in question opens one. */
static bool is_for_known(const char *line)
{
	static const char *const options[] = {" --ctstate ", " --state "};
	static const char *const known[] = {"RELATED,ESTABLISHED ", "ESTABLISHED,RELATED ",
					    "ESTABLISHED ", "RELATED "};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const char *at = strstr(line, options[i]);

		if (!at || at == line || at[-1] == '!')
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(known); j++)
			if (has_prefix(at + strlen(options[i]), known[j]))
				return true;
	}
	return false;
}

/* Rules of other programs before the last of ours: behind it, whatever we do with a packet is done. */
static void put_obstacles(const struct comparison *comparison, enum table table,
			  const struct saved_chain *chain)
{
	size_t n = chain->n;

	while (n > 0 && is_foreign(table, chain->name, chain->lines[n - 1].text))
		n--;
	for (size_t i = 0; i < n; i++) {
		const char *line = chain->lines[i].text;
		struct iptables_jump jump;

		if (is_foreign(table, chain->name, line) && iptables_save_jump(line, &jump) &&
		    !is_for_known(line))
			diff_put_obstacle(comparison->diff, table_name(table), chain->name, line,
					  ends_way(&jump));
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
	const struct iptables_chain *wanted = iptables_rules_chain(comparison->wanted, table, name);
	const struct saved_chain *kernel =
		saved_rules_chain(comparison->kernel, table_name(table), name);
	cleanup_diff_texts struct diff_texts left = {0}, right = {0};
	const struct diff_place place = {comparison->wanted->family, table_name(table), "chain",
					 name};

	if (wanted)
		add_wanted(comparison, wanted, &left);
	if (kernel)
		add_kernel(comparison, table, kernel, &right);
	if (kernel && is_base(name) && comparison->wanted->walks > 0)
		put_obstacles(comparison, table, kernel);
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
	cleanup_free char *prefix = xasprintf("%s ", table_name(table));
	struct names names = {0};
	const struct iptables_chain *wanted;
	const struct saved_chain *kernel;
	size_t at = 0;

	while ((wanted = map_next(&comparison->wanted->chains[table], &at)))
		if (wanted->met == comparison->wanted->walks)
			add_name(&names, wanted->name);
	at = 0;
	while (comparison->wanted->walks == 0 &&
	       (kernel = saved_rules_next(comparison->kernel, &at)))
		if (has_prefix(kernel->key, prefix) &&
		    (is_base(kernel->name) || is_ours(table, kernel->name)) &&
		    !iptables_rules_chain(comparison->wanted, table, kernel->name))
			add_name(&names, kernel->name);
	if (names.n > 1)
		qsort(names.v, names.n, sizeof(*names.v), compare_names);
	for (size_t i = 0; i < names.n; i++)
		compare_chain(comparison, table, names.v[i]);
	free(names.v);
}

void diff_iptables_compare(struct diff *diff, struct iptables_rules *wanted,
			   const struct saved_rules *kernel)
{
	cleanup_arena struct arena *arena = arena_new(65536);
	const struct comparison comparison = {diff, wanted, kernel, arena};

	compare_table(&comparison, TABLE_NAT);
	compare_table(&comparison, TABLE_FILTER);
}

/* -- this host */

static bool has_invalid_rule(const struct saved_rules *kernel)
{
	const struct saved_chain *chain = saved_rules_chain(kernel, "filter", CHAIN_FORWARD);

	for (size_t i = 0; chain && i < chain->n; i++)
		if (strstr(chain->lines[i].text, "--ctstate INVALID"))
			return true;
	return false;
}

/* What a daemon would find here; what it found when it started counts where that makes a rule. */
static struct ruleset_host host_features(const struct saved_rules *kernel)
{
	struct ruleset_host features = {.random_fully = true};
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

static void rules_cleanup(struct iptables_rules **rules)
{
	iptables_rules_free(*rules);
}

int diff_iptables(struct diff *diff, const struct settings *settings,
		  const struct plan_delta *delta, const struct host *host,
		  enum iptables_variant variant, const struct packet *packet, struct err *err)
{
	cleanup_saved_rules struct saved_rules *kernel = NULL;
	attr_cleanup(rules_cleanup) struct iptables_rules *wanted =
		iptables_rules_new(settings->family);
	struct ruleset_host features;
	int r = saved_rules_read(settings->family, variant, &kernel, err);

	if (r < 0)
		return r;
	features = host_features(kernel);
	iptables_rules_plan(wanted, settings, delta, host, &features);
	if (packet)
		way_free(iptables_rules_walk(wanted, packet, host));
	diff_iptables_compare(diff, wanted, kernel);
	return 0;
}
