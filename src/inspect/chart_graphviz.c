/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Graphviz as a guest: its library is opened when a picture is wanted and only then, so that the daemon
 * does not carry it and a node without it works as well.
 *
 * One frame is one graph. It goes in as dot text with boxes of a fixed size and no labels, and comes back
 * in the "plain" format, of which only the lines
 *
 *	node NAME X Y WIDTH HEIGHT ...
 *
 * are read: names are b0, b1, ...; X and Y are a box's middle, in inches, with Y growing upwards.
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "inspect/chart_parts.h"

#define DOTS_PER_INCH 72.0

/* The library's own types stay unknown here: all are passed as they came. */
struct chart_graphviz {
	void *gvc_library, *graph_library;
	void *context;
	void *(*context_new)(void);
	int (*context_free)(void *context);
	void *(*parse)(const char *text);
	int (*graph_close)(void *graph);
	int (*layout)(void *context, void *graph, const char *engine);
	int (*layout_free)(void *context, void *graph);
	int (*render)(void *context, void *graph, const char *format, char **ret,
		      unsigned int *ret_n);
	void (*data_free)(char *data);
};

/* ISO C has no cast from an object pointer to a function; POSIX promises that this works. */
static bool find(void *library, const char *name, void *function_pointer)
{
	void *symbol = dlsym(library, name);

	memcpy(function_pointer, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static bool load(struct chart_graphviz *gv)
{
	gv->graph_library = dlopen("libcgraph.so.6", RTLD_NOW | RTLD_LOCAL);
	gv->gvc_library = dlopen("libgvc.so.6", RTLD_NOW | RTLD_LOCAL);
	return gv->graph_library && gv->gvc_library &&
	       find(gv->gvc_library, "gvContext", &gv->context_new) &&
	       find(gv->gvc_library, "gvFreeContext", &gv->context_free) &&
	       find(gv->graph_library, "agmemread", &gv->parse) &&
	       find(gv->graph_library, "agclose", &gv->graph_close) &&
	       find(gv->gvc_library, "gvLayout", &gv->layout) &&
	       find(gv->gvc_library, "gvFreeLayout", &gv->layout_free) &&
	       find(gv->gvc_library, "gvRenderData", &gv->render) &&
	       find(gv->gvc_library, "gvFreeRenderData", &gv->data_free);
}

struct chart_graphviz *chart_graphviz_open(void)
{
	struct chart_graphviz *gv = xcalloc(1, sizeof(*gv));

	if (load(gv))
		gv->context = gv->context_new();
	return gv->context ? gv : chart_graphviz_close(gv);
}

/* The libraries stay open: Graphviz and what it loads were not made to be unloaded. */
struct chart_graphviz *chart_graphviz_close(struct chart_graphviz *gv)
{
	if (gv && gv->context)
		gv->context_free(gv->context);
	free(gv);
	return NULL;
}

static void add_box(const struct chart_box *box, size_t i, struct text *out)
{
	text_printf(out, "b%zu [width=%.4f height=%.4f];\n", i, box->w / DOTS_PER_INCH,
		    box->h / DOTS_PER_INCH);
}

/* Boxes that no link holds in their column are held by an invisible one. */
static char *graph_text(const struct chart *chart, const struct chart_frame *frame)
{
	const struct chart_box *boxes = chart->boxes + frame->first_box;
	cleanup_text struct text out;

	text_init(&out);
	text_str(&out, "digraph f { rankdir=LR; nodesep=0.12; ranksep=0.8; splines=false;\n"
		       "node [shape=box fixedsize=true label=\"\"];\n");
	for (size_t i = 0; i < frame->n_boxes; i++)
		add_box(&boxes[i], i, &out);
	text_str(&out, "c0 [width=0.01 height=0.01]; c1 [width=0.01 height=0.01];\n"
		       "c2 [width=0.01 height=0.01]; c0 -> c1 -> c2;\n");
	for (unsigned int column = 0; column < 3; column++) {
		text_printf(&out, "{ rank=same; c%u;", column);
		for (size_t i = 0; i < frame->n_boxes; i++)
			if (chart_column(boxes[i].kind) == column)
				text_printf(&out, " b%zu;", i);
		text_str(&out, " }\n");
	}
	for (size_t i = 0; i < frame->n_links; i++) {
		const struct chart_link *link = &chart->links[frame->first_link + i];

		text_printf(&out, "b%zu -> b%zu;\n", link->from - frame->first_box,
			    link->to - frame->first_box);
	}
	text_str(&out, "}\n");
	return text_dup(&out);
}

/* Returns how many boxes got a place. */
static size_t read_places(char *plain, struct chart_box *boxes, size_t n)
{
	size_t placed = 0;
	char *rest = NULL;

	for (char *line = strtok_r(plain, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		size_t i;
		double x, y;

		if (sscanf(line, "node b%zu %lf %lf", &i, &x, &y) != 3 || i >= n)
			continue;
		boxes[i].x = x * DOTS_PER_INCH - boxes[i].w / 2;
		boxes[i].y = -y * DOTS_PER_INCH - boxes[i].h / 2;
		placed++;
	}
	return placed;
}

static int place_graph(struct chart_graphviz *gv, void *graph, struct chart_box *boxes, size_t n)
{
	char *plain = NULL;
	unsigned int size = 0;
	size_t placed = 0;

	if (gv->layout(gv->context, graph, "dot") != 0)
		return -EIO;
	if (gv->render(gv->context, graph, "plain", &plain, &size) == 0 && plain)
		placed = read_places(plain, boxes, n);
	if (plain)
		gv->data_free(plain);
	gv->layout_free(gv->context, graph);
	return placed == n ? 0 : -EIO;
}

int chart_graphviz_place(struct chart_graphviz *gv, struct chart *chart,
			 const struct chart_frame *frame)
{
	cleanup_free char *text = graph_text(chart, frame);
	void *graph = gv->parse(text);
	int r;

	if (!graph)
		return -EIO;
	r = place_graph(gv, graph, chart->boxes + frame->first_box, frame->n_boxes);
	gv->graph_close(graph);
	return r;
}
