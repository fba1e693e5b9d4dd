/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/trace_report.h"

#include <stdlib.h>

#include "backends/backend.h"
#include "base/text.h"
#include "inspect/inspect_ops.h"
#include "inspect/iptables_rules.h"

#define EXPECTED_MAX 5 /* backends that are named where another one was reached */

/* -- the plan's words */

static bool same_rule(const struct packet_path *path, const struct step *met,
		      const struct step *planned)
{
	if (met->hook != planned->hook || !streq(met->table, planned->table) ||
	    !streq(met->chain, planned->chain))
		return false;
	if (!met->rule) /* not known: then where it leads has to do */
		return met->effect == planned->effect &&
		       (!met->target || !planned->target || streq(met->target, planned->target));
	return iptables_rules_same_line(path->packet.destination.family, met->rule, planned->rule);
}

static bool same_target(const struct step *met, const struct step *planned)
{
	return met->effect != EFFECT_TRANSLATE ||
	       (met->target && planned->target && streq(met->target, planned->target));
}

static const struct step *find_planned(const struct packet_path *path, const struct step *met)
{
	for (size_t i = 0; i < path->n_outcomes; i++) {
		const struct outcome *outcome = &path->outcomes[i];

		for (size_t j = i > 0 ? path->n_common : 0; j < outcome->n_steps; j++)
			if (outcome->steps[j].effect != EFFECT_MISS &&
			    same_rule(path, met, &outcome->steps[j]) &&
			    same_target(met, &outcome->steps[j]))
				return &outcome->steps[j];
	}
	return NULL;
}

static const struct inspect_ops *ops_of(const struct trace_report *report)
{
	return explain_input(report->explain)->backend->inspect;
}

static void take_words(const struct trace_report *report, struct step *met)
{
	const struct step *planned = find_planned(report->explanation->path, met);

	if (!planned)
		return;
	if (!met->note)
		met->note = planned->note;
	if (met->effect == EFFECT_CONTINUE)
		met->effect = planned->effect;
	if (!ops_of(report)->is_certain || !ops_of(report)->is_certain(planned))
		return;
	met->map = planned->map;
	met->element = planned->element;
}

void trace_report_follow(struct trace_report *report)
{
	struct trace *trace = report->trace;

	for (; report->n_followed < trace->settled; report->n_followed++)
		if (report->explanation)
			take_words(report, &trace->steps[report->n_followed]);
}

/* -- comparing ends */

static bool same_end(const struct trace *trace, const struct outcome *outcome)
{
	if (trace->end == TRACE_VANISHED || outcome->verdict != trace_verdict(trace))
		return false;
	return outcome->verdict != PACKET_VERDICT_BACKEND ||
	       (addr_equal(&outcome->backend, &trace->now.destination) &&
		outcome->backend_port == trace->now.port);
}

static const struct outcome *find_outcome(const struct packet_path *path, const struct trace *trace)
{
	for (size_t i = 0; i < path->n_outcomes; i++)
		if (same_end(trace, &path->outcomes[i]))
			return &path->outcomes[i];
	return NULL;
}

static char *expected_end(const struct explanation *explanation)
{
	const struct packet_path *path = explanation->path;
	cleanup_text struct text text = {0};
	char addr[ADDR_PORT_TEXT_MAX];

	if (!explanation_reaches(explanation))
		return xstrdup(explanation->summary);
	text_str(&text, path->n_outcomes > 1 ? "Connections should reach one of "
					     : "Connections should reach ");
	for (size_t i = 0; i < path->n_outcomes && i < EXPECTED_MAX; i++) {
		addr_port_print(&path->outcomes[i].backend, path->outcomes[i].backend_port, addr);
		text_printf(&text, "%s%s", i > 0 ? ", " : "", addr);
	}
	if (path->n_outcomes > EXPECTED_MAX)
		text_printf(&text, " and %zu more", path->n_outcomes - EXPECTED_MAX);
	text_str(&text, ".");
	return text_dup(&text);
}

/* -- comparing paths */

/* Something that a plan would have a step for. */
static bool is_ours(const struct trace_report *report, const struct step *step)
{
	if (step->effect == EFFECT_CONTINUE || (!step->handle && !step->rule))
		return false;
	return ops_of(report)->is_ours(explain_rules(report->explain), step);
}

static size_t next_planned(const struct outcome *outcome, size_t at)
{
	while (at < outcome->n_steps && outcome->steps[at].effect == EFFECT_MISS)
		at++;
	return at;
}

static char *place(const struct step *step)
{
	return xasprintf("%s %s (%s)", step->table, step->chain,
			 step->rule ? step->rule : "a rule that cannot be read");
}

static char *not_met(const struct step *planned)
{
	cleanup_free char *where = place(planned);

	return xasprintf("The planned rule in %s was not met.", where);
}

static char *not_planned(const struct step *met)
{
	cleanup_free char *where = place(met);

	return xasprintf("The rule in %s is not planned to be met here.", where);
}

