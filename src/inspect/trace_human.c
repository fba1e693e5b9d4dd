/* SPDX-License-Identifier: Apache-2.0 */

/* A traced packet for people, in pieces as it happens; each looks as `explain` has it. */

#include <stdio.h>

#include "inspect/trace_report.h"

static char *sender_words(const struct trace_report *report)
{
	const struct packet *packet = &report->trace->packet;

	if (packet->origin == ORIGIN_NODE)
		return xstrdup("this node");
	if (!report->explain)
		return xasprintf("came in by %s", packet->interface);
	return xasprintf("%s, by %s", origin_words(packet->origin), packet->interface);
}

void trace_human_begin(const struct trace_report *report, const struct printer *printer)
{
	const struct trace *trace = report->trace;
	char from[ADDR_PORT_TEXT_MAX], to[ADDR_PORT_TEXT_MAX];
	cleanup_free char *who = sender_words(report);

	addr_port_print(&trace->packet.source, trace->source_port, from);
	addr_port_print(&trace->packet.destination, trace->packet.port, to);
	printer_line(
		printer, 0, PRINTER_BOLD,
		xasprintf("%s from %s (%s) to %s", protocol_name(trace->protocol), from, who, to));
	if (report->explanation && report->explanation->port)
		printer_line(printer, 0, PRINTER_PLAIN,
			     xasprintf("%s of service %s", entry_words(report->explanation->entry),
				       report->explanation->port->id));
}

/* Whether a jump led to anything is known by the step behind it, which is there by now. */
size_t trace_human_steps(const struct trace_report *report, const struct printer *printer,
			 size_t from)
{
	const struct trace *trace = report->trace;
	size_t to = trace->settled;

	for (size_t i = from; i < to; i++) {
		const struct step *step = &trace->steps[i];

		if (i == 0 || trace->steps[i - 1].hook != step->hook)
			printer_heading(printer, hook_name(step->hook));
		printer_step(printer, 2, step, i + 1 < trace->n_steps ? step + 1 : NULL);
	}
	return to;
}

static char *agreement_words(const struct outcome *outcome)
{
	if (!outcome || outcome->verdict != PACKET_VERDICT_BACKEND)
		return xstrdup("As explain says.");
	if (outcome->share.of == outcome->share.in)
		return xstrdup("As explain says; it is the only backend.");
	return xasprintf("As explain says; this backend gets %llu/%llu of new connections.",
			 (unsigned long long)outcome->share.of,
			 (unsigned long long)outcome->share.in);
}

static void print_agreement(const struct trace_report *report, const struct printer *printer)
{
	if (!report->explanation)
		return;
	if (report->difference)
		printer_line(printer, 0, PRINTER_RED,
			     xasprintf("Explain says otherwise: %s", report->difference));
	else
		printer_line(printer, 0, PRINTER_PLAIN, agreement_words(report->outcome));
}

void trace_human_end(const struct trace_report *report, const struct printer *printer)
{
	bool reached = trace_verdict(report->trace) == PACKET_VERDICT_BACKEND;

	text_str(printer->text, "\n");
	printer_words(printer, 0, reached ? PRINTER_GREEN : PRINTER_RED, report->summary);
	print_agreement(report, printer);
}
