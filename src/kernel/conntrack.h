/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel's connection tracking table, over ctnetlink: reading flows that fit a filter, deleting
 * single ones, and what the table says of itself. conntrack_walk.h reads without waiting,
 * conntrack_listener.h hears of flows that end.
 *
 * The filter is the kernel's own (since Linux 5.8) but for IPv6 addresses: flows that do not fit are
 * never copied. Reading is not atomic: flows may come and go meanwhile, and one may be reported
 * twice. line: see nfnetlink_ask().
 */

#include "base/addr.h"
#include "base/err.h"

struct nfnetlink_conn;
struct nlmsghdr;

struct conntrack_tuple {
	struct addr src, dst;
	uint16_t src_port, dst_port; /* 0 for protocols without */
};

enum conntrack_dir {
	CONNTRACK_ORIGINAL = 0,
	CONNTRACK_REPLY,
	CONNTRACK_DIR_COUNT,
};

struct conntrack_flow {
	uint8_t protocol; /* IPPROTO_* */
	struct conntrack_tuple original;
	struct conntrack_tuple reply;
	uint32_t status; /* IPS_* bits */
	uint32_t id;
	uint16_t zone;
	uint8_t state;      /* of TCP and SCTP, in the kernel's numbers: see conntrack_state.h */
	uint32_t timeout_s; /* until it is forgotten, if no packet comes */
	bool counted;       /* it began while nf_conntrack_acct was on; if not, what follows is 0 */
	uint64_t packets[CONNTRACK_DIR_COUNT];
	uint64_t bytes[CONNTRACK_DIR_COUNT]; /* with their IP headers */
};

struct conntrack_filter {
	enum family family;
	uint8_t protocol;       /* 0: any */
	const struct addr *dst; /* of the original direction; NULL: any */
	uint16_t dst_port;      /* likewise; 0: any. Only with a protocol */
	bool once;              /* a list that was disturbed is not begun again */
};

typedef void conntrack_flow_fn(void *arg, const struct conntrack_flow *flow);

/*
 * 0, or 1 when the table was rearranged meanwhile, so often that some flows may have been missed. Unless
 * it is asked for `once`, flows are then reported again.
 */
int conntrack_dump(struct nfnetlink_conn *line, const struct conntrack_filter *filter,
		   conntrack_flow_fn *fn, void *arg, struct err *err);
/* Deletes that very flow: 1, or 0 when it is gone already (or another has its place). */
int conntrack_delete(struct nfnetlink_conn *line, const struct conntrack_flow *flow,
		     struct err *err);

struct conntrack_stats {
	uint64_t entries;
	uint64_t max;
	/* since the kernel started, over all CPUs */
	uint64_t insert_failed; /* races lost between two packets of one flow */
	uint64_t drop;          /* packets dropped because there was no room */
	uint64_t early_drop;    /* flows removed to make room */
};

int conntrack_stats(struct nfnetlink_conn *line, struct conntrack_stats *ret, struct err *err);

/* A message of the kernel, of a flow that is there or (IPCTNL_MSG_CT_DELETE) just went; -EBADMSG when
 * it is no flow. Lengths are not trusted. */
int conntrack_decode(const struct nlmsghdr *message, struct conntrack_flow *ret);
