/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Text for people about the path of a packet: narrow, and coloured only where asked for. */

#include "base/text.h"
#include "inspect/packet_path.h"

struct human_style {
	bool colour;
	size_t width; /* columns; 0: 80 */
};

enum printer_colour {
	PRINTER_PLAIN = 0,
	PRINTER_BOLD,
	PRINTER_DIM,
	PRINTER_GREEN,
	PRINTER_RED,
	PRINTER_COLOUR_COUNT,
};

struct printer {
	struct text *text;
	bool colour;
	size_t width;
};

/* The text is borrowed and appended to. */
void printer_init(struct printer *printer, const struct human_style *style, struct text *text);
/* Breaks at blanks; lines after the first are two columns further in. */
void printer_words(const struct printer *printer, size_t indent, enum printer_colour colour,
		   const char *words);
/* The same, and frees the words. */
void printer_line(const struct printer *printer, size_t indent, enum printer_colour colour,
		  char *words);
/* Below an empty line. */
void printer_heading(const struct printer *printer, const char *words);
/* next: the step behind it, which tells whether a jump led to anything; NULL: none. */
void printer_step(const struct printer *printer, size_t indent, const struct step *step,
		  const struct step *next);
