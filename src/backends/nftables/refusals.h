/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Services that the kernel refused. They are left as they are, or left out where the kernel does not take
 * that either, so that all others can be written; and tried again after a while that doubles each
 * time, or when they change.
 */

#include "base/map.h"

#define REFUSALS_FIRST_NS (INT64_C(10) * 1000000000)
#define REFUSALS_LAST_NS  (INT64_C(600) * 1000000000)
#define REFUSALS_NONE     INT64_MAX

struct refusal {
	int64_t retry_ns; /* when it is tried again */
	int64_t delay_ns;
	bool bare;      /* what the kernel had of it before is refused as well */
	char service[]; /* "namespace/name" */
};

struct refusals {
	struct map all;
};

void refusals_done(struct refusals *refusals);
/*
 * It was refused at that time, and if it was waiting, that was what the kernel had of it before. True: that
 * is news.
 */
bool refusals_add(struct refusals *refusals, const char *service, int64_t now_ns);
/* Does it wait at that time? */
bool refusals_wait(const struct refusals *refusals, const char *service, int64_t now_ns);
bool refusals_is_bare(const struct refusals *refusals, const char *service);
/* It has changed, and is to be tried with the next sync. */
void refusals_hurry(struct refusals *refusals, const char *service);
/* All that were to be tried by that time have been taken. */
typedef void refusals_fn(void *arg, const char *service);
void refusals_each_due(const struct refusals *refusals, int64_t now_ns, refusals_fn *fn, void *arg);
void refusals_forget_due(struct refusals *refusals, int64_t now_ns);
int64_t refusals_next_ns(const struct refusals *refusals); /* REFUSALS_NONE: no Service waits */
