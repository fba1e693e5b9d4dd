/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks a packet through the kept table of nftables mode, as the kernel would.
 *
 * A client is taken to be new: the maps of affinity, which packets write, hold no client. What happens
 * follows from statements and elements alone; only words are chosen by looking at chains.
 */

#include <assert.h>
#include <endian.h>

#include "backends/nftables/layout.h"
#include "backends/nftables/statement_text.h"
#include "inspect/nftables_rules.h"
#include "inspect/walk.h"

#define DEPTH_MAX 64

struct machine {
	struct nftables_rules *rules;
	struct walk *walk;
	unsigned int depth;
};

/* A rule being walked: what the step about it will say. */
struct progress {
	const struct nftables_chain *chain;
	struct nftables_rule *rule;
	const struct statement *failing;
	struct step step;
	bool acted;
};

/* -- looking up */

static void add_operand(const struct walk *walk, struct element *key, enum operand operand,
			uint32_t random)
{
	switch (operand) {
	case OPERAND_SADDR:
		element_key_addr(key, &walk->source);
		break;
	case OPERAND_DADDR:
		element_key_addr(key, &walk->destination);
		break;
	case OPERAND_PROTOCOL:
		element_key_protocol(key, walk->packet->protocol);
		break;
	case OPERAND_DPORT:
		element_key_port(key, walk->port);
		break;
	case OPERAND_PRIORITY:
		element_key_number(key, walk->priority);
		break;
	case OPERAND_ORIGINAL_DADDR:
		element_key_addr(key, &walk->packet->destination);
		break;
	case OPERAND_ORIGINAL_DPORT:
		element_key_port(key, walk->packet->port);
		break;
	default:
		assert(operand == OPERAND_RANDOM);
		element_key_number(key, random);
		break;
	}
}

static const char *element_words(const struct machine *machine, const struct element *element)
{
	cleanup_text struct text text = {0};

	statement_text_element(&text, machine->rules->writer.family, element);
	return text_keep(&text, machine->walk->arena);
}

/* The dice are thrown even when no element has the number, as in the kernel. */
static const struct element *look_up(struct machine *machine, struct progress *progress,
				     const struct statement *statement)
{
	struct walk *walk = machine->walk;
	const struct element *found;
	char name[CONTAINER_NAME_MAX];
	struct element key;
	uint32_t random = 0;

	element_begin(&key, statement->container);
	for (size_t i = 0; i < STATEMENT_KEY && statement->key[i]; i++) {
		if (statement->key[i] == OPERAND_RANDOM)
			random = walk_choose(walk, statement->number);
		add_operand(walk, &key, statement->key[i], random);
	}
	found = nftables_rules_find(machine->rules, &key);
	element_list_add(&machine->rules->asked, &key);
	container_name(statement->container, statement->map, name);
	progress->step.map = arena_strdup(walk->arena, name);
	progress->step.element_identity = found;
	progress->step.element = found ? element_words(machine, found) : NULL;
	if (found && found->comment)
		walk->outcome->port_id = found->comment;
	return found;
}

static void read_endpoint(const struct element *element, enum family family, struct addr *ret_addr,
			  uint16_t *ret_port)
{
	const uint8_t *data = element->bytes + element->key_size;
	uint16_t port;

	*ret_addr = (struct addr){.family = (uint8_t)family};
	memcpy(ret_addr->bytes, data, addr_bytes(family));
	memcpy(&port, data + addr_bytes(family), sizeof(port));
	*ret_port = be16toh(port);
}

/* -- conditions */

static bool interface_matches(const struct statement *statement, const char *name)
{
	return statement->is_prefix ? has_prefix(name, statement->interface)
				    : streq(name, statement->interface);
}

static bool holds(struct machine *machine, struct progress *progress,
		  const struct statement *statement)
{
	const struct walk *walk = machine->walk;

	switch (statement->kind) {
	case STATEMENT_NEW:
		return true;
	case STATEMENT_TRANSLATED:
		return walk->translated;
	case STATEMENT_PROTOCOL:
		return statement->protocol == walk->packet->protocol;
	case STATEMENT_SOURCE:
		return prefix_contains(&statement->prefix, &walk->source);
	case STATEMENT_DESTINATION:
		return prefix_contains(&statement->prefix, &walk->destination);
	case STATEMENT_INTERFACE:
		return interface_matches(statement, walk->interface);
	case STATEMENT_FROM_NODE:
		return host_has(walk->host, &walk->source);
	case STATEMENT_TO_NODE:
		return host_has(walk->host, &walk->destination);
	case STATEMENT_MARKED:
		return walk->mark & statement->number;
	case STATEMENT_ID:
		return walk->priority == CONTAINER_ID_BASE + statement->number;
	default:
		assert(statement->kind == STATEMENT_IN);
		return look_up(machine, progress, statement);
	}
}

