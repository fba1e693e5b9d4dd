/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_left.h"

#include <stdlib.h>

#include "backends/iptables/netlink/nft_audit.h"
#include "base/log.h"

struct refused {
	char *key;
	char *text;
};

static const char *ip_family(const struct nft_left *left)
{
	return family_name(left->family);
}

/* -- Services that the kernel refused */

static void forget_refused(struct nft_left *left, const char *key)
{
	struct refused *refused = map_remove(&left->told, key);

	map_remove(&left->left, key);
	if (!refused)
		return;
	free(refused->key);
	free(refused->text);
	free(refused);
}

static struct refused *tell_refused(struct nft_left *left, const char *key, const char *text)
{
	struct refused *refused = xcalloc(1, sizeof(*refused));

	forget_refused(left, key);
	refused->key = xstrdup(key);
	refused->text = xstrdup(text);
	map_set(&left->told, refused->key, refused);
	left->refused(left->arg, &(struct backend_refusal){.service = refused->key,
							   .port = refused->key,
							   .reason = refused->text,
							   .kept = true});
	return refused;
}

bool nft_left_refused(struct nft_left *left, const char *key, const struct err *err)
{
	struct refused *refused = map_get(&left->told, key);

	if (left->left.count >= NFT_AUDIT_LEFT_MAX || map_get(&left->left, key))
		return false;
	if (!refused || !streq(refused->text, err->text))
		refused = tell_refused(left, key, err->text);
	map_set(&left->left, refused->key, refused);
	return true;
}

void nft_left_tell_accepted(struct nft_left *left)
{
	struct refused *refused;
	size_t at = 0;

	while ((refused = map_next(&left->told, &at))) {
		if (map_get(&left->left, refused->key))
			continue;
		log_info("The kernel accepts the rules of a Service again",
			 KV("ipFamily", LOG_STR(ip_family(left))),
			 KV("service", LOG_STR(refused->key)));
		forget_refused(left, refused->key);
	}
}

static bool has_any(const struct map *left, const struct plan_change *changes, size_t n)
{
	for (size_t i = 0; i < n && left->count > 0; i++)
		if (map_get(left, changes[i].key))
			return true;
	return false;
}

bool nft_left_any_changed(const struct nft_left *left, const struct plan_delta *delta)
{
	return has_any(&left->left, delta->changes, delta->n_changes) ||
	       has_any(&left->left, delta->renewed, delta->n_renewed);
}

/* -- chains that foreign rules lead to */

static void forget_held(struct nft_left *left)
{
	char *name;
	size_t at = 0;

	while ((name = map_next(&left->held, &at))) {
		map_remove(&left->held, name);
		free(name);
	}
	map_done(&left->held);
}

void nft_left_hold(struct nft_left *left, const char *nat_chain)
{
	char *copy;

	if (map_get(&left->held, nat_chain))
		return;
	copy = xstrdup(nat_chain);
	map_set(&left->held, copy, copy);
	log_warning("A chain is emptied but stays, because a rule that is not ours leads to it",
		    KV("ipFamily", LOG_STR(ip_family(left))), KV("chain", LOG_STR(nat_chain)));
}

/* -- both */

void nft_left_retry(struct nft_left *left)
{
	map_done(&left->left);
	forget_held(left);
}

void nft_left_done(struct nft_left *left)
{
	struct refused *refused;
	size_t at = 0;

	while ((refused = map_next(&left->told, &at)))
		forget_refused(left, refused->key);
	map_done(&left->told);
	nft_left_retry(left);
}
