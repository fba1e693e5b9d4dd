/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How long to wait before the next try: twice as long after each failure up to a ceiling, and never
 * exactly as long as others do, so that a thousand nodes do not come back in the same moment. Only
 * arithmetic: clock and randomness are the caller's.
 */

#include "base/util.h"

struct backoff {
	int64_t first_ms, max_ms;
	unsigned int failures; /* in a row */
};

/* Counts a failure. The wait is between half of its step and all of it. */
int64_t backoff_next(struct backoff *backoff, uint32_t random);
void backoff_reset(struct backoff *backoff);
