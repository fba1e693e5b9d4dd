/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/service_index.h"

#include <assert.h>
#include <stdlib.h>

/*
 * A radix tree over addresses, four bits at a time. A node is a leaf with items (an address and a
 * Service), or it branches at one nibble, its depth; nibbles that all addresses below it share are
 * skipped, so that it has at least two children, or one leaf that others have left. Its place is the prefix by which its parent leads
 * to it, one nibble longer than the parent's depth, and its chain is named after that: a chain keeps
 * its name while the tree around it changes.
 *
 * Adding and removing only mark the nodes on the way as touched. Settling walks those: leaves that
 * grew are split, trees that shrank become leaves, chains of nodes that are gone are remembered. Two
 * limits, not one, so that a Service that comes and goes does not split and merge each time.
 *
 * A node that differs from what stands is dirty and written whole: it has at most sixteen jumps or,
 * but for many rules with one address, sixteen others. So no rule is ever searched for.
 */

#define FAN_OUT 16

struct index_item {
	struct addr addr;
	uint32_t n_rules;
	char *key;
};

struct index_node {
	struct addr
		sample; /* an address below it, now or once: nibbles before its depth are shared */
	uint8_t length; /* nibbles of its place; 0: KUBE-SERVICES */
	uint8_t depth;  /* of a branch */
	bool touched;   /* by changes since the last were applied */
	bool dirty;     /* differs from what stands */
	bool stands;    /* its chain exists */
	size_t n_rules; /* of all items at or below it */
	struct index_node **children; /* FAN_OUT; NULL: a leaf */
	struct index_item *items;
	size_t n_items, capacity;
};

struct place {
	struct addr addr;
	uint8_t length; /* in nibbles */
};

struct service_index {
	struct index_node *root;
	size_t n_nodes;                  /* besides the root */
	const struct index_node **order; /* numbered nodes, n_nodes of them; NULL: to be made */
	struct place *gone;
	size_t n_gone, gone_capacity;
};

/* -- places */

static unsigned int nibble(const struct addr *addr, unsigned int at)
{
	uint8_t byte = addr->bytes[at / 2];

	return at % 2 ? byte & 15 : byte >> 4;
}

