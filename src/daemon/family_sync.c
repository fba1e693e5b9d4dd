/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The runner does the arithmetic, this file owns the timer. Two things do not wait for the runner,
 * and the next sync does not wait for them (`at_once`): the first sync, so that the first change
 * after it is not late, and the repair of foreign damage. A sync that ends never starts the next
 * one from inside the backend's callback, but through the timer, so that the stack stays flat
 * however quickly syncs follow each other.
 */

#include "daemon/family_sync.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/runner.h"

/* Without any change the rules are looked at once an hour. */
#define MAX_INTERVAL_NS (3600 * CLOCK_NS_PER_SECOND)

struct family_sync {
	const struct backend_ops *ops;
	const struct settings *settings;
	const struct model *model;
	struct plan_store *store;
	struct plan_reader *reader;
	struct model_changes changes; /* taken for the sync that runs */
	bool distrust; /* what the backend was told before: the next delta is a full one */
	struct family_sync_clock clock;
	struct backend *backend;
	struct backend_events events;
	const struct family_sync_observer *observer; /* NULL: none */
	struct runner runner;
	struct event *timer;
	bool started;
	bool at_once;   /* the next sync waits for nothing, and none waits for it */
	bool good_once; /* the first good sync is behind us */
	struct family_sync_hooks hooks;
	char *failure;     /* what the last sync failed with; NULL: it did not */
	size_t n_failures; /* how often in a row it was that */
};

static int64_t now_ns(const struct family_sync *sync)
{
	return sync->clock.now_ns(sync->clock.arg);
}

int64_t family_sync_next_ns(const struct family_sync *sync)
{
	if (!sync->started || sync->runner.running)
		return RUNNER_NEVER;
	return sync->at_once ? now_ns(sync) : runner_next(&sync->runner, now_ns(sync));
}

static void arm_timer(struct family_sync *sync)
{
	int64_t next = family_sync_next_ns(sync);
	struct timeval delay;

	if (next == RUNNER_NEVER) {
		event_del(sync->timer);
		return;
	}
	clock_to_timeval(next - now_ns(sync), &delay);
	event_add(sync->timer, &delay);
}

static void start_sync(struct family_sync *sync)
{
	model_changes_done(&sync->changes);
	plan_store_update(sync->store, &sync->changes);
	sync->ops->sync(sync->backend, plan_reader_take(sync->reader, sync->distrust));
}

void family_sync_tick(struct family_sync *sync)
{
	int64_t next = family_sync_next_ns(sync);

	if (next != RUNNER_NEVER && next <= now_ns(sync)) {
		if (sync->at_once)
			runner_started_apart(&sync->runner);
		else
			runner_started(&sync->runner);
		sync->at_once = false;
		start_sync(sync);
	}
	arm_timer(sync);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	family_sync_tick(arg);
}

/* The end of a failure that lasted is told with its length, as the repetitions were not. */
static void log_failure_over(struct family_sync *sync)
{
	const char *family = family_name(sync->settings->family);

	if (!sync->failure)
		return;
	if (sync->n_failures > 1)
		log_info("A sync failure that was logged once repeated itself",
			 KV("ipFamily", LOG_STR(family)), KV("times", LOG_INT(sync->n_failures)),
			 KV("err", LOG_STR(sync->failure)));
	free(take(sync->failure));
	sync->n_failures = 0;
}

static void log_failure(struct family_sync *sync, const struct backend_result *result)
{
	const char *family = family_name(sync->settings->family);

	if (sync->failure && streq(sync->failure, result->err.text)) {
		sync->n_failures++;
		log_debug(2, "Sync failed again", KV("ipFamily", LOG_STR(family)),
			  KV("times", LOG_INT(sync->n_failures)),
			  KV("err", LOG_STR(result->err.text)));
		return;
	}
	log_failure_over(sync);
	sync->failure = xstrdup(result->err.text);
	sync->n_failures = 1;
	log_error("Sync failed, keeping the previous rules", KV("ipFamily", LOG_STR(family)),
		  KV("retryAfterMs", LOG_INT(MIN(sync->settings->sync_period_ns, MAX_INTERVAL_NS) /
					     CLOCK_NS_PER_MS)),
		  KV("err", LOG_STR(result->err.text)));
}

