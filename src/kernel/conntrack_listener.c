/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/conntrack_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <linux/filter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "kernel/nfnetlink.h"

#define RECEIVE_BUFFER (8 << 20) /* some ten thousand flows */
#define AT_ONCE        256       /* of them before the loop gets its turn */
#define DATAGRAM_MAX   4096      /* one flow each */
#define ATTRIBUTES     (NLMSG_HDRLEN + sizeof(struct nfgenmsg)) /* where they begin */

struct conntrack_listener {
	struct mnl_socket *socket;
	struct event *event;
	struct conntrack_listener_events events;
};

static int take_end(const struct nlmsghdr *message, void *arg)
{
	const struct conntrack_listener *listener = arg;
	struct conntrack_flow flow;

	if (message->nlmsg_type == (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE) &&
	    conntrack_decode(message, &flow) == 0 && flow.status & IPS_DST_NAT)
		listener->events.ended(listener->events.arg, &flow);
	return MNL_CB_OK;
}

static void on_readable(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	_Alignas(struct nlmsghdr) char datagram[DATAGRAM_MAX];
	struct conntrack_listener *listener = arg;

	for (int i = 0; i < AT_ONCE; i++) {
		ssize_t n = nfnetlink_read(listener->socket, datagram, sizeof(datagram));

		if (n == 0)
			break;
		if (n < 0)
			listener->events.lost(listener->events.arg);
		else
			mnl_cb_run(datagram, (size_t)n, 0, 0, take_end, listener);
	}
}

/* pass if the attribute CTA_STATUS is there and has the bit, else drop. Loads turn what they read
 * from network order, which is the one that the attribute is in. */
static int leave_out_untranslated(const struct conntrack_listener *listener)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_IMM, ATTRIBUTES),
		BPF_STMT(BPF_LDX | BPF_IMM, CTA_STATUS),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_NLATTR)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, 0),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_IND, NLA_HDRLEN),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, IPS_DST_NAT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog all = {ARRAY_SIZE(program), program};

	return setsockopt(mnl_socket_get_fd(listener->socket), SOL_SOCKET, SO_ATTACH_FILTER, &all,
			  sizeof(all)) < 0
		       ? -errno
		       : 0;
}

static int join(struct conntrack_listener *listener, struct err *err)
{
	int group = NFNLGRP_CONNTRACK_DESTROY;
	int r = leave_out_untranslated(listener);

	if (r < 0)
		return err_sys(err, r, "filtering the notifications of connection tracking");
	if (mnl_socket_setsockopt(listener->socket, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) <
	    0)
		return err_sys(err, -errno, "listening to connection tracking");
	return 0;
}

static void listener_cleanup(struct conntrack_listener **listener)
{
	*listener = conntrack_listener_free(*listener);
}

int conntrack_listener_open(struct event_base *loop, const struct conntrack_listener_events *events,
			    struct conntrack_listener **ret, struct err *err)
{
	attr_cleanup(listener_cleanup) struct conntrack_listener *listener =
		xcalloc(1, sizeof(*listener));
	int r = nfnetlink_open(RECEIVE_BUFFER, &listener->socket, err);

	listener->events = *events;
	if (r >= 0)
		r = join(listener, err);
	if (r < 0)
		return r;
	listener->event = event_new(loop, mnl_socket_get_fd(listener->socket), EV_READ | EV_PERSIST,
				    on_readable, listener);
	if (!listener->event || event_add(listener->event, NULL) < 0)
		return err_set(err, -ENOMEM, "watching the notifications of connection tracking");
	*ret = take(listener);
	return 0;
}

struct conntrack_listener *conntrack_listener_free(struct conntrack_listener *listener)
{
	if (!listener)
		return NULL;
	if (listener->event)
		event_free(listener->event);
	if (listener->socket)
		mnl_socket_close(listener->socket);
	free(listener);
	return NULL;
}
