/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/columns.h"

#include <stdlib.h>

void columns_init(struct columns *columns, const char *const *titles, size_t n)
{
	*columns = (struct columns){.n = n};
	for (size_t i = 0; i < n; i++)
		columns_add(columns, titles[i]);
}

void columns_add(struct columns *columns, const char *cell)
{
	array_grow(&columns->cells, &columns->capacity, columns->n_cells, sizeof(char *));
	columns->cells[columns->n_cells++] = xstrdup(cell);
}

void columns_print(const struct columns *columns, struct text *ret)
{
	cleanup_free size_t *widths = xcalloc(columns->n, sizeof(*widths));

	for (size_t i = 0; i < columns->n_cells; i++)
		widths[i % columns->n] = MAX(widths[i % columns->n], strlen(columns->cells[i]));
	for (size_t i = 0; i < columns->n_cells; i++) {
		bool last = (i + 1) % columns->n == 0;

		text_str(ret, columns->cells[i]);
		if (last)
			text_str(ret, "\n");
		else
			text_printf(ret, "%*s",
				    (int)(widths[i % columns->n] - strlen(columns->cells[i]) + 2),
				    "");
	}
}

void columns_done(struct columns *columns)
{
	for (size_t i = 0; i < columns->n_cells; i++)
		free(columns->cells[i]);
	free(columns->cells);
	*columns = (struct columns){0};
}
