/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The picture itself: one file, nothing from outside. Colours follow the viewer's scheme, light or dark;
 * what a colour says is said by a word or a dashed line as well. Text stays text, so that it can be
 * selected and searched, and every frame and box has a title for those who listen.
 */

#include "inspect/chart_parts.h"

static const char style[] =
	":root{color-scheme:light dark;"
	"--paper:#fff;--ink:#1b2330;--soft:#5a6575;--frame:#f5f7fa;--edge:#ccd4dd;--line:#7d8a9a;"
	"--entry:#dcebff;--entry-edge:#2f6fbf;--group:#ebe4fb;--group-edge:#7650bd;"
	"--end:#dcf5e3;--end-edge:#2a8a4a;--bad:#ffe3e0;--bad-edge:#c2352b}"
	"@media(prefers-color-scheme:dark){:root{"
	"--paper:#10151c;--ink:#e6ebf2;--soft:#9aa7b6;--frame:#18202a;--edge:#33404f;--line:#"
	"71808f;"
	"--entry:#16304f;--entry-edge:#6aa6f0;--group:#2d2347;--group-edge:#ab8cf0;"
	"--end:#14351f;--end-edge:#5cc07f;--bad:#471d1a;--bad-edge:#f0796f}}"
	"svg{background:var(--paper)}"
	"text{fill:var(--ink);font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}"
	".small{fill:var(--soft);font-size:10px}.head{font-size:16px;font-weight:600}"
	".title{font-weight:600}"
	"rect{fill:var(--frame);stroke:var(--edge);rx:6px}"
	".link{fill:none;stroke:var(--line);stroke-width:1.3}"
	".entry rect{fill:var(--entry);stroke:var(--entry-edge)}"
	".group rect{fill:var(--group);stroke:var(--group-edge)}"
	".endpoint rect,.namespace rect{fill:var(--end);stroke:var(--end-edge)}"
	".left-out rect{fill:none;stroke:var(--soft);stroke-dasharray:4 3}"
	".left-out text{fill:var(--soft)}"
	".refused rect{fill:var(--bad);stroke:var(--bad-edge);stroke-dasharray:6 2}"
	".halo{paint-order:stroke;stroke:var(--frame);stroke-width:4px;stroke-linejoin:round}";

/* Text between tags or in an attribute; what XML does not allow at all becomes a question mark. */
static void add_escaped(struct text *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '&')
			text_str(out, "&amp;");
		else if (*s == '<')
			text_str(out, "&lt;");
		else if (*s == '>')
			text_str(out, "&gt;");
		else if (*s == '"')
			text_str(out, "&quot;");
		else if ((unsigned char)*s < 0x20)
			text_add(out, "?", 1);
		else
			text_add(out, s, 1);
	}
}

static void add_text(struct text *out, double x, double y, const char *class, const char *s)
{
	if (!*s)
		return;
	text_printf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
	add_escaped(out, s);
	text_str(out, "</text>");
}

static void add_title(struct text *out, const char *first, const char *second, const char *third)
{
	text_str(out, "<title>");
	add_escaped(out, first);
	for (size_t i = 0; i < 2; i++) {
		const char *more = i == 0 ? second : third;

		if (!*more)
			continue;
		text_str(out, ", ");
		add_escaped(out, more);
	}
	text_str(out, "</title>");
}

static void add_rect(struct text *out, double x, double y, double w, double h)
{
	text_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\"/>", x,
		    y, w, h);
}

static void add_box(struct text *out, const struct chart_box *box)
{
	double x = box->x + CHART_PAD;
	double y = box->y + CHART_LINE;

	text_printf(out, "<g class=\"%s\">", chart_kind_name(box->kind));
	add_title(out, box->text, box->note, box->detail);
	add_rect(out, box->x, box->y, box->w, box->h);
	add_text(out, x, y, "", box->text);
	if (*box->note)
		y += CHART_LINE;
	add_text(out, x, y, "small", box->note);
	add_text(out, x, y + CHART_LINE, "small", box->detail);
	text_str(out, "</g>\n");
}

