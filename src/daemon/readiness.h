/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Is the node ready, beyond what kube-proxy asks (serving/proxy_health.h)? With --healthz-probe the
 * kernel is looked at, every interval, and /healthz answers from the last look:
 *
 *	rules    the rules that all others hang on are there, and no damage is known. Before the first
 *	         good sync they are not. Damage counts from the moment in which it is heard of.
 *	connect  the same, and a TCP connection through a cluster IP comes about. One failure is none:
 *	         it is tried again after a second, and the third one in a row counts. A Service that is
 *	         not there, or has no endpoint that is ready, says nothing about this node: it is left out.
 */

#include "base/addr.h"
#include "base/err.h"
#include "config/readiness_probe.h"

struct event_base;
struct model;
struct readiness;

struct readiness_config {
	struct event_base *loop;
	const struct model *model; /* borrowed, as all here */
	enum readiness_probe probe;
	const char *target; /* for CONNECT; without a port: the first one of TCP */
	int64_t interval_ns;
	/* Has the rules of all families looked at; readiness_checked() is told. */
	void (*check)(void *arg);
	void (*failed)(void *arg, const char *probe); /* "rules" or "connect"; for counting */
	void *arg;
};

struct readiness *readiness_new(const struct readiness_config *config);
struct readiness *readiness_free(struct readiness *readiness); /* accepts NULL, returns NULL */

/* -- what happens */

void readiness_add_family(struct readiness *readiness, enum family family); /* is proxied */
void readiness_damaged(struct readiness *readiness, enum family family);    /* by another program */
void readiness_synced(struct readiness *readiness, enum family family);     /* or repaired */
/* As backend_events.checked(). */
void readiness_checked(struct readiness *readiness, enum family family, int r,
		       const struct err *err);

/* Why not, for the caller to free; NULL: ready. */
char *readiness_why_not(const struct readiness *readiness);
