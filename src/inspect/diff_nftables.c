/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/diff_nftables.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "backends/nftables/layout.h"
#include "backends/nftables/localhost/localhost_policy.h"
#include "backends/nftables/named_counter.h"
#include "backends/nftables/state.h"
#include "backends/nftables/statement_read.h"
#include "backends/nftables/statement_text.h"
#include "backends/nftables/table.h"
#include "base/arena.h"
#include "inspect/diff_elements.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"

struct comparison {
	struct diff *diff;
	const struct settings *settings;
	struct nftables_rules *wanted;
	struct nft_socket *socket;
	enum family family;
	struct arena *arena;   /* of texts and names, until the end */
	struct map chains;     /* struct kernel_chain by name */
	struct map containers; /* "map" or "set" by name */
	struct table_counters counters;
};

struct kernel_chain {
	const char *name;
	const char *declaration; /* NULL: it hangs at no hook */
	uint32_t hook;           /* if it does */
};

static struct diff_place place_of(const struct comparison *comparison, const char *kind,
				  const char *name)
{
	return (struct diff_place){comparison->family, LAYOUT_TABLE, kind, name};
}

/* A dump of a table that is not there is empty. */
static int dump(const struct comparison *comparison, uint16_t type, const char *chain,
		const struct nft_dump_ops *ops, void *arg, struct err *err)
{
	const struct nft_dump_request request = {
		.type = type,
		.family = comparison->family,
		.table = LAYOUT_TABLE,
		.chain = chain,
	};
	int r = nft_dump(comparison->socket, &request, ops, arg, err);

	return r == -ENOENT ? 0 : r;
}

/* -- what there is */

#define DECLARATION "type %s hook %s priority %d; policy %s;"

static const char *declaration_of(struct arena *arena, const struct nlmsghdr *message,
				  uint32_t *ret_hook)
{
	const struct nlattr *hook = nft_message_attr(message, NFTA_CHAIN_HOOK);
	const char *type = nft_message_string(message, NFTA_CHAIN_TYPE);
	const struct nlattr *v[NFTA_HOOK_PRIORITY + 1];
	uint32_t number, policy = NF_ACCEPT;

	if (!hook)
		return NULL;
	nl_attr_by_type(nl_attr_nest(hook), v, NFTA_HOOK_PRIORITY);
	number = nl_attr_u32(v[NFTA_HOOK_HOOKNUM]);
	nft_message_u32(message, NFTA_CHAIN_POLICY, &policy);
	*ret_hook = number;
	return arena_printf(arena, DECLARATION, type ? type : "?",
			    number < HOOK_COUNT ? hook_name((enum hook)number) : "?",
			    (int)nl_attr_u32(v[NFTA_HOOK_PRIORITY]),
			    policy == NF_ACCEPT ? "accept" : "drop");
}

static void forget_chains(void *arg)
{
	map_done(&((struct comparison *)arg)->chains);
}

static int take_chain(void *arg, const struct nlmsghdr *message, struct err *err)
{
	struct comparison *comparison = arg;
	const char *name = nft_message_string(message, NFTA_CHAIN_NAME);
	struct kernel_chain *chain;

	if (!name)
		return err_set(err, -EBADMSG, "the kernel lists a chain without a name");
	chain = arena_alloc(comparison->arena, sizeof(*chain));
	chain->name = arena_strdup(comparison->arena, name);
	chain->declaration = declaration_of(comparison->arena, message, &chain->hook);
	map_set(&comparison->chains, chain->name, chain);
	return 0;
}

static void forget_containers(void *arg)
{
	map_done(&((struct comparison *)arg)->containers);
}

static int take_container(void *arg, const struct nlmsghdr *message, struct err *err)
{
	static char map[] = "map", set[] = "set";
	struct comparison *comparison = arg;
	const char *name = nft_message_string(message, NFTA_SET_NAME);
	uint32_t flags = 0;
	char *copy;

	if (!name)
		return err_set(err, -EBADMSG, "the kernel lists a set without a name");
	nft_message_u32(message, NFTA_SET_FLAGS, &flags);
	if (flags & NFT_SET_ANONYMOUS)
		return 0;
	copy = arena_strdup(comparison->arena, name);
	map_set(&comparison->containers, copy, flags & NFT_SET_MAP ? map : set);
	return 0;
}

