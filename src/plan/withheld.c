/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/withheld.h"

#include <stdlib.h>

struct map *withheld_free(struct map *withheld)
{
	if (!withheld)
		return NULL;
	map_free_values(withheld);
	free(withheld);
	return NULL;
}

static void add(struct map **withheld, const char *text)
{
	char *copy = xstrdup(text);

	if (!*withheld)
		*withheld = xcalloc(1, sizeof(**withheld));
	free(map_set(*withheld, copy, copy));
}

struct map *withheld_copy(const struct map *withheld)
{
	struct map *copy = NULL;
	const char *text;
	size_t at = 0;

	while (withheld && (text = map_next_key(withheld, &at)))
		add(&copy, text);
	return copy;
}

bool withheld_equal(const struct map *a, const struct map *b)
{
	const char *text;
	size_t at = 0;

	if (!a || !b)
		return a == b;
	if (a->count != b->count)
		return false;
	while ((text = map_next_key(a, &at)))
		if (!map_get(b, text))
			return false;
	return true;
}

bool withheld_has(const struct map *withheld, const struct destination *destination)
{
	char text[DESTINATION_TEXT_MAX];

	if (!withheld)
		return false;
	destination_print(destination, text);
	return map_get(withheld, text);
}

void withheld_set(struct map **withheld, const struct destination *destination, bool is)
{
	char text[DESTINATION_TEXT_MAX];

	destination_print(destination, text);
	if (is)
		add(withheld, text);
	else if (*withheld)
		free(map_remove(*withheld, text));
	if (*withheld && (*withheld)->count == 0)
		*withheld = withheld_free(*withheld);
}
