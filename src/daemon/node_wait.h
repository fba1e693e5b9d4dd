/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The start waits for the Node, as kube-proxy's does: until it is known whether there is one, then
 * for its addresses, and in mode NodeCIDR for its podCIDRs. Without addresses it goes on after a
 * while (and ends when they come, see compare_node() in daemon.c); without podCIDRs there is nothing
 * to tell local traffic by, and it cannot.
 *
 * Addresses are not waited for where there is no hope: the source is a folder. A server that does not let
 * us read the Node, or does not answer, may do so in a moment: roles are bound while nodes come up.
 * kube-proxy waits for that without end. Where Nodes are never to be read, the start takes the 30 s.
 */

#include "model/model.h"

struct config;
struct event_base;
struct node_wait;

#define NODE_WAIT_ADDRESSES_MS 30000
#define NODE_WAIT_POD_CIDRS_MS (5 * 60 * 1000) /* from then on */

struct node_wait_config {
	struct event_base *loop;
	const struct model *model;
	int64_t addresses_ms, pod_cidrs_ms; /* for tests; 0: as above */
	/* One of them is called, once. */
	void (*over)(void *arg);
	void (*failed)(void *arg, const char *reason);
	void *arg;
};

struct node_wait *node_wait_new(const struct node_wait_config *input);
struct node_wait *node_wait_free(struct node_wait *wait); /* accepts NULL, returns NULL */

/* It is known whether there is a Node. May call over(). */
void node_wait_begin(struct node_wait *wait, const struct config *config, bool hope);
/* The Node or the configuration is another one: does it do now? May call over(). */
void node_wait_look(struct node_wait *wait, const struct config *config);
