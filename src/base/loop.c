/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loop.h"

#include "base/clock.h"
#include "base/oom.h"

static void add(struct event *event, const struct timeval *delay)
{
	if (!event || event_add(event, delay) < 0)
		oom("an event", 0);
}

struct event *loop_timer(struct event_base *loop, event_callback_fn fn, void *arg)
{
	struct event *timer = evtimer_new(loop, fn, arg);

	if (!timer)
		oom("an event", 0);
	return timer;
}

void loop_arm(struct event *timer, int64_t ns)
{
	struct timeval delay;

	clock_to_timeval(ns, &delay);
	add(timer, &delay);
}

struct event *loop_watch(struct event_base *loop, int fd, short what, event_callback_fn fn,
			 void *arg)
{
	struct event *event = event_new(loop, fd, what, fn, arg);

	add(event, NULL);
	return event;
}

void loop_resume(struct event *watch)
{
	add(watch, NULL);
}

struct event *loop_free(struct event *event)
{
	if (event)
		event_free(event);
	return NULL;
}
