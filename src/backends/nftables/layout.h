/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What table kube-proxy always holds: containers, chains and the rules in them. None of it depends
 * on Services, but for the chains with a number, which are written when an element first names
 * them, and for what a service port with ClientIP affinity has of its own.
 */

#include "backends/nftables/writer.h"
#include "plan/settings.h"

#define LAYOUT_TABLE "kube-proxy"
/* The table's comment, by which it is known as ours, and as laid out like this. */
#define LAYOUT_COMMENT "rules for kube-proxy, by Portolan (layout 3)"
/* With which it begins whatever the layout. */
#define LAYOUT_COMMENT_ANY "rules for kube-proxy, by Portolan"

/* So long a map of clients counts as full after it last had no room for one. */
#define LAYOUT_FULL_SECONDS 60

/* Facts that the rules stand on. */
struct layout_facts {
	const struct settings *settings;
	const struct prefix *service_cidrs; /* of the family */
	size_t n_service_cidrs;
	bool affinity; /* some service port has it */
};

/* Some of what is called fixed is there only if an operator asked for it. */
bool layout_has_container(const struct settings *settings, enum container container);
bool layout_has_chain(const struct settings *settings, enum chain_id id);
void layout_containers(struct writer *writer, const struct settings *settings); /* and counters */
void layout_fixed_chains(struct writer *writer, const struct settings *settings);
/* The rules of a fixed chain, which is there and empty, or which the layout does not have. */
void layout_rules(struct writer *writer, const struct layout_facts *facts, enum chain_id id);
/* A chain with a number, and its rules. The chains that it leads to must be there: pick-1, pick-n. */
void layout_numbered(struct writer *writer, const struct settings *settings, struct chain chain);

/*
 * What a service port with affinity has of its own: a map of clients, or two, and the chains that read and write them.
 * Service ports do not share a map, so that none can take room from another.
 */
struct layout_affinity {
	uint32_t number; /* of the service port: affinity_ids.h */
	enum protocol protocol;
	uint32_t seconds; /* how long a client is remembered */
	bool local;       /* endpoints of this node have a memory of their own */
	uint32_t clients; /* that a map holds */
	const char *comment;
};

void layout_affinity_maps(struct writer *writer, const struct layout_affinity *affinity);
/* The chain must be there and empty. */
void layout_affinity_rules(struct writer *writer, const struct layout_affinity *affinity,
			   enum chain_id id);
