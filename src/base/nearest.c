/* SPDX-License-Identifier: Apache-2.0 */

#include "base/nearest.h"

#define WORD_MAX 64 /* longer words get no suggestion */

/*
 * Letters to add, drop, change or swap with their neighbour to get from a to b. Three rows of the
 * usual table are enough, because a swap looks back two.
 */
static unsigned int edit_distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned int rows[3][WORD_MAX + 1];

	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned int)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned int *row = rows[i % 3];
		const unsigned int *above = rows[(i - 1) % 3];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned int cost = above[j - 1] + (a[i - 1] != b[j - 1]);

			cost = MIN(cost, above[j] + 1);
			cost = MIN(cost, row[j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cost = MIN(cost, rows[(i - 2) % 3][j - 2] + 1);
			row[j] = cost;
		}
	}
	return rows[n % 3][m];
}

void nearest_init(struct nearest *nearest, const char *word)
{
	*nearest = (struct nearest){.word = word};
}

void nearest_offer(struct nearest *nearest, const char *name)
{
	size_t n = strlen(nearest->word);
	size_t m = strlen(name);
	unsigned int limit = (unsigned int)(1 + MIN(n, m) / 4);
	unsigned int distance;

	if (n == 0 || n > WORD_MAX || m > WORD_MAX)
		return;
	distance = edit_distance(nearest->word, n, name, m);
	if (distance > limit || (nearest->best && distance >= nearest->distance))
		return;
	nearest->best = name;
	nearest->distance = distance;
}