/* -- words */

/* What could have masqueraded, or decided by who sends, and did not; NULL: it is not told. */
static const char *miss_words(struct walk *walk, const struct statement *failing)
{
	char addr[ADDR_TEXT_MAX], prefix[PREFIX_TEXT_MAX];

	switch (failing->kind) {
	case STATEMENT_SOURCE:
		addr_print(&walk->source, addr);
		prefix_print(&failing->prefix, prefix);
		return arena_printf(walk->arena, "source %s is %s %s", addr,
				    failing->not ? "in" : "not in", prefix);
	case STATEMENT_INTERFACE:
		return arena_printf(walk->arena, "the packet %s by %s%s",
				    failing->not ? "came in" : "did not come in",
				    failing->interface, failing->is_prefix ? "*" : "");
	case STATEMENT_FROM_NODE:
		return "the sender is not this node";
	case STATEMENT_MARKED:
		return "the packet has no masquerade mark";
	case STATEMENT_IN:
		if (failing->container == CONTAINER_SOURCE_RANGES)
			return "the source is in an allowed range";
		return failing->container == CONTAINER_HAIRPIN_CONNECTIONS
			       ? "client and backend are not the same"
			       : NULL;
	default:
		return NULL;
	}
}

static enum masquerade mark_reason(const struct progress *progress)
{
	const struct nft_rule *rule = &progress->rule->rule;

	switch (progress->chain->chain.id) {
	case CHAIN_SERVICES:
		for (size_t i = 0; i < rule->n; i++)
			if (rule->v[i].kind == STATEMENT_SOURCE ||
			    rule->v[i].kind == STATEMENT_INTERFACE)
				return MASQUERADE_NOT_A_POD;
		return MASQUERADE_ALL;
	case CHAIN_EXTERNAL_LOCAL:
	case CHAIN_NODEPORT_EXTERNAL_LOCAL:
	case CHAIN_EXTERNAL_LOCAL_STICKY:
	case CHAIN_NODEPORT_EXTERNAL_LOCAL_STICKY:
		return MASQUERADE_FROM_NODE;
	default:
		return MASQUERADE_EXTERNAL;
	}
}

/* -- what a statement does */

static void set_effect(struct progress *progress, enum effect effect)
{
	progress->step.effect = effect;
	progress->acted = true;
}

static void note(struct machine *machine, struct progress *progress)
{
	struct step *step = &progress->step;

	step->table = LAYOUT_TABLE;
	step->chain = progress->chain->name;
	step->position = progress->rule->position;
	step->length = progress->chain->n;
	step->rule = nftables_rules_text(machine->rules, progress->rule);
	step->identity = progress->rule;
	walk_step(machine->walk, step);
}

static enum walk_end walk_chain(struct machine *machine, struct chain which);

static enum walk_end follow(struct machine *machine, struct progress *progress, enum effect effect,
			    struct chain chain)
{
	char name[CHAIN_NAME_MAX];

	chain_name(chain, name);
	progress->step.target = arena_strdup(machine->walk->arena, name);
	set_effect(progress, effect);
	note(machine, progress);
	return walk_chain(machine, chain);
}

static enum walk_end finish(struct machine *machine, struct progress *progress, enum effect effect,
			    enum walk_end end)
{
	set_effect(progress, effect);
	note(machine, progress);
	return end;
}

static enum walk_end translate(struct machine *machine, struct progress *progress,
			       const struct element *element)
{
	char text[ADDR_PORT_TEXT_MAX];
	struct addr addr;
	uint16_t port;

	read_endpoint(element, machine->rules->writer.family, &addr, &port);
	addr_port_print(&addr, port, text);
	progress->step.target = arena_strdup(machine->walk->arena, text);
	finish(machine, progress, EFFECT_TRANSLATE, WALK_ACCEPT);
	walk_translate(machine->walk, &addr, port);
	return WALK_ACCEPT;
}

