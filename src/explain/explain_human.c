/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An explanation for people: the way up to the dice, the backends, the way behind them, who is left
 * out, and one sentence. Narrow, and coloured only where asked for.
 */

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "explain/explain.h"

#define WIDTH_DEFAULT 80
#define WIDTH_LEAST   40

enum colour {
	PLAIN = 0,
	BOLD,
	DIM,
	GREEN,
	RED,
};

struct printer {
	struct text *text;
	bool colour;
	size_t width;
};

static void begin_colour(const struct printer *printer, enum colour colour)
{
	static const char *const codes[] = {"", "\033[1m", "\033[2m", "\033[32m", "\033[31m"};

	if (printer->colour && colour != PLAIN)
		text_str(printer->text, codes[colour]);
}

static void end_colour(const struct printer *printer, enum colour colour)
{
	if (printer->colour && colour != PLAIN)
		text_str(printer->text, "\033[0m");
}

/* Breaks at blanks; lines after the first are two columns further in. */
static void print_wrapped(const struct printer *printer, size_t indent, enum colour colour,
			  const char *words)
{
	size_t column = indent;

	text_printf(printer->text, "%*s", (int)indent, "");
	begin_colour(printer, colour);
	while (*words) {
		size_t n = strcspn(words, " ");

		if (column > indent && column + 1 + n > printer->width) {
			text_printf(printer->text, "\n%*s", (int)indent + 2, "");
			column = indent + 2;
		} else if (column > indent) {
			text_str(printer->text, " ");
			column++;
		}
		text_add(printer->text, words, n);
		column += n;
		words += n;
		words += strspn(words, " ");
	}
	end_colour(printer, colour);
	text_str(printer->text, "\n");
}

/* Frees the words. */
static void print_line(const struct printer *printer, size_t indent, enum colour colour,
		       char *words)
{
	print_wrapped(printer, indent, colour, words);
	free(words);
}

static void print_heading(const struct printer *printer, const char *words)
{
	text_str(printer->text, "\n");
	print_wrapped(printer, 0, BOLD, words);
}

/* -- the packet */

static const char *sender_words(enum origin origin)
{
	static const char *const words[] = {
		[ORIGIN_POD] = "a pod",
		[ORIGIN_NODE] = "this node",
		[ORIGIN_OUTSIDE] = "outside the cluster",
	};

	return words[origin];
}

static void print_packet(const struct printer *printer, const struct explanation *explanation)
{
	const struct packet *packet = &explanation->way->packet;
	char from[ADDR_TEXT_MAX], to[ADDR_PORT_TEXT_MAX];

	addr_print(&packet->source, from);
	addr_port_print(&packet->destination, packet->port, to);
	print_line(printer, 0, BOLD,
		   xasprintf("%s from %s (%s) to %s", protocol_name(packet->protocol), from,
			     sender_words(packet->origin), to));
	if (explanation->port)
		print_line(printer, 0, PLAIN,
			   xasprintf("%s of service %s, on node %s in %s mode",
				     entry_words(explanation->entry), explanation->port->id,
				     explanation->input->settings->node_name,
				     explain_mode_name(explanation->input->mode)));
	else
		print_line(printer, 0, PLAIN,
			   xasprintf("on node %s in %s mode",
				     explanation->input->settings->node_name,
				     explain_mode_name(explanation->input->mode)));
}

static void print_policies(const struct printer *printer, const struct explanation *explanation)
{
	const struct service *service;
	bool internal = explanation->entry == ENTRY_CLUSTER_IP;

	if (!explanation->port)
		return;
	service = explanation->port->service;
	print_line(printer, 0, PLAIN,
		   xasprintf("%s %s%s",
			     internal ? "internalTrafficPolicy" : "externalTrafficPolicy",
			     (internal ? service->internal_local : service->external_local)
				     ? "Local"
				     : "Cluster",
			     service->sticky_seconds ? ", sessionAffinity ClientIP" : ""));
}

/* -- steps */

static const char *effect_words(enum effect effect)
{
	static const char *const words[EFFECT_COUNT] = {
		[EFFECT_MISS] = "does not match",
		[EFFECT_JUMP] = "goes to",
		[EFFECT_GOTO] = "goes on to",
		[EFFECT_MARK] = "marks the packet for masquerading",
		[EFFECT_UNMARK] = "takes the mark away",
		[EFFECT_TRANSLATE] = "changes the destination to",
		[EFFECT_MASQUERADE] = "changes the source to this node's address",
		[EFFECT_REMEMBER] = "remembers the client and its backend",
		[EFFECT_RETURN] = "returns",
		[EFFECT_ACCEPT] = "accepts the packet here",
		[EFFECT_DROP] = "drops the packet",
		[EFFECT_REJECT] = "refuses the packet",
	};

	return words[effect];
}

static enum colour effect_colour(enum effect effect)
{
	if (effect == EFFECT_DROP || effect == EFFECT_REJECT)
		return RED;
	return effect == EFFECT_TRANSLATE ? GREEN : PLAIN;
}

/* A jump to a chain where nothing matched: the next step, if there is one, is elsewhere. */
static bool is_idle(const struct step *step, const struct step *next)
{
	return step->effect == EFFECT_JUMP &&
	       (!next || next->hook != step->hook || !streq(next->table, step->table) ||
		!streq(next->chain, step->target));
}

