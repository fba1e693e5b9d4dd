/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Events (events.k8s.io/v1) that a proxy has recorded about its node and about Services, as
 * kube-proxy does: under its name, and without the API server being asked more than now and then.
 *
 *   - 25 at once, after that one in 30 s; what is beyond is dropped. No namespace has more than 5 in ten
 *     minutes, and the last 5 are the Node's: a tenant whose objects ask for many hides no others.
 *   - One that is like another of the last ten minutes (in all but the note) is dropped.
 *   - One that cannot be recorded is dropped, with a line for debugging. Nothing is tried again,
 *     nothing waits for it.
 */

#include "base/util.h"

#define EVENTS_BURST     25
#define EVENTS_NAMESPACE 5 /* of one, in EVENTS_ALIKE_NS */
#define EVENTS_NODE      5 /* of the burst */
#define EVENTS_REFILL_NS (INT64_C(30) * 1000000000)
#define EVENTS_ALIKE_NS  (INT64_C(600) * 1000000000)

struct events;

struct events_item {
	bool warning; /* type Warning, else Normal */
	const char *reason, *action;
	const char *note; /* up to 1023 bytes count */
	/* what it is about */
	const char *api_version; /* NULL: "v1" */
	const char *kind;
	const char *ns; /* "" for a Node */
	const char *name;
};

struct events_config {
	const char *host; /* the kernel's name of this host; borrowed */
	int64_t (*steady_ns)(void);
	int64_t (*wall_ns)(void);
	/* Creates an object: the path of its collection, and the object. */
	void (*post)(void *arg, const char *path, const char *json);
	void *arg;
};

struct events *events_new(const struct events_config *config); /* copied */
struct events *events_free(struct events *events);             /* accepts NULL, returns NULL */
/* False when it was dropped. */
bool events_record(struct events *events, const struct events_item *item);
/* The post of a configuration whose arg is a struct api_client. */
void events_post(void *client, const char *path, const char *json);
