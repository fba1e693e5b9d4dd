/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks a packet through kept rules of iptables mode, as the kernel would.
 *
 * A client is taken to be new: lists of clients (-m recent --rcheck) are empty. What the packet
 * marks, changes and leads to follows from the rules alone; only the words about it (why a rule does
 * not match, why a packet is marked) are chosen by looking at where a rule stands.
 */

#include <assert.h>

#include "inspect/iptables_rules.h"
#include "inspect/walk.h"
#include "xtables/chains.h"

/* A chain of rules that lead to themselves would never end; the kernel refuses such chains. */
#define DEPTH_MAX 64

struct machine {
	struct rule_store *rules;
	struct walk *walk;
	unsigned int depth;
};

/* -- conditions */

static bool interface_matches(const char *pattern, const char *name)
{
	size_t n = strlen(pattern);

	if (n > 0 && pattern[n - 1] == '+')
		return strncmp(pattern, name, n - 1) == 0;
	return streq(pattern, name);
}

static bool ctstate_matches(const struct walk *walk, unsigned int states)
{
	return (states & CTSTATE_NEW) || ((states & CTSTATE_DNAT) && walk->translated);
}

/* Without -m statistic, which is asked last: who throws dice changes the share. */
static bool holds(const struct walk *walk, const struct match *match)
{
	switch (match->kind) {
	case MATCH_PROTOCOL:
		return match->protocol == walk->packet->protocol;
	case MATCH_SOURCE:
		return prefix_contains(&match->prefix, &walk->source);
	case MATCH_DESTINATION:
		return prefix_contains(&match->prefix, &walk->destination);
	case MATCH_INTERFACE:
		return interface_matches(match->text, walk->interface);
	case MATCH_PORT:
		return match->port == walk->port;
	case MATCH_CTSTATE:
		return ctstate_matches(walk, match->ctstate);
	case MATCH_MARK:
		return (walk->mark & match->mark) == match->mark;
	case MATCH_SOURCE_TYPE_LOCAL:
		return host_has(walk->host, &walk->source);
	case MATCH_DESTINATION_TYPE_LOCAL:
		return host_has(walk->host, &walk->destination);
	case MATCH_RECENT_CHECK:
		return false;
	default: /* comments, counters, and -m recent --set, which always holds */
		return true;
	}
}

/* NULL: all hold. Else the first that does not. */
static const struct match *first_failing(struct walk *walk, const struct stored_rule *rule)
{
	const struct match *dice = NULL;

	for (size_t i = 0; i < rule->rule.n_matches; i++) {
		const struct match *match = &rule->rule.matches[i];

		if (match->kind == MATCH_STATISTIC)
			dice = match;
		else if (holds(walk, match) == match->invert)
			return match;
	}
	return dice && !walk_chance(walk, dice->one_in) ? dice : NULL;
}

/* -- words */

static const char *miss_words(struct walk *walk, const struct match *failing)
{
	char addr[ADDR_TEXT_MAX], prefix[PREFIX_TEXT_MAX];

	switch (failing->kind) {
	case MATCH_SOURCE:
		addr_print(&walk->source, addr);
		prefix_print(&failing->prefix, prefix);
		return arena_printf(walk->arena, "source %s is %s %s", addr,
				    failing->invert ? "in" : "not in", prefix);
	case MATCH_INTERFACE:
		return arena_printf(walk->arena, "the packet %s by %s",
				    failing->invert ? "came in" : "did not come in", failing->text);
	case MATCH_SOURCE_TYPE_LOCAL:
		return "the sender is not this node";
	case MATCH_MARK:
		return failing->invert ? "the packet has the masquerade mark"
				       : "the packet has no masquerade mark";
	case MATCH_RECENT_CHECK:
		return arena_printf(walk->arena,
				    "a client seen in the last %u s would stay with this backend",
				    failing->recent.seconds);
	default:
		return NULL;
	}
}

