/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <sys/time.h>
#include <time.h>

int64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * CLOCK_NS_PER_SECOND + now.tv_nsec;
}

void clock_to_timeval(int64_t ns, struct timeval *ret)
{
	int64_t us = ns <= 0 ? 0 : (ns - 1) / 1000 + 1;

	ret->tv_sec = us / 1000000;
	ret->tv_usec = us % 1000000;
}