static enum walk_end masquerade(struct machine *machine, struct progress *progress)
{
	enum masquerade reason = machine->walk->reason;

	if (progress->step.map) /* found among the hairpin connections, with a mark or without */
		reason = MASQUERADE_HAIRPIN;
	progress->step.note = masquerade_words(reason);
	walk_masquerade(machine->walk, reason);
	return finish(machine, progress, EFFECT_MASQUERADE, WALK_ACCEPT);
}

static void set_mark(struct machine *machine, struct progress *progress,
		     const struct statement *statement)
{
	struct walk *walk = machine->walk;

	if (statement->kind == STATEMENT_TOGGLE_MARK) {
		walk->mark ^= statement->number;
		return;
	}
	progress->step.note = masquerade_words(mark_reason(progress));
	if (!walk->mark)
		walk->reason = mark_reason(progress);
	walk->mark |= statement->number;
	set_effect(progress, EFFECT_MARK);
}

static void take_id(struct walk *walk, const struct element *element)
{
	memcpy(&walk->priority, element->bytes + element->key_size, sizeof(walk->priority));
}

/* How a rule goes on. */
enum flow {
	FLOW_NEXT = 0, /* to the next statement */
	FLOW_STOP,     /* a condition does not hold: to the next rule */
	FLOW_LEAVE,    /* out of the chain, with *ret_end */
	FLOW_COUNT,
};

static enum flow decide(struct machine *machine, struct progress *progress,
			const struct element *element, enum walk_end *ret_end)
{
	if (element->verdict == VERDICT_JUMP) {
		*ret_end = follow(machine, progress, EFFECT_JUMP, element->chain);
		return *ret_end == WALK_ON ? FLOW_STOP : FLOW_LEAVE;
	}
	if (element->verdict == VERDICT_DROP)
		*ret_end = finish(machine, progress, EFFECT_DROP, WALK_DROP);
	else
		*ret_end = follow(machine, progress, EFFECT_GOTO, element->chain);
	return FLOW_LEAVE;
}

static enum flow end_rule(struct machine *machine, struct progress *progress,
			  const struct statement *statement, enum walk_end *ret_end)
{
	switch (statement->kind) {
	case STATEMENT_GOTO:
		*ret_end = follow(machine, progress, EFFECT_GOTO, statement->chain);
		return FLOW_LEAVE;
	case STATEMENT_RETURN:
		if (progress->acted)
			note(machine, progress);
		*ret_end = WALK_ON;
		return FLOW_LEAVE;
	case STATEMENT_DROP:
		*ret_end = finish(machine, progress, EFFECT_DROP, WALK_DROP);
		return FLOW_LEAVE;
	case STATEMENT_REJECT:
	case STATEMENT_RESET:
		*ret_end = finish(machine, progress, EFFECT_REJECT, WALK_REJECT);
		return FLOW_LEAVE;
	case STATEMENT_MASQUERADE:
		*ret_end = masquerade(machine, progress);
		return FLOW_LEAVE;
	default:
		assert(statement->kind == STATEMENT_JUMP);
		*ret_end = follow(machine, progress, EFFECT_JUMP, statement->chain);
		return *ret_end == WALK_ON ? FLOW_STOP : FLOW_LEAVE;
	}
}

static enum flow by_element(struct machine *machine, struct progress *progress,
			    const struct statement *statement, enum walk_end *ret_end)
{
	const struct element *element = look_up(machine, progress, statement);

	if (!element)
		return FLOW_STOP;
	if (statement->kind == STATEMENT_VMAP)
		return decide(machine, progress, element, ret_end);
	if (statement->kind == STATEMENT_TAKE_ID) {
		take_id(machine->walk, element);
		return FLOW_NEXT;
	}
	*ret_end = translate(machine, progress, element);
	return FLOW_LEAVE;
}

