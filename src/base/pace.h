/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * When the next repair of what others damage may start. The first one is prompt; then each is
 * followed by a pause as long as it took, and when damage comes again as soon as the pause is over the
 * next one is longer. What comes now and then is always repaired at once.
 */

#include <stdbool.h>
#include <stdint.h>

struct pace {
	int64_t not_before_ns;
	int64_t pause_ns;
};

#define PACE_FIRST_NS  (10 * INT64_C(1000000))   /* what belongs together has come by then */
#define PACE_PAUSE_NS  (50 * INT64_C(1000000))   /* the first pause that is added ... */
#define PACE_MAX_NS    (5 * INT64_C(1000000000)) /* ... and the longest */
#define PACE_FORGET_NS (1 * INT64_C(1000000000)) /* of peace beyond a pause: all is forgotten */

int64_t pace_next(const struct pace *pace, int64_t now_ns);
/* A repair is over: what it cost, and whether anything was wrong. */
void pace_repaired(struct pace *pace, int64_t cost_ns, bool wrong, int64_t now_ns);