/* Towards the node itself the kernel may not tell of what comes behind the loopback interface. */
static char *compare_paths(const struct trace_report *report, const struct outcome *outcome)
{
	const struct trace *trace = report->trace;
	size_t at = next_planned(outcome, 0);

	for (size_t i = 0; i < trace->n_steps; i++) {
		if (!is_ours(report, &trace->steps[i]))
			continue;
		if (at == outcome->n_steps)
			return not_planned(&trace->steps[i]);
		if (!same_rule(report->explanation->path, &trace->steps[i], &outcome->steps[at]))
			return find_planned(report->explanation->path, &trace->steps[i])
				       ? not_met(&outcome->steps[at])
				       : not_planned(&trace->steps[i]);
		at = next_planned(outcome, at + 1);
	}
	return at == outcome->n_steps || trace->out ? NULL : not_met(&outcome->steps[at]);
}

static char *compare(struct trace_report *report)
{
	const struct trace *trace = report->trace;
	const struct outcome *outcome = find_outcome(report->explanation->path, trace);

	if (!outcome)
		return expected_end(report->explanation);
	report->outcome = outcome;
	if (trace_verdict(trace) == PACKET_VERDICT_BACKEND &&
	    (outcome->masquerade != MASQUERADE_NONE) != trace->masqueraded)
		return xstrdup(trace->masqueraded
				       ? "The client's address should have stayed."
				       : "It should have got this node's address as its source.");
	return trace->remembered || !trace->first ? NULL : compare_paths(report, outcome);
}

/* -- in a sentence */

static void add_source(const struct trace_report *report, struct text *text)
{
	const struct trace *trace = report->trace;
	char addr[ADDR_TEXT_MAX];

	if (!trace->masqueraded) {
		text_str(text, " and kept the client's address");
		return;
	}
	addr_print(&trace->now.source, addr);
	text_printf(text, " with %s as its source", addr);
	if (report->outcome && report->outcome->masquerade != MASQUERADE_NONE)
		text_printf(text, ", because %s", masquerade_words(report->outcome->masquerade));
}

static void reached(const struct trace_report *report, struct text *text)
{
	const struct trace *trace = report->trace;
	char addr[ADDR_PORT_TEXT_MAX];

	addr_port_print(&trace->now.destination, trace->now.port, addr);
	text_printf(text, "The connection was led to %s", addr);
	add_source(report, text);
	if (trace->remembered)
		text_str(text, "; its client is remembered, and stays with this backend");
	text_str(text, ".");
}

static void stopped(const struct trace_report *report, struct text *text)
{
	const struct trace *trace = report->trace;
	const struct step *last = &trace->steps[trace->n_steps - 1];

	text_printf(text, "The packet was %s at hook %s, in %s %s",
		    trace_verdict(trace) == PACKET_VERDICT_REJECTED ? "refused" : "dropped",
		    hook_name(last->hook), last->table, last->chain);
	if (!last->handle)
		text_str(text, ", by the policy of the chain");
	text_str(text, ".");
	if (report->explanation && report->outcome)
		text_printf(text, " %s", report->explanation->summary);
}

static void passed(const struct trace *trace, struct text *text)
{
	text_str(text, "No rule changed the destination: the packet ");
	if (trace->end == TRACE_DELIVERED)
		text_str(text, "was delivered to this node itself.");
	else
		text_printf(text, "left as it came, by %s.",
			    trace->left_by[0] ? trace->left_by : "an interface");
}

static void vanished(const struct trace *trace, struct text *text)
{
	text_printf(text,
		    "The packet came to hook %s and to none behind it, and no rule of nf_tables "
		    "dropped it: it has no route, or rp_filter, a queue or rules outside nf_tables "
		    "stopped it.",
		    hook_name(trace->hook));
}

static char *summarise(const struct trace_report *report)
{
	const struct trace *trace = report->trace;
	cleanup_text struct text text = {0};

	if (trace->end == TRACE_VANISHED)
		vanished(trace, &text);
	else if (trace->end == TRACE_STOPPED && trace->n_steps > 0)
		stopped(report, &text);
	else if (trace_verdict(trace) == PACKET_VERDICT_BACKEND)
		reached(report, &text);
	else
		passed(trace, &text);
	if (!trace->first && trace->end != TRACE_STOPPED)
		text_str(&text,
			 " It was not the first packet of its connection: what rules decided "
			 "then still holds.");
	return text_dup(&text);
}

void trace_report_finish(struct trace_report *report)
{
	trace_report_follow(report);
	if (report->explanation)
		report->difference = compare(report);
	report->summary = summarise(report);
}

/* -- */

/* The interface is the one that it really came by. */
static void find_origin(struct packet *packet, const struct explain_input *input)
{
	const struct sender_input sender = {input->settings, model_node(input->model),
					    &input->host};
	char interface[PACKET_INTERFACE_MAX];
	struct addr source = packet->source;

	if (packet->origin == ORIGIN_NODE)
		return;
	memcpy(interface, packet->interface, sizeof(interface));
	packet_from_address(packet, &sender, &source);
	if (packet->origin == ORIGIN_NODE)
		packet->origin = ORIGIN_OUTSIDE;
	memcpy(packet->interface, interface, sizeof(interface));
}

struct trace_report *trace_report_new(struct trace *trace, struct explain *explain)
{
	struct trace_report *report = xcalloc(1, sizeof(*report));

	report->trace = trace;
	report->explain = explain;
	if (explain) {
		find_origin(&trace->packet, explain_input(explain));
		report->explanation = explain_packet(explain, &trace->packet);
	}
	return report;
}

struct trace_report *trace_report_free(struct trace_report *report)
{
	if (!report)
		return NULL;
	explanation_free(report->explanation);
	free(report->difference);
	free(report->summary);
	free(report);
	return NULL;
}