static int read_table(struct comparison *comparison, struct err *err)
{
	static const struct nft_dump_ops chains = {.restart = forget_chains, .message = take_chain};
	static const struct nft_dump_ops containers = {.restart = forget_containers,
						       .message = take_container};
	int r = dump(comparison, NFT_MSG_GETCHAIN, NULL, &chains, comparison, err);

	if (r == 0)
		r = dump(comparison, NFT_MSG_GETSET, NULL, &containers, comparison, err);
	if (r == 0)
		r = table_read_counters(comparison->socket, comparison->family,
					&comparison->counters, err);
	return r;
}

/* -- rules */

struct rule_list {
	const struct comparison *comparison;
	const struct nftables_chain *wanted; /* NULL: the chain is not wanted */
	struct diff_texts texts;
};

static void forget_rules(void *arg)
{
	diff_texts_done(&((struct rule_list *)arg)->texts);
}

/* The words of the wanted rule that it is; no rule has none. */
static const char *key_of(const struct rule_list *list, const struct nft_rule *rule)
{
	for (size_t i = 0; list->wanted && i < list->wanted->n; i++)
		if (nft_rule_equal(&list->wanted->v[i]->rule, rule))
			return nftables_rules_text(list->comparison->wanted, list->wanted->v[i]);
	return "";
}

static int take_rule(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	struct rule_list *list = arg;
	struct arena *arena = list->comparison->arena;
	cleanup_text struct text text = {0};
	struct nft_rule rule;

	statement_read_rule(arena, list->comparison->family, message, &rule);
	statement_text_rule(&text, list->comparison->family, &rule);
	diff_texts_add(&list->texts, key_of(list, &rule), text_keep(&text, arena), NULL);
	return 0;
}

static int read_rules(const struct comparison *comparison, const char *chain,
		      const struct nftables_chain *wanted, struct diff_texts *ret, struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = forget_rules, .message = take_rule};
	struct rule_list list = {.comparison = comparison, .wanted = wanted};
	int r = dump(comparison, NFT_MSG_GETRULE, chain, &ops, &list, err);

	if (r < 0)
		diff_texts_done(&list.texts);
	else
		*ret = list.texts;
	return r;
}

static void wanted_rules(const struct comparison *comparison, const struct nftables_chain *chain,
			 struct diff_texts *ret)
{
	for (size_t i = 0; i < chain->n; i++) {
		const char *text = nftables_rules_text(comparison->wanted, chain->v[i]);

		diff_texts_add(ret, text, text, NULL);
	}
}

static void put_chain(const struct comparison *comparison, const struct diff_place *place,
		      char sign, const char *declaration, const struct diff_texts *texts)
{
	size_t at[DIFF_SIDES] = {0}, *number = &at[sign == '-' ? DIFF_WANTED : DIFF_KERNEL];
	cleanup_free char *plain = xasprintf("%s %s", place->kind, place->name);

	diff_put(comparison->diff, place, sign, at, declaration ? declaration : plain, NULL);
	for (size_t i = 0; texts && i < texts->n; i++) {
		*number = i + 1;
		diff_put(comparison->diff, place, sign, at, texts->v[i].text, NULL);
	}
}

/* -- chains */

static const char *wanted_declaration(const struct comparison *comparison, struct chain chain)
{
	const struct chain_hook *hook = chain_hook(chain.id);

	return hook ? arena_printf(comparison->arena, DECLARATION, hook->type, hook->hook,
				   hook->priority, "accept")
		    : NULL;
}

static void compare_declarations(const struct comparison *comparison,
				 const struct diff_place *place, const char *wanted,
				 const char *kernel)
{
	const char *none = "(at no hook)";
	size_t at[DIFF_SIDES] = {0};

	wanted = wanted ? wanted : none;
	kernel = kernel ? kernel : none;
	if (streq(wanted, kernel))
		return;
	diff_put(comparison->diff, place, '-', at, wanted, NULL);
	at[DIFF_WANTED] = 1;
	diff_put(comparison->diff, place, '+', at, kernel, NULL);
}

static int compare_chain(const struct comparison *comparison, const struct nftables_chain *chain,
			 struct err *err)
{
	const struct diff_place place = place_of(comparison, "chain", chain->name);
	const struct kernel_chain *found = map_get(&comparison->chains, chain->name);
	const char *declaration = wanted_declaration(comparison, chain->chain);
	cleanup_diff_texts struct diff_texts wanted = {0}, kernel = {0};
	int r;

