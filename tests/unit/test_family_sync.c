/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When a family syncs, with a backend that only notes what it is told and a clock that is moved by
 * hand. No timer of the loop is ever waited for: moving the clock is followed by a tick.
 */

#include <errno.h>
#include <event2/event.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/runner.h"
#include "build.h"
#include "daemon/family_sync.h"

#define S  INT64_C(1000000000)
#define MS INT64_C(1000000)

static struct fake {
	int64_t now_ns;
	const struct backend_events *events;
	bool open_fails;
	bool running;        /* a sync that waits for finish() */
	bool ends_inside;    /* syncs end before sync() returns, */
	int inside_error;    /* with this */
	bool request_inside; /* a change arrives during such a sync */
	int opened, closed, syncs, full_requests, watches, audits;
	bool delta_full;            /* of the last sync */
	struct backend_result told; /* to the observer, last */
	size_t delta_services;      /* in its delta */
	bool can_audit;
	int64_t cost_ns; /* of syncs */
	int log;         /* what was logged, as a file */
	struct family_sync *sync;
} fake;

static void finish(int error, const char *text)
{
	struct backend_result result = {.error = error, .duration_ns = fake.cost_ns};

	if (error)
		err_set(&result.err, error, "%s", text);
	fake.running = false;
	fake.events->synced(fake.events->arg, &result);
}

static int fake_open(struct event_base *loop, const struct backend_host *host,
		     const struct settings *settings, const struct backend_events *events,
		     struct backend **ret, struct err *err)
{
	(void)loop;
	(void)host;
	(void)settings;
	if (fake.open_fails)
		return err_set(err, -EPERM, "no");
	fake.opened++;
	fake.events = events;
	*ret = (struct backend *)&fake;
	return 0;
}

static void fake_close(struct backend *backend)
{
	fake.closed += backend != NULL;
}

static void fake_sync(struct backend *backend, const struct plan_delta *delta)
{
	assert_ptr_equal(backend, &fake);
	assert_false(fake.running);
	fake.delta_full = delta->full;
	fake.delta_services = delta->n_changes;
	fake.syncs++;
	fake.running = true;
	if (fake.request_inside)
		family_sync_request(fake.sync);
	if (fake.ends_inside)
		finish(fake.inside_error, "inside");
}

static bool fake_syncing(const struct backend *backend)
{
	(void)backend;
	return fake.running;
}

static void fake_need_full_sync(struct backend *backend)
{
	(void)backend;
	fake.full_requests++;
}

static void fake_watch(struct backend *backend)
{
	(void)backend;
	fake.watches++;
}

static bool fake_audit(struct backend *backend)
{
	(void)backend;
	fake.audits++;
	return fake.can_audit;
}

static void fake_check(struct backend *backend)
{
	(void)backend;
	fake.events->checked(fake.events->arg, 1, NULL);
}

static const struct backend_ops fake_ops = {
	.name = "fake",
	.open = fake_open,
	.close = fake_close,
	.sync = fake_sync,
	.syncing = fake_syncing,
	.need_full_sync = fake_need_full_sync,
	.watch = fake_watch,
	.audit = fake_audit,
	.check = fake_check,
};

static int64_t fake_now(void *arg)
{
	return ((struct fake *)arg)->now_ns;
}

struct fixture {
	struct event_base *loop;
	struct model *model;
	struct settings settings;
	struct family_sync *sync;
	struct err err;
};

static const struct family_sync_clock fake_clock = {.now_ns = fake_now, .arg = &fake};

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	fake = (struct fake){.now_ns = 1000 * S, .log = memfd_create("log", 0)};
	log_set_fd(fake.log);
	f->loop = event_base_new();
	f->model = model_new("node-a", 0);
	f->settings.sync_period_ns = 30 * S;
	f->settings.min_sync_period_ns = 1 * S;
	f->settings.min_sync_explicit = true;
	f->settings.allow_external_ips = true;
	*state = f;
	return 0;
}

static void make_sync(struct fixture *f)
{
	assert_int_equal(family_sync_new(f->loop, &fake_ops, NULL, &f->settings, f->model,
					 &fake_clock, &f->sync, &f->err),
			 0);
	fake.sync = f->sync;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	family_sync_free(f->sync);
	assert_int_equal(fake.opened, fake.closed);
	model_free(f->model);
	event_base_free(f->loop);
	log_set_fd(STDERR_FILENO);
	close(fake.log);
	free(f);
	return 0;
}

