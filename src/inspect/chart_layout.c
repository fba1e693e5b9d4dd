/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where everything goes. A frame is laid out by itself, in three columns, and the
 * frames are then stacked like bricks: each, in its order, goes into the column of the page that is
 * shortest so far, with so many columns that the page is about as wide as it is high. So a service
 * stands at about the same place when its neighbours change.
 */

#include <math.h>
#include <stdlib.h>

#include "inspect/chart_parts.h"

#define GAP           24.0 /* between frames, and around the page */
#define BOX_GAP       10.0 /* between boxes of a column */
#define COLUMN_GAP    70.0 /* room for links and their labels */
#define PAGE_TOP      64.0 /* title and legend */
#define PAGE_COLUMNS  16   /* at most */
#define PAGE_MIN_WIDE 560.0

static double text_width(const char *text, double letter)
{
	size_t letters = 0;

	for (; *text; text++)
		letters += (*text & 0xc0) != 0x80; /* UTF-8: what goes on is not a letter */
	return (double)letters * letter;
}

static void size_box(struct chart_box *box)
{
	double w = text_width(box->text, CHART_LETTER);
	double lines = 1;

	w = fmax(w, text_width(box->note, CHART_SMALL_LETTER));
	w = fmax(w, text_width(box->detail, CHART_SMALL_LETTER));
	lines += *box->note ? 1 : 0;
	lines += *box->detail ? 1 : 0;
	box->w = w + 2 * CHART_PAD;
	box->h = lines * CHART_LINE + CHART_PAD;
}

static double column_width(const struct chart_box *boxes, size_t n, unsigned int column)
{
	double w = 0;

	for (size_t i = 0; i < n; i++)
		if (chart_column(boxes[i].kind) == column)
			w = fmax(w, boxes[i].w);
	return w;
}

static void place_in_columns(struct chart_box *boxes, size_t n)
{
	double x = 0;

	for (unsigned int column = 0; column < 3; column++) {
		double y = 0;
		double w = column_width(boxes, n, column);

		for (size_t i = 0; i < n; i++) {
			if (chart_column(boxes[i].kind) != column)
				continue;
			boxes[i].x = x;
			boxes[i].y = y;
			boxes[i].w = w; /* of one width: quieter */
			y += boxes[i].h + BOX_GAP;
		}
		x += w > 0 ? w + COLUMN_GAP : 0;
	}
}

/* The frame's size, and its boxes moved so that they lie below its title. */
static void wrap_frame(struct chart_frame *frame, struct chart_box *boxes)
{
	double left = INFINITY;
	double top = INFINITY;
	double right = 0;
	double bottom = 0;

	for (size_t i = 0; i < frame->n_boxes; i++) {
		left = fmin(left, boxes[i].x);
		top = fmin(top, boxes[i].y);
	}
	for (size_t i = 0; i < frame->n_boxes; i++) {
		boxes[i].x += CHART_PAD - left;
		boxes[i].y += CHART_TITLE - top;
		right = fmax(right, boxes[i].x + boxes[i].w);
		bottom = fmax(bottom, boxes[i].y + boxes[i].h);
	}
	right = fmax(right, text_width(frame->title, CHART_LETTER) + CHART_PAD);
	right = fmax(right, text_width(frame->note, CHART_SMALL_LETTER) + CHART_PAD);
	frame->w = right + CHART_PAD;
	frame->h = fmax(bottom, CHART_TITLE) + CHART_PAD;
}

static void place_frames(struct chart *chart)
{
	for (size_t i = 0; i < chart->n_frames; i++) {
		struct chart_frame *frame = &chart->frames[i];
		struct chart_box *boxes = chart->boxes + frame->first_box;

		place_in_columns(boxes, frame->n_boxes);
		wrap_frame(frame, boxes);
	}
}

/* As many columns as make the page about square, from the area that all frames take. */
static size_t page_columns(const struct chart *chart, double width)
{
	double area = 0;
	double n;

	for (size_t i = 0; i < chart->n_frames; i++)
		area += (width + GAP) * (chart->frames[i].h + GAP);
	n = round(sqrt(area) / (width + GAP));
	return (size_t)fmin(fmax(n, 1), PAGE_COLUMNS);
}

static size_t shortest(const double *heights, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++)
		if (heights[i] < heights[best])
			best = i;
	return best;
}

static void stack_frames(struct chart *chart)
{
	double heights[PAGE_COLUMNS];
	double width = 0;
	size_t n;

	for (size_t i = 0; i < chart->n_frames; i++)
		width = fmax(width, chart->frames[i].w);
	n = page_columns(chart, width);
	for (size_t i = 0; i < n; i++)
		heights[i] = PAGE_TOP;
	for (size_t i = 0; i < chart->n_frames; i++) {
		struct chart_frame *frame = &chart->frames[i];
		size_t column = shortest(heights, n);

		frame->w = width;
		frame->x = GAP + (double)column * (width + GAP);
		frame->y = heights[column];
		heights[column] += frame->h + GAP;
		chart->h = fmax(chart->h, heights[column]);
	}
	chart->w = fmax(PAGE_MIN_WIDE, GAP + (double)n * (width + GAP));
	chart->h = fmax(chart->h, PAGE_TOP + GAP);
}

void chart_layout(struct chart *chart)
{
	for (size_t i = 0; i < chart->n_boxes; i++)
		size_box(&chart->boxes[i]);
	place_frames(chart);
	stack_frames(chart);
	for (size_t i = 0; i < chart->n_boxes; i++) {
		const struct chart_frame *frame = &chart->frames[chart->boxes[i].frame];

		chart->boxes[i].x += frame->x;
		chart->boxes[i].y += frame->y;
	}
}
