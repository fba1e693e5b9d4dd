/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/service_index.h"

#include <stdlib.h>

/*
 * The items (an address and a Service) are sorted, and the tree is worked out of them, four bits at a
 * time: a node is a range of items. It is a leaf, or it branches at the first nibble in which its addresses
 * differ, its depth. Its place is the prefix by which its parent leads to it, one nibble longer than the
 * parent's depth, and its chain is named after that: a chain keeps its name while the tree around it
 * changes. Two limits, not one, so that a Service that comes and goes does not split and merge each time.
 *
 * Nodes are listed parents first, which is the order of their places, so that two trees are compared in one
 * walk. A node that differs from what stands is written whole: it has at most sixteen jumps or, but for many
 * rules with one address, sixteen others. So no rule is ever searched for.
 */

struct index_item {
	struct addr addr;
	uint32_t n_rules; /* 0: it goes */
	uint64_t serial;  /* a later one is larger */
	const char *key;  /* owned */
};

struct index_node {
	struct addr sample; /* an address below it */
	uint8_t length;     /* nibbles of its place; 0: KUBE-SERVICES */
	uint8_t depth;      /* 0 children: a leaf */
	uint16_t children;  /* bits: the nibbles at its depth */
	uint32_t first, n;  /* items */
	uint32_t end;       /* of the nodes below it, which come behind it */
	uint64_t newest;    /* serial of them */
};

struct tree {
	struct index_node *v; /* the root first */
	size_t n, capacity;
};

struct service_index {
	struct index_item *items;
	size_t n_items, n_sorted, capacity;
	uint64_t serial;
	bool changed;
	size_t n_rules;
	struct tree wanted, applied;
};

struct service_index *service_index_new(void)
{
	return xcalloc(1, sizeof(struct service_index));
}

struct service_index *service_index_free(struct service_index *index)
{
	if (!index)
		return NULL;
	for (size_t i = 0; i < index->n_items; i++)
		free((void *)index->items[i].key);
	free(index->items);
	free(index->wanted.v);
	free(index->applied.v);
	free(index);
	return NULL;
}

/* -- items */

static int compare_items(const void *a, const void *b)
{
	const struct index_item *x = a, *y = b;
	int order = memcmp(x->addr.bytes, y->addr.bytes, sizeof(x->addr.bytes));

	return order ? order : strcmp(x->key, y->key);
}

void service_index_add(struct service_index *index, const char *key, const struct addr *addr)
{
	array_grow(&index->items, &index->capacity, index->n_items, sizeof(*index->items));
	index->items[index->n_items++] =
		(struct index_item){*addr, 1, ++index->serial, xstrdup(key)};
	index->changed = true;
}

void service_index_remove(struct service_index *index, const char *key, const struct addr *addr)
{
	const struct index_item wanted = {.addr = *addr, .key = key};
	struct index_item *item = index->n_sorted ? bsearch(&wanted, index->items, index->n_sorted,
							    sizeof(wanted), compare_items)
						  : NULL;

	if (!item)
		return;
	item->n_rules = 0;
	index->changed = true;
}

static void keep_item(struct service_index *index, struct index_item *to, size_t *n,
		      struct index_item *item)
{
	struct index_item *last = *n ? &to[*n - 1] : NULL;

	index->n_rules += item->n_rules;
	if (item->n_rules > 0 && (!last || compare_items(last, item) != 0)) {
		to[(*n)++] = *item;
		return;
	}
	if (item->n_rules > 0) {
		last->n_rules += item->n_rules;
		last->serial = MAX(last->serial, item->serial);
	}
	free((void *)item->key);
}

/* Merges those that came, and drops those that went. */
static void sort_items(struct service_index *index)
{
	struct index_item *old = index->items, *end = old + index->n_sorted;
	struct index_item *new = end, *last = old + index->n_items;
	struct index_item *to = xcalloc(index->n_items + 1, sizeof(*to));
	size_t n = 0;

	if (last - new > 1)
		qsort(new, (size_t)(last - new), sizeof(*new), compare_items);
	index->n_rules = 0;
	while (old < end || new < last) {
		bool first = new == last || (old < end && compare_items(old, new) <= 0);

		keep_item(index, to, &n, first ? old++ : new ++);
	}
	free(index->items);
	index->items = to;
	index->capacity = index->n_items + 1;
	index->n_items = index->n_sorted = n;
}