/* Chains of one Service are short, and what does not match in them is worth knowing. */
static bool miss_counts(const struct stored_chain *chain, const struct match *failing)
{
	struct chain_hash hash;
	enum chain_kind kind;

	return failing->kind != MATCH_STATISTIC && failing->kind != MATCH_PROTOCOL &&
	       chain_name_parse(chain->name, &kind, &hash) && kind != CHAIN_KIND_INDEX;
}

/* Why a rule that leads to KUBE-MARK-MASQ does so, by where it stands. */
static enum masquerade mark_reason(const struct stored_chain *chain, const struct stored_rule *rule)
{
	enum chain_kind kind = CHAIN_KIND_SVC;
	struct chain_hash hash;

	chain_name_parse(chain->name, &kind, &hash);
	if (kind == CHAIN_KIND_SEP)
		return MASQUERADE_HAIRPIN;
	if (kind == CHAIN_KIND_EXT)
		return rule_match(&rule->rule, MATCH_SOURCE_TYPE_LOCAL) ? MASQUERADE_FROM_NODE
									: MASQUERADE_EXTERNAL;
	return rule_match(&rule->rule, MATCH_SOURCE) || rule_match(&rule->rule, MATCH_INTERFACE)
		       ? MASQUERADE_NOT_A_POD
		       : MASQUERADE_ALL;
}

/* -- steps */

static struct step *note(struct machine *machine, const struct stored_chain *chain,
			 struct stored_rule *rule, enum effect effect, const char *target)
{
	struct walk *walk = machine->walk;

	rule->met = machine->rules->walks;
	if (rule->service)
		walk->outcome->service = rule->service;
	return walk_step(walk, &(struct step){
				       .effect = effect,
				       .table = table_name(chain->table),
				       .chain = chain->name,
				       .position = rule->position,
				       .length = chain->n,
				       .rule = rule_store_text(machine->rules, rule),
				       .target = target,
				       .identity = rule,
			       });
}

static void note_affinity(struct walk *walk, const struct stored_rule *rule)
{
	const struct match *check = rule_match(&rule->rule, MATCH_RECENT_CHECK);

	if (check)
		walk->outcome->affinity = check->recent.seconds;
}

/* -- targets */

static enum walk_end walk_chain(struct machine *machine, struct stored_chain *chain);

/* A packet that is marked already keeps the reason of its first mark. */
static enum walk_end follow(struct machine *machine, const struct stored_chain *chain,
			    struct stored_rule *rule)
{
	struct stored_chain *next =
		rule_store_chain(machine->rules, chain->table, rule->rule.target.chain);
	struct step *step = note(machine, chain, rule, EFFECT_JUMP, rule->rule.target.chain);

	if (streq(rule->rule.target.chain, CHAIN_MARK_MASQ)) {
		enum masquerade reason = mark_reason(chain, rule);

		step->note = masquerade_words(reason);
		if (!machine->walk->mark)
			machine->walk->reason = reason;
	}
	return next ? walk_chain(machine, next) : WALK_ON;
}

static enum walk_end translate(struct machine *machine, const struct stored_chain *chain,
			       struct stored_rule *rule)
{
	char text[ADDR_PORT_TEXT_MAX];

	addr_port_print(&rule->rule.target.dnat.addr, rule->rule.target.dnat.port, text);
	note(machine, chain, rule, EFFECT_TRANSLATE, arena_strdup(machine->walk->arena, text));
	walk_translate(machine->walk, &rule->rule.target.dnat.addr, rule->rule.target.dnat.port);
	return WALK_ACCEPT;
}

/* The mark of a packet that is not marked is taken away by turning it: iptables' --xor-mark. */
static enum walk_end set_mark(struct machine *machine, const struct stored_chain *chain,
			      struct stored_rule *rule)
{
	bool unmark = rule->rule.target.kind == TARGET_MARK_XOR;

