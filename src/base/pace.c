/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pace.h"

#include "base/util.h"

int64_t pace_next(const struct pace *pace, int64_t now_ns)
{
	return MAX(pace->not_before_ns, now_ns + PACE_FIRST_NS);
}

void pace_repaired(struct pace *pace, int64_t cost_ns, bool wrong, int64_t now_ns)
{
	if (!wrong) {
		pace->not_before_ns = now_ns + cost_ns;
		return;
	}
	if (now_ns - cost_ns - pace->not_before_ns > PACE_FORGET_NS + pace->pause_ns)
		pace->pause_ns = 0;
	else
		pace->pause_ns = MIN(MAX(2 * pace->pause_ns, PACE_PAUSE_NS), PACE_MAX_NS);
	pace->not_before_ns = now_ns + MAX(cost_ns, pace->pause_ns);
}