static void add_link(struct text *out, const struct chart *chart, const struct chart_link *link)
{
	const struct chart_box *from = &chart->boxes[link->from];
	const struct chart_box *to = &chart->boxes[link->to];
	double x1 = from->x + from->w;
	double y1 = from->y + from->h / 2;
	double x2 = to->x;
	double y2 = to->y + to->h / 2;
	double bend = (x2 - x1) / 2;

	text_printf(out,
		    "<path class=\"link\" marker-end=\"url(#tip)\" "
		    "d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n",
		    x1, y1, x1 + bend, y1, x2 - bend, y2, x2 - 2, y2);
	add_text(out, x2 - 10 - CHART_SMALL_LETTER * (double)strlen(link->label), y2 - 3,
		 "small halo", link->label);
}

static void add_frame(struct text *out, const struct chart *chart, const struct chart_frame *frame)
{
	text_str(out, "<g class=\"frame\" data-service=\"");
	add_escaped(out, frame->title);
	text_str(out, "\">");
	add_title(out, frame->title, frame->note, "");
	add_rect(out, frame->x, frame->y, frame->w, frame->h);
	add_text(out, frame->x + CHART_PAD, frame->y + 17, "title", frame->title);
	add_text(out, frame->x + CHART_PAD, frame->y + 31, "small", frame->note);
	for (size_t i = 0; i < frame->n_links; i++)
		add_link(out, chart, &chart->links[frame->first_link + i]);
	for (size_t i = 0; i < frame->n_boxes; i++)
		add_box(out, &chart->boxes[frame->first_box + i]);
	text_str(out, "</g>\n");
}

static void add_legend(struct text *out)
{
	static const struct {
		enum chart_kind kind;
		const char *words;
		double w;
	} items[] = {
		{CHART_ENTRY, "entry point", 100},       {CHART_GROUP, "group of endpoints", 142},
		{CHART_ENDPOINT, "gets its share", 118}, {CHART_LEFT_OUT, "left out", 84},
		{CHART_REFUSED, "goes nowhere", 104},
	};
	double x = 24;

	for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
		text_printf(out, "<g class=\"%s\">", chart_kind_name(items[i].kind));
		add_rect(out, x, 39, 12, 10);
		add_text(out, x + 17, 48, "small", items[i].words);
		text_str(out, "</g>\n");
		x += items[i].w + 8;
	}
}

static void add_head(struct text *out, const struct chart *chart)
{
	cleanup_free char *title = xasprintf(
		"%s: %zu service%s, %zu endpoint%s%s", chart->node_name, chart->n_services,
		chart->n_services == 1 ? "" : "s", chart->n_endpoints,
		chart->n_endpoints == 1 ? "" : "s", chart->folded ? ", by namespace" : "");

	text_str(out, "<title id=\"chart-title\">");
	add_escaped(out, title);
	text_str(out, "</title><desc id=\"chart-desc\">From left to right: the addresses that "
		      "clients use, the group of endpoints that each leads to, and the endpoints "
		      "with their share of new connections.</desc>\n<style>");
	text_str(out, style);
	text_str(out,
		 "</style>\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
		 "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">"
		 "<path d=\"M0 0L8 4L0 8z\" fill=\"#7d8a9a\"/></marker></defs>\n");
	add_text(out, 24, 28, "head", title);
	add_legend(out);
}

static void add_svg(const struct chart *chart, struct text *out)
{
	text_printf(out,
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		    "viewBox=\"0 0 %.0f %.0f\" role=\"graphics-document document\" "
		    "aria-labelledby=\"chart-title chart-desc\">\n",
		    chart->w, chart->h, chart->w, chart->h);
	add_head(out, chart);
	for (size_t i = 0; i < chart->n_frames; i++)
		add_frame(out, chart, &chart->frames[i]);
	text_str(out, "</svg>\n");
}

void chart_write_svg(const struct chart *chart, struct text *out)
{
	text_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	add_svg(chart, out);
}

/* A page around the picture, for those who want to open it in a browser: it scrolls, it prints. */
void chart_write_html(const struct chart *chart, struct text *out)
{
	text_str(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		      "<meta name=\"viewport\" content=\"width=device-width\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		      "style-src 'unsafe-inline'\">\n<title>Services of ");
	add_escaped(out, chart->node_name);
	text_str(out, "</title>\n<style>body{margin:0;background:Canvas}</style></head><body>\n");
	add_svg(chart, out);
	text_str(out, "</body></html>\n");
}
