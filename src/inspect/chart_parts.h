/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the chart share among themselves. */

#include "inspect/chart.h"

/* The look of a box: letters are of fixed width, so a box knows its size without a font. */
#define CHART_LETTER       7.3 /* of the first line, 12 px */
#define CHART_SMALL_LETTER 6.1 /* of notes, 10 px */
#define CHART_LINE         15.0
#define CHART_PAD          9.0
#define CHART_TITLE        40.0 /* what the title of a frame takes */

/* The column of a kind, from the left. */
unsigned int chart_column(enum chart_kind kind);

void chart_write_svg(const struct chart *chart, struct text *out);
void chart_write_html(const struct chart *chart, struct text *out);
void chart_write_dot(const struct chart *chart, struct text *out);
void chart_write_mermaid(const struct chart *chart, struct text *out);
