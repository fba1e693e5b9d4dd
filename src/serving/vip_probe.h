/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One TCP connection that is made to see whether it can be, and closed at once. Nothing waits: the
 * answer comes from the event loop, within the time given.
 */

#include "base/addr.h"
#include "base/err.h"

struct event_base;
struct vip_probe;

/* err: NULL when there was a connection. */
typedef void vip_probe_fn(void *arg, const struct err *err);

struct vip_probe *vip_probe_new(struct event_base *loop, int64_t timeout_ns, vip_probe_fn *done,
				void *arg);
struct vip_probe *vip_probe_free(struct vip_probe *probe); /* accepts NULL, returns NULL */

bool vip_probe_running(const struct vip_probe *probe);
/* Not while one runs. done() is never called from inside. */
void vip_probe_start(struct vip_probe *probe, const struct addr *addr, uint16_t port);
