/* SPDX-License-Identifier: Apache-2.0 */
#include "conntrack/conntrack_watch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/oom.h"
#include "kernel/conntrack_walk.h"
#include "kernel/nfnetlink.h"

struct conntrack_watch {
	struct conntrack_watch_config config;
	struct event *timer;
	enum table_level level;
	struct nfnetlink_conn line;
	struct conntrack_stats stats; /* of the last look */
	struct conntrack_walk *walk;  /* NULL: none is under way */
	struct table_top *top;        /* of that walk */
	char *found;                  /* by the last one that ended; NULL: none has */
	int64_t walked_ns;            /* when it began */
	bool failed;                  /* the statistics cannot be read; told */
};

static unsigned long long percent(const struct conntrack_stats *stats)
{
	return stats->entries * 100 / MAX(stats->max, 1);
}

/* -- warnings */

static void warn(struct conntrack_watch *watch)
{
	const struct conntrack_stats *stats = &watch->stats;
	const char *found = watch->found ? watch->found : "";
	cleanup_text struct text text = {0};
	cleanup_free char *advice = NULL;
	cleanup_free char *note = NULL;

	table_advice(stats, watch->config.cores, &text);
	advice = text_dup(&text);
	note = xasprintf(
		"The connection tracking table is %llu%% full (%llu of %llu entries); a full "
		"one drops new connections. Most entries: %s. %s.",
		percent(stats), (unsigned long long)stats->entries, (unsigned long long)stats->max,
		*found ? found : "not known", advice);
	log_warning(watch->level == TABLE_NEARLY_FULL
			    ? "The connection tracking table is nearly full, a full one drops new "
			      "connections"
			    : "The connection tracking table is filling up, a full one drops new "
			      "connections",
		    KV("percent", LOG_INT(percent(stats))), KV("entries", LOG_INT(stats->entries)),
		    KV("max", LOG_INT(stats->max)), KV("dropped", LOG_INT(stats->drop)),
		    KV("top", LOG_STR(found)), KV("advice", LOG_STR(advice)));
	watch->config.warned(watch->config.arg, watch->level, note);
}

static void say_roomy(const struct conntrack_watch *watch)
{
	log_info("The connection tracking table has room again",
		 KV("percent", LOG_INT(percent(&watch->stats))),
		 KV("entries", LOG_INT(watch->stats.entries)),
		 KV("max", LOG_INT(watch->stats.max)));
}

/* -- who fills it */

static void on_flow(void *arg, const struct conntrack_flow *flow)
{
	const struct conntrack_watch *watch = arg;

	table_top_see(watch->top, flow);
}

static void end_walk(struct conntrack_watch *watch)
{
	watch->walk = conntrack_walk_free(watch->walk);
	watch->top = table_top_free(watch->top);
}

static void on_walked(void *arg, const struct conntrack_walk_result *result)
{
	struct conntrack_watch *watch = arg;
	cleanup_text struct text text = {0};

	if (result->error < 0)
		log_debug(1, "Who fills the connection tracking table is not known",
			  KV("err", LOG_STR(result->words)));
	table_top_print(watch->top, &text);
	free(watch->found);
	watch->found = text_dup(&text);
	end_walk(watch);
	if (watch->level > TABLE_ROOMY)
		warn(watch);
}

/* The warning follows when the walk is over; at once when there is none. */
static void find_who(struct conntrack_watch *watch)
{
	const struct conntrack_walk_config config = {
		.most = CONNTRACK_WATCH_SAMPLE,
		.flow = on_flow,
		.done = on_walked,
		.arg = watch,
	};
	int64_t now_ns = watch->config.now_ns();
	struct err err;

	if (watch->walk)
		return; /* which will warn of what is true then */
	if (watch->found && now_ns - watch->walked_ns < CONNTRACK_WATCH_WALK_NS) {
		warn(watch);
		return;
	}
	watch->walked_ns = now_ns;
	watch->top = table_top_new(watch->config.model);
	if (conntrack_walk_start(watch->config.loop, &config, &watch->walk, &err) == 0)
		return;
	log_debug(1, "Who fills the connection tracking table is not known",
		  KV("err", LOG_STR(err.text)));
	end_walk(watch);
	warn(watch);
}

/* -- looking */

static bool read_stats(struct conntrack_watch *watch)
{
	struct err err;

	if (watch->config.stats(&watch->line, &watch->stats, &err) >= 0) {
		watch->failed = false;
		return true;
	}
	if (!watch->failed)
		log_debug(1, "The connection tracking table cannot be watched",
			  KV("err", LOG_STR(err.text)));
	watch->failed = true;
	return false;
}

void conntrack_watch_look(struct conntrack_watch *watch)
{
	enum table_level before = watch->level;

	if (!read_stats(watch))
		return;
	watch->level = table_level_next(before, &watch->stats);
	if (watch->level > before)
		find_who(watch);
	else if (watch->level == TABLE_ROOMY && before != TABLE_ROOMY)
		say_roomy(watch);
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	conntrack_watch_look(arg);
}

/* -- begin and end */

struct conntrack_watch *conntrack_watch_new(const struct conntrack_watch_config *config)
{
	struct conntrack_watch *watch = xcalloc(1, sizeof(*watch));
	struct timeval period;

	watch->config = *config;
	watch->timer = event_new(config->loop, -1, EV_PERSIST, on_timer, watch);
	clock_to_timeval(CONNTRACK_WATCH_PERIOD_NS, &period);
	if (!watch->timer || event_add(watch->timer, &period) < 0)
		oom("an event", 0);
	return watch;
}

struct conntrack_watch *conntrack_watch_free(struct conntrack_watch *watch)
{
	if (!watch)
		return NULL;
	loop_free(watch->timer);
	end_walk(watch);
	nfnetlink_conn_done(&watch->line);
	free(watch->found);
	free(watch);
	return NULL;
}
