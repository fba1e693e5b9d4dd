/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Events of libevent's loop. Without memory for one the process ends (oom.h). */

#include <event2/event.h>
#include <stdint.h>

struct event *loop_timer(struct event_base *loop, event_callback_fn fn, void *arg); /* not armed */
/* Goes off once, after this time, rounded up; negative counts as zero. Armed again: the last counts. */
void loop_arm(struct event *timer, int64_t ns);
/* EV_READ or EV_WRITE, and EV_PERSIST; it is watched at once. */
struct event *loop_watch(struct event_base *loop, int fd, short what, event_callback_fn fn,
			 void *arg);
void loop_resume(struct event *watch);        /* after event_del() */
struct event *loop_free(struct event *event); /* accepts NULL, returns NULL */
