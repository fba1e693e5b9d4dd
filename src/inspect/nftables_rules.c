/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/nftables_rules.h"

#include <assert.h>
#include <stdlib.h>

#include "backends/nftables/layout.h"
#include "backends/nftables/state.h"
#include "backends/nftables/statement_text.h"
#include "backends/nftables/table.h"
#include "kernel/nft_socket.h"

struct nftables_chain *nftables_rules_chain(const struct nftables_rules *rules, struct chain chain)
{
	char name[CHAIN_NAME_MAX];

	chain_name(chain, name);
	return map_get(&rules->chains, name);
}

/* -- the writer */

static void tell_clients(struct writer *writer, const struct clients_map *map)
{
	struct nftables_rules *rules = (struct nftables_rules *)writer;
	char name[CONTAINER_NAME_MAX];
	char *copy;

	container_name(map->container, map->number, name);
	copy = arena_strdup(rules->arena, name);
	map_set(&rules->clients, copy, copy);
}

static void tell_chain(struct writer *writer, struct chain chain)
{
	struct nftables_rules *rules = (struct nftables_rules *)writer;
	struct nftables_chain *added;

	if (nftables_rules_chain(rules, chain))
		return;
	added = arena_alloc(rules->arena, sizeof(*added));
	added->chain = chain;
	chain_name(chain, added->name);
	map_set(&rules->chains, added->name, added);
}

static void tell_rule(struct writer *writer, const struct nft_rule *rule)
{
	struct nftables_rules *rules = (struct nftables_rules *)writer;
	struct nftables_chain *chain = nftables_rules_chain(rules, rule->chain);
	struct nftables_rule *kept = arena_alloc(rules->arena, sizeof(*kept));

	assert(chain);      /* it is told before its rules */
	kept->rule = *rule; /* what it names are words of the layout, or settings */
	array_grow(&chain->v, &chain->capacity, chain->n, sizeof(*chain->v));
	chain->v[chain->n++] = kept;
	kept->position = chain->n;
}

static void tell_add(struct writer *writer, const struct element *element)
{
	struct nftables_rules *rules = (struct nftables_rules *)writer;
	struct element kept = *element;

	if (element->comment)
		kept.comment = arena_strdup(rules->arena, element->comment);
	element_list_add(&rules->elements, &kept);
	rules->sorted = false;
}

/* Of a full sync, which makes all of it anew: nothing is removed. */
static const struct writer_ops keeping = {
	.clients = tell_clients,
	.chain = tell_chain,
	.rule = tell_rule,
	.add = tell_add,
};

void nftables_rules_plan_state(struct nftables_rules *rules, struct state *state,
			       const struct plan_delta *delta, const struct host *host)
{
	state_begin(state, &(struct state_input){.delta = delta,
						 .full = true,
						 .addresses = host->addresses,
						 .n_addresses = host->n_addresses});
	state_write_chains(state, &rules->writer);
	state_write_elements(state, &rules->writer);
}

/* Where they cannot be read, those of a first sync are as good. */
static void find_ids(struct state *state, enum family family)
{
	cleanup_nft_socket struct nft_socket *socket = NULL;
	struct err err;

	if (nft_socket_open(&socket, &err) == 0)
		table_find_ids(socket, family, state_affinity_ids(state), &err);
}

void nftables_rules_plan(struct nftables_rules *rules, const struct settings *settings,
			 const struct plan_delta *delta, const struct host *host, bool live)
{
	struct state *state = state_new(settings);

	if (live)
		find_ids(state, settings->family);
	nftables_rules_plan_state(rules, state, delta, host);
	state_free(state);
}

/* -- looking up */

static int compare(const void *a, const void *b)
{
	return element_compare(a, b);
}

/* The address that ends the key of a range. */
static struct addr range_address(const struct element *element, enum family family)
{
	struct addr addr = {.family = (uint8_t)family};
	size_t n = addr_bytes(family);

	memcpy(addr.bytes, element->bytes + element->key_size - n, n);
	return addr;
}

static bool range_holds(const struct element *range, const struct element *key, enum family family)
{
	struct addr client = range_address(key, family);
	struct prefix prefix = {range_address(range, family), range->prefix};

	return range->container == key->container && range->key_size == key->key_size &&
	       memcmp(range->bytes, key->bytes, key->key_size - addr_bytes(family)) == 0 &&
	       prefix_contains(&prefix, &client);
}

const struct element_list *nftables_rules_elements(struct nftables_rules *rules)
{
	if (!rules->sorted)
		element_list_sort(&rules->elements);
	rules->sorted = true;
	return &rules->elements;
}

const struct element *nftables_rules_find(struct nftables_rules *rules, const struct element *key)
{
	const struct element_list *list = nftables_rules_elements(rules);

	if (!container_types[key->container].ranges)
		return list->n > 0 ? bsearch(key, list->v, list->n, sizeof(*list->v), compare)
				   : NULL;
	for (size_t i = 0; i < list->n; i++)
		if (range_holds(&list->v[i], key, rules->writer.family))
			return &list->v[i];
	return NULL;
}

/* -- what a packet met */

bool nftables_rules_met(const struct nftables_rules *rules, const struct nftables_chain *chain)
{
	return rules->walks == 0 || chain->met == rules->walks;
}

void nftables_rules_any_slot(struct element *key)
{
	if (container_has_slots((enum container)key->container))
		memset(key->bytes + key->key_size - sizeof(uint32_t), 0, sizeof(uint32_t));
}

bool nftables_rules_asked(const struct nftables_rules *rules, const struct element *element)
{
	const struct element_list *asked = &rules->asked;
	struct element key = *element;

	if (rules->walks == 0)
		return true;
	if (!container_types[element->container].ranges) {
		nftables_rules_any_slot(&key);
		return asked->n > 0 && bsearch(&key, asked->v, asked->n, sizeof(key), compare);
	}
	for (size_t i = 0; i < asked->n; i++)
		if (range_holds(element, &asked->v[i], rules->writer.family))
			return true;
	return false;
}

const char *nftables_rules_text(struct nftables_rules *rules, struct nftables_rule *rule)
{
	cleanup_text struct text text = {0};

	if (rule->text)
		return rule->text;
	statement_text_rule(&text, rules->writer.family, &rule->rule);
	rule->text = text_keep(&text, rules->arena);
	return rule->text;
}

struct nftables_rules *nftables_rules_new(enum family family)
{
	struct nftables_rules *rules = xcalloc(1, sizeof(*rules));

	rules->writer.ops = &keeping;
	rules->writer.family = family;
	rules->arena = arena_new(65536);
	return rules;
}

struct nftables_rules *nftables_rules_free(struct nftables_rules *rules)
{
	struct nftables_chain *chain;
	size_t at = 0;

	if (!rules)
		return NULL;
	while ((chain = map_next(&rules->chains, &at)))
		free(chain->v);
	map_done(&rules->chains);
	map_done(&rules->clients);
	element_list_done(&rules->elements);
	element_list_done(&rules->asked);
	arena_free(rules->arena);
	free(rules);
	return NULL;
}
