/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/restore/canary.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "xtables/chains.h"
#include "xtables/rule.h"

/* In this order; the first one is the one that is watched. */
static const enum table tables[] = {TABLE_MANGLE, TABLE_NAT, TABLE_FILTER};

enum canary_state {
	CANARY_CREATE = 0,
	CANARY_WATCH,
	CANARY_FLUSHED,
	CANARY_STATE_COUNT,
};

struct canary {
	struct iptables_tool *tool;
	struct canary_times times;
	void (*gone)(void *arg);
	void *arg;
	struct event *timer;
	enum canary_state state;
	size_t table; /* index of the one in hand */
	struct iptables_job *job;
	int64_t flushed_ns; /* when FLUSHED began */
};

static void on_done(void *arg, int r, struct err *err);

/* Creates, or looks for, the chain in the table in hand. */
static void start(struct canary *canary)
{
	const struct iptables_command command = {
		.op = canary->state == CANARY_CREATE ? IPTABLES_NEW_CHAIN : IPTABLES_LIST,
		.table = table_name(tables[canary->table]),
		.chain = CHAIN_CANARY,
	};

	canary->job = iptables_tool_start(canary->tool, &command, on_done, canary);
}

static void enter(struct canary *canary, enum canary_state state, int64_t after_ns)
{
	canary->state = state;
	canary->table = state == CANARY_FLUSHED ? 1 : 0;
	loop_arm(canary->timer, after_ns);
}

static void created(struct canary *canary, int r, const struct err *err)
{
	if (r < 0) {
		log_error("Could not set up an iptables canary, trying again",
			  KV("table", LOG_STR(table_name(tables[canary->table]))),
			  KV("chain", LOG_STR(CHAIN_CANARY)), KV("err", LOG_STR(err->text)));
		enter(canary, CANARY_CREATE, canary->times.interval_ns);
	} else if (++canary->table < ARRAY_SIZE(tables)) {
		start(canary);
	} else {
		enter(canary, CANARY_WATCH, canary->times.interval_ns);
	}
}

static void watched(struct canary *canary, int r, const struct err *err)
{
	if (r >= 0 || r == -EAGAIN) {
		if (r < 0)
			log_error("Could not check for an iptables canary",
				  KV("table", LOG_STR(table_name(tables[canary->table]))),
				  KV("chain", LOG_STR(CHAIN_CANARY)),
				  KV("err", LOG_STR(err->text)));
		enter(canary, CANARY_WATCH, canary->times.interval_ns);
		return;
	}
	log_debug(2, "An iptables canary is gone", KV("table", LOG_STR(table_name(tables[0]))),
		  KV("chain", LOG_STR(CHAIN_CANARY)));
	canary->flushed_ns = clock_now_ns();
	enter(canary, CANARY_FLUSHED, 0);
}

static void flushed(struct canary *canary, int r)
{
	bool there = r >= 0 || r == -EAGAIN;

	if (there && clock_now_ns() - canary->flushed_ns < canary->times.limit_ns) {
		enter(canary, CANARY_FLUSHED, canary->times.poll_ns);
		return;
	}
	if (!there && ++canary->table < ARRAY_SIZE(tables)) {
		start(canary);
		return;
	}
	if (there)
		log_info("Some iptables canaries are gone and others are not");
	enter(canary, CANARY_CREATE, 0);
	canary->gone(canary->arg);
}

static void on_done(void *arg, int r, struct err *err)
{
	struct canary *canary = arg;

	canary->job = NULL;
	switch (canary->state) {
	case CANARY_CREATE:
		created(canary, r, err);
		break;
	case CANARY_WATCH:
		watched(canary, r, err);
		break;
	case CANARY_FLUSHED:
		flushed(canary, r);
		break;
	case CANARY_STATE_COUNT:
		break;
	}
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	start(arg);
}

struct canary *canary_new(struct event_base *loop, struct iptables_tool *tool,
			  const struct canary_times *times, void (*gone)(void *arg), void *arg)
{
	struct canary *canary = xcalloc(1, sizeof(*canary));

	canary->tool = tool;
	canary->times = *times;
	canary->gone = gone;
	canary->arg = arg;
	canary->timer = loop_timer(loop, on_timer, canary);
	enter(canary, CANARY_CREATE, 0);
	return canary;
}

struct canary *canary_free(struct canary *canary)
{
	if (!canary)
		return NULL;
	if (canary->job)
		iptables_tool_cancel(canary->tool, canary->job);
	loop_free(canary->timer);
	free(canary);
	return NULL;
}
