/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a flow is in its life, whatever its protocol. */

#include "kernel/conntrack.h"

enum conntrack_state {
	CONNTRACK_STATE_NONE = 0, /* not told */
	/* TCP, and SCTP where it has the same */
	CONNTRACK_STATE_SYN_SENT,
	CONNTRACK_STATE_SYN_RECV,
	CONNTRACK_STATE_ESTABLISHED,
	CONNTRACK_STATE_FIN_WAIT,
	CONNTRACK_STATE_CLOSE_WAIT,
	CONNTRACK_STATE_LAST_ACK,
	CONNTRACK_STATE_TIME_WAIT,
	CONNTRACK_STATE_CLOSE,
	CONNTRACK_STATE_SYN_SENT2,
	/* SCTP */
	CONNTRACK_STATE_CLOSED,
	CONNTRACK_STATE_COOKIE_WAIT,
	CONNTRACK_STATE_COOKIE_ECHOED,
	CONNTRACK_STATE_SHUTDOWN_SENT,
	CONNTRACK_STATE_SHUTDOWN_RECD,
	CONNTRACK_STATE_SHUTDOWN_ACK_SENT,
	CONNTRACK_STATE_HEARTBEAT_SENT,
	/* UDP, and whatever has no states */
	CONNTRACK_STATE_UNREPLIED, /* no packet came back yet */
	CONNTRACK_STATE_REPLIED,
	CONNTRACK_STATE_ASSURED, /* there was some conversation */
	CONNTRACK_STATE_COUNT,
};

enum conntrack_state conntrack_state_of(const struct conntrack_flow *flow);
const char *conntrack_state_name(enum conntrack_state state); /* "ESTABLISHED" */
