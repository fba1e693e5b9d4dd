/* SPDX-License-Identifier: Apache-2.0 */

/*
 * To be woken for a notification costs many times what it costs to read it, and the kernel wakes
 * the process that watches the socket for each. So the loop watches for the first one only: those that come
 * within the PAUSE after it are read together with it. The socket has room for what comes meanwhile,
 * if the kernel gave it as much as was asked for.
 */

#include "kernel/conntrack_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/oom.h"
#include "kernel/nfnetlink.h"

#define PAUSE_NS       (20 * CLOCK_NS_PER_MS)
#define RECEIVE_BUFFER (16 << 20) /* the kernel doubles it: 1,280 bytes for each of 26,000 flows */
#define DATAGRAM_MAX   1024       /* one flow: some 300 */
#define TOGETHER       32         /* datagrams in one call */
#define AT_ONCE        4096       /* before the loop gets its turn: some 5 ms */
#define ATTRIBUTES     (NLMSG_HDRLEN + sizeof(struct nfgenmsg)) /* where they begin */

struct conntrack_listener {
	struct mnl_socket *socket;
	struct event *readable; /* watched unless the pause is on */
	struct event *pause;
	struct conntrack_listener_events events;
	struct mmsghdr heads[TOGETHER];
	struct iovec pieces[TOGETHER];
	struct sockaddr_nl senders[TOGETHER];
	_Alignas(struct nlmsghdr) char datagrams[TOGETHER][DATAGRAM_MAX];
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

/* How many, 0: there is none, or a negative errno. */
static int receive(struct conntrack_listener *listener)
{
	int n;

	for (size_t i = 0; i < TOGETHER; i++)
		listener->heads[i].msg_hdr.msg_namelen = sizeof(listener->senders[i]);
	do
		n = recvmmsg(mnl_socket_get_fd(listener->socket), listener->heads, TOGETHER,
			     MSG_DONTWAIT, NULL);
	while (n < 0 && errno == EINTR);
	return n >= 0 ? n : errno == EAGAIN ? 0 : -errno;
}

static void take_datagram(struct conntrack_listener *listener, size_t i)
{
	const struct mmsghdr *head = &listener->heads[i];

	if (head->msg_hdr.msg_namelen != sizeof(listener->senders[i]) ||
	    listener->senders[i].nl_pid != 0)
		return; /* not from the kernel */
	if (head->msg_hdr.msg_flags & MSG_TRUNC)
		listener->events.lost(listener->events.arg);
	else
		mnl_cb_run(listener->datagrams[i], head->msg_len, 0, 0, take_end, listener);
}

/* Is more there? */
static bool read_some(struct conntrack_listener *listener)
{
	for (int i = 0; i < AT_ONCE / TOGETHER; i++) {
		int n = receive(listener);

		if (n < 0)
			listener->events.lost(listener->events.arg);
		if (n < 0 && n != -ENOBUFS)
			return false;
		for (int k = 0; k < n; k++)
			take_datagram(listener, (size_t)k);
		if (n >= 0 && n < TOGETHER)
			return false;
	}
	return true;
}

static void on_readable(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	const struct conntrack_listener *listener = arg;

	loop_arm(listener->pause, PAUSE_NS);
}

static void on_pause_over(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct conntrack_listener *listener = arg;

	if (read_some(listener))
		loop_arm(listener->pause, 0);
	else if (event_add(listener->readable, NULL) < 0)
		oom("an event", 0);
}

void conntrack_listener_read(struct conntrack_listener *listener)
{
	if (listener)
		read_some(listener);
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

static struct conntrack_listener *listener_new(const struct conntrack_listener_events *events)
{
	struct conntrack_listener *listener = xcalloc(1, sizeof(*listener));

	listener->events = *events;
	for (size_t i = 0; i < TOGETHER; i++) {
		listener->pieces[i] = (struct iovec){listener->datagrams[i], DATAGRAM_MAX};
		listener->heads[i].msg_hdr = (struct msghdr){
			.msg_name = &listener->senders[i],
			.msg_iov = &listener->pieces[i],
			.msg_iovlen = 1,
		};
	}
	return listener;
}

DEFINE_CLEANUP(conntrack_listener)

int conntrack_listener_open(struct event_base *loop, const struct conntrack_listener_events *events,
			    struct conntrack_listener **ret, struct err *err)
{
	attr_cleanup(conntrack_listener_cleanup) struct conntrack_listener *listener =
		listener_new(events);
	int r = nfnetlink_open(RECEIVE_BUFFER, &listener->socket, err);

	if (r >= 0)
		r = join(listener, err);
	if (r < 0)
		return r;
	listener->readable = event_new(loop, mnl_socket_get_fd(listener->socket), EV_READ,
				       on_readable, listener);
	listener->pause = loop_timer(loop, on_pause_over, listener);
	if (!listener->readable || event_add(listener->readable, NULL) < 0)
		return err_set(err, -ENOMEM, "watching the notifications of connection tracking");
	*ret = take(listener);
	return 0;
}

struct conntrack_listener *conntrack_listener_free(struct conntrack_listener *listener)
{
	if (!listener)
		return NULL;
	loop_free(listener->readable);
	loop_free(listener->pause);
	if (listener->socket)
		mnl_socket_close(listener->socket);
	free(listener);
	return NULL;
}
