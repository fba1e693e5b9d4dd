/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The runner does the arithmetic, this file owns the timer. Two things do not wait for the runner,
 * and the next sync does not wait for them (`at_once`): the first sync, so that the first change
 * after it is not late, and the repair of foreign damage. A sync that ends never starts the next
 * one from inside the backend's callback, but through the timer, so that the stack stays flat
 * however quickly syncs follow each other.
 */

#include "cli/proxier.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/runner.h"

/* Without any change the rules are looked at once an hour. */
#define MAX_INTERVAL_NS (3600 * CLOCK_NS_PER_SECOND)

struct proxier {
	const struct backend_ops *ops;
	const struct settings *settings;
	struct model *model;
	struct proxier_clock clock;
	struct backend *backend;
	struct backend_events events;
	const struct proxier_observer *observer; /* NULL: nobody */
	struct runner runner;
	struct event *timer;
	bool started;
	bool at_once;   /* the next sync waits for nothing, and none waits for it */
	bool good_once; /* the first good sync is behind us */
	struct proxier_hooks hooks;
	char *failure;     /* what the last sync failed with; NULL: it did not */
	size_t n_failures; /* how often in a row it was that */
};

static int64_t now_ns(const struct proxier *proxier)
{
	return proxier->clock.now_ns(proxier->clock.arg);
}

int64_t proxier_next_ns(const struct proxier *proxier)
{
	if (!proxier->started || proxier->runner.running)
		return RUNNER_NEVER;
	return proxier->at_once ? now_ns(proxier) : runner_next(&proxier->runner, now_ns(proxier));
}

static void arm_timer(struct proxier *proxier)
{
	int64_t next = proxier_next_ns(proxier);
	struct timeval delay;

	if (next == RUNNER_NEVER) {
		event_del(proxier->timer);
		return;
	}
	clock_to_timeval(next - now_ns(proxier), &delay);
	event_add(proxier->timer, &delay);
}

void proxier_tick(struct proxier *proxier)
{
	int64_t next = proxier_next_ns(proxier);

	if (next != RUNNER_NEVER && next <= now_ns(proxier)) {
		if (proxier->at_once)
			runner_started_apart(&proxier->runner);
		else
			runner_started(&proxier->runner);
		proxier->at_once = false;
		proxier->ops->sync(proxier->backend, proxier->model);
	}
	arm_timer(proxier);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	proxier_tick(arg);
}

/* The end of a failure that lasted is told with its length, as the repetitions were not. */
static void log_failure_over(struct proxier *proxier)
{
	const char *family = family_name(proxier->settings->family);

	if (!proxier->failure)
		return;
	if (proxier->n_failures > 1)
		log_info("A sync failure that was logged once repeated itself",
			 KV("ipFamily", LOG_STR(family)), KV("times", LOG_INT(proxier->n_failures)),
			 KV("err", LOG_STR(proxier->failure)));
	free(take(proxier->failure));
	proxier->n_failures = 0;
}

static void log_failure(struct proxier *proxier, const struct backend_result *result)
{
	const char *family = family_name(proxier->settings->family);

	if (proxier->failure && streq(proxier->failure, result->err.text)) {
		proxier->n_failures++;
		log_debug(2, "Sync failed again", KV("ipFamily", LOG_STR(family)),
			  KV("times", LOG_INT(proxier->n_failures)),
			  KV("err", LOG_STR(result->err.text)));
		return;
	}
	log_failure_over(proxier);
	proxier->failure = xstrdup(result->err.text);
	proxier->n_failures = 1;
	log_error(
		"Sync failed, keeping the previous rules", KV("ipFamily", LOG_STR(family)),
		KV("retryAfterMs", LOG_INT(MIN(proxier->settings->sync_period_ns, MAX_INTERVAL_NS) /
					   CLOCK_NS_PER_MS)),
		KV("err", LOG_STR(result->err.text)));
}

static void log_success(struct proxier *proxier, const struct backend_result *result)
{
	enum family family = proxier->settings->family;
	bool important = !proxier->good_once || proxier->failure;
	const char *message = !proxier->good_once ? "First sync done"
			      : proxier->failure  ? "Sync works again"
						  : "Sync done";

	log_failure_over(proxier);
	if (!important && !log_enabled(2))
		return;
	LOG_CALL(LOG_SEVERITY_INFO, important ? 0 : 2, message,
		 KV("ipFamily", LOG_STR(family_name(family))), KV("full", LOG_BOOL(result->full)),
		 KV("services", LOG_INT(result->services)),
		 KV("endpoints", LOG_INT(model_count_endpoints(proxier->model, family))),
		 KV("rules", LOG_INT(result->rules)),
		 KV("ms", LOG_INT(result->duration_ns / CLOCK_NS_PER_MS)));
}

static void on_synced(void *arg, const struct backend_result *result)
{
	struct proxier *proxier = arg;
	bool good = result->error == 0;

	runner_finished(&proxier->runner, good, result->duration_ns, now_ns(proxier));
	if (!good) {
		log_failure(proxier, result);
	} else {
		bool first = !proxier->good_once;

		log_success(proxier, result);
		proxier->good_once = true;
		if (first) {
			proxier->ops->watch(proxier->backend);
			if (proxier->hooks.first_synced)
				proxier->hooks.first_synced(proxier->hooks.arg);
		}
	}
	if (proxier->observer)
		proxier->observer->synced(proxier->observer->arg, proxier->settings->family,
					  result);
	arm_timer(proxier);
}

