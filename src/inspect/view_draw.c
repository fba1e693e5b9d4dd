/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "inspect/view.h"

/*
 * A row is a name and numbers of nine columns each. Where there is no room for all numbers the last
 * ones go first; the name gets what is left and is cut if need be.
 */

#define NUMBER_WIDTH 9
#define NUMBERS      4
#define NAME_LEAST   24
#define TITLE        "SERVICE PORT"

static const char *const titles[NUMBERS] = {"CONN/S", "FLOWS", "PKT/S", "BYTE/S"};

static const char *const help[] = {
	"Rates of service ports, from what connection tracking counts on this node.",
	"",
	"  c  sort by new connections a second     n  sort by name",
	"  f  by flows that are tracked now        r  the other way round",
	"  p  by packets a second                  /  only names with these letters",
	"  b  by bytes a second                    Esc  all names again",
	"  up, down, page up, page down, j, k: move     h, ?  this help     q  quit",
	"",
	"Packets and bytes are those of both directions, with IP headers, and known",
	"if net.netfilter.nf_conntrack_acct is on.",
};

void view_number(double number, char out[static VIEW_NUMBER_MAX])
{
	static const char units[] = " kMGTPE";
	size_t unit = 0;

	if (number < 0.05) {
		snprintf(out, VIEW_NUMBER_MAX, "0");
		return;
	}
	/* 999.95 would be printed as 1000.0 */
	while (number >= (unit == 0 ? 9999.5 : 999.95) && unit + 2 < sizeof(units)) {
		number /= 1000;
		unit++;
	}
	if (unit == 0)
		snprintf(out, VIEW_NUMBER_MAX, number < 9.95 ? "%.1f" : "%.0f", number);
	else
		snprintf(out, VIEW_NUMBER_MAX, number < 99.95 ? "%.1f%c" : "%.0f%c", number,
			 units[unit]);
}

/* -- lines */

struct page {
	struct text *text;
	size_t width;
	size_t left; /* lines */
	size_t name; /* columns of the name */
	size_t numbers;
};

/* How many bytes of a text fit so many columns; whole characters only. */
static size_t fitting(const char *text, size_t columns)
{
	size_t at = 0;

	while (text[at]) {
		size_t next = at + 1;

		while (((unsigned char)text[next] & 0xc0) == 0x80)
			next++;
		if (columns-- == 0)
			break;
		at = next;
	}
	return at;
}

static size_t columns_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void put_line(struct page *page, const char *line)
{
	if (page->left == 0)
		return;
	text_add(page->text, line, fitting(line, page->width));
	if (--page->left > 0)
		text_str(page->text, "\n");
}

/* A name that is cut says so. */
static void put_name(struct text *line, const char *name, size_t columns)
{
	size_t n = columns_of(name);

	if (n > columns && columns > 0) {
		text_add(line, name, fitting(name, columns - 1));
		text_str(line, "~");
		return;
	}
	text_str(line, name);
	text_printf(line, "%*s", (int)(columns - MIN(n, columns)), "");
}

static void put_row(struct page *page, const char *name, const char *const numbers[NUMBERS])
{
	cleanup_text struct text line = {0};
	cleanup_free char *copy = NULL;

	put_name(&line, name, page->name);
	for (size_t i = 0; i < page->numbers; i++)
		text_printf(&line, "%*s", NUMBER_WIDTH, numbers[i]);
	copy = text_dup(&line);
	put_line(page, copy);
}

static void put_rates(struct page *page, const struct view *view, const struct rate_row *row)
{
	char out[NUMBERS][VIEW_NUMBER_MAX];
	const char *numbers[NUMBERS] = {out[0], out[1], out[2], out[3]};

	view_number(row->connections, out[0]);
	snprintf(out[1], VIEW_NUMBER_MAX, "%zu", row->flows);
	view_number(row->packets, out[2]);
	view_number(row->bytes, out[3]);
	if (!view->accounting)
		numbers[2] = numbers[3] = "-";
	put_row(page, row->name, numbers);
}

