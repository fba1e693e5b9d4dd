/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/walk.h"

#include <assert.h>
#include <stdlib.h>

/* -- the script of a run */

struct choice {
	uint32_t n;      /* options */
	uint32_t chosen; /* 0 first */
	bool chance;     /* two options: 0 has one share in n, 1 has the rest */
};

struct walk_choices {
	struct choice *v;
	size_t n, capacity;
	size_t at; /* how many have been asked for in this run */
};

static uint32_t options(const struct choice *choice)
{
	return choice->chance ? 2 : choice->n;
}

/* What the script says next; a new choice begins with its first option. */
static const struct choice *next_choice(struct walk *walk, uint32_t n, bool chance)
{
	struct walk_choices *choices = walk->choices;
	const struct choice *choice;

	if (choices->at == choices->n) {
		array_grow(&choices->v, &choices->capacity, choices->n, sizeof(*choices->v));
		choices->v[choices->n++] = (struct choice){.n = n, .chance = chance};
	}
	choice = &choices->v[choices->at++];
	assert(choice->n == n && choice->chance == chance);
	return choice;
}

/* To the next script; false after the last one. */
static bool advance(struct walk_choices *choices)
{
	while (choices->n > 0) {
		struct choice *last = &choices->v[choices->n - 1];

		if (++last->chosen < options(last))
			return true;
		choices->n--;
	}
	return false;
}

uint32_t walk_choose(struct walk *walk, uint32_t n)
{
	const struct choice *choice;

	if (n <= 1)
		return 0;
	choice = next_choice(walk, n, false);
	walk->outcome->share = share_times(walk->outcome->share, 1, n);
	return choice->chosen;
}

bool walk_chance(struct walk *walk, uint32_t n)
{
	const struct choice *choice;

	if (n <= 1)
		return true;
	choice = next_choice(walk, n, true);
	walk->outcome->share =
		share_times(walk->outcome->share, choice->chosen == 0 ? 1 : n - 1, n);
	return choice->chosen == 0;
}

/* -- what is noted on the way */

/* An arena frees nothing: what is outgrown stays, less than what is used in the end. */
struct step *walk_step(struct walk *walk, const struct step *step)
{
	struct outcome *outcome = walk->outcome;
	struct step *added;

	if (outcome->n_steps == walk->steps_capacity) {
		struct step *old = outcome->steps;

		walk->steps_capacity = MAX(walk->steps_capacity * 2, 16);
		outcome->steps =
			arena_array(walk->arena, walk->steps_capacity, sizeof(*outcome->steps));
		if (old)
			memcpy(outcome->steps, old, outcome->n_steps * sizeof(*old));
	}
	added = &outcome->steps[outcome->n_steps++];
	*added = *step;
	added->hook = walk->hook;
	return added;
}

void walk_translate(struct walk *walk, const struct addr *addr, uint16_t port)
{
	struct outcome *outcome = walk->outcome;

	assert(outcome->n_steps > 0);
	walk->destination = *addr;
	walk->port = port;
	walk->translated = true;
	outcome->backend = *addr;
	outcome->backend_port = port;
	outcome->translated_at = outcome->n_steps - 1;
}

void walk_masquerade(struct walk *walk, enum masquerade reason)
{
	walk->outcome->masquerade = reason;
}

/* -- hooks */

static enum walk_end meet(const struct walk_ops *ops, void *rules, struct walk *walk,
			  enum hook hook, bool nat)
{
	enum walk_end end;

	walk->hook = hook;
	end = ops->hook(rules, walk, nat);
	return end == WALK_ACCEPT ? WALK_ON : end;
}

/* Through the loopback interface: the connection is set up by then. */
static enum walk_end deliver_own(const struct walk_ops *ops, void *rules, struct walk *walk)
{
	enum walk_end end;

	walk->interface = "lo";
	end = meet(ops, rules, walk, HOOK_PREROUTING, false);
	return end != WALK_ON ? end : meet(ops, rules, walk, HOOK_INPUT, false);
}