/* -- places */

static unsigned int nibble(const struct addr *addr, unsigned int at)
{
	uint8_t byte = addr->bytes[at / 2];

	return at % 2 ? byte & 15 : byte >> 4;
}

/* The first nibble in which they differ; `to` when there is none before it. */
static unsigned int first_difference(const struct addr *a, const struct addr *b, unsigned int to)
{
	unsigned int at = 0;

	while (at < to && nibble(a, at) == nibble(b, at))
		at++;
	return at;
}

static void place_prefix(const struct addr *addr, uint8_t length, struct prefix *ret)
{
	*ret = (struct prefix){.addr.family = addr->family, .length = (uint8_t)(4 * length)};
	memcpy(ret->addr.bytes, addr->bytes, (length + 1U) / 2);
	if (length % 2)
		ret->addr.bytes[length / 2] &= 0xf0;
}

static void node_hash(const struct index_node *node, struct chain_hash *ret)
{
	struct prefix prefix;

	place_prefix(&node->sample, node->length, &prefix);
	chain_hash_prefix(&prefix, ret);
}

static const char *name_in(struct rule_list *list, const struct index_node *node)
{
	struct chain_name *name;
	struct chain_hash hash;

	if (node->length == 0)
		return CHAIN_SERVICES;
	name = arena_alloc(list->arena, sizeof(*name));
	node_hash(node, &hash);
	chain_name_make(CHAIN_KIND_INDEX, &hash, name);
	return name->text;
}

static int compare_places(const void *a, const void *b)
{
	const struct index_node *x = a, *y = b;
	unsigned int most = MIN(x->length, y->length);
	unsigned int at = first_difference(&x->sample, &y->sample, most);

	if (at < most)
		return nibble(&x->sample, at) < nibble(&y->sample, at) ? -1 : 1;
	return x->length - y->length;
}

/* -- the tree */

/* The branch that stands in its place, or NULL. */
static const struct index_node *standing_branch(const struct service_index *index,
						const struct index_node *node)
{
	const struct tree *applied = &index->applied;
	const struct index_node *found =
		applied->n ? bsearch(node, applied->v, applied->n, sizeof(*node), compare_places)
			   : NULL;

	return found && found->children ? found : NULL;
}

static bool is_branch(const struct service_index *index, const struct index_node *node)
{
	size_t n_rules = 0;

	for (size_t i = 0; i < node->n && n_rules <= SERVICE_INDEX_SPLIT; i++)
		n_rules += index->items[node->first + i].n_rules;
	return n_rules > SERVICE_INDEX_SPLIT ||
	       (n_rules > SERVICE_INDEX_MERGE && standing_branch(index, node));
}

/*
 * The first nibble in which its items differ, or behind the last. A branch that all but one leaf have left stays
 * where it is.
 */
static unsigned int find_depth(const struct service_index *index, const struct index_node *node)
{
	unsigned int most = addr_bits((enum family)node->sample.family) / 4U;
	const struct addr *last = &index->items[node->first + node->n - 1].addr;
	unsigned int depth = first_difference(&node->sample, last, most);
	const struct index_node *stands = standing_branch(index, node);
	struct index_node child = *node;

	if (!stands || stands->depth >= depth ||
	    first_difference(&stands->sample, &node->sample, stands->depth) < stands->depth)
		return depth;
	child.length = (uint8_t)(stands->depth + 1);
	return depth < most && is_branch(index, &child) ? depth : stands->depth;
}

static void build(struct service_index *index, size_t first, size_t end, unsigned int length);

static void build_children(struct service_index *index, struct index_node *node)
{
	const struct index_item *items = index->items;
	unsigned int depth = find_depth(index, node);
	size_t from = node->first, end = from + node->n;

	if (depth == addr_bits((enum family)node->sample.family) / 4U)
		return; /* one address is never split */
	node->depth = (uint8_t)depth;
	for (size_t i = from + 1; i <= end; i++) {
		unsigned int child = nibble(&items[from].addr, depth);

		if (i < end && nibble(&items[i].addr, depth) == child)
			continue;
		node->children |= (uint16_t)(1U << child);
		build(index, from, i, depth + 1);
		from = i;
	}
}

