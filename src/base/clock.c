/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <sys/time.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * CLOCK_NS_PER_SECOND + now.tv_nsec;
}

int64_t clock_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t clock_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void clock_to_timeval(int64_t ns, struct timeval *ret)
{
	int64_t us = ns <= 0 ? 0 : (ns - 1) / 1000 + 1;

	ret->tv_sec = us / 1000000;
	ret->tv_usec = us % 1000000;
}
