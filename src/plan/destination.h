/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A destination is what a client writes into a packet: an address, protocol and port, or a node port.
 */

#include "plan/plan.h"

struct destination {
	bool node_port;  /* the address does not count */
	bool whole;      /* the address with all its ports; only for looking who uses it */
	bool external;   /* any but the cluster IP */
	bool balancer;   /* a load balancer's IP */
	bool firewalled; /* one with source ranges */
	enum protocol protocol;
	uint16_t port;
	struct addr addr;
};

#define DESTINATION_TEXT_MAX 64

/*
 * "10.96.0.1:80/tcp", "NodePort 30080/tcp", "10.96.0.1" for a whole one: destinations are equal when their
 * texts are.
 */
void destination_print(const struct destination *destination,
		       char out[static DESTINATION_TEXT_MAX]);

typedef void destination_fn(void *arg, const struct destination *destination);

/* All of a Service, port by port; an address that it names twice comes twice. */
void destination_each(const struct service_plan *plan, destination_fn *fn, void *arg);
/* Its addresses, whole: the cluster IP, external IPs, load balancer's IPs. */
void destination_each_address(const struct service_plan *plan, destination_fn *fn, void *arg);