	wanted_rules(comparison, chain, &wanted);
	if (!found) {
		put_chain(comparison, &place, '-', declaration, &wanted);
		return 0;
	}
	r = read_rules(comparison, chain->name, chain, &kernel, err);
	if (r < 0)
		return r;
	compare_declarations(comparison, &place, declaration, found->declaration);
	diff_ordered(comparison->diff, &place, &wanted, &kernel);
	return 0;
}

/* One that is not wanted. Those with a number stay for a while. */
static int add_chain(const struct comparison *comparison, const struct kernel_chain *chain,
		     struct err *err)
{
	const struct diff_place place = place_of(comparison, "chain", chain->name);
	cleanup_diff_texts struct diff_texts kernel = {0};
	struct chain known;
	int r;

	if (chain_parse(chain->name, &known) && known.id >= CHAIN_PICK &&
	    known.id < CHAIN_PICKS_END)
		return 0;
	r = read_rules(comparison, chain->name, NULL, &kernel, err);
	if (r < 0)
		return r;
	put_chain(comparison, &place, '+', chain->declaration, &kernel);
	return 0;
}

static int compare_by_id(const void *left, const void *right)
{
	const struct nftables_chain *const *a = left, *const *b = right;

	if ((*a)->chain.id != (*b)->chain.id)
		return (*a)->chain.id < (*b)->chain.id ? -1 : 1;
	return ((*a)->chain.number > (*b)->chain.number) -
	       ((*a)->chain.number < (*b)->chain.number);
}