static void log_success(struct family_sync *sync, const struct backend_result *result)
{
	enum family family = sync->settings->family;
	bool important = !sync->good_once || sync->failure;
	const char *message = !sync->good_once ? "First sync done"
			      : sync->failure  ? "Sync works again"
					       : "Sync done";

	log_failure_over(sync);
	if (!important && !log_enabled(2))
		return;
	LOG_CALL(LOG_SEVERITY_INFO, important ? 0 : 2, message,
		 KV("ipFamily", LOG_STR(family_name(family))), KV("full", LOG_BOOL(result->full)),
		 KV("services", LOG_INT(result->services)),
		 KV("endpoints", LOG_INT(model_count_endpoints(sync->model, family))),
		 KV("rules", LOG_INT(result->rules)),
		 KV("ms", LOG_INT(result->duration_ns / CLOCK_NS_PER_MS)));
}

static void end_delta(struct family_sync *sync, bool good)
{
	if (good)
		plan_reader_commit(sync->reader);
	else
		plan_reader_fail(sync->reader);
	sync->distrust = !good;
}

/* What a backend does not know. */
static void add_plans(const struct family_sync *sync, struct backend_result *result)
{
	result->services = sync->changes.n_services;
	result->changes = &sync->changes;
	result->plans = sync->store;
	plan_store_count_no_local(sync->store, &result->no_local_internal,
				  &result->no_local_external);
	memcpy(result->conflicts, plan_store_conflicts(sync->store), sizeof(result->conflicts));
}

static void on_synced(void *arg, const struct backend_result *backend_result)
{
	struct family_sync *sync = arg;
	struct backend_result with_plans = *backend_result;
	const struct backend_result *result = &with_plans;
	bool good = result->error == 0;

	end_delta(sync, good);
	add_plans(sync, &with_plans);
	runner_finished(&sync->runner, good,
			result->cost_ns > 0 ? result->cost_ns : result->duration_ns, now_ns(sync));
	if (!good) {
		log_failure(sync, result);
	} else {
		bool first = !sync->good_once;

		log_success(sync, result);
		sync->good_once = true;
		if (first) {
			sync->ops->watch(sync->backend);
			if (sync->hooks.first_synced)
				sync->hooks.first_synced(sync->hooks.arg);
		}
	}
	if (sync->observer)
		sync->observer->synced(sync->observer->arg, sync->settings->family, result);
	arm_timer(sync);
}

static void on_flushed(void *arg, const char *what)
{
	struct family_sync *sync = arg;

	log_warning("Rules were changed by another program, repairing them",
		    KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
		    KV("what", LOG_STR(what)));
	sync->at_once = true;
	if (sync->observer)
		sync->observer->flushed(sync->observer->arg, sync->settings->family);
	arm_timer(sync);
}

static void on_repaired(void *arg)
{
	const struct family_sync *sync = arg;

	if (sync->observer)
		sync->observer->repaired(sync->observer->arg, sync->settings->family);
}

static void on_checked(void *arg, int r, const struct err *err)
{
	const struct family_sync *sync = arg;

	if (sync->observer)
		sync->observer->checked(sync->observer->arg, sync->settings->family, r, err);
}

/* A place in the source for each kind: a flood of one hides none of the others (log_limit.h). */
static void on_conflict(void *arg, const struct conflict *conflict)
{
	const struct family_sync *sync = arg;
	const char *family = family_name(sync->settings->family);

	if (conflict->kind == CONFLICT_CLUSTER_IP)
		log_warning("A Service asks for the cluster IP of another one",
			    KV("ipFamily", LOG_STR(family)),
			    KV("destination", LOG_STR(conflict->destination)),
			    KV("service", LOG_STR(conflict->service)),
			    KV("owner", LOG_STR(conflict->owner)));
	else if (conflict->kind == CONFLICT_NODE_ADDRESS)
		log_warning("A Service asks for an address of this node, and has it",
			    KV("ipFamily", LOG_STR(family)),
			    KV("destination", LOG_STR(conflict->destination)),
			    KV("service", LOG_STR(conflict->service)),
			    KV("owner", LOG_STR("this node")));
	else
		log_warning("Two Services ask for the same destination, the older one has it",
			    KV("ipFamily", LOG_STR(family)),
			    KV("destination", LOG_STR(conflict->destination)),
			    KV("service", LOG_STR(conflict->service)),
			    KV("owner", LOG_STR(conflict->owner)));
	if (sync->hooks.conflict)
		sync->hooks.conflict(sync->hooks.arg, conflict);
}

static void on_refused(void *arg, const struct backend_refusal *refusal)
{
	const struct family_sync *sync = arg;

	log_error(refusal->kept ? "The kernel refuses what a Service asks for, leaving it as it was"
				: "The kernel refuses what a Service asks for, going on without it",
		  KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
		  KV("service", LOG_STR(refusal->service)),
		  KV("servicePort", LOG_STR(refusal->port)), KV("err", LOG_STR(refusal->reason)));
	if (sync->hooks.refused)
		sync->hooks.refused(sync->hooks.arg, refusal);
}

