/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The path of a packet through the rules, and where it ends: what walking the rules found out.
 *
 * Where rules throw dice the path forks, and each end is an outcome with its share, an exact
 * fraction; the shares of a path add up to 1. An outcome has all steps from the first hook to the
 * end. The first `n_common` of them are the same for all, and then come those of its own.
 */

#include "base/arena.h"
#include "inspect/packet.h"

/* of/in, in lowest terms. */
struct share {
	uint64_t of, in;
};

struct share share_times(struct share share, uint64_t of, uint64_t in);
struct share share_plus(struct share a, struct share b);
double share_percent(struct share share);

enum hook {
	HOOK_PREROUTING = 0,
	HOOK_INPUT,
	HOOK_FORWARD,
	HOOK_OUTPUT,
	HOOK_POSTROUTING,
	HOOK_COUNT,
};

const char *hook_name(enum hook hook); /* "prerouting" */

/* What a rule did with the packet. */
enum effect {
	EFFECT_MISS = 0,   /* met, and does not match */
	EFFECT_JUMP,       /* goes on in another chain, and may come back */
	EFFECT_GOTO,       /* goes on in another chain for good */
	EFFECT_MARK,       /* is to be masqueraded */
	EFFECT_UNMARK,     /* the mark has done its work */
	EFFECT_TRANSLATE,  /* gets another destination */
	EFFECT_MASQUERADE, /* gets the node's address as its source */
	EFFECT_REMEMBER,   /* the client is remembered: affinity */
	EFFECT_RETURN,     /* back to the chain before */
	EFFECT_ACCEPT,     /* through, at this hook */
	EFFECT_DROP,
	EFFECT_REJECT,
	EFFECT_CONTINUE, /* matches, and does nothing that is known here; only of real packets */
	EFFECT_COUNT,
};

const char *effect_name(enum effect effect); /* "miss", "jump", ... */

struct step {
	enum hook hook;
	enum effect effect;
	const char *table;   /* "nat"; in nftables mode "kube-proxy" */
	const char *chain;   /* that the rule stands in */
	size_t position;     /* of the rule in it, from 1; 0: not known, or no rule */
	size_t length;       /* rules in the chain */
	const char *rule;    /* as iptables-save or nft print it; NULL: not known */
	uint64_t handle;     /* the kernel's, where a real packet met it; 0: none */
	const char *target;  /* the chain gone to, or "10.244.1.2:80"; NULL: none */
	const char *map;     /* nftables: the set or map asked last; NULL: none */
	const char *element; /* what it answered, in nft's words; NULL: nothing, or no map */
	const char *note;    /* in words, why; NULL: the effect says it all */
	const char *kernel; /* where the kernel differs, in words; NULL: nothing is known of that */
	const void *identity; /* the rule and element: the same in two outcomes, the same step */
	const void *element_identity;
};

enum packet_verdict {
	PACKET_VERDICT_PASSED = 0, /* no rule of ours changed its destination: no Service has it */
	PACKET_VERDICT_BACKEND,
	PACKET_VERDICT_REJECTED, /* refused at once, the client is told */
	PACKET_VERDICT_DROPPED,  /* the client waits in vain */
	PACKET_VERDICT_COUNT,
};

/* "passed", "backend", "rejected", "dropped" */
const char *packet_verdict_name(enum packet_verdict verdict);

/* Why a packet gets the node's address as its source. */
enum masquerade {
	MASQUERADE_NONE = 0,
	MASQUERADE_HAIRPIN,   /* client and backend are the same */
	MASQUERADE_NOT_A_POD, /* to a cluster IP, and not from a pod */
	MASQUERADE_ALL,       /* to a cluster IP, and the settings ask for all of it */
	MASQUERADE_EXTERNAL,  /* to an external destination with policy Cluster */
	MASQUERADE_FROM_NODE, /* by the node itself, to an external destination with policy Local */
	MASQUERADE_COUNT,
};

const char *masquerade_name(enum masquerade masquerade); /* "none", "hairpin", ... */
const char *masquerade_words(enum masquerade masquerade);

struct outcome {
	struct share share;
	enum packet_verdict verdict;
	struct addr backend; /* PACKET_VERDICT_BACKEND */
	uint16_t backend_port;
	enum masquerade masquerade;
	struct step *steps;
	size_t n_steps;
	size_t translated_at; /* index of the step, n_steps: none */
	const char *service;  /* "namespace/name" of the last rule met that has one; NULL: none */
	const char *port_id;  /* "namespace/name:port" where the rules tell; NULL: they do not */
	uint32_t affinity;    /* seconds that the client would be remembered for; 0: is not */
};

struct packet_path {
	struct arena *arena; /* holds all of this */
	struct packet packet;
	struct outcome *outcomes;
	size_t n_outcomes;
	size_t n_common;
	bool cut; /* more outcomes than PACKET_PATH_OUTCOMES_MAX: the rest is missing */
};

#define PACKET_PATH_OUTCOMES_MAX 65536

struct packet_path *packet_path_free(struct packet_path *path); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(packet_path)
#define cleanup_packet_path attr_cleanup(packet_path_cleanup)

/* Steps of two outcomes that mean the same rule and the same element. */
bool step_equal(const struct step *a, const struct step *b);