/* The first nibble in which they differ, from `from` on; `to` when there is none before it. */
static unsigned int first_difference(const struct addr *a, const struct addr *b, unsigned int from,
				     unsigned int to)
{
	while (from < to && nibble(a, from) == nibble(b, from))
		from++;
	return from;
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

static void node_name(const struct index_node *node, struct chain_name *ret)
{
	struct chain_hash hash;

	if (node->length == 0) {
		strcpy(ret->text, CHAIN_SERVICES);
		return;
	}
	node_hash(node, &hash);
	chain_name_make(CHAIN_KIND_INDEX, &hash, ret);
}

/* -- nodes */

static struct index_node *make_node(const struct addr *sample, uint8_t length)
{
	struct index_node *node = xcalloc(1, sizeof(*node));

	node->sample = *sample;
	node->length = length;
	node->touched = node->dirty = true;
	return node;
}

static void node_free_contents(struct index_node *node)
{
	for (size_t i = 0; i < node->n_items; i++)
		free(node->items[i].key);
	free(node->items);
	free(node->children);
}

static void tree_free(struct index_node *node)
{
	for (size_t i = 0; node->children && i < FAN_OUT; i++)
		if (node->children[i])
			tree_free(node->children[i]);
	node_free_contents(node);
	free(node);
}

static struct index_node *add_child(struct service_index *index, struct index_node *parent,
				    const struct addr *sample)
{
	struct index_node *child = make_node(sample, (uint8_t)(parent->depth + 1));

	parent->children[nibble(sample, parent->depth)] = child;
	parent->dirty = true;
	index->n_nodes++;
	return child;
}

/* A node that has given its contents away. */
static void node_drop(struct service_index *index, struct index_node *node)
{
	if (node->stands) {
		array_grow(&index->gone, &index->gone_capacity, index->n_gone,
			   sizeof(*index->gone));
		index->gone[index->n_gone++] = (struct place){node->sample, node->length};
	}
	index->n_nodes--;
	node_free_contents(node);
	free(node);
}

struct service_index *service_index_new(void)
{
	static const struct addr anywhere;
	struct service_index *index = xcalloc(1, sizeof(*index));

	index->root = make_node(&anywhere, 0);
	return index;
}

struct service_index *service_index_free(struct service_index *index)
{
	if (!index)
		return NULL;
	tree_free(index->root);
	free(index->order);
	free(index->gone);
	free(index);
	return NULL;
}

/* -- adding and removing */

static struct index_item *find_item(const struct index_node *leaf, const char *key,
				    const struct addr *addr)
{
	for (size_t i = 0; i < leaf->n_items; i++)
		if (addr_equal(&leaf->items[i].addr, addr) && streq(leaf->items[i].key, key))
			return &leaf->items[i];
	return NULL;
}

/* Takes the item's key over. */
static void append_item(struct index_node *leaf, const struct index_item *item)
{
	array_grow(&leaf->items, &leaf->capacity, leaf->n_items, sizeof(*leaf->items));
	leaf->items[leaf->n_items++] = *item;
}

/* Makes it branch at an earlier nibble: what it was moves into a child. */
static void push_down(struct service_index *index, struct index_node *node, unsigned int depth)
{
	struct index_node **children = node->children;
	uint8_t old_depth = node->depth;
	struct index_node *child;

	node->children = xcalloc(FAN_OUT, sizeof(*node->children));
	node->depth = (uint8_t)depth;
	child = add_child(index, node, &node->sample);
	child->children = children;
	child->depth = old_depth;
	child->n_rules = node->n_rules;
}

static struct index_node *child_for(struct service_index *index, struct index_node *node,
				    const struct addr *addr)
{
	unsigned int differs = first_difference(addr, &node->sample, node->length, node->depth);
	struct index_node *child;

	if (differs < node->depth)
		push_down(index, node, differs);
	child = node->children[nibble(addr, node->depth)];
	return child ? child : add_child(index, node, addr);
}

void service_index_add(struct service_index *index, const char *key, const struct addr *addr)
{
	struct index_node *node = index->root;
	struct index_item *item;

	while (node->children) {
		struct index_node *child = child_for(index, node, addr);

		node->touched = true;
		node->n_rules++;
		node = child;
	}
	node->touched = node->dirty = true;
	node->n_rules++;
	item = find_item(node, key, addr);
	if (item)
		item->n_rules++;
	else
		append_item(node, &(struct index_item){*addr, 1, xstrdup(key)});
}

void service_index_remove(struct service_index *index, const char *key, const struct addr *addr)
{
	struct index_node *path[2 * sizeof(addr->bytes) + 1];
	struct index_node *node = index->root;
	struct index_item *item;
	size_t n = 0;

	for (; node && node->children; node = node->children[nibble(addr, node->depth)])
		path[n++] = node;
	item = node ? find_item(node, key, addr) : NULL;
	if (!item)
		return;
	path[n++] = node;
	for (size_t i = 0; i < n; i++) {
		path[i]->touched = true;
		path[i]->n_rules -= item->n_rules;
	}
	node->dirty = true;
	free(item->key);
	node->n_items--;
	memmove(item, item + 1, (size_t)(node->items + node->n_items - item) * sizeof(*item));
}

/* -- settling */

static unsigned int address_nibbles(const struct index_node *leaf)
{
	return addr_bits((enum family)leaf->items[0].addr.family) / 4U;
}

/* The first nibble in which its items differ; behind the last when they all have one address. */
static unsigned int split_depth(const struct index_node *leaf)
{
	unsigned int depth = address_nibbles(leaf);

	for (size_t i = 1; i < leaf->n_items; i++)
		depth = first_difference(&leaf->items[0].addr, &leaf->items[i].addr, leaf->length,
					 depth);
	return depth;
}

static void split(struct service_index *index, struct index_node *node, unsigned int depth)
{
	struct index_item *items = take(node->items);
	size_t n = node->n_items;

	node->n_items = node->capacity = 0;
	node->children = xcalloc(FAN_OUT, sizeof(*node->children));
	node->depth = (uint8_t)depth;
	node->sample = items[0].addr;
	node->dirty = true;
	for (size_t i = 0; i < n; i++) {
		struct index_node *child = node->children[nibble(&items[i].addr, depth)];

		if (!child)
			child = add_child(index, node, &items[i].addr);
		append_item(child, &items[i]);
		child->n_rules += items[i].n_rules;
	}
	free(items);
}

/* Moves all items below `node` to `to`, and drops the nodes. */
static void gather(struct service_index *index, struct index_node *node, struct index_node *to)
{
	for (size_t i = 0; i < node->n_items; i++)
		append_item(to, &node->items[i]);
	node->n_items = 0;
	for (size_t i = 0; node->children && i < FAN_OUT; i++)
		if (node->children[i])
			gather(index, node->children[i], to);
	node_drop(index, node);
}

static void merge(struct service_index *index, struct index_node *node)
{
	struct index_node **children = take(node->children);

	node->dirty = true;
	for (size_t i = 0; i < FAN_OUT; i++)
		if (children[i])
			gather(index, children[i], node);
	free(children);
}

/* Its only child is a branch, which it becomes itself. */
static void pull_up(struct service_index *index, struct index_node *node, struct index_node *child)
{
	free(node->children);
	node->children = take(child->children);
	node->depth = child->depth;
	node->sample = child->sample;
	node->dirty = true;
	node_drop(index, child);
}

static void settle(struct service_index *index, struct index_node *node);

/* Returns how many children are left, and the last of them. */
static size_t settle_children(struct service_index *index, struct index_node *node,
			      struct index_node **ret_last)
{
	size_t n = 0;

	for (size_t i = 0; i < FAN_OUT; i++) {
		struct index_node *child = node->children[i];

		if (child && child->n_rules == 0) {
			gather(index, child, node); /* nothing but nodes */
			node->children[i] = child = NULL;
			node->dirty = true;
		}
		if (!child)
			continue;
		settle(index, child);
		*ret_last = child;
		n++;
	}
	return n;
}

static bool wants_split(const struct index_node *node)
{
	return !node->children && node->n_rules > SERVICE_INDEX_SPLIT &&
	       split_depth(node) < address_nibbles(node);
}

static void settle(struct service_index *index, struct index_node *node)
{
	struct index_node *last = NULL;

	if (!node->touched)
		return;
	if (node->children && node->n_rules <= SERVICE_INDEX_MERGE)
		merge(index, node);
	if (node->children && settle_children(index, node, &last) == 1 && last->children)
		pull_up(index, node, last);
	if (wants_split(node)) {
		split(index, node, split_depth(node));
		settle_children(index, node, &last);
	}
}

/* The node whose chain has that name, or NULL. */
static const struct index_node *find_place(const struct service_index *index,
					   const struct place *place)
{
	const struct index_node *node = index->root;

	while (node && node->length < place->length) {
		if (!node->children || node->depth >= place->length)
			return NULL;
		node = node->children[nibble(&place->addr, node->depth)];
	}
	if (!node ||
	    first_difference(&node->sample, &place->addr, 0, place->length) < place->length)
		return NULL;
	return node;
}

void service_index_settle(struct service_index *index)
{
	size_t n = 0;

	free(take(index->order));
	settle(index, index->root);
	for (size_t i = 0; i < index->n_gone; i++) /* some have come again */
		if (!find_place(index, &index->gone[i]))
			index->gone[n++] = index->gone[i];
	index->n_gone = n;
}

static void note_applied(struct index_node *node)
{
	if (!node->touched)
		return;
	node->touched = node->dirty = false;
	node->stands = true;
	for (size_t i = 0; node->children && i < FAN_OUT; i++)
		if (node->children[i])
			note_applied(node->children[i]);
}

void service_index_applied(struct service_index *index)
{
	note_applied(index->root);
	index->n_gone = 0;
}

/* -- reading and writing */

size_t service_index_rules(const struct service_index *index)
{
	return index->root->n_rules + index->n_nodes;
}

size_t service_index_n_chains(const struct service_index *index)
{
	return index->n_nodes;
}

static void number_nodes(struct service_index *index, const struct index_node *node, size_t *n)
{
	for (size_t i = 0; node->children && i < FAN_OUT; i++)
		if (node->children[i])
			number_nodes(index, node->children[i], n);
	if (node->length > 0)
		index->order[(*n)++] = node;
}

static const struct index_node *pick_chains_node(struct service_index *index, size_t number)
{
	size_t n = 0;

	assert(number < index->n_nodes);
	if (!index->order) {
		index->order = xcalloc(index->n_nodes, sizeof(*index->order));
		number_nodes(index, index->root, &n);
	}
	return index->order[number];
}

void service_index_chain_hash(struct service_index *index, size_t number, struct chain_hash *ret)
{
	node_hash(pick_chains_node(index, number), ret);
}

static void add_jump(const char *chain, const struct index_node *child, struct rule_list *list)
{
	struct chain_name *name = arena_alloc(list->arena, sizeof(*name));
	struct prefix prefix;
	struct rule rule;

	node_name(child, name);
	place_prefix(&child->sample, child->length, &prefix);
	rule_init(&rule, TABLE_NAT, chain);
	rule_destination(&rule, false, &prefix);
	rule_jump(&rule, name->text);
	rule_list_add(list, &rule);
}

static void make_chain(const struct index_node *node, const struct service_index_rules *rules,
		       struct rule_list *list)
{
	static const unsigned int parts[] = {RULESET_LEADING, RULESET_FOLLOWING};
	struct chain_name *name = arena_alloc(list->arena, sizeof(*name));

	node_name(node, name);
	rule_list_declare(list, TABLE_NAT, name->text, true);
	list->subject = NULL;
	for (size_t i = 0; node->children && i < FAN_OUT; i++)
		if (node->children[i])
			add_jump(name->text, node->children[i], list);
	for (size_t part = 0; part < ARRAY_SIZE(parts); part++)
		for (size_t i = 0; i < node->n_items; i++)
			rules->make(rules->arg, node->items[i].key, &node->items[i].addr,
				    name->text, parts[part], list);
}

void service_index_make(struct service_index *index, size_t number,
			const struct service_index_rules *rules, struct rule_list *list)
{
	make_chain(number == SERVICE_INDEX_ROOT ? index->root : pick_chains_node(index, number),
		   rules, list);
}

/* -- what differs */

static void each_dirty(const struct index_node *node,
		       void (*fn)(void *arg, const struct index_node *node), void *arg)
{
	if (!node->touched)
		return;
	if (node->dirty)
		fn(arg, node);
	for (size_t i = 0; node->children && i < FAN_OUT; i++)
		if (node->children[i])
			each_dirty(node->children[i], fn, arg);
}

static void declare_node(void *arg, const struct index_node *node)
{
	struct chain_name name;

	node_name(node, &name);
	txn_chain(arg, TABLE_NAT, name.text);
}

static void gone_name(const struct place *place, struct chain_name *ret)
{
	const struct index_node node = {.sample = place->addr, .length = place->length};

	node_name(&node, ret);
}

void service_index_declare(const struct service_index *index, struct txn *txn)
{
	struct chain_name name;

	each_dirty(index->root, declare_node, txn);
	for (size_t i = 0; i < index->n_gone; i++) {
		gone_name(&index->gone[i], &name);
		txn_chain(txn, TABLE_NAT, name.text);
	}
}

struct write_walk {
	const struct service_index_rules *rules;
	struct txn *txn;
	size_t n;
};

static void write_node(void *arg, const struct index_node *node)
{
	cleanup_rule_list struct rule_list list;
	struct write_walk *walk = arg;

	rule_list_init(&list, 4096);
	make_chain(node, walk->rules, &list);
	walk->n += txn_rules(walk->txn, &list);
}

size_t service_index_write(const struct service_index *index,
			   const struct service_index_rules *rules, struct txn *txn)
{
	struct write_walk walk = {.rules = rules, .txn = txn};

	each_dirty(index->root, write_node, &walk);
	return walk.n;
}

size_t service_index_delete(const struct service_index *index, struct txn *txn)
{
	struct chain_name name;

	for (size_t i = 0; i < index->n_gone; i++) {
		gone_name(&index->gone[i], &name);
		txn_delete_chain(txn, TABLE_NAT, name.text);
	}
	return index->n_gone;
}

bool service_index_rewrites_services(const struct service_index *index)
{
	return index->root->dirty;
}