static void on_clients_full(void *arg, const struct backend_full *full)
{
	const struct family_sync *sync = arg;

	log_warning("A Service with affinity has more clients than are remembered, new ones get "
		    "any endpoint",
		    KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
		    KV("service", LOG_STR(full->service)), KV("servicePort", LOG_STR(full->port)),
		    KV("clients", LOG_INT((int64_t)full->clients)));
	if (sync->hooks.clients_full)
		sync->hooks.clients_full(sync->hooks.arg, full);
}

static void on_clients_full_count(void *arg, size_t n)
{
	const struct family_sync *sync = arg;

	if (sync->observer && sync->observer->clients_full)
		sync->observer->clients_full(sync->observer->arg, sync->settings->family, n);
}

static void on_wanted(void *arg)
{
	family_sync_request(arg);
}

int family_sync_new(struct event_base *loop, const struct backend_ops *ops,
		    const struct backend_host *host, const struct settings *settings,
		    struct model *model, const struct family_sync_clock *clock,
		    struct family_sync **ret, struct err *err)
{
	struct family_sync *sync = xcalloc(1, sizeof(*sync));
	int r;

	*sync = (struct family_sync){
		.ops = ops,
		.settings = settings,
		.model = model,
		.clock = *clock,
		.events = {.synced = on_synced,
			   .flushed = on_flushed,
			   .repaired = on_repaired,
			   .checked = on_checked,
			   .refused = on_refused,
			   .clients_full = on_clients_full,
			   .clients_full_count = on_clients_full_count,
			   .wanted = on_wanted,
			   .arg = sync},
		.timer = evtimer_new(loop, on_timer, sync),
		.store = plan_store_new(settings, model, 1),
		.distrust = true,
	};
	plan_store_on_conflict(sync->store, on_conflict, sync);
	sync->reader = plan_reader_new(sync->store);
	runner_init(&sync->runner, settings->min_sync_period_ns, settings->sync_period_ns,
		    MAX(MAX_INTERVAL_NS, settings->min_sync_period_ns));
	if (!settings->min_sync_explicit)
		runner_pace(&sync->runner);
	r = ops->open(loop, host, settings, &sync->events, &sync->backend, err);
	if (r < 0) {
		family_sync_free(sync);
		return err_wrap(err, r, "%s of %s", ops->name, family_name(settings->family));
	}
	*ret = sync;
	return 0;
}

struct family_sync *family_sync_free(struct family_sync *sync)
{
	if (!sync)
		return NULL;
	sync->ops->close(sync->backend);
	plan_reader_free(sync->reader);
	plan_store_free(sync->store);
	model_changes_done(&sync->changes);
	if (sync->timer)
		event_free(sync->timer);
	free(sync->failure);
	free(sync);
	return NULL;
}

void family_sync_observe(struct family_sync *sync, const struct family_sync_observer *observer)
{
	sync->observer = observer;
}

unsigned int family_sync_needs(const struct family_sync *sync)
{
	return sync->ops->needs ? sync->ops->needs(sync->backend) : 0;
}

void family_sync_set_hooks(struct family_sync *sync, const struct family_sync_hooks *hooks)
{
	sync->hooks = *hooks;
}

void family_sync_start(struct family_sync *sync)
{
	if (sync->observer)
		sync->observer->started(sync->observer->arg, sync->settings->family);
	sync->started = true;
	sync->at_once = true;
	family_sync_tick(sync);
}

void family_sync_request(struct family_sync *sync)
{
	if (sync->observer)
		sync->observer->queued(sync->observer->arg, sync->settings->family);
	runner_request(&sync->runner);
	arm_timer(sync);
}

void family_sync_request_full(struct family_sync *sync)
{
	sync->ops->need_full_sync(sync->backend);
	family_sync_request(sync);
}

/* Before the first good sync there is nothing to compare, and one is due anyway. */
void family_sync_audit(struct family_sync *sync)
{
	if (!sync->good_once || !sync->ops->audit(sync->backend))
		family_sync_request_full(sync);
}

bool family_sync_localhost(const struct family_sync *sync, struct backend_localhost *ret)
{
	if (!sync->ops->localhost)
		return false;
	sync->ops->localhost(sync->backend, ret);
	return true;
}

void family_sync_check(struct family_sync *sync)
{
	struct err err;

	if (sync->good_once) {
		sync->ops->check(sync->backend);
		return;
	}
	on_checked(sync, err_set(&err, -EINPROGRESS, "no sync has succeeded yet"), &err);
}
