/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `portolan top` shows of rates: in which order, which of them, from which on; what keys do to
 * that, and how it looks as lines of a given width. No terminal and no clock.
 *
 * All text of ours is ASCII; what a person types may be any UTF-8, and is cut between characters.
 */

#include "base/text.h"
#include "inspect/rates.h"

enum view_sort {
	VIEW_CONNECTIONS = 0,
	VIEW_FLOWS,
	VIEW_PACKETS,
	VIEW_BYTES,
	VIEW_NAME,
	VIEW_SORT_COUNT,
};

#define VIEW_FILTER_MAX 64

struct view {
	enum view_sort sort; /* numbers: the largest first; names: from a to z */
	bool reverse;
	bool accounting; /* packets and bytes are known */
	char filter[VIEW_FILTER_MAX];
	bool typing; /* the filter, which counts at once */
	bool help;
	size_t first; /* of the rows: how many are above the screen */
};

/* "connections", "flows", "packets", "bytes", "name"; false: it is none of them. */
bool view_sort_parse(const char *name, enum view_sort *ret);
const char *view_sort_name(enum view_sort sort);

enum view_action {
	VIEW_NOTHING = 0,
	VIEW_DRAW,
	VIEW_QUIT,
};

/* Bytes as a terminal sends them, from one read. */
enum view_action view_input(struct view *view, const char *bytes, size_t n);

/* The rows to show, sorted; borrowed from the rates, in an array for the caller to free. */
const struct rate_row **view_rows(const struct view *view, const struct rates *rates,
				  size_t *ret_n);

struct view_facts {
	const char *time; /* of day */
	const char *node;
	const char *note; /* what a person should know now; "": nothing */
};

#define VIEW_TITLE_LINE 2 /* the one with the names of columns, from 0 */

/*
 * `height` lines of at most `width` columns, each but the last with a line end. Moves the first row
 * back when there are fewer now.
 */
void view_draw(struct view *view, const struct rates *rates, const struct view_facts *facts,
	       size_t width, size_t height, struct text *ret);
/* The same without a screen: all rows, as wide as they are. */
void view_list(const struct view *view, const struct rates *rates, const struct view_facts *facts,
	       struct text *ret);

#define VIEW_NUMBER_MAX 16

/* "0", "0.4", "17", "1.2k", "15M" */
void view_number(double number, char out[static VIEW_NUMBER_MAX]);
