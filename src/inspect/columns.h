/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A table for people: columns as wide as their widest cell, the last one ragged. */

#include "base/text.h"

struct columns {
	size_t n;     /* columns */
	char **cells; /* row by row; the titles are the first row */
	size_t n_cells, capacity;
};

void columns_init(struct columns *columns, const char *const *titles, size_t n);
void columns_add(struct columns *columns, const char *cell); /* the next one, copied */
void columns_print(const struct columns *columns, struct text *ret);
void columns_done(struct columns *columns);
#define cleanup_columns attr_cleanup(columns_done)