static int compare_wanted_chains(const struct comparison *comparison, struct err *err)
{
	const struct map *map = &comparison->wanted->chains;
	cleanup_free const struct nftables_chain **v = xcalloc(map->count + 1, sizeof(*v));
	const struct nftables_chain *chain;
	size_t n = 0, at = 0;
	int r = 0;

	while ((chain = map_next(map, &at)))
		if (nftables_rules_met(comparison->wanted, chain))
			v[n++] = chain;
	qsort(v, n, sizeof(*v), compare_by_id);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = compare_chain(comparison, v[i], err);
	return r;
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Keys of a map, sorted; an array for the caller to free. */
static const char **sorted_keys(const struct map *map)
{
	const char **v = xcalloc(map->count + 1, sizeof(*v)), *key;
	size_t n = 0, at = 0;

	while ((key = map_next_key(map, &at)))
		v[n++] = key;
	qsort(v, n, sizeof(*v), compare_names);
	return v;
}

/* Does it hang where a chain hangs that the packet in question met? Others lead nowhere. */
static bool is_met(const struct comparison *comparison, const struct kernel_chain *chain)
{
	const struct nftables_chain *wanted;
	size_t at = 0;

	if (comparison->wanted->walks == 0)
		return true;
	while (chain->declaration && (wanted = map_next(&comparison->wanted->chains, &at))) {
		const struct chain_hook *hook = chain_hook(wanted->chain.id);

		if (hook && hook->hook_number == chain->hook &&
		    nftables_rules_met(comparison->wanted, wanted))
			return true;
	}
	return false;
}

static int compare_chains(const struct comparison *comparison, struct err *err)
{
	cleanup_free const char **names = sorted_keys(&comparison->chains);
	int r = compare_wanted_chains(comparison, err);

	for (size_t i = 0; r == 0 && i < comparison->chains.count; i++) {
		const struct kernel_chain *chain = map_get(&comparison->chains, names[i]);

		if (!map_get(&comparison->wanted->chains, names[i]) && is_met(comparison, chain))
			r = add_chain(comparison, chain, err);
	}
	return r;
}

/* -- sets and maps */

static int read_elements(const struct comparison *comparison, enum container container,
			 struct diff_elements *ret, struct err *err)
{
	static const struct nft_dump_ops ops = {.restart = diff_elements_restart,
						.message = diff_elements_take};

	diff_elements_init(ret, comparison->family, container);
	return dump(comparison, NFT_MSG_GETSETELEM, container_types[container].name, &ops, ret,
		    err);
}

static int compare_container(const struct comparison *comparison, enum container container,
			     struct err *err)
{
	const struct container_type *type = &container_types[container];
	const struct diff_place place =
		place_of(comparison, type->data == DATA_NONE ? "set" : "map", type->name);
	struct diff_elements kernel;
	int r;

	if (!map_get(&comparison->containers, type->name))
		put_chain(comparison, &place, '-', NULL, NULL);
	if (type->dynamic)
		return 0;
	r = read_elements(comparison, container, &kernel, err);
	if (r == 0)
		diff_elements_compare(comparison->diff, &place, comparison->wanted, &kernel);
	diff_elements_done(&kernel);
	return r;
}

static bool is_asked(const struct nftables_rules *wanted, enum container container)
{
	for (size_t i = 0; i < wanted->asked.n; i++)
		if (wanted->asked.v[i].container == container)
			return true;
	return wanted->walks == 0;
}

/* Packets write what is in them. */
static void compare_clients(const struct comparison *comparison)
{
	cleanup_free const char **names = sorted_keys(&comparison->wanted->clients);

	for (size_t i = 0; i < comparison->wanted->clients.count; i++) {
		const struct diff_place place = place_of(comparison, "map", names[i]);

		if (!map_get(&comparison->containers, names[i]))
			put_chain(comparison, &place, '-', NULL, NULL);
	}
}

/* One of the layout's own that these settings ask for, not one of a service port. */
static bool is_fixed(const struct comparison *comparison, const char *name)
{
	enum container container;
	uint32_t number;

	return container_parse(name, &container, &number) && container < CONTAINER_FIXED_COUNT &&
	       layout_has_container(comparison->settings, container);
}

static void add_containers(const struct comparison *comparison)
{
	cleanup_free const char **names = sorted_keys(&comparison->containers);

	for (size_t i = 0; i < comparison->containers.count; i++) {
		const struct diff_place place =
			place_of(comparison, map_get(&comparison->containers, names[i]), names[i]);

		if (!is_fixed(comparison, names[i]) &&
		    !map_get(&comparison->wanted->clients, names[i]))
			put_chain(comparison, &place, '+', NULL, NULL);
	}
}

/* What they have counted does not count. */
static void compare_counters(const struct comparison *comparison)
{
	for (enum protocol i = 0; i < PROTOCOL_COUNT; i++) {
		bool wanted = localhost_is_refused(comparison->settings, i);
		char name[NAMED_COUNTER_MAX];
		struct diff_place place;

		named_counter_name(i, name);
		place = place_of(comparison, "counter", name);
		if (wanted != comparison->counters.there[i])
			put_chain(comparison, &place, wanted ? '-' : '+', NULL, NULL);
	}
}

static int compare_all(struct comparison *comparison, struct err *err)
{
	int r = read_table(comparison, err);

	if (r == 0)
		r = compare_chains(comparison, err);
	for (enum container c = 0; r == 0 && c < CONTAINER_FIXED_COUNT; c++)
		if (layout_has_container(comparison->settings, c) &&
		    is_asked(comparison->wanted, c))
			r = compare_container(comparison, c, err);
	if (r == 0 && comparison->wanted->walks == 0) {
		compare_clients(comparison);
		add_containers(comparison);
		compare_counters(comparison);
	}
	map_done(&comparison->chains);
	map_done(&comparison->containers);
	return r;
}

/* -- */

static void rules_cleanup(struct nftables_rules **rules)
{
	nftables_rules_free(*rules);
}

/* With the ids that the kernel has, so that whatever has them in it can be compared. */
static int plan(struct nftables_rules *rules, struct nft_socket *socket,
		const struct settings *settings, const struct plan_delta *delta,
		const struct host *host, struct err *err)
{
	struct state *state = state_new(settings);
	int r = table_find_ids(socket, settings->family, state_affinity_ids(state), err);

	if (r == -ENOENT)
		r = 0;
	if (r == 0)
		nftables_rules_plan_state(rules, state, delta, host);
	state_free(state);
	return r;
}

int diff_nftables(struct diff *diff, const struct settings *settings,
		  const struct plan_delta *delta, const struct host *host,
		  const struct packet *packet, struct err *err)
{
	cleanup_nft_socket struct nft_socket *socket = NULL;
	cleanup_arena struct arena *arena = arena_new(65536);
	attr_cleanup(rules_cleanup) struct nftables_rules *wanted =
		nftables_rules_new(settings->family);
	struct comparison comparison = {.diff = diff,
					.settings = settings,
					.wanted = wanted,
					.family = settings->family,
					.arena = arena};
	int r = nft_socket_open(&socket, err);

	if (r == 0)
		r = plan(wanted, socket, settings, delta, host, err);
	if (r < 0)
		return r;
	comparison.socket = socket;
	if (packet)
		packet_path_free(nftables_rules_walk(wanted, packet, host));
	return compare_all(&comparison, err);
}
