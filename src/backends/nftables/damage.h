/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What others touched in table kube-proxy since it was last as we wrote it: keys of sets and maps, and
 * chains. All of it is zero at first.
 *
 * Notifications of nf_tables name all that a transaction did, in the order in which it was done. So what is
 * not noted here is as it was, and of a key the last notification says whether it is there.
 * Where that is not enough, more is noted than was touched:
 *
 *	a container    its keys are ranges, or cannot be read, or there is no room for them
 *	everything     what is no rule, chain or element of ours; too many chains; what was not heard
 */

#include "backends/nftables/element.h"

struct nlmsghdr;

#define DAMAGE_KEYS_MAX   64 /* each is looked for in every element that is wanted */
#define DAMAGE_CHAINS_MAX 32

struct damage_key {
	struct element element; /* without data */
	bool there;             /* another program put it there, or put it back */
};

struct damage {
	bool any; /* clients of affinity, which we do not write, are all that it can be alone */
	bool everything;
	bool containers[CONTAINER_COUNT];
	struct damage_key keys[DAMAGE_KEYS_MAX];
	size_t n_keys;
	struct chain chains[DAMAGE_CHAINS_MAX]; /* by their names ours; deleted ones too */
	size_t n_chains;
};

void damage_everything(struct damage *damage);
/* A notification about the table. */
void damage_take(struct damage *damage, enum family family, const struct nlmsghdr *message);
/* Is it in a container, or has it a key, that was touched? Everything is not asked for. */
bool damage_covers(const struct damage *damage, const struct element *element);
