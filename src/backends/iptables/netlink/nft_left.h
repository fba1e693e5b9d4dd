/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a sync leaves as it is, and what was said about it.
 *
 * Services that the kernel refused are in `left` until they change, or until the next audit of everything:
 * each of those tries them again (nft_left_retry()). `told` remembers them until they are taken, so that
 * the same refusal is told once.
 *
 * Chains that should be deleted but that foreign rules lead to are in `held`.
 */

#include "backends/backend.h"
#include "base/err.h"
#include "base/map.h"
#include "plan/plan_store.h"

struct nft_left {
	enum family family;
	void (*refused)(void *arg, const struct backend_refusal *refusal);
	void *arg;
	struct map left; /* by the key of the Service; the values are those of `told` */
	struct map told;
	struct map held; /* names of chains of table nat, as their own values */
};

void nft_left_done(struct nft_left *left);

/* False: it is in `left` already, or too many are, so that something else is wrong. */
bool nft_left_refused(struct nft_left *left, const char *key, const struct err *err);
void nft_left_hold(struct nft_left *left, const char *nat_chain);
/* All get another chance: nothing is left out any more. */
void nft_left_retry(struct nft_left *left);
/* All have had their chance: those that are not in `left` again were taken. */
void nft_left_tell_accepted(struct nft_left *left);
/* Did one that is left out change? delta: not a full one, after which all are tried again anyway. */
bool nft_left_any_changed(const struct nft_left *left, const struct plan_delta *delta);
