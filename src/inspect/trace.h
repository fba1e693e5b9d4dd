/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The path of one real packet, from what the kernel tells of it (kernel/nft_trace.h): the same steps
 * that a walk through planned rules has (packet_path.h), met and not predicted.
 *
 *	under way ──the last hook──▶ left, or delivered
 *	          ──a verdict──────▶ stopped
 *	          ──silence────────▶ vanished
 *
 * The id of a packet changes when the kernel copies it, so that also its sender tells who is meant.
 *
 * Only the first packet of a connection meets the rules that translate. What they decided is done to
 * those that follow, which a client repeats perhaps because no answer comes.
 *
 * Where rules change addresses no message says so; the headers that the next base chain begins with
 * do. So the last step may still become a translation: those below `settled` cannot change any more.
 * The kernel tells only of rules that match.
 */

#include "inspect/packet_path.h"
#include "kernel/nft_trace.h"

enum trace_end {
	TRACE_UNDER_WAY = 0,
	TRACE_LEFT,      /* by an interface, behind the last rule */
	TRACE_DELIVERED, /* to this node itself */
	TRACE_STOPPED,   /* by a rule or policy */
	TRACE_VANISHED,  /* no rule stopped it, and it came to no further hook */
	TRACE_END_COUNT,
};

/* What is known of a rule beside its handle. Texts live as long as the trace. */
struct trace_rule {
	size_t position, length; /* as in a step; 0: not known */
	const char *text;        /* NULL: not known */
	/* what it does beside its verdict, by its value; 0: nothing that is known here */
	enum effect effect;
	bool recalls;       /* it matches only clients that affinity remembers */
	const char *target; /* that it translates to; NULL: the value does not tell */
};

struct trace_ops {
	/* Where a base chain hangs; false: not known. */
	bool (*hook)(void *arg, const struct nft_trace *event, enum hook *ret);
	void (*rule)(void *arg, const struct nft_trace *event, struct trace_rule *ret);
	/* The name of an interface; false: there is none. */
	bool (*interface)(void *arg, uint32_t index, char name[static PACKET_INTERFACE_MAX]);
};

#define TRACE_STEPS_MAX 4096 /* of one packet; what comes behind is not noted */

struct trace {
	struct arena *arena; /* holds all of this */
	const struct trace_ops *ops;
	void *arg;

	uint32_t id;
	enum protocol protocol;
	struct packet
		packet; /* as it was sent; the origin is node or outside, the kernel does not tell more */
	uint16_t source_port;
	struct nft_trace_packet now; /* as it was seen last */
	enum hook hook;              /* where it was seen last */
	char left_by[PACKET_INTERFACE_MAX];

	struct step *steps;
	size_t n_steps, capacity;
	size_t settled; /* steps that are final */
	bool first;     /* of its connection: rules decide. Else what was decided for that one */
	bool translated, masqueraded;
	size_t masqueraded_at; /* index of the step; SIZE_MAX: none */
	bool remembered;       /* its client was: affinity chose the backend */
	bool out;              /* it passed the last hook, towards this node itself */
	enum trace_end end;
};

/* begin: the first event, of our own table's rule. Everything is borrowed. */
struct trace *trace_new(const struct trace_ops *ops, void *arg, enum protocol protocol,
			const struct nft_trace *begin);
struct trace *trace_free(struct trace *trace); /* accepts NULL, returns NULL */
/* Is it under way, and the event about it? Ask those with the event's id first. */
bool trace_goes_on(const struct trace *trace, const struct nft_trace *event);
/* Another event of the same packet, which is still under way. */
void trace_take(struct trace *trace, const struct nft_trace *event);
/* There has been silence. */
void trace_give_up(struct trace *trace);

/* Of a trace that has ended; one that vanished counts as dropped. */
enum packet_verdict trace_verdict(const struct trace *trace);
const char *trace_verdict_name(const struct trace *trace); /* a verdict's name, or "vanished" */
