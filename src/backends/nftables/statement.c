/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/statement.h"

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && streq(a, b));
}

/* What a kind does not need is zero in every statement of it. */
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