static void print_step(const struct printer *printer, size_t indent, const struct step *step,
		       const struct step *next)
{
	bool idle = is_idle(step, next);
	const char *words = idle ? "nothing matches in" : effect_words(step->effect);

	print_line(printer, indent, effect_colour(step->effect),
		   xasprintf("%s %s, rule %zu of %zu: %s%s%s%s%s", step->table, step->chain,
			     step->position, step->length, words, step->target ? " " : "",
			     step->target ? step->target : "", step->note ? ": " : "",
			     step->note ? step->note : ""));
	if (!idle)
		print_wrapped(printer, indent + 2, DIM, step->rule);
	if (step->element)
		print_line(printer, indent + 2, DIM,
			   xasprintf("@%s { %s }", step->map, step->element));
	if (step->kernel)
		print_line(printer, indent + 2, RED, xasprintf("kernel: %s", step->kernel));
}

/* Those from `from` to `to`, under a heading for each hook. */
static void print_steps(const struct printer *printer, const struct outcome *outcome, size_t from,
			size_t to)
{
	const struct step *steps = outcome->steps;
	enum hook hook = HOOK_COUNT;

	for (size_t i = from; i < to; i++) {
		if (steps[i].hook != hook)
			print_heading(printer, hook_name(steps[i].hook));
		hook = steps[i].hook;
		print_step(printer, 2, &steps[i], i + 1 < outcome->n_steps ? &steps[i + 1] : NULL);
	}
}

/* -- backends */

static void print_backend(const struct printer *printer, const struct way *way,
			  const struct outcome *outcome)
{
	char share[48], addr[ADDR_PORT_TEXT_MAX];
	size_t end = MIN(outcome->translated_at + 1, outcome->n_steps);

	addr_port_print(&outcome->backend, outcome->backend_port, addr);
	snprintf(share, sizeof(share), "%llu/%llu", (unsigned long long)outcome->share.of,
		 (unsigned long long)outcome->share.in);
	print_line(printer, 2, GREEN,
		   xasprintf("%s (%.4g %%) %s, %s", share, share_percent(outcome->share), addr,
			     outcome->masquerade == MASQUERADE_NONE ? "keeps the client's address"
								    : "masqueraded"));
	for (size_t i = way->n_common; i < end; i++)
		print_step(printer, 4, &outcome->steps[i],
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
static void print_tails(const struct printer *printer, const struct way *way)
{
	for (size_t i = 0; i < way->n_outcomes; i++) {
		const struct outcome *outcome = &way->outcomes[i];
		size_t from = MIN(outcome->translated_at + 1, outcome->n_steps);
		bool told = false;
		char addr[ADDR_PORT_TEXT_MAX];

		for (size_t j = 0; j < i && !told; j++)
			told = same_tail(&way->outcomes[j], outcome);
		if (told || from == outcome->n_steps)
			continue;
		addr_port_print(&outcome->backend, outcome->backend_port, addr);
		if (i > 0) {
			text_str(printer->text, "\n");
			print_line(printer, 0, PLAIN, xasprintf("to %s it is:", addr));
		}
		print_steps(printer, outcome, from, outcome->n_steps);
	}
}

static void print_outcomes(const struct printer *printer, const struct explanation *explanation)
{
	const struct way *way = explanation->way;
	const struct outcome *first = &way->outcomes[0];

	if (!explanation_reaches(explanation)) {
		print_steps(printer, first, 0, first->n_steps);
		return;
	}
	print_steps(printer, first, 0, MIN(way->n_common, first->translated_at + 1));
	print_heading(printer, way->n_outcomes > 1 ? "backends" : "backend");
	for (size_t i = 0; i < way->n_outcomes; i++)
		print_backend(printer, way, &way->outcomes[i]);
	print_tails(printer, way);
}

/* -- the rest */

static void print_left_out(const struct printer *printer, const struct explanation *explanation)
{
	char addr[ADDR_PORT_TEXT_MAX];

	if (explanation->n_left_out > 0)
		print_heading(printer, "left out");
	for (size_t i = 0; i < explanation->n_left_out; i++) {
		const struct left_out *left_out = &explanation->left_out[i];

		addr_port_print(&left_out->addr, left_out->port, addr);
		print_line(printer, 2, PLAIN,
			   xasprintf("%s %s", addr, left_out_words(left_out->reason)));
	}
}

static void print_kernel(const struct printer *printer, const struct explanation *explanation)
{
	if (explanation->kernel == KERNEL_NOT_COMPARED)
		return;
	print_heading(printer, "kernel");
	if (explanation->kernel == KERNEL_SAME)
		print_line(printer, 2, PLAIN, xstrdup("has the rules that are named here"));
	else
		print_line(printer, 2, RED, xstrdup("differs from the rules that are named here"));
	for (size_t i = 0; i < explanation->n_kernel_notes; i++)
		print_wrapped(printer, 2, RED, explanation->kernel_notes[i]);
}

void explanation_human(const struct explanation *explanation, const struct human_style *style,
		       struct text *ret)
{
	const struct printer printer = {
		.text = ret,
		.colour = style->colour,
		.width = MAX(style->width ? style->width : WIDTH_DEFAULT, WIDTH_LEAST),
	};

	print_packet(&printer, explanation);
	print_policies(&printer, explanation);
	print_outcomes(&printer, explanation);
	print_left_out(&printer, explanation);
	print_kernel(&printer, explanation);
	text_str(ret, "\n");
	print_wrapped(&printer, 0, explanation_reaches(explanation) ? GREEN : RED,
		      explanation->summary);
}
