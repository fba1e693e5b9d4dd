/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/printer.h"

#include <assert.h>
#include <stdlib.h>

#define WIDTH_DEFAULT 80
#define WIDTH_LEAST   40

void printer_init(struct printer *printer, const struct human_style *style, struct text *text)
{
	*printer = (struct printer){
		.text = text,
		.colour = style->colour,
		.width = MAX(style->width ? style->width : WIDTH_DEFAULT, WIDTH_LEAST),
	};
}

static void begin_colour(const struct printer *printer, enum printer_colour colour)
{
	static const char *const codes[] = {"", "\033[1m", "\033[2m", "\033[32m", "\033[31m"};

	static_assert(ARRAY_SIZE(codes) == PRINTER_COLOUR_COUNT, "one code for each colour");
	if (printer->colour && colour != PRINTER_PLAIN)
		text_str(printer->text, codes[colour]);
}

static void end_colour(const struct printer *printer, enum printer_colour colour)
{
	if (printer->colour && colour != PRINTER_PLAIN)
		text_str(printer->text, "\033[0m");
}

void printer_words(const struct printer *printer, size_t indent, enum printer_colour colour,
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

void printer_line(const struct printer *printer, size_t indent, enum printer_colour colour,
		  char *words)
{
	printer_words(printer, indent, colour, words);
	free(words);
}

void printer_heading(const struct printer *printer, const char *words)
{
	text_str(printer->text, "\n");
	printer_words(printer, 0, PRINTER_BOLD, words);
}

/* -- steps */

static const char *const effects[EFFECT_COUNT] = {
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
	[EFFECT_CONTINUE] = "matches, and the next rule is met",
};

static enum printer_colour effect_colour(enum effect effect)
{
	if (effect == EFFECT_DROP || effect == EFFECT_REJECT)
		return PRINTER_RED;
	return effect == EFFECT_TRANSLATE ? PRINTER_GREEN : PRINTER_PLAIN;
}

/* A jump to a chain where nothing matched: the next step, if there is one, is elsewhere. */
static bool is_idle(const struct step *step, const struct step *next)
{
	return step->effect == EFFECT_JUMP &&
	       (!next || next->hook != step->hook || !streq(next->table, step->table) ||
		!streq(next->chain, step->target));
}

/* "rule 3 of 7"; of real packets also "rule with handle 12", and what no rule decided. */
static char *place_words(const struct step *step)
{
	if (step->position)
		return xasprintf("rule %zu of %zu", step->position, step->length);
	if (step->handle)
		return xasprintf("rule with handle %llu", (unsigned long long)step->handle);
	return xstrdup("policy of the chain");
}

void printer_step(const struct printer *printer, size_t indent, const struct step *step,
		  const struct step *next)
{
	bool idle = is_idle(step, next);
	const char *words = idle ? "nothing matches in" : effects[step->effect];
	cleanup_free char *place = place_words(step);

	printer_line(printer, indent, effect_colour(step->effect),
		     xasprintf("%s %s, %s: %s%s%s%s%s", step->table, step->chain, place, words,
			       step->target ? " " : "", step->target ? step->target : "",
			       step->note ? ": " : "", step->note ? step->note : ""));
	if (!idle && step->rule)
		printer_words(printer, indent + 2, PRINTER_DIM, step->rule);
	if (step->element)
		printer_line(printer, indent + 2, PRINTER_DIM,
			     xasprintf("@%s { %s }", step->map, step->element));
	if (step->kernel)
		printer_line(printer, indent + 2, PRINTER_RED,
			     xasprintf("kernel: %s", step->kernel));
}
