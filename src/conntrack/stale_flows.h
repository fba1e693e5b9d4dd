/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Flows that connection tracking still sends where no rule would send them any more.
 *
 * Rules decide on the first packet of a flow only. A TCP connection to a pod that is gone ends by
 * itself; a UDP flow has no end as long as its client sends (DNS resolvers that keep one socket do),
 * so it is sent into the void for ever. After each good sync the flows of the services concerned
 * are judged:
 *
 *   - UDP to an address and port of a service: stale unless it goes to an endpoint that serves
 *     (terminating or not; policies and hints do not count, as for TCP). Never translated counts as
 *     stale too: the first packet came before there were endpoints.
 *   - UDP to a NodePort of a service without any endpoint that serves: stale if it goes to one that
 *     the service has, or had before this sync. A NodePort is a port of any address, so who else
 *     translates it, or what goes to that port of another host, is none of our business. (kube-proxy
 *     leaves all of these until there is an endpoint.)
 *   - UDP to an address and port that no service has any more: stale if it was translated; to such a
 *     NodePort as above. (kube-proxy v1.37 leaves these.)
 *   - TCP, only if asked for (--terminate-connections, or the Service's annotation): to an endpoint
 *     that has left the service altogether. One that terminates keeps its connections to the end.
 *
 * A client of TCP whose flow is gone learns of it with its next packet: connection tracking takes that
 * for a new flow in the middle (sysctl nf_conntrack_tcp_loose, which is on), the rules send it to
 * another endpoint, which knows nothing of it and answers with a reset. Where no endpoint is left it is
 * refused with an ICMP error, which an established connection outlives until it gives up sending.
 *
 * Only services with such ports are remembered, and only their addresses and endpoints. An address that a Service asks
 * for and does not have, because it is another one's or because a gate hides external IPs, is no address of it: whatever a
 * tenant writes, flows of other Services stay.
 */

#include "base/err.h"
#include "model/model.h"

struct conntrack_flow;
struct nfnetlink_conn;
struct stale_flows;

/* What the rules of a good sync are about. */
struct stale_flows_rules {
	const struct model *model; /* its endpoints */
	/* NULL: there is no such Service */
	const struct service *(*service)(const void *arg, const char *key);
	/* Which Service has the address and port; addr NULL: the NodePort. NULL: none */
	const struct service *(*owner)(const void *arg, enum protocol protocol,
				       const struct addr *addr, uint16_t port);
	const void *arg;
};

/* terminate: for Services that do not say it themselves. */
struct stale_flows *stale_flows_new(enum family family, enum terminate terminate);
struct stale_flows *stale_flows_free(struct stale_flows *flows); /* accepts NULL, returns NULL */

/* Keys of the services that are remembered; as map_next_key(). */
const char *stale_flows_next(const struct stale_flows *flows, size_t *at);

/* -- what changed is noted, then flows are judged by it, and deleted. */

/*
 * Looks at services (keys, each once) that a good sync was about: all that changed, or got or lost an address. Replaces
 * what was judged by before, or adds to what was put off or could not be finished. False: no flow can be stale.
 */
bool stale_flows_prepare(struct stale_flows *flows, const struct stale_flows_rules *rules,
			 const char *const *services, size_t n_services);
bool stale_flows_judge(const struct stale_flows *flows, const struct conntrack_flow *flow);
/* Deleting comes later: until then the next syncs add to what is judged by. */
void stale_flows_defer(struct stale_flows *flows);
/*
 * Judges all there are, and forgets what it judged by. Returns how many were deleted. After an error
 * nothing is forgotten, up to a bound: what the next sync is about is judged together with it. line: see
 * nfnetlink_ask().
 */
int stale_flows_delete(struct stale_flows *flows, struct nfnetlink_conn *line, struct err *err);
