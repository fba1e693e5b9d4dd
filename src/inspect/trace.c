/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/trace.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "kernel/nft_tracer.h"

/* -- effects */

/* The kernel tells verdicts; what else a rule does its value says. */
static enum effect effect_of(int32_t verdict, enum effect beside)
{
	switch (verdict) {
	case NFT_JUMP:
		return EFFECT_JUMP;
	case NFT_GOTO:
		return EFFECT_GOTO;
	case NFT_RETURN:
		return beside == EFFECT_REMEMBER ? beside : EFFECT_RETURN;
	case NF_ACCEPT:
		return beside == EFFECT_TRANSLATE || beside == EFFECT_MASQUERADE ? beside
										 : EFFECT_ACCEPT;
	case NF_DROP:
		return beside == EFFECT_REJECT ? beside : EFFECT_DROP;
	case NFT_CONTINUE:
		if (beside == EFFECT_MARK || beside == EFFECT_UNMARK || beside == EFFECT_REMEMBER)
			return beside;
		return EFFECT_CONTINUE;
	default: /* to a program's queue, or taken by one */
		return EFFECT_CONTINUE;
	}
}

/* -- steps */

/* Tables of no family are named with what they are: "inet firewalld". */
static const char *table_words(const struct trace *trace, const struct nft_trace *event)
{
	if (event->nfproto == NFPROTO_INET)
		return arena_printf(trace->arena, "inet %s", event->table);
	return arena_strdup(trace->arena, event->table);
}

/* An arena frees nothing: what is outgrown stays, less than what is used in the end. */
static struct step *add_step(struct trace *trace)
{
	if (trace->n_steps == trace->capacity) {
		struct step *old = trace->steps;

		trace->capacity = MAX(trace->capacity * 2, 32);
		trace->steps = arena_array(trace->arena, trace->capacity, sizeof(*old));
		if (old)
			memcpy(trace->steps, old, trace->n_steps * sizeof(*old));
	}
	return &trace->steps[trace->n_steps++];
}

static void note_step(struct trace *trace, const struct nft_trace *event)
{
	struct trace_rule rule = {0};
	struct step *step;

	if (trace->n_steps == TRACE_STEPS_MAX)
		return;
	if (event->handle)
		trace->ops->rule(trace->arg, event, &rule);
	trace->settled = trace->n_steps;
	step = add_step(trace);
	*step = (struct step){
		.hook = trace->hook,
		.effect = effect_of(event->verdict, rule.effect),
		.table = table_words(trace, event),
		.chain = arena_strdup(trace->arena, event->chain),
		.position = rule.position,
		.length = rule.length,
		.rule = rule.text,
		.handle = event->handle,
		.target = event->target ? arena_strdup(trace->arena, event->target) : NULL,
	};
	trace->remembered = trace->remembered || rule.recalls;
	if (rule.recalls)
		step->note = "the client is remembered: affinity";
	if (step->effect == EFFECT_TRANSLATE) {
		step->target = rule.target; /* else it is seen when the next chain begins */
		trace->translated = true;
	} else if (step->effect == EFFECT_MASQUERADE) {
		trace->masqueraded = true;
		trace->masqueraded_at = trace->n_steps - 1;
	}
}

/* -- headers */

/* The rule met last must have done it: whatever translates ends its chain. */
static struct step *last_step(const struct trace *trace)
{
	return trace->first && trace->n_steps > 0 ? &trace->steps[trace->n_steps - 1] : NULL;
}

static void translated(struct trace *trace, const struct nft_trace_packet *packet)
{
	struct step *step = last_step(trace);
	char text[ADDR_PORT_TEXT_MAX];

	trace->translated = true;
	if (!step)
		return;
	addr_port_print(&packet->destination, packet->port, text);
	step->effect = EFFECT_TRANSLATE;
	step->target = arena_strdup(trace->arena, text);
}

static void masqueraded(struct trace *trace)
{
	struct step *step = last_step(trace);

	trace->masqueraded = true;
	if (!step)
		return;
	step->effect = EFFECT_MASQUERADE;
	trace->masqueraded_at = trace->n_steps - 1;
}

