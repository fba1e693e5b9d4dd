/* SPDX-License-Identifier: Apache-2.0 */

#include "config/node_port_addresses.h"

#include <assert.h>
#include <stdlib.h>

static const char *const words[] = {
	[NODE_PORT_CIDR] = "",
	[NODE_PORT_PRIMARY] = "primary",
	[NODE_PORT_LOCALHOST] = "localhost",
	[NODE_PORT_ALL] = "all",
};

static_assert(ARRAY_SIZE(words) == NODE_PORT_WORD_COUNT, "a text for each word");

int node_port_address_parse(const char *text, struct node_port_address *ret)
{
	*ret = (struct node_port_address){.word = NODE_PORT_CIDR};
	for (enum node_port_word word = NODE_PORT_PRIMARY; word < NODE_PORT_WORD_COUNT; word++) {
		if (streq(text, words[word])) {
			ret->word = word;
			return 0;
		}
	}
	return prefix_parse(text, &ret->cidr);
}

static const struct prefix localhost[FAMILY_COUNT] = {
	[FAMILY_IPV4] = {.addr = {.family = FAMILY_IPV4, .bytes = {127}}, .length = 8},
	[FAMILY_IPV6] = {.addr = {.family = FAMILY_IPV6, .bytes = {[15] = 1}}, .length = 128},
};

/* What a word stands for in one family. False: nothing. */
static bool expand_word(enum node_port_word word, const struct addr *node, struct prefix *ret)
{
	if (word == NODE_PORT_PRIMARY && addr_is_loopback(node))
		return false;
	if (word == NODE_PORT_PRIMARY)
		*ret = (struct prefix){*node, addr_bits(node->family)};
	else if (word == NODE_PORT_LOCALHOST)
		*ret = localhost[node->family];
	else
		*ret = (struct prefix){.addr.family = node->family};
	return true;
}

struct prefix *node_port_addresses_expand(const struct node_port_address *list, size_t n,
					  const struct addr *node, size_t *ret_n)
{
	struct prefix *cidrs = xcalloc(n * FAMILY_COUNT + 1, sizeof(*cidrs));
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (list[i].word == NODE_PORT_CIDR) {
			cidrs[count++] = list[i].cidr;
			continue;
		}
		for (enum family family = 0; family < FAMILY_COUNT; family++)
			count += expand_word(list[i].word, &node[family], &cidrs[count]);
	}
	*ret_n = count;
	return cidrs;
}