/* -- parts */

static void put_summary(struct page *page, const struct view *view, const struct rates *rates,
			const struct view_facts *facts)
{
	const struct rate_row *total = &rates->total;
	char connections[VIEW_NUMBER_MAX], packets[VIEW_NUMBER_MAX], bytes[VIEW_NUMBER_MAX];
	cleanup_free char *counted = NULL, *line = NULL;

	view_number(total->connections, connections);
	view_number(total->packets, packets);
	view_number(total->bytes, bytes);
	counted = view->accounting ? xasprintf(", %s packets/s, %s bytes/s", packets, bytes)
				   : xstrdup("");
	line = xasprintf("portolan top %s %s: %zu ports, %zu flows, %s connections/s%s",
			 facts->node, facts->time, rates->n, total->flows, connections, counted);
	put_line(page, line);
}

static void put_state(struct page *page, const struct view *view, const struct rates *rates,
		      const struct view_facts *facts)
{
	cleanup_free char *line = NULL;

	if (view->typing)
		line = xasprintf("filter: %s_", view->filter);
	else if (facts->note[0])
		line = xstrdup(facts->note);
	else if (!rates->measured)
		line = xstrdup("measuring");
	else
		line = xasprintf("by %s%s%s%s%s, h: help", view_sort_name(view->sort),
				 view->reverse ? ", reversed" : "",
				 view->filter[0] ? ", only \"" : "", view->filter,
				 view->filter[0] ? "\"" : "");
	put_line(page, line);
}

/* Names as wide as the longest of all, so that nothing moves with the order. */
static void set_widths(struct page *page, const struct rate_row *const *rows, size_t n)
{
	size_t longest = strlen(TITLE);

	for (size_t i = 0; i < n; i++)
		longest = MAX(longest, columns_of(rows[i]->name));
	page->numbers = NUMBERS;
	while (page->numbers > 1 && page->width < NAME_LEAST + page->numbers * NUMBER_WIDTH)
		page->numbers--;
	page->name = page->width > page->numbers * NUMBER_WIDTH
			     ? MIN(longest, page->width - page->numbers * NUMBER_WIDTH)
			     : 0;
}

static void put_body(struct page *page, const struct view *view, const struct rate_row *const *rows,
		     size_t n)
{
	if (view->help)
		for (size_t i = 0; i < ARRAY_SIZE(help); i++)
			put_line(page, help[i]);
	for (size_t i = view->first; !view->help && i < n && page->left > 0; i++)
		put_rates(page, view, rows[i]);
}

void view_draw(struct view *view, const struct rates *rates, const struct view_facts *facts,
	       size_t width, size_t height, struct text *ret)
{
	struct page page = {.text = ret, .width = width, .left = height};
	size_t n;
	cleanup_free const struct rate_row **rows = view_rows(view, rates, &n);

	if (view->first >= n)
		view->first = n > 0 ? n - 1 : 0;
	set_widths(&page, rows, n);
	put_summary(&page, view, rates, facts);
	put_state(&page, view, rates, facts);
	put_row(&page, TITLE, titles);
	put_body(&page, view, rows, n);
	while (page.left > 0)
		put_line(&page, "");
}

void view_list(const struct view *view, const struct rates *rates, const struct view_facts *facts,
	       struct text *ret)
{
	struct page page = {.text = ret, .width = SIZE_MAX, .left = SIZE_MAX};
	size_t n;
	cleanup_free const struct rate_row **rows = view_rows(view, rates, &n);

	set_widths(&page, rows, n);
	put_summary(&page, view, rates, facts);
	if (facts->note[0])
		put_line(&page, facts->note);
	put_row(&page, TITLE, titles);
	for (size_t i = 0; i < n; i++)
		put_rates(&page, view, rows[i]);
}
