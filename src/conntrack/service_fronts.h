/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which service port a packet was for, by where it went before it was translated: cluster IPs, external
 * and load balancer addresses of both families, and node ports, which are those of any address.
 *
 * Made from the model as it is, in one go (about 2 ms for 10,000 Services), and not changed: a caller that
 * wants to know of later changes makes another. An address and port that two Services ask for
 * belongs to the older one, as with rules.
 */

#include "model/model.h"

struct conntrack_flow;
struct service_fronts;

struct front_owner {
	struct service *service; /* as all here good until service_fronts_free() */
	const struct service_port *port;
};

struct service_fronts *service_fronts_new(const struct model *model);
struct service_fronts *service_fronts_free(struct service_fronts *fronts); /* accepts NULL */

/* Whose it is; NULL: no Service's. The flow need not be translated. */
const struct front_owner *service_fronts_find(const struct service_fronts *fronts,
					      const struct conntrack_flow *flow);

/* All owners are numbered from 0 on. */
size_t service_fronts_count(const struct service_fronts *fronts);
const struct front_owner *service_fronts_owner(const struct service_fronts *fronts, size_t number);
size_t service_fronts_number(const struct service_fronts *fronts, const struct front_owner *owner);

/*
 * "namespace/name:port/protocol", for the caller to free: what a service port is called in messages.
 * The port is its name, or the number if it has none.
 */
char *front_owner_name(const struct front_owner *owner);

#define FRONT_PORT_MAX 64 /* a name of a port, or its number, and NUL */

/* The name of the port, or its number if it has none; cut when it does not fit. */
void front_owner_port(const struct front_owner *owner, char out[static FRONT_PORT_MAX]);
