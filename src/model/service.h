/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A Service as far as a proxy cares: plain data, immutable once built, shared by reference.
 *
 * Sources build it with service_new(), fill it from their input, and hand it to the model.
 * Everything derived from the object that does not depend on this node is derived then (policies,
 * ranges, ports), so that two services compare equal exactly when they ask for the same of a proxy.
 */

#include "base/addr.h"
#include "base/arena.h"

enum protocol {
	PROTOCOL_TCP = 0,
	PROTOCOL_UDP,
	PROTOCOL_SCTP,
	PROTOCOL_COUNT,
};

const char *protocol_name(enum protocol protocol);        /* "tcp" */
const char *protocol_api_name(enum protocol protocol);    /* "TCP" */
uint8_t protocol_number(enum protocol protocol);          /* IPPROTO_* */
int protocol_parse(const char *name, enum protocol *ret); /* "TCP"; -EINVAL for others */

/* When established TCP connections are cut: see conntrack/stale_flows.h. */
enum terminate {
	TERMINATE_UNSET = 0, /* of a Service: as --terminate-connections says */
	TERMINATE_NONE,
	TERMINATE_ENDPOINT_REMOVED,
	TERMINATE_COUNT,
};

/* "none" or "endpoint-removed"; false for others. */
bool terminate_parse(const char *name, enum terminate *ret);

struct service_port {
	const char *name; /* "" when the port has none */
	enum protocol protocol;
	uint16_t port;
	uint16_t node_port; /* 0: none */
};

struct service {
	unsigned int refs;
	struct arena *arena; /* holds this and everything below */

	const char *key; /* "namespace/name" */
	const char *ns;
	const char *name;

	bool has_cluster_ip[FAMILY_COUNT];
	struct addr cluster_ip[FAMILY_COUNT];

	/* of both families, in the object's order; a reader skips what is not its family's */
	struct addr *external_ips;
	struct addr *vips; /* status.loadBalancer.ingress[].ip with ipMode VIP or unset */
	struct prefix *source_ranges; /* masked; a family that held a /0 has none here */
	uint32_t n_external_ips, n_vips, n_source_ranges;

	uint32_t n_ports;
	struct service_port *ports;

	uint32_t sticky_seconds;         /* 0: no affinity */
	uint16_t health_check_node_port; /* only for LoadBalancer with policy Local, else 0 */
	bool external_local;             /* externalTrafficPolicy Local, where it applies */
	bool internal_local;             /* internalTrafficPolicy Local */
	uint32_t created_s;              /* since the epoch; 0: not known */
	uint8_t terminate;               /* enum terminate: what the annotation asks for */
};

/*
 * A service with its three names set; the caller owns the only reference. room: bytes that its ports,
 * their names and its lists will take. A good guess saves memory, nothing else.
 */
struct service *service_new(const char *ns, const char *name, size_t room);
struct service *service_ref(struct service *object);
struct service *service_unref(struct service *object); /* accepts NULL, returns NULL */
/* The port of that name and protocol, which are its identity; NULL when there is none. */
const struct service_port *service_find_port(const struct service *service, const char *name,
					     enum protocol protocol);
/*
 * Do both ask for the same, as one family sees them? Either may be NULL: no such service. The order
 * of ports does not count, that of addresses and ranges does.
 */
bool service_equal(const struct service *a, const struct service *b, enum family family);
/* Is there anything for a proxy of this family to do: a cluster IP and a port? NULL: no. */
bool service_in_family(const struct service *service, enum family family);
