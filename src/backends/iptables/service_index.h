/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * nat KUBE-SERVICES as a tree: instead of one rule after another for every address of every Service,
 * a packet meets at most sixteen jumps by the next four bits of its destination, then sixteen more,
 * and in the end a leaf with few rules. What nothing matched returns to KUBE-SERVICES and meets its
 * last rule, the way to NodePorts, as ever.
 *
 *	KUBE-SERVICES          -d 10.96.0.0/16  -j KUBE-SVC-IX-A...
 *	KUBE-SVC-IX-A...       -d 10.96.64.0/20 -j KUBE-SVC-IX-B...
 *	KUBE-SVC-IX-B...       -d 10.96.64.10 ... -j KUBE-SVC-...
 *
 * The names begin as those of services do, so that a kube-proxy that comes after us finds and
 * deletes these chains like any others that it has no use for.
 *
 * This is the tree alone: keys, addresses and how many rules each has. The rules themselves come from
 * whoever knows the services. Changes are noted first (remove, add), then settled, then written, as
 * often as one likes, until they are applied.
 */

#include "backends/iptables/ruleset.h"
#include "xtables/rule_list.h"

/* A leaf with more rules is split, if its addresses differ; a tree with no more becomes a leaf. */
#define SERVICE_INDEX_SPLIT 16
#define SERVICE_INDEX_MERGE 8

struct service_index;

struct service_index *service_index_new(void); /* for a full sync: nothing of it stands */
struct service_index *service_index_free(struct service_index *index); /* accepts NULL */

/* One more rule of that Service for that address. The key is copied. */
void service_index_add(struct service_index *index, const char *key, const struct addr *addr);
/* All its rules for that address. None: no change. */
void service_index_remove(struct service_index *index, const char *key, const struct addr *addr);
void service_index_settle(struct service_index *index);
/* What was written stands. */
void service_index_applied(struct service_index *index);

/* Rules in all its chains, jumps included. */
size_t service_index_rules(const struct service_index *index);

/*
 * Its chains besides KUBE-SERVICES, numbered until the next change: each one behind those that its
 * rules lead to. A chain holds all rules for addresses within its prefix, whatever the shape of the
 * tree, so that chains can be written one by one in this order and every address stays served.
 */
size_t service_index_n_chains(const struct service_index *index);
void service_index_chain_hash(const struct service_index *index, size_t number,
			      struct chain_hash *ret);

/*
 * Adds those parts, of enum ruleset_part, of a Service's rules for the address to the list, as rules of
 * `chain`: first all that lead, of every Service in the chain, then those that follow.
 */
struct service_index_rules {
	void (*make)(void *arg, const char *key, const struct addr *addr, const char *chain,
		     unsigned int parts, struct rule_list *list);
	void *arg;
};

#define SERVICE_INDEX_ROOT SIZE_MAX /* KUBE-SERVICES, but for its last rules */

/* Declares one chain and adds its rules. */
void service_index_make(const struct service_index *index, size_t number,
			const struct service_index_rules *rules, struct rule_list *list);

/*
 * What differs from what stands, KUBE-SERVICES among it, and the chains that go, without rules. Adds to both
 * lists.
 */
void service_index_difference(const struct service_index *index,
			      const struct service_index_rules *rules, struct rule_list *ret_differ,
			      struct rule_list *ret_gone);
