/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/statement.h"

const struct statement_type statement_types[STATEMENT_COUNT] = {
	[STATEMENT_NEW] = {"cmp", "ct state new"},
	[STATEMENT_TRANSLATED] = {"cmp", "ct status dnat"},
	[STATEMENT_PROTOCOL] = {"cmp", "meta l4proto %l"},
	[STATEMENT_SOURCE] = {"cmp", "%f saddr %!%p"},
	[STATEMENT_DESTINATION] = {"cmp", "%f daddr %!%p"},
	[STATEMENT_INTERFACE] = {"cmp", "iifname %!\"%n\""},
	[STATEMENT_FROM_NODE] = {"cmp", "fib saddr type local"},
	[STATEMENT_TO_NODE] = {"cmp", "fib daddr type local"},
	[STATEMENT_IN] = {"lookup", "%k %!@%m"},
	[STATEMENT_MARKED] = {"cmp", "meta mark & %x != 0x00000000"},
	[STATEMENT_ID] = {"cmp", "meta priority %!%i"},
	[STATEMENT_SET_MARK] = {"meta", "meta mark set meta mark | %x"},
	[STATEMENT_TOGGLE_MARK] = {"meta", "meta mark set meta mark ^ %x"},
	[STATEMENT_DNAT] = {"nat", "dnat %f to %k map @%m"},
	[STATEMENT_TAKE_ID] = {"meta", "meta priority set %k map @%m"},
	[STATEMENT_SET_ID] = {"meta", "meta priority set %i"},
	[STATEMENT_UPDATE] = {"dynset", "update @%m { %f saddr%t : meta priority }"},
	[STATEMENT_NOTE_FULL] = {"dynset", "update @%m { meta priority%t }"},
	[STATEMENT_FORGET] = {"dynset", "delete @%m { %f saddr%t : meta priority }"},
	[STATEMENT_MASQUERADE] = {"masq", "masquerade fully-random"},
	[STATEMENT_COUNTER] = {"counter", "counter"},
	[STATEMENT_NAMED_COUNTER] = {"objref", "counter name \"%o\""},
	[STATEMENT_VMAP] = {"lookup", "%k vmap @%m"},
	[STATEMENT_JUMP] = {"immediate", "jump %c"},
	[STATEMENT_GOTO] = {"immediate", "goto %c"},
	[STATEMENT_RETURN] = {"immediate", "return"},
	[STATEMENT_DROP] = {"immediate", "drop"},
	[STATEMENT_REJECT] = {"reject", "reject"},
	[STATEMENT_RESET] = {"reject", "reject with tcp reset"},
	[STATEMENT_ACCEPT] = {"immediate", "accept"},
	[STATEMENT_RAW] = {"", "%r"},
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && streq(a, b));
}

static bool statement_equal(const struct statement *a, const struct statement *b)
{
	return a->kind == b->kind && a->not == b->not &&a->is_prefix == b->is_prefix &&
	       a->protocol == b->protocol && a->container == b->container && a->map == b->map &&
	       a->chain.id == b->chain.id && a->chain.number == b->chain.number &&
	       a->number == b->number && memcmp(a->key, b->key, sizeof(a->key)) == 0 &&
	       prefix_equal(&a->prefix, &b->prefix) && same_text(a->interface, b->interface) &&
	       a->raw_size == b->raw_size &&
	       (a->raw_size == 0 || memcmp(a->raw, b->raw, a->raw_size) == 0);
}

bool nft_rule_equal(const struct nft_rule *a, const struct nft_rule *b)
{
	if (a->n != b->n || !same_text(a->comment, b->comment))
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!statement_equal(&a->v[i], &b->v[i]))
			return false;
	return true;
}
