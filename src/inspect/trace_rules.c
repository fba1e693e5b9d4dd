/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/trace_rules.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <net/if.h>
#include <stdlib.h>

#include "backends/nftables/statement_read.h"
#include "backends/nftables/statement_text.h"
#include "base/map.h"
#include "kernel/iptables_tool.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_expr.h"
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"
#include "xtables/nft_rule.h"
#include "xtables/rule_text.h"

_Static_assert((int)HOOK_PREROUTING == NF_INET_PRE_ROUTING && (int)HOOK_INPUT == NF_INET_LOCAL_IN &&
		       (int)HOOK_FORWARD == NF_INET_FORWARD &&
		       (int)HOOK_OUTPUT == NF_INET_LOCAL_OUT &&
		       (int)HOOK_POSTROUTING == NF_INET_POST_ROUTING,
	       "hooks have the kernel's numbers");

struct rule_read {
	uint64_t handle;
	struct trace_rule rule;
};

struct chain_read {
	char *key; /* "2 nat KUBE-SERVICES" */
	bool has_hook;
	enum hook hook;
	bool has_rules; /* they have been asked for */
	struct rule_read *v;
	size_t n, capacity;
	struct arena *owned; /* holds texts of rules */
	enum family family;
	bool is_iptables; /* the words are those of iptables */
};

struct trace_rules {
	enum family family;
	struct nft_socket *socket;
	struct map chains; /* by key */
};

/* -- where a base chain hangs */

static int take_chain(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	struct nl_attrs nest = nl_attr_nest(nft_message_attr(message, NFTA_CHAIN_HOOK));
	struct chain_read *chain = arg;
	uint32_t hook;

	if (nl_attr_copy(nl_attr_find(nest, NFTA_HOOK_HOOKNUM), &hook, sizeof(hook))) {
		chain->has_hook = ntohl(hook) < HOOK_COUNT;
		chain->hook = (enum hook)ntohl(hook);
	}
	return 0;
}

static void read_hook(struct trace_rules *rules, const struct nft_trace *event,
		      struct chain_read *chain)
{
	static const struct nft_dump_ops ops = {.message = take_chain};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETCHAIN,
		.nfproto = event->nfproto,
		.table = event->table,
		.chain = event->chain,
		.one = true,
	};
	struct err ignored; /* a chain that is gone has no hook */

	(void)nft_dump(rules->socket, &request, &ops, chain, &ignored);
}

/* -- what a rule does */

/* By the name of an expression, or of a target of iptables, whichever program wrote it. */
static enum effect effect_of_name(const char *name)
{
	static const struct {
		const char *name;
		enum effect effect;
	} names[] = {
		{"redir", EFFECT_TRANSLATE},       {"masq", EFFECT_MASQUERADE},
		{"reject", EFFECT_REJECT},         {"DNAT", EFFECT_TRANSLATE},
		{"REDIRECT", EFFECT_TRANSLATE},    {"SNAT", EFFECT_MASQUERADE},
		{"MASQUERADE", EFFECT_MASQUERADE}, {"MARK", EFFECT_MARK},
		{"REJECT", EFFECT_REJECT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(names[i].name, name))
			return names[i].effect;
	return 0;
}

static enum effect effect_of_raw(const struct statement *statement)
{
	struct nl_attrs list = {statement->raw, statement->raw_size};
	enum effect effect = 0;
	struct nft_expr expr;

