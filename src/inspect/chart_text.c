/* SPDX-License-Identifier: Apache-2.0 */

/* The chart for other programs' drawing: Graphviz' dot language, and Mermaid for documents. */

#include "inspect/chart_parts.h"

static const struct {
	const char *fill, *stroke;
	bool dashed;
} looks[CHART_KIND_COUNT] = {
	[CHART_ENTRY] = {"#dcebff", "#2f6fbf", false},
	[CHART_GROUP] = {"#ebe4fb", "#7650bd", false},
	[CHART_ENDPOINT] = {"#dcf5e3", "#2a8a4a", false},
	[CHART_LEFT_OUT] = {"#ffffff", "#5a6575", true},
	[CHART_REFUSED] = {"#ffe3e0", "#c2352b", true},
	[CHART_NAMESPACE] = {"#dcf5e3", "#2a8a4a", false},
};

/* Inside a quoted string of dot. */
static void add_quoted(struct text *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			text_add(out, "\\", 1);
		text_add(out, s, 1);
	}
}

/* The lines of a box, with a line break of the format's own between them. */
static void add_lines(struct text *out, const struct chart_box *box, const char *line_break,
		      void (*add)(struct text *out, const char *s))
{
	const char *lines[] = {box->text, box->note, box->detail};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		if (!*lines[i])
			continue;
		if (i > 0)
			text_str(out, line_break);
		add(out, lines[i]);
	}
}

static void add_dot_frame(struct text *out, const struct chart *chart, size_t at)
{
	const struct chart_frame *frame = &chart->frames[at];

	text_printf(out, "  subgraph cluster_%zu {\n    style=rounded; color=\"#ccd4dd\"; label=\"",
		    at);
	add_quoted(out, frame->title);
	if (*frame->note) {
		text_str(out, "\\n");
		add_quoted(out, frame->note);
	}
	text_str(out, "\";\n");
	for (size_t i = frame->first_box; i < frame->first_box + frame->n_boxes; i++) {
		const struct chart_box *box = &chart->boxes[i];

		text_printf(out,
			    "    b%zu [fillcolor=\"%s\", color=\"%s\", style=\"rounded,filled%s\", "
			    "label=\"",
			    i, looks[box->kind].fill, looks[box->kind].stroke,
			    looks[box->kind].dashed ? ",dashed" : "");
		add_lines(out, box, "\\n", add_quoted);
		text_str(out, "\"];\n");
	}
	text_str(out, "  }\n");
}

void chart_write_dot(const struct chart *chart, struct text *out)
{
	text_str(out, "digraph services {\n  rankdir=LR;\n"
		      "  node [shape=box, fontname=\"monospace\", fontsize=10];\n"
		      "  edge [fontname=\"monospace\", fontsize=9, color=\"#7d8a9a\"];\n"
		      "  graph [fontname=\"monospace\", fontsize=11];\n");
	for (size_t i = 0; i < chart->n_frames; i++)
		add_dot_frame(out, chart, i);
	for (size_t i = 0; i < chart->n_links; i++)
		text_printf(out, "  b%zu -> b%zu [label=\"%s\"];\n", chart->links[i].from,
			    chart->links[i].to, chart->links[i].label);
	text_str(out, "}\n");
}

/* Inside a quoted string of Mermaid: it knows HTML's names for letters, written with a #. */
static void add_mermaid_text(struct text *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '"')
			text_str(out, "#quot;");
		else if (*s == '<')
			text_str(out, "#lt;");
		else if (*s == '>')
			text_str(out, "#gt;");
		else if (*s == '#')
			text_str(out, "#35;");
		else
			text_add(out, s, 1);
	}
}

static void add_mermaid_frame(struct text *out, const struct chart *chart, size_t at)
{
	const struct chart_frame *frame = &chart->frames[at];

	text_printf(out, "  subgraph f%zu[\"", at);
	add_mermaid_text(out, frame->title);
	if (*frame->note) {
		text_str(out, "<br>");
		add_mermaid_text(out, frame->note);
	}
	text_str(out, "\"]\n    direction LR\n");
	for (size_t i = frame->first_box; i < frame->first_box + frame->n_boxes; i++) {
		text_printf(out, "    b%zu[\"", i);
		add_lines(out, &chart->boxes[i], "<br>", add_mermaid_text);
		text_printf(out, "\"]:::%s\n",
			    chart->boxes[i].kind == CHART_LEFT_OUT
				    ? "leftout"
				    : chart_kind_name(chart->boxes[i].kind));
	}
	text_str(out, "  end\n");
}

static void add_mermaid_classes(struct text *out)
{
	for (enum chart_kind kind = 0; kind < CHART_KIND_COUNT; kind++)
		text_printf(out, "  classDef %s fill:%s,stroke:%s,color:#1b2330%s\n",
			    kind == CHART_LEFT_OUT ? "leftout" : chart_kind_name(kind),
			    looks[kind].fill, looks[kind].stroke,
			    looks[kind].dashed ? ",stroke-dasharray:4 3" : "");
}

void chart_write_mermaid(const struct chart *chart, struct text *out)
{
	text_str(out, "flowchart LR\n");
	for (size_t i = 0; i < chart->n_frames; i++)
		add_mermaid_frame(out, chart, i);
	for (size_t i = 0; i < chart->n_links; i++) {
		const struct chart_link *link = &chart->links[i];

		text_printf(out, "  b%zu -->", link->from);
		if (*link->label)
			text_printf(out, "|\"%s\"|", link->label);
		text_printf(out, " b%zu\n", link->to);
	}
	add_mermaid_classes(out);
}
