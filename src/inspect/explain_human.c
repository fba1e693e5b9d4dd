/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An explanation for people: the path up to the dice, the backends, the path behind them, who is left
 * out, and one sentence. Narrow, and coloured only where asked for.
 */

#include <stdio.h>
#include <stdlib.h>

#include "backends/backend.h"
#include "base/text.h"
#include "inspect/explain.h"

/* -- the packet */

static void print_packet(const struct printer *printer, const struct explanation *explanation)
{
	const struct packet *packet = &explanation->path->packet;
	char from[ADDR_TEXT_MAX], to[ADDR_PORT_TEXT_MAX];

	addr_print(&packet->source, from);
	addr_port_print(&packet->destination, packet->port, to);
	printer_line(printer, 0, PRINTER_BOLD,
		     xasprintf("%s from %s (%s) to %s", protocol_name(packet->protocol), from,
			       origin_words(packet->origin), to));
	if (explanation->port)
		printer_line(printer, 0, PRINTER_PLAIN,
			     xasprintf("%s of service %s, on node %s in %s mode",
				       entry_words(explanation->entry), explanation->port->id,
				       explanation->input->settings->node_name,
				       explanation->input->backend->name));
	else
		printer_line(printer, 0, PRINTER_PLAIN,
			     xasprintf("on node %s in %s mode",
				       explanation->input->settings->node_name,
				       explanation->input->backend->name));
}

static void print_policies(const struct printer *printer, const struct explanation *explanation)
{
	const struct service *service;
	bool internal = explanation->entry == ENTRY_CLUSTER_IP;

	if (!explanation->port)
		return;
	service = explanation->port->service;
	printer_line(printer, 0, PRINTER_PLAIN,
		     xasprintf("%s %s%s",
			       internal ? "internalTrafficPolicy" : "externalTrafficPolicy",
			       (internal ? service->internal_local : service->external_local)
				       ? "Local"
				       : "Cluster",
			       service->sticky_seconds ? ", sessionAffinity ClientIP" : ""));
}

/* -- steps */

/* Those from `from` to `to`, under a heading for each hook. */
static void print_steps(const struct printer *printer, const struct outcome *outcome, size_t from,
			size_t to)
{
	const struct step *steps = outcome->steps;
	enum hook hook = HOOK_COUNT;

	for (size_t i = from; i < to; i++) {
		if (steps[i].hook != hook)
			printer_heading(printer, hook_name(steps[i].hook));
		hook = steps[i].hook;
		printer_step(printer, 2, &steps[i],
			     i + 1 < outcome->n_steps ? &steps[i + 1] : NULL);
	}
}

/* -- backends */

static void print_backend(const struct printer *printer, const struct packet_path *path,
			  const struct outcome *outcome)
{
	char share[48], addr[ADDR_PORT_TEXT_MAX];
	size_t end = MIN(outcome->translated_at + 1, outcome->n_steps);

	addr_port_print(&outcome->backend, outcome->backend_port, addr);
	snprintf(share, sizeof(share), "%llu/%llu", (unsigned long long)outcome->share.of,
		 (unsigned long long)outcome->share.in);
	printer_line(printer, 2, PRINTER_GREEN,
		     xasprintf("%s (%.4g %%) %s, %s", share, share_percent(outcome->share), addr,
			       outcome->masquerade == MASQUERADE_NONE ? "keeps the client's address"
								      : "masqueraded"));
	for (size_t i = path->n_common; i < end; i++)
		printer_step(printer, 4, &outcome->steps[i],
			     i + 1 < outcome->n_steps ? &outcome->steps[i + 1] : NULL);
}

static bool same_tail(const struct outcome *a, const struct outcome *b)
{
	size_t n = a->n_steps - MIN(a->translated_at + 1, a->n_steps);

	if (n != b->n_steps - MIN(b->translated_at + 1, b->n_steps))
		return false;
	for (size_t i = 1; i <= n; i++) {
		const struct step *left = &a->steps[a->n_steps - i];
		const struct step *right = &b->steps[b->n_steps - i];

		if (left->identity != right->identity || left->effect != right->effect ||
		    left->hook != right->hook)
			return false;
	}
	return true;
}

/* What comes behind the translation, once for all backends that have it in common. */
static void print_tails(const struct printer *printer, const struct packet_path *path)
{
	for (size_t i = 0; i < path->n_outcomes; i++) {
		const struct outcome *outcome = &path->outcomes[i];
		size_t from = MIN(outcome->translated_at + 1, outcome->n_steps);
		bool told = false;
		char addr[ADDR_PORT_TEXT_MAX];

		for (size_t j = 0; j < i && !told; j++)
			told = same_tail(&path->outcomes[j], outcome);
		if (told || from == outcome->n_steps)
			continue;
		addr_port_print(&outcome->backend, outcome->backend_port, addr);
		if (i > 0) {
			text_str(printer->text, "\n");
			printer_line(printer, 0, PRINTER_PLAIN, xasprintf("to %s it is:", addr));
		}
		print_steps(printer, outcome, from, outcome->n_steps);
	}
}

static void print_outcomes(const struct printer *printer, const struct explanation *explanation)
{
	const struct packet_path *path = explanation->path;
	const struct outcome *first = &path->outcomes[0];

	if (!explanation_reaches(explanation)) {
		print_steps(printer, first, 0, first->n_steps);
		return;
	}
	print_steps(printer, first, 0, MIN(path->n_common, first->translated_at + 1));
	printer_heading(printer, path->n_outcomes > 1 ? "backends" : "backend");
	for (size_t i = 0; i < path->n_outcomes; i++)
		print_backend(printer, path, &path->outcomes[i]);
	print_tails(printer, path);
}

/* -- the rest */

static void print_left_out(const struct printer *printer, const struct explanation *explanation)
{
	char addr[ADDR_PORT_TEXT_MAX];

	if (explanation->n_left_out > 0)
		printer_heading(printer, "left out");
	for (size_t i = 0; i < explanation->n_left_out; i++) {
		const struct left_out *left_out = &explanation->left_out[i];

		addr_port_print(&left_out->addr, left_out->port, addr);
		printer_line(printer, 2, PRINTER_PLAIN,
			     xasprintf("%s %s", addr, left_out_words(left_out->reason)));
	}
}

static void print_kernel(const struct printer *printer, const struct explanation *explanation)
{
	if (explanation->kernel == KERNEL_NOT_COMPARED)
		return;
	printer_heading(printer, "kernel");
	if (explanation->kernel == KERNEL_SAME)
		printer_line(printer, 2, PRINTER_PLAIN,
			     xstrdup("has the rules that are named here"));
	else
		printer_line(printer, 2, PRINTER_RED,
			     xstrdup("differs from the rules that are named here"));
	for (size_t i = 0; i < explanation->n_kernel_notes; i++)
		printer_words(printer, 2,
			      explanation->kernel == KERNEL_SAME ? PRINTER_PLAIN : PRINTER_RED,
			      explanation->kernel_notes[i]);
}

void explanation_human(const struct explanation *explanation, const struct human_style *style,
		       struct text *ret)
{
	struct printer printer;

	printer_init(&printer, style, ret);
	print_packet(&printer, explanation);
	print_policies(&printer, explanation);
	print_outcomes(&printer, explanation);
	print_left_out(&printer, explanation);
	print_kernel(&printer, explanation);
	text_str(ret, "\n");
	printer_words(&printer, 0, explanation_reaches(explanation) ? PRINTER_GREEN : PRINTER_RED,
		      explanation->summary);
}