static void see_packet(struct trace *trace, const struct nft_trace *event)
{
	const struct nft_trace_packet *packet = &event->packet;
	const struct nft_trace_packet *before = &trace->now;

	if (!addr_equal(&before->destination, &packet->destination) || before->port != packet->port)
		translated(trace, packet);
	if (!addr_equal(&before->source, &packet->source))
		masqueraded(trace);
	trace->now = *packet;
	trace->settled = trace->n_steps;
	trace->ops->hook(trace->arg, event, &trace->hook);
}

/* -- ends */

/* Through the loopback interface it comes back, to hooks for what arrives. */
static void leave(struct trace *trace, const struct nft_trace *event)
{
	if (event->oif)
		trace->ops->interface(trace->arg, event->oif, trace->left_by);
	if (streq(trace->left_by, "lo"))
		trace->out = true;
	else
		trace->end = TRACE_LEFT;
}

static void take_own(struct trace *trace, const struct nft_trace *event)
{
	if (streq(event->chain, NFT_TRACER_LEFT))
		leave(trace, event);
	else if (streq(event->chain, NFT_TRACER_DELIVERED))
		trace->end = TRACE_DELIVERED;
	else if (has_prefix(event->chain, NFT_TRACER_NEW))
		trace->first = true;
}

/* A copy of a packet is another one to the kernel, with another id; who sent it stays the same. */
bool trace_goes_on(const struct trace *trace, const struct nft_trace *event)
{
	if (trace->end != TRACE_UNDER_WAY)
		return false;
	return trace->id == event->id ||
	       (event->has_packet && event->packet.source_port == trace->now.source_port &&
		addr_equal(&event->packet.source, &trace->now.source));
}

void trace_take(struct trace *trace, const struct nft_trace *event)
{
	trace->id = event->id;
	if (event->has_packet)
		see_packet(trace, event);
	if (has_prefix(event->table, NFT_TRACER_PREFIX)) {
		take_own(trace, event);
	} else if (event->handle || event->verdict == NF_DROP) {
		note_step(trace, event);
		if (event->verdict == NF_DROP)
			trace->end = TRACE_STOPPED;
	}
	if (trace->end != TRACE_UNDER_WAY)
		trace->settled = trace->n_steps;
}

void trace_give_up(struct trace *trace)
{
	trace->end = trace->out ? TRACE_LEFT : TRACE_VANISHED;
	trace->settled = trace->n_steps;
}

enum packet_verdict trace_verdict(const struct trace *trace)
{
	switch (trace->end) {
	case TRACE_STOPPED:
		return trace->n_steps > 0 &&
				       trace->steps[trace->n_steps - 1].effect == EFFECT_REJECT
			       ? PACKET_VERDICT_REJECTED
			       : PACKET_VERDICT_DROPPED;
	case TRACE_VANISHED:
		return PACKET_VERDICT_DROPPED;
	default:
		return trace->translated ? PACKET_VERDICT_BACKEND : PACKET_VERDICT_PASSED;
	}
}

const char *trace_verdict_name(const struct trace *trace)
{
	return trace->end == TRACE_VANISHED ? "vanished"
					    : packet_verdict_name(trace_verdict(trace));
}

/* -- */

static void read_sender(struct trace *trace, const struct nft_trace *begin)
{
	struct packet *packet = &trace->packet;

	packet->family = (enum family)begin->packet.destination.family;
	packet->protocol = trace->protocol;
	packet->source = begin->packet.source;
	packet->destination = begin->packet.destination;
	packet->port = begin->packet.port;
	packet->origin = trace->hook == HOOK_OUTPUT ? ORIGIN_NODE : ORIGIN_OUTSIDE;
	if (packet->origin != ORIGIN_NODE && begin->iif)
		trace->ops->interface(trace->arg, begin->iif, packet->interface);
	trace->source_port = begin->packet.source_port;
}

struct trace *trace_new(const struct trace_ops *ops, void *arg, enum protocol protocol,
			const struct nft_trace *begin)
{
	struct arena *arena = arena_new(16384);
	struct trace *trace = arena_alloc(arena, sizeof(*trace));

	trace->arena = arena;
	trace->ops = ops;
	trace->arg = arg;
	trace->id = begin->id;
	trace->protocol = protocol;
	trace->masqueraded_at = SIZE_MAX;
	trace->now = begin->packet;
	ops->hook(arg, begin, &trace->hook);
	read_sender(trace, begin);
	return trace;
}

struct trace *trace_free(struct trace *trace)
{
	if (trace)
		arena_free(trace->arena);
	return NULL;
}