	while (nft_expr_next(&list, &expr) > 0) {
		if (streq(expr.name, "nat"))
			effect = nl_attr_u32(expr.v[NFTA_NAT_TYPE]) == NFT_NAT_DNAT
					 ? EFFECT_TRANSLATE
					 : EFFECT_MASQUERADE;
		else if (effect_of_name(expr.name))
			effect = effect_of_name(expr.name);
	}
	return effect;
}

static void read_statements(const struct nft_rule *rule, struct trace_rule *ret)
{
	static const enum effect effects[STATEMENT_COUNT] = {
		[STATEMENT_SET_MARK] = EFFECT_MARK,  [STATEMENT_UPDATE] = EFFECT_REMEMBER,
		[STATEMENT_DNAT] = EFFECT_TRANSLATE, [STATEMENT_MASQUERADE] = EFFECT_MASQUERADE,
		[STATEMENT_REJECT] = EFFECT_REJECT,  [STATEMENT_RESET] = EFFECT_REJECT,
	};

	for (size_t i = 0; i < rule->n; i++) {
		const struct statement *statement = &rule->v[i];
		enum effect effect = statement->kind == STATEMENT_RAW ? effect_of_raw(statement)
								      : effects[statement->kind];

		ret->effect = effect ? effect : ret->effect;
		if (statement->kind == STATEMENT_DNAT &&
		    (statement->container == CONTAINER_AFFINITY_ENDPOINTS ||
		     statement->container == CONTAINER_LOCAL_AFFINITY_ENDPOINTS))
			ret->recalls = true;
	}
}

static void read_iptables(struct arena *arena, enum family family, const struct rule *rule,
			  struct trace_rule *ret)
{
	static const enum effect effects[TARGET_COUNT] = {
		[TARGET_MARK_OR] = EFFECT_MARK,   [TARGET_MARK_XOR] = EFFECT_UNMARK,
		[TARGET_DNAT] = EFFECT_TRANSLATE, [TARGET_MASQUERADE] = EFFECT_MASQUERADE,
		[TARGET_REJECT] = EFFECT_REJECT,
	};
	const struct target *target = &rule->target;
	char text[ADDR_PORT_TEXT_MAX], words[RULE_TEXT_MAX];

	if (!rule_is_foreign(rule)) {
		rule_print(rule, rule_form_save(family), words);
		ret->text = arena_strdup(arena, words);
	}
	ret->effect = target->kind == TARGET_OTHER ? effect_of_name(target->chain)
						   : effects[target->kind];
	for (size_t i = 0; i < rule->n_matches; i++) {
		if (rule->matches[i].kind == MATCH_RECENT_CHECK)
			ret->recalls = true;
		if (rule->matches[i].kind == MATCH_RECENT_SET && !ret->effect)
			ret->effect = EFFECT_REMEMBER;
	}
	if (target->kind == TARGET_DNAT) {
		addr_port_print(&target->dnat.addr, target->dnat.port, text);
		ret->target = arena_strdup(arena, text);
	}
}

/* -- rules as the kernel lists them */

void trace_rules_read(struct arena *arena, enum family family, bool is_iptables,
		      const struct nlmsghdr *message, struct trace_rule *ret)
{
	cleanup_text struct text text = {0};
	struct nft_rule_read xtables;
	struct nft_rule rule;

	*ret = (struct trace_rule){0};
	if (is_iptables) {
		if (nft_rule_read(message, &xtables) == 0)
			read_iptables(arena, family, &xtables.rule, ret);
		return;
	}
	statement_read_rule(arena, family, message, &rule);
	read_statements(&rule, ret);
	statement_text_rule(&text, family, &rule);
	ret->text = text_keep(&text, arena);
}

static void forget_rules(void *arg)
{
	struct chain_read *chain = arg;

	chain->n = 0;
}

static int take_rule(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	struct chain_read *chain = arg;
	struct rule_read *read;

	array_grow(&chain->v, &chain->capacity, chain->n, sizeof(*chain->v));
	read = &chain->v[chain->n++];
	read->handle = 0;
	nft_message_u64(message, NFTA_RULE_HANDLE, &read->handle);
	trace_rules_read(chain->owned, chain->family, chain->is_iptables, message, &read->rule);
	return 0;
}

static void dump_rules(struct trace_rules *rules, const struct nft_trace *event,
		       struct chain_read *chain)
{
	static const struct nft_dump_ops ops = {.restart = forget_rules, .message = take_rule};
	const struct nft_dump_request request = {
		.type = NFT_MSG_GETRULE,
		.nfproto = event->nfproto,
		.table = event->table,
		.chain = event->chain,
	};
	struct err ignored;

