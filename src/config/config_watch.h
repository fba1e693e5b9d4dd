/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tells when a file may say something else: it was written, replaced, or is a symbolic link (as in
 * a mounted ConfigMap, whose `..data` is swapped) that leads elsewhere now. `changed` means "read it
 * again"; it is called for less, too, and once when the loop starts, because the file may have
 * changed since the start read it.
 */

#include "base/err.h"

struct event_base;
struct config_watch;

int config_watch_new(struct event_base *loop, const char *file, void (*changed)(void *arg),
		     void *arg, struct config_watch **ret, struct err *err);
struct config_watch *config_watch_free(struct config_watch *watch); /* accepts NULL, returns NULL */
