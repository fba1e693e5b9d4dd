/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Is the proxy keeping up? What /healthz, /livez and the health check ports of Services answer.
 *
 * A family is late when a change was queued a timeout ago (twice the sync period) and no good sync
 * has followed. Before its first update a family is not judged; the start of the sync loop counts
 * as an update. /healthz asks for more: a Node that is known, not being deleted and not marked by
 * the cluster autoscaler, so that load balancers leave in time.
 *
 * Only arithmetic on the times given: steady ones are compared, wall times are printed.
 */

#include "base/addr.h"
#include "base/text.h"
#include "model/node.h"

struct health_time {
	int64_t steady_ns;
	int64_t wall_ns; /* since 1970 */
};

struct family_health {
	bool updated;
	bool queued;
	int64_t updated_wall_ns;  /* the last one */
	int64_t queued_steady_ns; /* the oldest one that no update has followed */
};

struct proxy_health {
	int64_t timeout_ns;
	struct family_health families[FAMILY_COUNT];
};

void proxy_health_updated(struct proxy_health *health, enum family family,
			  const struct health_time *now);
void proxy_health_queued(struct proxy_health *health, enum family family,
			 const struct health_time *now);
bool proxy_health_is_good(const struct proxy_health *health, const struct health_time *now);
bool proxy_health_node_eligible(const struct node *node); /* NULL: never seen, so no */

/*
 * The bodies, as JSON. Both return the status code, 200 or 503. why_not: a reason, beyond all this, for
 * which the node is not ready; NULL, as a rule: none. degraded: what else is wrong, which changes no
 * status; NULL: nothing.
 */
int proxy_health_print_healthz(const struct proxy_health *health, const struct node *node,
			       const char *why_not, const char *degraded,
			       const struct health_time *now, struct text *ret);
int proxy_health_print_livez(const struct proxy_health *health, const struct health_time *now,
			     struct text *ret);
