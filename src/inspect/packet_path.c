/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/packet_path.h"

#include <assert.h>

/* -- shares */

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static struct share reduce(uint64_t of, uint64_t in)
{
	uint64_t divisor = greatest_common_divisor(of, in);

	return (struct share){of / divisor, in / divisor};
}

/* Reduced crosswise before it is multiplied: numbers stay as small as they can be. */
struct share share_times(struct share share, uint64_t of, uint64_t in)
{
	struct share a = reduce(share.of, in), b = reduce(of, share.in);

	return reduce(a.of * b.of, a.in * b.in);
}

struct share share_plus(struct share a, struct share b)
{
	uint64_t divisor = greatest_common_divisor(a.in, b.in);

	return reduce(a.of * (b.in / divisor) + b.of * (a.in / divisor), a.in / divisor * b.in);
}

double share_percent(struct share share)
{
	return 100.0 * (double)share.of / (double)share.in;
}

/* -- names */

static const char *const hook_names[] = {
	[HOOK_PREROUTING] = "prerouting",   [HOOK_INPUT] = "input",
	[HOOK_FORWARD] = "forward",         [HOOK_OUTPUT] = "output",
	[HOOK_POSTROUTING] = "postrouting",
};

static const char *const effect_names[] = {
	[EFFECT_MISS] = "miss",
	[EFFECT_JUMP] = "jump",
	[EFFECT_GOTO] = "goto",
	[EFFECT_MARK] = "mark",
	[EFFECT_UNMARK] = "unmark",
	[EFFECT_TRANSLATE] = "translate",
	[EFFECT_MASQUERADE] = "masquerade",
	[EFFECT_REMEMBER] = "remember",
	[EFFECT_RETURN] = "return",
	[EFFECT_ACCEPT] = "accept",
	[EFFECT_DROP] = "drop",
	[EFFECT_REJECT] = "reject",
	[EFFECT_CONTINUE] = "continue",
};

static const char *const packet_verdict_names[] = {
	[PACKET_VERDICT_PASSED] = "passed",
	[PACKET_VERDICT_BACKEND] = "backend",
	[PACKET_VERDICT_REJECTED] = "rejected",
	[PACKET_VERDICT_DROPPED] = "dropped",
};

static const struct {
	const char *name, *words;
} masquerades[] = {
	[MASQUERADE_NONE] = {"none", "the client's address stays"},
	[MASQUERADE_HAIRPIN] = {"hairpin", "client and backend are the same pod"},
	[MASQUERADE_NOT_A_POD] = {"notAPod", "the client of a cluster IP is no pod"},
	[MASQUERADE_ALL] = {"all", "all traffic to cluster IPs is masqueraded by configuration"},
	[MASQUERADE_EXTERNAL] = {"external", "externalTrafficPolicy is Cluster, so answers must "
					     "come back through this node"},
	[MASQUERADE_FROM_NODE] = {"fromNode", "the node itself calls an external address with "
					      "externalTrafficPolicy Local"},
};

static_assert(ARRAY_SIZE(hook_names) == HOOK_COUNT, "one name for each hook");
static_assert(ARRAY_SIZE(effect_names) == EFFECT_COUNT, "one name for each effect");
static_assert(ARRAY_SIZE(packet_verdict_names) == PACKET_VERDICT_COUNT,
	      "one name for each verdict");
static_assert(ARRAY_SIZE(masquerades) == MASQUERADE_COUNT, "one row for each reason");

const char *hook_name(enum hook hook)
{
	return hook_names[hook];
}

const char *effect_name(enum effect effect)
{
	return effect_names[effect];
}

const char *packet_verdict_name(enum packet_verdict verdict)
{
	return packet_verdict_names[verdict];
}

const char *masquerade_name(enum masquerade masquerade)
{
	return masquerades[masquerade].name;
}

const char *masquerade_words(enum masquerade masquerade)
{
	return masquerades[masquerade].words;
}

/* -- the path */

bool step_equal(const struct step *a, const struct step *b)
{
	return a->identity == b->identity && a->element_identity == b->element_identity &&
	       a->effect == b->effect && a->hook == b->hook;
}

struct packet_path *packet_path_free(struct packet_path *path)
{
	if (path)
		arena_free(path->arena);
	return NULL;
}
