/* SPDX-License-Identifier: Apache-2.0 */

/* Services that the kernel refused: when they are tried again, and what is told. */

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/refused_services.h"
#include "base/clock.h"
#include "base/loop.h"

static const struct plan_delta nothing;

struct lab {
	struct event_base *loop;
	struct event *timer;
	struct backend_events events;
	const struct backend_events *told_to;
	struct refused_services services;
	size_t n_told;
};

static void on_refused(void *arg, const struct backend_refusal *refusal attr_unused)
{
	((struct lab *)arg)->n_told++;
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg attr_unused)
{
}

static int set_up(void **state)
{
	struct lab *lab = xcalloc(1, sizeof(*lab));

	lab->loop = event_base_new();
	lab->timer = loop_timer(lab->loop, on_timer, lab);
	lab->events = (struct backend_events){.refused = on_refused, .arg = lab};
	lab->told_to = &lab->events;
	lab->services.events = &lab->told_to;
	*state = lab;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *lab = *state;

	refused_services_done(&lab->services);
	loop_free(lab->timer);
	event_base_free(lab->loop);
	free(lab);
	return 0;
}

static void refuse(struct lab *lab, const char *reason, int64_t now_ns)
{
	refused_services_add(
		&lab->services,
		&(struct backend_refusal){.service = "ns/a", .port = "ns/a:p", .reason = reason},
		now_ns);
}

static void the_wait_doubles_up_to_its_limit(void **state)
{
	struct lab *lab = *state;
	int64_t now = 1, wait = REFUSED_FIRST_NS;

	for (int i = 0; i < 10; i++) {
		refuse(lab, "no", now);
		assert_int_equal(refused_services_next_ns(&lab->services), now + wait);
		assert_false(refused_services_begin(&lab->services, &nothing, now + wait - 1));
		assert_true(refused_services_wait(&lab->services, "ns/a"));
		now += wait;
		assert_true(refused_services_begin(&lab->services, &nothing, now));
		assert_false(refused_services_wait(&lab->services, "ns/a"));
		wait = MIN(2 * wait, REFUSED_LAST_NS);
	}
	assert_int_equal(lab->n_told, 1);
	refuse(lab, "not for another reason either", now);
	assert_int_equal(lab->n_told, 2);
}

/* Who syncs repeats a sync that failed, at its own pace. */
static void a_sync_that_fails_is_not_asked_for_at_once(void **state)
{
	struct lab *lab = *state;
	int64_t now = clock_now_ns();

	refuse(lab, "no", now);
	refused_services_arm(&lab->services, lab->timer);
	assert_true(evtimer_pending(lab->timer, NULL));
	assert_true(refused_services_begin(&lab->services, &nothing, now + REFUSED_FIRST_NS));
	refused_services_arm(&lab->services, lab->timer); /* it failed */
	assert_false(evtimer_pending(lab->timer, NULL));
	refused_services_accept(&lab->services); /* the next one did not */
	assert_int_equal(refused_services_next_ns(&lab->services), REFUSED_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(the_wait_doubles_up_to_its_limit),
		TEST(a_sync_that_fails_is_not_asked_for_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
