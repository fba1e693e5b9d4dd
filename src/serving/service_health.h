/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The health check ports of Services, for one family: load balancers ask there whether this node
 * has endpoints of a Service with external policy Local.
 *
 * A Service has one port, and a server on each address that node ports are served on. Ports that are
 * no longer wanted are closed at once, new ones are opened together when all wishes are known: a
 * Service may claim what another one gives up in the same sync. A port that cannot be opened
 * (another program has it, or file descriptors are short) is reported once and tried again with each service_health_open(). Any path
 * and method is answered: 200 when there are local endpoints and the proxy keeps up, else 503.
 */

#include "base/addr.h"
#include "base/err.h"

struct connection_budget;
struct event_base;
struct service_health;

struct service_health_config {
	enum family family;
	/* where to listen, if it is limited; else on all addresses of the node */
	bool limited;
	const struct addr *addresses;
	size_t n_addresses;
	struct connection_budget *budget; /* borrowed; NULL: for each port alone */
	bool (*proxy_is_good)(void *arg);
	/* A port could not be opened; called once until it could, or the Service changed. */
	void (*failed)(void *arg, const char *ns, const char *name, uint16_t port,
		       const struct err *err);
	void *arg;
};

/* config is copied, with its addresses. */
struct service_health *service_health_new(struct event_base *loop,
					  const struct service_health_config *config);
struct service_health *service_health_free(struct service_health *health); /* accepts NULL */

/* What a Service wants now; port 0: none any more. Closes its port if that is another one. */
void service_health_set(struct service_health *health, const char *ns, const char *name,
			uint16_t port, size_t local_endpoints);
void service_health_open(struct service_health *health); /* all ports that are not open yet */
/* Keys of the Services with a port, open or not; as map_next_key(). */
const char *service_health_next(const struct service_health *health, size_t *at);
size_t service_health_count(const struct service_health *health); /* Services with an open port */
