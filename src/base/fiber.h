/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A fiber is a function with a stack of its own, on the thread of the event loop: it runs until it waits, and
 * goes on from there when it is resumed. So what takes several answers reads from top to bottom, and the loop does
 * other things meanwhile.
 *
 *	fiber_start(fiber, fn, arg);    runs fn until it waits, or to its end
 *	fiber_wait();                   in fn: back to the caller of fiber_start() or fiber_resume()
 *	fiber_resume(fiber);            goes on behind fiber_wait()
 *
 * Only one of the loop and its fibers runs at a time, and changes take place where these functions are called: nothing
 * needs a lock.
 */

#include "base/util.h"

struct fiber;

/* breathe: for fiber_breathe(), called in the fiber; NULL: nothing is done then. */
struct fiber *fiber_new(void (*breathe)(void *arg), void *arg);
struct fiber *fiber_free(struct fiber *fiber); /* accepts NULL, returns NULL; not one that waits */

void fiber_start(struct fiber *fiber, void (*fn)(void *arg), void *arg);
void fiber_resume(struct fiber *fiber);
void fiber_wait(void);
/* Belongs into long work, often: where a fiber does it the loop gets its turn now and then; elsewhere nothing happens. */
void fiber_breathe(void);

bool fiber_is_busy(const struct fiber *fiber); /* started, and not at its end */
const struct fiber *fiber_current(void);       /* NULL: none, this is the loop's own stack */