static enum walk_end pass_hooks(const struct walk_ops *ops, void *rules, struct walk *walk)
{
	bool own = walk->packet->origin == ORIGIN_NODE;
	enum walk_end end = meet(ops, rules, walk, own ? HOOK_OUTPUT : HOOK_PREROUTING, true);
	bool here = host_has(walk->host, &walk->destination);

	if (end != WALK_ON)
		return end;
	if (!own) {
		end = meet(ops, rules, walk, here ? HOOK_INPUT : HOOK_FORWARD, false);
		if (end != WALK_ON || here)
			return end;
	}
	end = meet(ops, rules, walk, HOOK_POSTROUTING, true);
	return end == WALK_ON && own && here ? deliver_own(ops, rules, walk) : end;
}

static void run(const struct walk_ops *ops, void *rules, struct walk *walk)
{
	struct outcome *outcome = walk->outcome;
	enum walk_end end;

	outcome->share = (struct share){1, 1};
	outcome->translated_at = SIZE_MAX;
	end = pass_hooks(ops, rules, walk);
	if (end == WALK_DROP)
		outcome->verdict = PACKET_VERDICT_DROPPED;
	else if (end == WALK_REJECT)
		outcome->verdict = PACKET_VERDICT_REJECTED;
	else
		outcome->verdict =
			walk->translated ? PACKET_VERDICT_BACKEND : PACKET_VERDICT_PASSED;
	outcome->translated_at = MIN(outcome->translated_at, outcome->n_steps);
}

/* -- joining what belongs together */

/* Slots of one endpoint, which has more than one by its weight. */
static bool same_outcome(const struct outcome *a, const struct outcome *b)
{
	if (a->verdict != b->verdict || a->masquerade != b->masquerade ||
	    a->n_steps != b->n_steps || !addr_equal(&a->backend, &b->backend) ||
	    a->backend_port != b->backend_port)
		return false;
	for (size_t i = 0; i < a->n_steps; i++)
		if (a->steps[i].identity != b->steps[i].identity)
			return false;
	return true;
}

static void join_outcomes(struct packet_path *path)
{
	size_t n = 0;

	for (size_t i = 0; i < path->n_outcomes; i++) {
		struct outcome *outcome = &path->outcomes[i];

		if (n > 0 && same_outcome(&path->outcomes[n - 1], outcome))
			path->outcomes[n - 1].share =
				share_plus(path->outcomes[n - 1].share, outcome->share);
		else
			path->outcomes[n++] = *outcome;
	}
	path->n_outcomes = n;
}

static void find_common(struct packet_path *path)
{
	const struct outcome *first = &path->outcomes[0];

	path->n_common = first->n_steps;
	for (size_t i = 1; i < path->n_outcomes; i++) {
		const struct outcome *other = &path->outcomes[i];
		size_t n = 0;

		while (n < MIN(path->n_common, other->n_steps) &&
		       step_equal(&first->steps[n], &other->steps[n]))
			n++;
		path->n_common = n;
	}
}

struct packet_path *walk_packet(const struct walk_ops *ops, void *rules,
				const struct packet *packet, const struct host *host)
{
	struct arena *arena = arena_new(16384);
	struct packet_path *path = arena_alloc(arena, sizeof(*path));
	struct walk_choices choices = {0};
	struct outcome *found = NULL;
	size_t capacity = 0, n = 0;

	path->arena = arena;
	path->packet = *packet;
	do {
		struct walk walk = {
			.packet = packet,
			.host = host,
			.source = packet->source,
			.destination = packet->destination,
			.port = packet->port,
			.interface = packet->interface,
			.arena = arena,
			.choices = &choices,
		};

		array_grow(&found, &capacity, n, sizeof(*found));
		found[n] = (struct outcome){0};
		walk.outcome = &found[n++];
		choices.at = 0;
		run(ops, rules, &walk);
		path->cut = n == PACKET_PATH_OUTCOMES_MAX;
	} while (!path->cut && advance(&choices));
	path->outcomes = arena_array(arena, n, sizeof(*found));
	memcpy(path->outcomes, found, n * sizeof(*found));
	path->n_outcomes = n;
	free(found);
	free(choices.v);
	join_outcomes(path);
	find_common(path);
	return path;
}
