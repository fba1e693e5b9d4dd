/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Services that the kernel refused. They are left as they are, or left out where the kernel does not take
 * that either, so that all others can be written; a sync tries them again after a while that doubles each
 * time, or when they change. A refusal is told once, until the kernel gives another reason or accepts the Service.
 */

#include "backends/backend.h"
#include "base/map.h"

struct event;

#define REFUSED_FIRST_NS (INT64_C(10) * 1000000000)
#define REFUSED_LAST_NS  (INT64_C(600) * 1000000000)
#define REFUSED_NONE     INT64_MAX

struct refused_services {
	enum family family;
	const struct backend_events *const *events;
	int64_t now_ns; /* when the last sync began: who waits then waits until the next one */
	struct map all; /* by key */
};

void refused_services_done(struct refused_services *services);

/* A sync begins. True: it tries some again. */
bool refused_services_begin(struct refused_services *services, const struct plan_delta *delta,
			    int64_t now_ns);
/* Is it left as it is by this sync? */
bool refused_services_wait(const struct refused_services *services, const char *key);
size_t refused_services_count_waiting(const struct refused_services *services);
/* Is what the kernel had of it refused as well? */
bool refused_services_is_bare(const struct refused_services *services, const char *key);
typedef void refused_services_fn(void *arg, const char *key);
void refused_services_each_tried(const struct refused_services *services, refused_services_fn *fn,
				 void *arg);
/*
 * The kernel refused it; if it waited, it refused what it had taken before, which is not kept then. From now on it
 * waits.
 */
void refused_services_add(struct refused_services *services, const struct backend_refusal *refusal,
			  int64_t now_ns);
/* The sync was good: what it tried again was accepted, or is not asked for any more. */
void refused_services_accept(struct refused_services *services);

int64_t refused_services_next_ns(const struct refused_services *services); /* or REFUSED_NONE */
/* The timer goes off when a sync would try one again. */
void refused_services_arm(const struct refused_services *services, struct event *timer);
