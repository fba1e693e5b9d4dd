/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/chart.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "inspect/chart_parts.h"

static const char *const kind_names[] = {
	[CHART_ENTRY] = "entry",       [CHART_GROUP] = "group",     [CHART_ENDPOINT] = "endpoint",
	[CHART_LEFT_OUT] = "left-out", [CHART_REFUSED] = "refused", [CHART_NAMESPACE] = "namespace",
};
static_assert(ARRAY_SIZE(kind_names) == CHART_KIND_COUNT, "a name for each kind");

static const struct {
	const char *name;
	void (*write)(const struct chart *chart, struct text *out);
} formats[] = {
	[CHART_SVG] = {"svg", chart_write_svg},
	[CHART_HTML] = {"html", chart_write_html},
	[CHART_DOT] = {"dot", chart_write_dot},
	[CHART_MERMAID] = {"mermaid", chart_write_mermaid},
};
static_assert(ARRAY_SIZE(formats) == CHART_FORMAT_COUNT, "a writer for each format");

const char *chart_kind_name(enum chart_kind kind)
{
	return kind_names[kind];
}

unsigned int chart_column(enum chart_kind kind)
{
	switch (kind) {
	case CHART_GROUP:
		return 1;
	case CHART_ENDPOINT:
	case CHART_LEFT_OUT:
		return 2;
	default:
		return 0;
	}
}

int chart_format_parse(const char *name, enum chart_format *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		if (!streq(formats[i].name, name))
			continue;
		*ret = (enum chart_format)i;
		return 0;
	}
	return -EINVAL;
}

void chart_write(const struct chart *chart, enum chart_format format, struct text *out)
{
	formats[format].write(chart, out);
}

struct chart *chart_free(struct chart *chart)
{
	if (!chart)
		return NULL;
	free(chart->frames);
	free(chart->boxes);
	free(chart->links);
	arena_free(chart->arena);
	free(chart);
	return NULL;
}
