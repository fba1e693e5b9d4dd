/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Clocks, in nanoseconds, and the steady one's translation for timers. */

#include "base/util.h"

#define CLOCK_NS_PER_SECOND 1000000000LL
#define CLOCK_NS_PER_MS     1000000LL

struct timeval;

int64_t clock_now_ns(void);  /* CLOCK_MONOTONIC */
int64_t clock_wall_ns(void); /* since the epoch, as far as the host knows; it may jump */
int64_t clock_cpu_ns(void);  /* that this thread has used, on whatever core */
/* Rounds up, so that a timer never fires before its time; negative counts as zero. */
void clock_to_timeval(int64_t ns, struct timeval *ret);
