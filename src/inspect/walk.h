/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A walk through rules: what an evaluator of one mode's rules needs to find a path (packet_path.h).
 *
 * The walk knows hooks, routing and dice, the evaluator knows chains and rules. Rules are
 * walked from the first hook to the end once for each outcome: walk_choose() answers as the script
 * of this run says, and what it has not been asked before becomes the next fork. So an evaluator is
 * plain recursion over chains and never has to come back to a fork.
 *
 * Of netfilter this much is modelled: a packet from elsewhere meets prerouting, then input or forward
 * by its destination, then, if forwarded, postrouting; one of the node's own meets output and
 * postrouting, and when it is for the node itself, then input. nat chains are met once at each hook.
 * Rules of others are not known here.
 */

#include "inspect/packet_path.h"

/* How a chain, or a hook, ended. */
enum walk_end {
	WALK_ON = 0, /* fell through */
	WALK_ACCEPT, /* done with this hook */
	WALK_DROP,
	WALK_REJECT,
	WALK_END_COUNT,
};

struct walk {
	/* the packet as it is at this point of the path */
	const struct packet *packet; /* as it was sent */
	const struct host *host;
	struct addr source, destination;
	uint16_t port;
	uint32_t mark, priority;
	bool translated;
	const char *interface;
	enum hook hook;

	struct arena *arena; /* of the path: for texts of steps */
	struct outcome *outcome;
	enum masquerade reason; /* of the mark that was set last */
	size_t steps_capacity;

	struct walk_choices *choices;
};

struct walk_ops {
	/* Meets all base chains of walk->hook. nat: those of nat too. */
	enum walk_end (*hook)(void *rules, struct walk *walk, bool nat);
};

/* One of `n` (at least 1), all alike. */
uint32_t walk_choose(struct walk *walk, uint32_t n);
/* True for one in `n`. */
bool walk_chance(struct walk *walk, uint32_t n);

/* Notes a step; hook is filled in. Texts are borrowed for the life of the path. */
struct step *walk_step(struct walk *walk, const struct step *step);
/* The destination is changed by the step noted last. */
void walk_translate(struct walk *walk, const struct addr *addr, uint16_t port);
void walk_masquerade(struct walk *walk, enum masquerade reason);

/* The path of a packet, for the caller to free. */
struct packet_path *walk_packet(const struct walk_ops *ops, void *rules,
				const struct packet *packet, const struct host *host);
