/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Has nf_tables trace the packets that begin connections of one kind, and hears what it tells of
 * them.
 *
 *	r = nft_tracer_open(&spec, &tracer, err);
 *	... poll(nft_tracer_fd(tracer)) ...
 *	r = nft_tracer_read(tracer, on_event, arg, err);
 *	nft_tracer_free(tracer);
 *
 * It writes one table of its own, and touches nothing else. The table belongs to our socket
 * (NFT_TABLE_F_OWNER, Linux 5.12): no other program can change it, and the kernel removes it when the
 * socket is closed, however the process ends. Its name has the process id, so that several tracers
 * do not meet; NFT_TRACER_PREFIX is common to all of them.
 *
 *	table ip portolan-trace-4711 {
 *		chain prerouting, output          the rule, before all others
 *		chain new-prerouting, new-output  of type nat: only a connection's first packet meets them
 *		chain input, forward              they show the packet as it is after routing
 *		chain delivered, left             the ends of input and postrouting
 *	}
 *
 * All chains but the first two are empty; of each the trace tells that a packet came by. The rule
 * matches packets that begin connections, at a limited rate, so that a busy Service cannot flood us. Of TCP that is a packet with SYN and without ACK, seen before connection
 * tracking; of other protocols one that connection tracking calls new, seen right behind it.
 */

#include "base/addr.h"
#include "base/err.h"
#include "kernel/nft_trace.h"

#define NFT_TRACER_PREFIX "portolan-trace-"
#define NFT_TRACER_RATE \
	10 /* connections that begin to be traced in a second, after the first few */

/* Chains of the table that mean something to a listener: the first one is a prefix. */
#define NFT_TRACER_NEW       "new-"
#define NFT_TRACER_DELIVERED "delivered"
#define NFT_TRACER_LEFT      "left"

struct nft_tracer;

struct nft_tracer_spec {
	enum family family;
	uint8_t protocol;               /* IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP */
	const struct addr *destination; /* NULL: any address of this node */
	uint16_t port;
	const struct addr *source; /* NULL: any */
};

/* -EPERM: CAP_NET_ADMIN is missing; -EOPNOTSUPP: the kernel knows no owned tables, or no trace. */
int nft_tracer_open(const struct nft_tracer_spec *spec, struct nft_tracer **ret, struct err *err);
struct nft_tracer *nft_tracer_free(struct nft_tracer *tracer); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(nft_tracer)
#define cleanup_nft_tracer attr_cleanup(nft_tracer_cleanup)

int nft_tracer_fd(const struct nft_tracer *tracer);
const char *nft_tracer_table(const struct nft_tracer *tracer);

typedef void nft_tracer_fn(void *arg, const struct nft_trace *trace);

/* All that lies in the queue, without waiting: also what is told of packets that others trace. 1 when
 * some was lost because the queue was full. */
int nft_tracer_read(struct nft_tracer *tracer, nft_tracer_fn *fn, void *arg, struct err *err);