static enum flow execute(struct machine *machine, struct progress *progress,
			 const struct statement *statement, enum walk_end *ret_end)
{
	switch (statement->kind) {
	case STATEMENT_DNAT:
	case STATEMENT_TAKE_ID:
	case STATEMENT_VMAP:
		return by_element(machine, progress, statement, ret_end);
	case STATEMENT_SET_MARK:
	case STATEMENT_TOGGLE_MARK:
		set_mark(machine, progress, statement);
		return FLOW_NEXT;
	case STATEMENT_SET_ID:
		machine->walk->priority =
			statement->number ? CONTAINER_ID_BASE + statement->number : 0;
		return FLOW_NEXT;
	case STATEMENT_UPDATE:
		machine->walk->outcome->affinity = statement->number;
		set_effect(progress, EFFECT_REMEMBER);
		return FLOW_NEXT;
	case STATEMENT_NOTE_FULL: /* there is room for a client who is new */
	case STATEMENT_FORGET:
	case STATEMENT_NAMED_COUNTER:
		return FLOW_NEXT;
	case STATEMENT_MASQUERADE:
	case STATEMENT_JUMP:
	case STATEMENT_GOTO:
	case STATEMENT_RETURN:
	case STATEMENT_DROP:
	case STATEMENT_REJECT:
	case STATEMENT_RESET:
		return end_rule(machine, progress, statement, ret_end);
	default:
		if (holds(machine, progress, statement) != statement->not )
			return FLOW_NEXT;
		progress->failing = statement;
		return FLOW_STOP;
	}
}

/* True: the chain is left, with *ret_end. */
static bool walk_rule(struct machine *machine, const struct nftables_chain *chain,
		      struct nftables_rule *rule, enum walk_end *ret_end)
{
	struct progress progress = {.chain = chain, .rule = rule};
	enum flow flow = FLOW_NEXT;

	for (size_t i = 0; i < rule->rule.n && flow == FLOW_NEXT; i++)
		flow = execute(machine, &progress, &rule->rule.v[i], ret_end);
	if (flow == FLOW_LEAVE)
		return true;
	if (progress.failing)
		progress.step.note = miss_words(machine->walk, progress.failing);
	if (progress.failing ? progress.step.note != NULL : flow == FLOW_NEXT && progress.acted)
		note(machine, &progress);
	return false;
}

static enum walk_end walk_chain(struct machine *machine, struct chain which)
{
	struct nftables_chain *chain = nftables_rules_chain(machine->rules, which);
	enum walk_end end = WALK_ON;
	bool left = false;

	if (!chain || machine->depth == DEPTH_MAX)
		return WALK_ON;
	chain->met = machine->rules->walks;
	machine->depth++;
	for (size_t i = 0; i < chain->n && !left; i++)
		left = walk_rule(machine, chain, chain->v[i], &end);
	machine->depth--;
	return left ? end : WALK_ON;
}

/* -- hooks */

/* In the order of their priorities: what looks at the destination as sent comes before nat. */
static const struct {
	enum hook hook;
	enum chain_id chain;
	bool nat;
} base_chains[] = {
	{HOOK_PREROUTING, CHAIN_FILTER_PREROUTING_PRE_DNAT, false},
	{HOOK_PREROUTING, CHAIN_NAT_PREROUTING, true},
	{HOOK_INPUT, CHAIN_FILTER_INPUT, false},
	{HOOK_FORWARD, CHAIN_FILTER_FORWARD, false},
	{HOOK_OUTPUT, CHAIN_FILTER_OUTPUT_PRE_DNAT, false},
	{HOOK_OUTPUT, CHAIN_NAT_OUTPUT, true},
	{HOOK_OUTPUT, CHAIN_FILTER_OUTPUT, false},
	{HOOK_POSTROUTING, CHAIN_NAT_POSTROUTING, true},
};

static_assert(ARRAY_SIZE(base_chains) == CHAIN_BASE_COUNT, "every base chain is met somewhere");

static enum walk_end meet_hook(void *rules, struct walk *walk, bool nat)
{
	struct machine machine = {.rules = rules, .walk = walk};

	for (size_t i = 0; i < ARRAY_SIZE(base_chains); i++) {
		enum walk_end end;

		if (base_chains[i].hook != walk->hook || (base_chains[i].nat && !nat))
			continue;
		end = walk_chain(&machine, (struct chain){.id = base_chains[i].chain});
		if (end == WALK_DROP || end == WALK_REJECT)
			return end;
	}
	return WALK_ON;
}

static const struct walk_ops operations = {.hook = meet_hook};

struct packet_path *nftables_rules_walk(struct nftables_rules *rules, const struct packet *packet,
					const struct host *host)
{
	struct packet_path *path;

	rules->walks++;
	rules->asked.n = 0;
	path = walk_packet(&operations, rules, packet, host);
	for (size_t i = 0; i < rules->asked.n; i++)
		nftables_rules_any_slot(&rules->asked.v[i]);
	element_list_sort(&rules->asked);
	return path;
}