static void on_flushed(void *arg, const char *what)
{
	struct proxier *proxier = arg;

	log_warning("Rules were changed by somebody else, repairing them",
		    KV("ipFamily", LOG_STR(family_name(proxier->settings->family))),
		    KV("what", LOG_STR(what)));
	proxier->at_once = true;
	if (proxier->observer)
		proxier->observer->flushed(proxier->observer->arg, proxier->settings->family);
	arm_timer(proxier);
}

static void on_repaired(void *arg)
{
	const struct proxier *proxier = arg;

	if (proxier->observer)
		proxier->observer->repaired(proxier->observer->arg, proxier->settings->family);
}

static void on_checked(void *arg, int r, const struct err *err)
{
	const struct proxier *proxier = arg;

	if (proxier->observer)
		proxier->observer->checked(proxier->observer->arg, proxier->settings->family, r,
					   err);
}

static void on_conflict(void *arg, const struct backend_conflict *conflict)
{
	const struct proxier *proxier = arg;

	log_warning("Two Services ask for the same destination, the older one has it",
		    KV("ipFamily", LOG_STR(family_name(proxier->settings->family))),
		    KV("destination", LOG_STR(conflict->destination)),
		    KV("service", LOG_STR(conflict->service)),
		    KV("owner", LOG_STR(conflict->owner)));
	if (proxier->hooks.conflict)
		proxier->hooks.conflict(proxier->hooks.arg, conflict);
}

static void on_refused(void *arg, const struct backend_refusal *refusal)
{
	const struct proxier *proxier = arg;

	log_error("The kernel refuses what a Service asks for, going on without it",
		  KV("ipFamily", LOG_STR(family_name(proxier->settings->family))),
		  KV("service", LOG_STR(refusal->service)),
		  KV("servicePort", LOG_STR(refusal->port)), KV("err", LOG_STR(refusal->reason)));
	if (proxier->hooks.refused)
		proxier->hooks.refused(proxier->hooks.arg, refusal);
}

static void on_wanted(void *arg)
{
	proxier_request(arg);
}

int proxier_new(struct event_base *loop, const struct backend_ops *ops,
		const struct settings *settings, struct model *model,
		const struct proxier_clock *clock, struct proxier **ret, struct err *err)
{
	struct proxier *proxier = xcalloc(1, sizeof(*proxier));
	int r;

	*proxier = (struct proxier){
		.ops = ops,
		.settings = settings,
		.model = model,
		.clock = *clock,
		.events = {.synced = on_synced,
			   .flushed = on_flushed,
			   .repaired = on_repaired,
			   .checked = on_checked,
			   .conflict = on_conflict,
			   .refused = on_refused,
			   .wanted = on_wanted,
			   .arg = proxier},
		.timer = evtimer_new(loop, on_timer, proxier),
	};
	runner_init(&proxier->runner, settings->min_sync_period_ns, settings->sync_period_ns,
		    MAX(MAX_INTERVAL_NS, settings->min_sync_period_ns));
	if (!settings->min_sync_explicit)
		runner_pace(&proxier->runner);
	r = ops->open(loop, settings, &proxier->events, &proxier->backend, err);
	if (r < 0) {
		proxier_free(proxier);
		return err_wrap(err, r, "%s of %s", ops->name, family_name(settings->family));
	}
	*ret = proxier;
	return 0;
}

struct proxier *proxier_free(struct proxier *proxier)
{
	if (!proxier)
		return NULL;
	proxier->ops->close(proxier->backend);
	if (proxier->timer)
		event_free(proxier->timer);
	free(proxier->failure);
	free(proxier);
	return NULL;
}

void proxier_observe(struct proxier *proxier, const struct proxier_observer *observer)
{
	proxier->observer = observer;
}

void proxier_set_hooks(struct proxier *proxier, const struct proxier_hooks *hooks)
{
	proxier->hooks = *hooks;
}

void proxier_start(struct proxier *proxier)
{
	if (proxier->observer)
		proxier->observer->started(proxier->observer->arg, proxier->settings->family);
	proxier->started = true;
	proxier->at_once = true;
	proxier_tick(proxier);
}

void proxier_request(struct proxier *proxier)
{
	if (proxier->observer)
		proxier->observer->queued(proxier->observer->arg, proxier->settings->family);
	runner_request(&proxier->runner);
	arm_timer(proxier);
}

void proxier_request_full(struct proxier *proxier)
{
	proxier->ops->need_full_sync(proxier->backend);
	proxier_request(proxier);
}

/* Before the first good sync there is nothing to compare, and one is due anyway. */
void proxier_audit(struct proxier *proxier)
{
	if (!proxier->good_once || !proxier->ops->audit(proxier->backend))
		proxier_request_full(proxier);
}

void proxier_check(struct proxier *proxier)
{
	struct err err;

	if (proxier->good_once) {
		proxier->ops->check(proxier->backend);
		return;
	}
	err_set(&err, -EINPROGRESS, "no sync has succeeded yet");
	on_checked(proxier, 0, &err);
}
