/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A thread that waits for the kernel in place of the event loop. It has one job at a time, a function that makes
 * system calls with bytes that are complete, and shares nothing else with the loop: who gave the job leaves all that it
 * uses alone until the loop calls ready().
 *
 * The thread starts with the first job, so that it has the privileges that the process has by then; it takes no
 * signals and allocates nothing.
 */

#include "base/err.h"

struct event_base;
struct worker;

typedef void worker_fn(void *arg);

/* ready: called by the loop when the job is done. */
int worker_open(struct event_base *loop, worker_fn *ready, void *arg, struct worker **ret,
		struct err *err);
/* Waits for the job in hand, which is not told any more. Accepts NULL, returns NULL. */
struct worker *worker_free(struct worker *worker);

/* None is in hand. Negative: no thread can be started. */
int worker_start(struct worker *worker, worker_fn *job, void *arg);
/* Waits for the job in hand, if there is one: ready() is not called for it, and no other may start. Accepts NULL. */
void worker_join(struct worker *worker);
/* How long the last job took. */
int64_t worker_job_ns(struct worker *worker);