	forget_rules(chain);
	if (nft_dump(rules->socket, &request, &ops, chain, &ignored) < 0)
		forget_rules(chain);
}

static bool is_iptables(const struct trace_rules *rules, const struct nft_trace *event)
{
	static const char *const tables[] = {"filter", "nat", "mangle", "raw", "security"};

	if (event->nfproto != nft_family(rules->family))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (streq(tables[i], event->table))
			return true;
	return false;
}

/* Rules of other programs have the words of iptables. */
static void list_chain(const struct trace_rules *rules, const struct nft_trace *event,
		       struct chain_read *chain)
{
	const char **words = NULL;
	bool foreign = false;

	for (size_t i = 0; i < chain->n; i++)
		foreign = foreign || !chain->v[i].rule.text;
	if (foreign)
		words = iptables_tool_words(rules->family, event->table, event->chain, chain->n,
					    chain->owned);
	for (size_t i = 0; words && i < chain->n; i++)
		if (!chain->v[i].rule.text)
			chain->v[i].rule.text = words[i];
}

static void read_rules(struct trace_rules *rules, const struct nft_trace *event,
		       struct chain_read *chain)
{
	chain->family = rules->family;
	chain->is_iptables = is_iptables(rules, event);
	dump_rules(rules, event, chain);
	if (chain->is_iptables)
		list_chain(rules, event, chain);
	for (size_t i = 0; i < chain->n; i++) {
		chain->v[i].rule.position = i + 1;
		chain->v[i].rule.length = chain->n;
	}
	chain->has_rules = true;
}

/* -- what a trace asks */

static struct chain_read *open_chain(struct trace_rules *rules, const struct nft_trace *event)
{
	char *key = xasprintf("%u %s %s", event->nfproto, event->table, event->chain);
	struct chain_read *chain = map_get(&rules->chains, key);

	if (chain) {
		free(key);
		return chain;
	}
	chain = xcalloc(1, sizeof(*chain));
	chain->key = key;
	chain->owned = arena_new(1024);
	map_set(&rules->chains, chain->key, chain);
	return chain;
}

static bool tell_hook(void *arg, const struct nft_trace *event, enum hook *ret)
{
	struct chain_read *chain = open_chain(arg, event);

	if (!chain->has_hook)
		read_hook(arg, event, chain);
	if (chain->has_hook)
		*ret = chain->hook;
	return chain->has_hook;
}

static const struct rule_read *find_handle(const struct chain_read *chain, uint64_t handle)
{
	for (size_t i = 0; i < chain->n; i++)
		if (chain->v[i].handle == handle)
			return &chain->v[i];
	return NULL;
}

/* A handle that is not known means that the chain is not what it was. */
static void tell_rule(void *arg, const struct nft_trace *event, struct trace_rule *ret)
{
	struct chain_read *chain = open_chain(arg, event);
	const struct rule_read *found;

	if (!chain->has_rules || !find_handle(chain, event->handle))
		read_rules(arg, event, chain);
	found = find_handle(chain, event->handle);
	if (found)
		*ret = found->rule;
}

static bool tell_interface(void *arg attr_unused, uint32_t index,
			   char name[static PACKET_INTERFACE_MAX])
{
	return if_indextoname(index, name);
}

const struct trace_ops trace_rules_ops = {
	.hook = tell_hook,
	.rule = tell_rule,
	.interface = tell_interface,
};

_Static_assert(PACKET_INTERFACE_MAX >= IF_NAMESIZE, "names fit");

/* -- */

int trace_rules_open(enum family family, struct trace_rules **ret, struct err *err)
{
	struct nft_socket *socket = NULL;
	int r = nft_socket_open(&socket, err);

	if (r < 0)
		return r;
	*ret = xcalloc(1, sizeof(**ret));
	(*ret)->family = family;
	(*ret)->socket = socket;
	return 0;
}

struct trace_rules *trace_rules_free(struct trace_rules *rules)
{
	struct chain_read *chain;
	size_t at = 0;

	if (!rules)
		return NULL;
	while ((chain = map_next(&rules->chains, &at))) {
		arena_free(chain->owned);
		free(chain->v);
		free(chain->key);
		free(chain);
	}
	map_done(&rules->chains);
	nft_socket_free(rules->socket);
	free(rules);
	return NULL;
}
