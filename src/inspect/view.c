/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/view.h"

#include <assert.h>
#include <stdlib.h>

static const char *const sort_names[] = {
	[VIEW_CONNECTIONS] = "connections",
	[VIEW_FLOWS] = "flows",
	[VIEW_PACKETS] = "packets",
	[VIEW_BYTES] = "bytes",
	[VIEW_NAME] = "name",
};

static_assert(ARRAY_SIZE(sort_names) == VIEW_SORT_COUNT, "one name for each order");

const char *view_sort_name(enum view_sort sort)
{
	return sort_names[sort];
}

bool view_sort_parse(const char *name, enum view_sort *ret)
{
	for (size_t i = 0; i < VIEW_SORT_COUNT; i++) {
		if (streq(name, sort_names[i])) {
			*ret = (enum view_sort)i;
			return true;
		}
	}
	return false;
}

/* -- rows */

static double value_of(const struct rate_row *row, enum view_sort sort)
{
	switch (sort) {
	case VIEW_CONNECTIONS:
		return row->connections;
	case VIEW_FLOWS:
		return (double)row->flows;
	case VIEW_PACKETS:
		return row->packets;
	case VIEW_BYTES:
		return row->bytes;
	default:
		return 0;
	}
}

static int compare_rows(const void *left, const void *right, void *arg)
{
	const struct rate_row *a = *(const struct rate_row *const *)left;
	const struct rate_row *b = *(const struct rate_row *const *)right;
	const struct view *view = arg;
	double x = value_of(a, view->sort), y = value_of(b, view->sort);
	int r = (x < y) - (x > y);

	if (r == 0)
		r = strcmp(a->name, b->name);
	return view->reverse ? -r : r;
}

const struct rate_row **view_rows(const struct view *view, const struct rates *rates, size_t *ret_n)
{
	const struct rate_row **rows = xcalloc(rates->n + 1, sizeof(*rows));
	size_t n = 0;

	for (size_t i = 0; i < rates->n; i++)
		if (!view->filter[0] || strcasestr(rates->v[i].name, view->filter))
			rows[n++] = &rates->v[i];
	if (n > 1)
		qsort_r(rows, n, sizeof(*rows), compare_rows, (void *)view);
	*ret_n = n;
	return rows;
}

/* -- keys */

enum key {
	KEY_NONE = 0,
	KEY_UP,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_ESCAPE,
};

#define PAGE 10

static const struct {
	const char *bytes;
	enum key key;
} sequences[] = {
	{"\033[A", KEY_UP},   {"\033[B", KEY_DOWN},     {"\033OA", KEY_UP},
	{"\033OB", KEY_DOWN}, {"\033[5~", KEY_PAGE_UP}, {"\033[6~", KEY_PAGE_DOWN},
	{"\033[H", KEY_HOME}, {"\033[1~", KEY_HOME},    {"\033OH", KEY_HOME},
};

static bool is_final(char c)
{
	return c >= '@' && c <= '~';
}

/* A sequence that begins with escape: which key it is, and how long. */
static enum key read_sequence(const char *bytes, size_t n, size_t *ret_length)
{
	for (size_t i = 0; i < ARRAY_SIZE(sequences); i++) {
		size_t length = strlen(sequences[i].bytes);

		if (n >= length && memcmp(bytes, sequences[i].bytes, length) == 0) {
			*ret_length = length;
			return sequences[i].key;
		}
	}
	*ret_length = 1;
	if (n < 3 || (bytes[1] != '[' && bytes[1] != 'O'))
		return KEY_ESCAPE;
	for (*ret_length = 3; *ret_length < n && !is_final(bytes[*ret_length - 1]); ++*ret_length)
		;
	return KEY_NONE;
}

static enum view_action scroll(struct view *view, enum key key)
{
	switch (key) {
	case KEY_UP:
		view->first -= view->first > 0;
		break;
	case KEY_DOWN:
		view->first++;
		break;
	case KEY_PAGE_UP:
		view->first -= MIN(view->first, PAGE);
		break;
	case KEY_PAGE_DOWN:
		view->first += PAGE;
		break;
	case KEY_HOME:
		view->first = 0;
		break;
	default:
		return VIEW_NOTHING;
	}
	return VIEW_DRAW;
}

static enum view_action escape(struct view *view)
{
	view->typing = false;
	view->help = false;
	view->filter[0] = '\0';
	view->first = 0;
	return VIEW_DRAW;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static void rub_out(char *filter)
{
	size_t n = strlen(filter);

	while (n > 0 && is_continuation(filter[n - 1]))
		n--;
	filter[n > 0 ? n - 1 : 0] = '\0';
}

/* Bytes of the character that begins with this one. */
static size_t length_of(char first)
{
	unsigned char c = (unsigned char)first;

	return c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* Whole characters or nothing: one that has no room does not begin, and what follows of it is no more wanted. */
static bool has_room(const char *filter, char c)
{
	size_t n = strlen(filter), begin = n;

	if (!is_continuation(c))
		return n + length_of(c) < VIEW_FILTER_MAX;
	while (begin > 0 && is_continuation(filter[begin - 1]))
		begin--;
	return begin > 0 && n - begin + 1 < length_of(filter[begin - 1]);
}

static enum view_action type(struct view *view, char c)
{
	size_t n = strlen(view->filter);

	view->first = 0;
	if (c == '\r' || c == '\n')
		view->typing = false;
	else if (c == '\177' || c == '\b')
		rub_out(view->filter);
	else if ((unsigned char)c >= ' ' && has_room(view->filter, c)) {
		view->filter[n] = c;
		view->filter[n + 1] = '\0';
	}
	return VIEW_DRAW;
}

static enum view_action sort_by(struct view *view, enum view_sort sort)
{
	view->sort = sort;
	view->reverse = false;
	view->first = 0;
	return VIEW_DRAW;
}

static enum view_action press(struct view *view, char c)
{
	switch (c) {
	case 'c':
		return sort_by(view, VIEW_CONNECTIONS);
	case 'f':
		return sort_by(view, VIEW_FLOWS);
	case 'p':
		return sort_by(view, VIEW_PACKETS);
	case 'b':
		return sort_by(view, VIEW_BYTES);
	case 'n':
		return sort_by(view, VIEW_NAME);
	case 'r':
		view->reverse = !view->reverse;
		return VIEW_DRAW;
	case '/':
		view->typing = true;
		view->help = false;
		view->filter[0] = '\0';
		return VIEW_DRAW;
	case 'h':
	case '?':
		view->help = !view->help;
		return VIEW_DRAW;
	case 'k':
		return scroll(view, KEY_UP);
	case 'j':
		return scroll(view, KEY_DOWN);
	case '\014': /* Ctrl-L */
		return VIEW_DRAW;
	case 'q':
	case '\003': /* Ctrl-C, where it is no signal */
		return VIEW_QUIT;
	default:
		return VIEW_NOTHING;
	}
}

enum view_action view_input(struct view *view, const char *bytes, size_t n)
{
	enum view_action all = VIEW_NOTHING;

	for (size_t at = 0, length; at < n && all != VIEW_QUIT; at += length) {
		enum view_action action;

		length = 1;
		if (bytes[at] == '\033') {
			enum key key = read_sequence(bytes + at, n - at, &length);

			action = key == KEY_ESCAPE ? escape(view) : scroll(view, key);
		} else if (bytes[at] == '\003' || !view->typing) {
			action = press(view, bytes[at]);
		} else {
			action = type(view, bytes[at]);
		}
		all = MAX(all, action);
	}
	return all;
}