	note(machine, chain, rule, unmark ? EFFECT_UNMARK : EFFECT_MARK, NULL);
	if (unmark)
		machine->walk->mark ^= rule->rule.target.mark;
	else
		machine->walk->mark |= rule->rule.target.mark;
	return WALK_ON;
}

/* What a rule that matches does; WALK_ON: the next rule is met. */
static enum walk_end act(struct machine *machine, const struct stored_chain *chain,
			 struct stored_rule *rule, bool *ret_returns)
{
	switch (rule->rule.target.kind) {
	case TARGET_CHAIN:
		return follow(machine, chain, rule);
	case TARGET_ACCEPT:
		note(machine, chain, rule, EFFECT_ACCEPT, NULL);
		return WALK_ACCEPT;
	case TARGET_DROP:
		note(machine, chain, rule, EFFECT_DROP, NULL);
		return WALK_DROP;
	case TARGET_REJECT:
		note(machine, chain, rule, EFFECT_REJECT, NULL);
		return WALK_REJECT;
	case TARGET_RETURN:
		note(machine, chain, rule, EFFECT_RETURN, NULL);
		*ret_returns = true;
		return WALK_ON;
	case TARGET_MARK_XOR:
	case TARGET_MARK_OR:
		return set_mark(machine, chain, rule);
	case TARGET_MASQUERADE:
		note(machine, chain, rule, EFFECT_MASQUERADE, NULL);
		walk_masquerade(machine->walk, machine->walk->reason);
		return WALK_ACCEPT;
	case TARGET_DNAT:
		return translate(machine, chain, rule);
	default:
		return WALK_ON; /* it only says or counts something */
	}
}

static enum walk_end walk_rules(struct machine *machine, const struct stored_chain *chain)
{
	for (size_t i = 0; i < chain->n; i++) {
		struct stored_rule *rule = chain->v[i];
		const struct match *failing = first_failing(machine->walk, rule);
		bool returns = false;
		enum walk_end end;

		note_affinity(machine->walk, rule);
		if (failing) {
			if (miss_counts(chain, failing))
				note(machine, chain, rule, EFFECT_MISS, NULL)->note =
					miss_words(machine->walk, failing);
			continue;
		}
		end = act(machine, chain, rule, &returns);
		if (end != WALK_ON || returns)
			return end;
	}
	return WALK_ON;
}

static enum walk_end walk_chain(struct machine *machine, struct stored_chain *chain)
{
	enum walk_end end;

	chain->met = machine->rules->walks;
	if (machine->depth == DEPTH_MAX)
		return WALK_ON;
	machine->depth++;
	end = walk_rules(machine, chain);
	machine->depth--;
	return end;
}

/* -- hooks */

static const char *const base_chains[] = {
	[HOOK_PREROUTING] = "PREROUTING",   [HOOK_INPUT] = "INPUT",
	[HOOK_FORWARD] = "FORWARD",         [HOOK_OUTPUT] = "OUTPUT",
	[HOOK_POSTROUTING] = "POSTROUTING",
};

static_assert(ARRAY_SIZE(base_chains) == HOOK_COUNT, "one chain for each hook");

/* nat comes before filter where both are, and is done with the packet when it has translated it. */
static enum walk_end meet_hook(void *rules, struct walk *walk, bool nat)
{
	static const enum table order[] = {TABLE_NAT, TABLE_FILTER};
	struct machine machine = {.rules = rules, .walk = walk};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		struct stored_chain *chain =
			rule_store_chain(rules, order[i], base_chains[walk->hook]);
		enum walk_end end = WALK_ON;

		if (chain && (nat || order[i] != TABLE_NAT))
			end = walk_chain(&machine, chain);
		if (end == WALK_DROP || end == WALK_REJECT)
			return end;
	}
	return WALK_ON;
}

static const struct walk_ops operations = {.hook = meet_hook};

struct packet_path *iptables_rules_walk(struct rule_store *rules, const struct packet *packet,
					const struct host *host)
{
	rules->walks++;
	return walk_packet(&operations, rules, packet, host);
}
