/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/conntrack_state.h"

#include <assert.h>
#include <linux/in.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_sctp.h>
#include <linux/netfilter/nf_conntrack_tcp.h>

#define STATE(name) [CONNTRACK_STATE_##name] = #name

static const char *const names[] = {
	STATE(NONE),           STATE(SYN_SENT),      STATE(SYN_RECV),      STATE(ESTABLISHED),
	STATE(FIN_WAIT),       STATE(CLOSE_WAIT),    STATE(LAST_ACK),      STATE(TIME_WAIT),
	STATE(CLOSE),          STATE(SYN_SENT2),     STATE(CLOSED),        STATE(COOKIE_WAIT),
	STATE(COOKIE_ECHOED),  STATE(SHUTDOWN_SENT), STATE(SHUTDOWN_RECD), STATE(SHUTDOWN_ACK_SENT),
	STATE(HEARTBEAT_SENT), STATE(UNREPLIED),     STATE(REPLIED),       STATE(ASSURED),
};

static_assert(ARRAY_SIZE(names) == CONNTRACK_STATE_COUNT, "one name for each state");
/* TCP's have the kernel's own numbers. */
static_assert((int)CONNTRACK_STATE_CLOSE == (int)TCP_CONNTRACK_CLOSE &&
		      (int)CONNTRACK_STATE_SYN_SENT2 == (int)TCP_CONNTRACK_SYN_SENT2,
	      "the order of the kernel");

static const uint8_t sctp[] = {
	[SCTP_CONNTRACK_NONE] = CONNTRACK_STATE_NONE,
	[SCTP_CONNTRACK_CLOSED] = CONNTRACK_STATE_CLOSED,
	[SCTP_CONNTRACK_COOKIE_WAIT] = CONNTRACK_STATE_COOKIE_WAIT,
	[SCTP_CONNTRACK_COOKIE_ECHOED] = CONNTRACK_STATE_COOKIE_ECHOED,
	[SCTP_CONNTRACK_ESTABLISHED] = CONNTRACK_STATE_ESTABLISHED,
	[SCTP_CONNTRACK_SHUTDOWN_SENT] = CONNTRACK_STATE_SHUTDOWN_SENT,
	[SCTP_CONNTRACK_SHUTDOWN_RECD] = CONNTRACK_STATE_SHUTDOWN_RECD,
	[SCTP_CONNTRACK_SHUTDOWN_ACK_SENT] = CONNTRACK_STATE_SHUTDOWN_ACK_SENT,
	[SCTP_CONNTRACK_HEARTBEAT_SENT] = CONNTRACK_STATE_HEARTBEAT_SENT,
	[SCTP_CONNTRACK_HEARTBEAT_ACKED] = CONNTRACK_STATE_ESTABLISHED,
};

enum conntrack_state conntrack_state_of(const struct conntrack_flow *flow)
{
	if (flow->protocol == IPPROTO_TCP)
		return flow->state <= CONNTRACK_STATE_SYN_SENT2 ? (enum conntrack_state)flow->state
								: CONNTRACK_STATE_NONE;
	if (flow->protocol == IPPROTO_SCTP)
		return flow->state < ARRAY_SIZE(sctp) ? (enum conntrack_state)sctp[flow->state]
						      : CONNTRACK_STATE_NONE;
	if (!(flow->status & IPS_SEEN_REPLY))
		return CONNTRACK_STATE_UNREPLIED;
	return flow->status & IPS_ASSURED ? CONNTRACK_STATE_ASSURED : CONNTRACK_STATE_REPLIED;
}

const char *conntrack_state_name(enum conntrack_state state)
{
	return names[state];
}
