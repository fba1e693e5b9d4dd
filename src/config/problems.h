/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Everything that is wrong with a command line or configuration, found in one pass, a line each. */

#include "base/util.h"

struct problems {
	char **v;
	size_t n;
	size_t capacity;
};

void problems_add(struct problems *problems, const char *fmt, ...) attr_printf(2, 3);
void problems_done(struct problems *problems);

#define cleanup_problems attr_cleanup(problems_done)
