/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_own.h"

#include <stdlib.h>

#include "xtables/rule_compare.h"

static bool is_left(const struct nft_own *own, const struct rule_item *item)
{
	return item->subject && refused_services_wait(own->refused, item->subject);
}

/* ret NULL: only counts them */
static size_t digest_rules(const struct nft_own *own, const struct rule_chain *chain, uint64_t *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < chain->n; i++) {
		if (is_left(own, chain->items[i]))
			continue;
		if (ret)
			ret[n] = rule_hash(&chain->items[i]->rule);
		n++;
	}
	return n;
}

static bool is_equal(const uint64_t *wanted, size_t n, const struct nft_link_rules *there)
{
	if (there->n != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (there->v[i].digest != wanted[i])
			return false;
	return true;
}

static int compare_digests(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_rules(const void *a, const void *b)
{
	const struct nft_link_rule *x = a, *y = b;

	return compare_digests(&x->digest, &y->digest);
}

/* How many of the one are also in the other; sorts both. */
static size_t count_common(uint64_t *wanted, size_t n, const struct nft_link_rules *there)
{
	size_t i = 0, j = 0, common = 0;

	if (n > 1)
		qsort(wanted, n, sizeof(*wanted), compare_digests);
	if (there->n > 1)
		qsort(there->v, there->n, sizeof(*there->v), compare_rules);
	while (i < n && j < there->n) {
		int order = compare_digests(&wanted[i], &there->v[j].digest);

		common += order == 0;
		i += order <= 0;
		j += order >= 0;
	}
	return common;
}

static void tell(const struct nft_own *own, const struct rule_chain *chain, size_t missing,
		 size_t extra)
{
	own->differs(own->arg, &(struct nft_difference){
				       .table = chain->table,
				       .chain = chain->name,
				       .missing = missing,
				       .extra = extra,
			       });
}

static void write_chain(const struct nft_own *own, const struct rule_chain *chain, bool there)
{
	const char *subject = "";

	nft_link_new_chain(own->link, chain->table, chain->name);
	if (there || own->interrupted)
		nft_link_flush(own->link, chain->table, chain->name);
	for (size_t i = 0; i < chain->n; i++) {
		if (is_left(own, chain->items[i]))
			continue;
		if (chain->items[i]->subject != subject)
			nft_link_subject(own->link, chain->items[i]->subject);
		subject = chain->items[i]->subject;
		nft_link_append(own->link, &chain->items[i]->rule);
	}
}

/* One that exists, or may. Returns whether it has to be written. */
static int compare_standing(const struct nft_own *own, const struct rule_chain *chain,
			    struct err *err)
{
	cleanup_free uint64_t *wanted = xcalloc(chain->n + 1, sizeof(*wanted));
	cleanup_nft_link_rules struct nft_link_rules there = {0};
	size_t n, common;
	int r = nft_link_read(own->link, chain->table, chain->name, &there, err);

	if (r < 0)
		return err_wrap(err, r, "reading chain %s", chain->name);
	n = digest_rules(own, chain, wanted);
	if (is_equal(wanted, n,
		     &there)) /* an empty list may be that of a chain that does not exist */
		return !own->found && n == 0;
	common = count_common(wanted, n, &there);
	tell(own, chain, n - common, there.n - common);
	return 1;
}

int nft_own_compare(const struct nft_own *own, const struct rule_chain *chain, struct err *err)
{
	bool there = !own->found || nft_found_has(own->found, chain->table, chain->name);
	int r = 1;

	if (own->found)
		nft_found_want(own->found, chain->name);
	if (there)
		r = compare_standing(own, chain, err);
	else
		tell(own, chain, digest_rules(own, chain, NULL), 0);
	if (r > 0)
		write_chain(own, chain, there);
	return r;
}
