/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Empty chains that no program has a reason to remove: when they are gone, one flushed the tables,
 * and our rules went with them.
 *
 *	CREATE   the chain is created in mangle, nat and filter; a failure is tried again after
 *	         `interval`
 *	WATCH    each `interval` the chain in mangle is looked for. Exit status 4 says nothing about
 *	         it (the lock was held): the next turn will tell
 *	FLUSHED  it is gone: each `poll`, for `limit` at most, the others are looked for, so that the
 *	         answer does not come while the flush is still under way. Then gone() is called, and
 *	         all starts over.
 */

#include "kernel/iptables_tool.h"

struct canary;

struct canary_times {
	int64_t interval_ns;
	int64_t poll_ns;
	int64_t limit_ns;
};

#define CANARY_POLL_NS  (100 * 1000000LL)
#define CANARY_LIMIT_NS (5 * 1000000000LL)

/* The tool is borrowed. Starts at once. */
struct canary *canary_new(struct event_base *loop, struct iptables_tool *tool,
			  const struct canary_times *times, void (*gone)(void *arg), void *arg);
/* Accepts NULL. The chains stay: cleanup removes them. */
struct canary *canary_free(struct canary *canary);