static void build(struct service_index *index, size_t first, size_t end, unsigned int length)
{
	struct tree *tree = &index->wanted;
	size_t at = tree->n++;
	struct index_node node = {
		.length = (uint8_t)length, .first = (uint32_t)first, .n = (uint32_t)(end - first)};

	array_grow(&tree->v, &tree->capacity, at, sizeof(*tree->v));
	if (node.n > 0)
		node.sample = index->items[first].addr;
	if (is_branch(index, &node))
		build_children(index, &node);
	for (size_t i = first; i < end && !node.children; i++)
		node.newest = MAX(node.newest, index->items[i].serial);
	node.end = (uint32_t)tree->n;
	tree->v[at] = node;
}

/* Of the same place. Items that came are newer than all before; if some only went there are fewer. */
static bool is_same(const struct index_node *a, const struct index_node *b)
{
	if (a->children != b->children)
		return false;
	if (!a->children)
		return a->n == b->n && a->newest == b->newest;
	return a->depth == b->depth &&
	       first_difference(&a->sample, &b->sample, a->depth) == a->depth;
}

void service_index_settle(struct service_index *index)
{
	if (!index->changed && index->wanted.n > 0)
		return;
	sort_items(index);
	index->wanted.n = 0;
	build(index, 0, index->n_items, 0);
	index->changed = false;
}

void service_index_applied(struct service_index *index)
{
	size_t size = index->wanted.n * sizeof(*index->wanted.v);

	index->applied.v = xrealloc(index->applied.v, size);
	index->applied.n = index->wanted.n;
	memcpy(index->applied.v, index->wanted.v, size);
}

/* -- reading and writing */

size_t service_index_rules(const struct service_index *index)
{
	return index->n_rules + service_index_n_chains(index);
}

size_t service_index_n_chains(const struct service_index *index)
{
	return index->wanted.n - 1;
}

/* Children first. */
static const struct index_node *node_of(const struct service_index *index, size_t number)
{
	return &index->wanted.v[number == SERVICE_INDEX_ROOT ? 0 : index->wanted.n - 1 - number];
}

void service_index_chain_hash(const struct service_index *index, size_t number,
			      struct chain_hash *ret)
{
	node_hash(node_of(index, number), ret);
}

static void add_jump(const char *chain, const struct index_node *child, struct rule_list *list)
{
	struct prefix prefix;
	struct rule rule;

	place_prefix(&child->sample, child->length, &prefix);
	rule_init(&rule, TABLE_NAT, chain);
	rule_destination(&rule, false, &prefix);
	rule_jump(&rule, name_in(list, child));
	rule_list_add(list, &rule);
}

static const char *declare_chain(const struct index_node *node, struct rule_list *list)
{
	const char *chain = name_in(list, node);

	rule_list_declare(list, TABLE_NAT, chain, true);
	return chain;
}

static void make_chain(const struct service_index *index, const struct index_node *node,
		       const struct service_index_rules *rules, struct rule_list *list)
{
	static const unsigned int parts[] = {RULESET_LEADING, RULESET_FOLLOWING};
	const struct index_node *nodes = index->wanted.v;
	const char *chain = declare_chain(node, list);

	list->subject = NULL;
	for (const struct index_node *at = node + 1; at < nodes + node->end; at = nodes + at->end)
		add_jump(chain, at, list);
	for (size_t part = 0; !node->children && part < ARRAY_SIZE(parts); part++)
		for (size_t i = node->first; i < node->first + node->n; i++)
			rules->make(rules->arg, index->items[i].key, &index->items[i].addr, chain,
				    parts[part], list);
}

void service_index_make(const struct service_index *index, size_t number,
			const struct service_index_rules *rules, struct rule_list *list)
{
	make_chain(index, node_of(index, number), rules, list);
}

void service_index_difference(const struct service_index *index,
			      const struct service_index_rules *rules, struct rule_list *ret_differ,
			      struct rule_list *ret_gone)
{
	const struct index_node *old = index->applied.v, *end = old + index->applied.n;
	const struct index_node *new = index->wanted.v, *last = new + index->wanted.n;

	while (old < end || new < last) {
		int order = new == last ? -1 : old == end ? 1 : compare_places(old, new);

		if (order < 0)
			declare_chain(old, ret_gone);
		else if (order > 0 || !is_same(old, new))
			make_chain(index, new, rules, ret_differ);
		old += order <= 0;
		new += order >= 0;
	}
}