/* Moves the clock and lets it look at it. */
static void pass(struct fixture *f, int64_t ns)
{
	fake.now_ns += ns;
	family_sync_tick(f->sync);
}

static size_t count_logged(const char *part)
{
	char text[16384];
	ssize_t n = pread(fake.log, text, sizeof(text) - 1, 0);
	size_t count = 0;

	assert_true(n >= 0);
	text[n] = '\0';
	for (const char *at = text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

static void nothing_is_synced_before_the_start(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_request(f->sync);
	pass(f, 7200 * S);
	assert_int_equal(fake.syncs, 0);
	assert_true(family_sync_next_ns(f->sync) == RUNNER_NEVER);
}

static void first_sync_is_direct(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_start(f->sync);
	assert_int_equal(fake.syncs, 1);
	assert_int_equal(fake.watches, 0);
	finish(0, NULL);
	assert_int_equal(fake.watches,
			 1); /* foreign hands are watched from the first good sync on */
	assert_int_equal(count_logged("First sync done"), 1);
}

static void the_first_change_after_the_start_runs_at_once(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_start(f->sync);
	finish(0, NULL);
	family_sync_request(f->sync);
	pass(f, 0); /* the first sync was no run of the schedule */
	assert_int_equal(fake.syncs, 2);
	finish(0, NULL);
	family_sync_request(f->sync);
	pass(f, 0); /* but this one was */
	assert_int_equal(fake.syncs, 2);
	pass(f, 1 * S);
	assert_int_equal(fake.syncs, 3);
}

static void requests_merge_and_keep_their_distance(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_start(f->sync);
	finish(0, NULL);
	family_sync_request(f->sync);
	pass(f, 0);
	finish(0, NULL);
	for (int i = 0; i < 5; i++)
		family_sync_request(f->sync);
	pass(f, 999 * MS);
	assert_int_equal(fake.syncs, 2);
	pass(f, 1 * MS);
	assert_int_equal(fake.syncs, 3);
	finish(0, NULL);
	pass(f, 10 * S);
	assert_int_equal(fake.syncs, 3);
	family_sync_request(f->sync);
	pass(f, 0); /* the distance is long past */
	assert_int_equal(fake.syncs, 4);
}

static void a_request_during_a_sync_leads_to_another(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_start(f->sync);
	family_sync_request(f->sync);
	pass(f, 5 * S); /* the first is still running */
	assert_int_equal(fake.syncs, 1);
	finish(0, NULL);
	pass(f, 1 * S);
	assert_int_equal(fake.syncs, 2);
}

static void a_failed_first_sync_is_tried_again(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_start(f->sync);
	finish(-EIO, "broken");
	assert_int_equal(fake.watches, 0);
	pass(f, 30 * S - 1);
	assert_int_equal(fake.syncs, 1);
	pass(f, 1);
	assert_int_equal(fake.syncs, 2);
	finish(0, NULL);
	assert_int_equal(fake.watches, 1);
}

static void serve(struct fixture *f, const char *key, const char *ip)
{
	struct service *service = build_service(key, ip);

	build_port(service, "", PROTOCOL_TCP, 80, 0);
	build_external_ip(service, "198.51.100.1");
	model_set_service(f->model, service);
}

static void a_delta_has_what_changed_and_after_a_failure_everything(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	serve(f, "ns/a", "10.96.0.1");
	family_sync_start(f->sync);
	assert_true(fake.delta_full);
	finish(0, NULL);
	serve(f, "ns/b", "10.96.0.2");
	family_sync_request(f->sync);
	pass(f, 1 * S);
	assert_false(fake.delta_full);
	assert_int_equal(fake.delta_services, 1);
	finish(-EIO, "broken");
	pass(f, 30 * S);
	assert_true(fake.delta_full);
	assert_int_equal(fake.delta_services, 2);
	finish(0, NULL);
	family_sync_request(f->sync);
	pass(f, 1 * S);
	assert_false(fake.delta_full);
	assert_int_equal(fake.delta_services, 0);
}

static void a_good_sync_cancels_the_retry(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_start(f->sync);
	finish(-EIO, "broken");
	family_sync_request(f->sync);
	pass(f, 1 * S);
	assert_int_equal(fake.syncs, 2);
	finish(0, NULL);
	pass(f, 60 * S);
	assert_int_equal(fake.syncs, 2);
	pass(f, 3600 * S);
	assert_int_equal(fake.syncs, 3); /* once an hour without any request */
}

static void a_zone_change_asks_for_a_full_sync(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_start(f->sync);
	finish(0, NULL);
	family_sync_request_full(f->sync);
	assert_int_equal(fake.full_requests, 1);
	pass(f, 1 * S);
	assert_int_equal(fake.syncs, 2);
}

static void an_audit_is_a_full_sync_where_rules_cannot_be_compared(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_start(f->sync);
	family_sync_audit(f->sync); /* nothing to compare yet */
	assert_int_equal(fake.audits, 0);
	assert_int_equal(fake.full_requests, 1);
	finish(0, NULL);
	family_sync_audit(f->sync);
	assert_int_equal(fake.audits, 1);
	assert_int_equal(fake.full_requests, 2);
	fake.can_audit = true;
	family_sync_audit(f->sync);
	assert_int_equal(fake.audits, 2);
	assert_int_equal(fake.full_requests, 2);
}

static void removed_rules_are_written_again_at_once(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_start(f->sync);
	finish(0, NULL);
	fake.events->flushed(fake.events->arg, "table nat deleted");
	assert_int_equal(count_logged("what=\"table nat deleted\""), 1);
	pass(f, 0); /* no distance is kept */
	assert_int_equal(fake.syncs, 2);
	fake.events->flushed(fake.events->arg,
			     "table nat deleted"); /* and again while that one runs */
	finish(0, NULL);
	pass(f, 0);
	assert_int_equal(fake.syncs, 3);
	finish(0, NULL);
	pass(f, 10 * S);
	assert_int_equal(fake.syncs, 3);
}

static void the_loops_timer_starts_what_is_due(void **state)
{
	struct fixture *f = *state;

	f->settings.min_sync_period_ns = 0;
	make_sync(f);
	family_sync_start(f->sync);
	finish(0, NULL);
	family_sync_request(f->sync);
	assert_int_equal(fake.syncs, 1); /* all changes of one turn of the loop are one sync */
	event_base_loop(f->loop, EVLOOP_ONCE);
	assert_int_equal(fake.syncs, 2);
}

static void syncs_that_end_inside_do_not_pile_up(void **state)
{
	struct fixture *f = *state;

	f->settings.min_sync_period_ns = 0;
	fake.ends_inside = true;
	fake.request_inside = true;
	make_sync(f);
	family_sync_start(f->sync);
	assert_int_equal(fake.syncs, 1); /* the next one comes with the timer, not in recursion */
	event_base_loop(f->loop, EVLOOP_ONCE);
	assert_int_equal(fake.syncs, 2);
}

static void a_repeated_failure_is_logged_once_and_counted(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	fake.ends_inside = true;
	fake.inside_error = -EIO;
	family_sync_start(f->sync);
	for (int i = 0; i < 4; i++)
		pass(f, 30 * S);
	assert_int_equal(fake.syncs, 5);
	assert_int_equal(count_logged("keeping the previous rules"), 1);
	fake.inside_error = 0;
	pass(f, 30 * S);
	assert_int_equal(count_logged("times=5"), 1);
	assert_int_equal(count_logged("First sync done"), 1);
}

static void a_new_failure_is_logged_again(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_start(f->sync);
	finish(-EIO, "one");
	pass(f, 30 * S);
	finish(-EIO, "two");
	assert_int_equal(count_logged("keeping the previous rules"), 2);
	pass(f, 30 * S);
	finish(0, NULL);
	pass(f, 3600 * S);
	finish(-EIO, "two");
	assert_int_equal(count_logged("keeping the previous rules"), 3);
	pass(f, 30 * S);
	finish(0, NULL);
	assert_int_equal(count_logged("Sync works again"), 1);
}

static void a_backend_that_cannot_open_is_an_error(void **state)
{
	struct fixture *f = *state;

	fake.open_fails = true;
	assert_int_equal(family_sync_new(f->loop, &fake_ops, NULL, &f->settings, f->model,
					 &fake_clock, &f->sync, &f->err),
			 -EPERM);
	assert_string_equal(f->err.text, "fake of IPv4: no");
	assert_null(f->sync);
}

static void without_a_least_time_syncs_follow_their_cost(void **state)
{
	struct fixture *f = *state;

	f->settings.min_sync_explicit = false;
	make_sync(f);
	family_sync_start(f->sync);
	finish(0, NULL);
	for (int i = 0; i < 10; i++) { /* cheap ones: each change at once */
		family_sync_request(f->sync);
		pass(f, 0);
		assert_int_equal(fake.syncs, 2 + i);
		finish(0, NULL);
	}
	family_sync_request(f->sync);
	pass(f, 0);
	fake.cost_ns = 5 * S; /* a dear one: the next keeps its distance */
	fake.now_ns += fake.cost_ns;
	finish(0, NULL);
	family_sync_request(f->sync);
	assert_true(family_sync_next_ns(f->sync) == fake.now_ns + 1 * S);
}

static void a_least_time_that_is_asked_for_is_kept_whatever_syncs_cost(void **state)
{
	struct fixture *f = *state;

	make_sync(f);
	family_sync_start(f->sync);
	finish(0, NULL);
	family_sync_request(f->sync);
	pass(f, 0);
	finish(0, NULL);
	family_sync_request(f->sync);
	assert_true(family_sync_next_ns(f->sync) == fake.now_ns + 1 * S);
}

/* -- who is told */

static char told[64];

static void note(char letter)
{
	size_t n = strlen(told);

	assert_true(n < sizeof(told) - 1);
	told[n] = letter;
}

static void tell_started(void *arg, enum family family)
{
	assert_ptr_equal(arg, told);
	assert_int_equal(family, FAMILY_IPV4);
	note('s');
}

static void tell_queued(void *arg attr_unused, enum family family attr_unused)
{
	note('q');
}

static void tell_synced(void *arg attr_unused, enum family family attr_unused,
			const struct backend_result *result)
{
	assert_non_null(result->changes);
	assert_int_equal(result->services, result->changes->n_services);
	fake.told = *result;
	note(result->error ? 'x' : 'd');
}

static void tell_flushed(void *arg attr_unused, enum family family attr_unused)
{
	note('f');
}

static void tell_repaired(void *arg attr_unused, enum family family attr_unused)
{
	note('r');
}

static void tell_checked(void *arg attr_unused, enum family family attr_unused, int r,
			 const struct err *err)
{
	if (r == 0)
		assert_string_equal(err->text, "no sync has succeeded yet");
	note(r > 0 ? 'c' : 'n');
}

static void an_observer_is_told_what_happens_in_its_order(void **state)
{
	static const struct family_sync_observer observer = {
		.started = tell_started,
		.queued = tell_queued,
		.synced = tell_synced,
		.flushed = tell_flushed,
		.repaired = tell_repaired,
		.checked = tell_checked,
		.arg = told,
	};
	struct fixture *f = *state;

	memset(told, 0, sizeof(told));
	make_sync(f);
	family_sync_observe(f->sync, &observer);
	serve(f, "ns/a", "10.96.0.1");
	serve(f, "ns/b", "10.96.0.2");
	family_sync_start(f->sync);
	family_sync_check(f->sync);
	finish(0, NULL);
	assert_int_equal(fake.told.services, 2);
	assert_int_equal(fake.told.conflicts[CONFLICT_DESTINATION], 1);
	assert_int_equal(count_logged("Two Services ask for the same destination"), 1);
	family_sync_check(f->sync);
	family_sync_request(f->sync);
	family_sync_request_full(f->sync);
	pass(f, 1 * S);
	finish(-EIO, "no");
	fake.events->flushed(fake.events->arg, "table nat deleted");
	pass(f, 0);
	finish(0, NULL);
	fake.events->repaired(fake.events->arg);
	assert_string_equal(told, "sndcqqxfdr");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_synced_before_the_start),
		TEST(first_sync_is_direct),
		TEST(the_first_change_after_the_start_runs_at_once),
		TEST(requests_merge_and_keep_their_distance),
		TEST(a_request_during_a_sync_leads_to_another),
		TEST(a_failed_first_sync_is_tried_again),
		TEST(a_delta_has_what_changed_and_after_a_failure_everything),
		TEST(a_good_sync_cancels_the_retry),
		TEST(a_zone_change_asks_for_a_full_sync),
		TEST(an_audit_is_a_full_sync_where_rules_cannot_be_compared),
		TEST(removed_rules_are_written_again_at_once),
		TEST(the_loops_timer_starts_what_is_due),
		TEST(syncs_that_end_inside_do_not_pile_up),
		TEST(a_repeated_failure_is_logged_once_and_counted),
		TEST(a_new_failure_is_logged_again),
		TEST(a_backend_that_cannot_open_is_an_error),
		TEST(without_a_least_time_syncs_follow_their_cost),
		TEST(a_least_time_that_is_asked_for_is_kept_whatever_syncs_cost),
		TEST(an_observer_is_told_what_happens_in_its_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
