/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads the connection tracking table of both families, without ever waiting for it: a slice of about
 * a thousand flows for each turn of the event loop, so that a large table holds up nothing else.
 *
 * As with conntrack_dump() flows may come and go meanwhile, and one may be reported twice. The order
 * is that of a hash, so that the first ones are a fair sample of all.
 */

#include "kernel/conntrack.h"

struct conntrack_walk;
struct event_base;

struct conntrack_walk_result {
	int error;         /* 0, or a negative errno */
	bool incomplete;   /* the table was rearranged meanwhile: some may have been missed */
	size_t flows;      /* reported */
	int64_t spent_ns;  /* of CPU time on slices, the kernel's part and flow()'s included */
	const char *words; /* what went wrong; "" when nothing did */
};

struct conntrack_walk_config {
	/* A caller that walks again and again lends the socket of a line, which must outlive the walk; or NULL. */
	struct nfnetlink_conn *line;
	uint32_t status;          /* only flows with all of these IPS_* bits; 0: all there are */
	size_t most;              /* ends after about so many; 0: after all */
	void (*slice)(void *arg); /* before each; or NULL */
	conntrack_flow_fn *flow;
	/* The end, which a walk that is freed does not see. May free the walk. */
	void (*done)(void *arg, const struct conntrack_walk_result *result);
	void *arg;
};

/* Nothing is reported before the loop's next turn. */
int conntrack_walk_start(struct event_base *loop, const struct conntrack_walk_config *config,
			 struct conntrack_walk **ret, struct err *err);
struct conntrack_walk *conntrack_walk_free(struct conntrack_walk *walk); /* accepts NULL */
