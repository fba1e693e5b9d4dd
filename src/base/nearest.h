/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which name was meant: the guess behind "did you mean ...?". */

#include "base/util.h"

struct nearest {
	const char *word;
	const char *best; /* NULL while nothing is near enough */
	unsigned int distance;
};

/* nearest_init(), nearest_offer() for each known name, then read `best`: the first of equals. */
void nearest_init(struct nearest *nearest, const char *word);
void nearest_offer(struct nearest *nearest, const char *name);
