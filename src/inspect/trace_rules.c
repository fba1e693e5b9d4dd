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
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"

_Static_assert((int)HOOK_PREROUTING == NF_INET_PRE_ROUTING && (int)HOOK_INPUT == NF_INET_LOCAL_IN &&
		       (int)HOOK_FORWARD == NF_INET_FORWARD &&
		       (int)HOOK_OUTPUT == NF_INET_LOCAL_OUT &&
		       (int)HOOK_POSTROUTING == NF_INET_POST_ROUTING,
	       "hooks have the kernel's numbers");

struct chain_read {
	char *key; /* "2 nat KUBE-SERVICES" */
	bool has_hook;
	enum hook hook;
	bool has_rules; /* they have been asked for */
	uint64_t *handles;
	size_t n_handles, handles_capacity;
	const char **lines; /* as many as handles, or none */
	size_t n_lines, lines_capacity;
	struct arena *owned; /* holds the lines */
	enum family family;
	bool is_iptables; /* the words are those of iptables */
};

struct trace_rules {
	enum family family;
	struct nft_socket *socket;
	struct iptables_tool *tool; /* NULL: not needed yet, or not to be had */
	bool tool_tried;
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

/* -- rules as the kernel lists them */

static void add_line(struct chain_read *chain, const char *line)
{
	array_grow(&chain->lines, &chain->lines_capacity, chain->n_lines, sizeof(*chain->lines));
	chain->lines[chain->n_lines++] = arena_strdup(chain->owned, line);
}

static void add_words(struct chain_read *chain, const struct nlmsghdr *message)
{
	cleanup_text struct text text = {0};
	cleanup_free char *line = NULL;
	struct nft_rule rule;

	statement_read_rule(chain->owned, chain->family, message, &rule);
	statement_text_rule(&text, chain->family, &rule);
	line = text_dup(&text);
	add_line(chain, line);
}

static void forget_rules(void *arg)
{
	struct chain_read *chain = arg;

	chain->n_handles = chain->n_lines = 0;
}

static int take_rule(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	struct chain_read *chain = arg;
	uint64_t handle = 0;

	nft_message_u64(message, NFTA_RULE_HANDLE, &handle);
	array_grow(&chain->handles, &chain->handles_capacity, chain->n_handles, sizeof(handle));
	chain->handles[chain->n_handles++] = handle;
	if (!chain->is_iptables)
		add_words(chain, message);
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

/* -- rules as iptables lists them */

/* -P and -N come first, and are no rules. */
static void on_line(void *arg, const char *line, size_t length attr_unused)
{
	struct chain_read *chain = arg;

	if (has_prefix(line, "-A "))
		add_line(chain, line);
}

static void on_listed(void *arg, int r, struct err *err attr_unused)
{
	if (r < 0)
		((struct chain_read *)arg)->n_lines = 0;
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

static void list_chain(struct trace_rules *rules, const struct nft_trace *event,
		       struct chain_read *chain)
{
	struct err ignored; /* without the programs, rules are known by their handles */

	if (!rules->tool_tried)
		(void)iptables_tool_open(NULL, rules->family, IPTABLES_VARIANT_NFT, &rules->tool,
					 &ignored);
	rules->tool_tried = true;
	if (!rules->tool)
		return;
	iptables_tool_list(rules->tool, event->table, event->chain, on_line, on_listed, chain);
	iptables_tool_finish(rules->tool);
}

static void read_rules(struct trace_rules *rules, const struct nft_trace *event,
		       struct chain_read *chain)
{
	chain->family = rules->family;
	chain->is_iptables = is_iptables(rules, event);
	dump_rules(rules, event, chain);
	if (chain->is_iptables)
		list_chain(rules, event, chain);
	if (chain->n_lines != chain->n_handles)
		chain->n_lines = 0;
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

static size_t find_handle(const struct chain_read *chain, uint64_t handle)
{
	size_t i = 0;

	while (i < chain->n_handles && chain->handles[i] != handle)
		i++;
	return i;
}

/* A handle that is not known means that the chain is not what it was. */
static void tell_rule(void *arg, const struct nft_trace *event, struct trace_rule *ret)
{
	struct chain_read *chain = open_chain(arg, event);
	size_t at;

	if (!chain->has_rules || find_handle(chain, event->handle) == chain->n_handles)
		read_rules(arg, event, chain);
	at = find_handle(chain, event->handle);
	if (at == chain->n_handles)
		return;
	*ret = (struct trace_rule){
		.position = at + 1,
		.length = chain->n_handles,
		.text = chain->n_lines ? chain->lines[at] : NULL,
	};
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
		free(chain->handles);
		free(chain->lines);
		free(chain->key);
		free(chain);
	}
	map_done(&rules->chains);
	iptables_tool_close(rules->tool);
	nft_socket_free(rules->socket);
	free(rules);
	return NULL;
}
