/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Table kube-proxy of one family, kept so that packets can walk it: a writer (writer.h) that
 * remembers the chains, rules and elements of a full sync.
 *
 *	struct nftables_rules *rules = nftables_rules_new(FAMILY_IPV4);
 *	nftables_rules_plan(rules, &settings, delta, &host, false);
 *	path = nftables_rules_walk(rules, &packet, &host);
 *
 * An element that was not told is not there: to explain one Service, the chains and that Service's
 * elements are enough.
 */

#include "backends/nftables/writer.h"
#include "base/map.h"
#include "inspect/packet_path.h"

struct plan_delta;

struct nftables_rule {
	size_t position; /* in its chain, from 1 */
	char *text;      /* in nft's words; NULL: not made yet */
	struct nft_rule rule;
};

struct nftables_chain {
	struct chain chain;
	char name[CHAIN_NAME_MAX];
	uint64_t met; /* by which walk, the last of them; 0: by none */
	struct nftables_rule **v;
	size_t n, capacity;
};

struct nftables_rules {
	struct writer writer;
	struct arena *arena;
	struct map chains;  /* by name */
	struct map clients; /* names of maps of clients */
	struct element_list elements;
	bool sorted;
	uint64_t walks;            /* packets so far */
	struct element_list asked; /* keys that the last of them was looked up by, found or not */
};

struct nftables_rules *nftables_rules_new(enum family family);
struct nftables_rules *nftables_rules_free(struct nftables_rules *rules); /* accepts NULL */

/*
 * All that a first, full sync would write, which is what a full delta asks for; live: with the ids that this node's
 * kernel has. The settings are borrowed for the life of the rules.
 */
void nftables_rules_plan(struct nftables_rules *rules, const struct settings *settings,
			 const struct plan_delta *delta, const struct host *host, bool live);

/* The same with a state that is new, but knows ids of affinity (state_affinity_ids()). */
struct state;
void nftables_rules_plan_state(struct nftables_rules *rules, struct state *state,
			       const struct plan_delta *delta, const struct host *host);

struct nftables_chain *nftables_rules_chain(const struct nftables_rules *rules,
					    struct chain chain); /* NULL: none */
/* All of them, sorted. */
const struct element_list *nftables_rules_elements(struct nftables_rules *rules);
/* The element of that key, or for source ranges the one whose range holds it; NULL: none. */
const struct element *nftables_rules_find(struct nftables_rules *rules, const struct element *key);
/* Did the last packet enter it, or could it find the element? Where none walked, all count as met. */
bool nftables_rules_met(const struct nftables_rules *rules, const struct nftables_chain *chain);
void nftables_rules_any_slot(struct element *key); /* in which an endpoint is does not matter */
bool nftables_rules_asked(const struct nftables_rules *rules, const struct element *element);
const char *nftables_rules_text(struct nftables_rules *rules, struct nftables_rule *rule);

struct packet_path *nftables_rules_walk(struct nftables_rules *rules, const struct packet *packet,
					const struct host *host);
