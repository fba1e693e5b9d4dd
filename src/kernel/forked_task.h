/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Work that blocks, done beside the event loop by a copy of this process: for what is written to be
 * simple and need not be quick, such as removing the rules of another mode.
 *
 * The copy has the memory as it was and no file descriptor but the three standard ones; signals do
 * what they do by default. It dies when this process does, so that it never works against the next
 * one.
 */

#include "base/err.h"

struct event_base;
struct forked_task;

struct forked_task_spec {
	int (*work)(void *arg);              /* in the copy: its exit status, 0..255 */
	void (*done)(void *arg, int status); /* from the loop; -1: a signal ended it. May be NULL */
	void *arg;
	int64_t grace_ns; /* forked_task_free() waits so long for the work to end by itself */
};

/* *ret is good until forked_task_free(), which may be called from done(). */
int forked_task_start(struct event_base *loop, const struct forked_task_spec *spec,
		      struct forked_task **ret, struct err *err);
struct forked_task *
forked_task_free(struct forked_task *task); /* accepts NULL, returns NULL; ends it */
