/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_listener.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/oom.h"
#include "kernel/nfnetlink.h"
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"

/*
 * Why leaving for a while is safe. The kernel counts the generation up within a transaction, under a
 * lock, and sends all its notifications after that, under the same lock, that of the generation last. So
 * who has heard of a generation has heard everything up to it: `heard`. If, after having joined again, the
 * generation is the one that was heard, no program wrote; if it is the next one and we made one,
 * no other did. One that counts it up later sends when we are there again.
 */

#define RECEIVE_BUFFER (16 << 20) /* some ten thousand foreign rules */
#define AT_ONCE        64         /* datagrams before the loop gets its turn */
#define NEWGEN         (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN)
#define PAUSE_AGAIN_NS (60 * CLOCK_NS_PER_SECOND) /* after another program wrote meanwhile */

struct nft_listener {
	struct nft_listener *next;
	struct mnl_socket *mnl;
	struct event *event;
	uint32_t own_port;
	struct nft_listener_events events;
	void *arg;
	bool reading, held;
	char *buffer;   /* NFT_READ_SIZE */
	uint32_t heard; /* generation up to which nothing is missing; 0: not known */
	uint64_t space; /* number of the network namespace */
	int64_t pause_from_ns;
};

static struct nft_listener *listeners; /* all of this process */

/* -- a datagram */

static void take_generation(const struct nft_listener_events *events, void *arg, bool own,
			    const struct nlmsghdr *message)
{
	const char *process = nft_message_string(message, NFTA_GEN_PROC_NAME);
	uint32_t id = 0, pid = 0;

	nft_message_u32(message, NFTA_GEN_ID, &id);
	nft_message_u32(message, NFTA_GEN_PROC_PID, &pid);
	if (own)
		events->own_generation(arg, id);
	else
		events->generation(arg, id, pid, process ? process : "");
}

bool nft_listener_take(const struct nft_listener_events *events, void *arg, uint32_t own_port,
		       const void *data, size_t n)
{
	struct nft_datagram datagram = {data, n, false};
	const struct nlmsghdr *message;

	while ((message = nft_datagram_next(&datagram))) {
		bool own = message->nlmsg_pid == own_port;
		int type = nft_message_type(message);

		if (type == NFT_MSG_NEWGEN)
			take_generation(events, arg, own, message);
		else if (type >= 0 && !own)
			events->message(arg, message);
	}
	return !datagram.broken;
}

/* -- the queue */

static ssize_t read_one(struct nft_listener *listener)
{
	return nfnetlink_read(listener->mnl, listener->buffer, NFT_READ_SIZE);
}

/* The kernel sends nothing more until the queue is empty, and does not say again that something
 * is missing. */
static void start_over(struct nft_listener *listener)
{
	ssize_t n;

	do
		n = read_one(listener);
	while (n > 0 || n == -ENOBUFS || n == -EMSGSIZE);
	listener->heard = 0;
	listener->events.lost(listener->arg);
}

static void hear_message(void *arg, const struct nlmsghdr *message)
{
	struct nft_listener *listener = arg;

	listener->events.message(listener->arg, message);
}

static void hear_generation(void *arg, uint32_t id, uint32_t pid, const char *process)
{
	struct nft_listener *listener = arg;

	listener->heard = id;
	listener->events.generation(listener->arg, id, pid, process);
}

static void hear_own_generation(void *arg, uint32_t id)
{
	struct nft_listener *listener = arg;

	listener->heard = id;
	listener->events.own_generation(listener->arg, id);
}

static const struct nft_listener_events hear = {
	.message = hear_message,
	.generation = hear_generation,
	.own_generation = hear_own_generation,
};

/* Up to `most` datagrams. */
static void read_queue(struct nft_listener *listener, size_t most)
{
	ssize_t n = 1;

	assert(!listener->reading);
	listener->reading = true;
	for (size_t i = 0; i < most && n > 0; i++) {
		n = read_one(listener);
		if (n == 0)
			break;
		if (n < 0 || !nft_listener_take(&hear, listener, listener->own_port,
						listener->buffer, (size_t)n))
			start_over(listener);
	}
	listener->reading = false;
}

void nft_listener_drain(struct nft_listener *listener)
{
	read_queue(listener, SIZE_MAX);
}

void nft_listener_hold(struct nft_listener *listener, bool held)
{
	listener->held = held;
	if (!listener->event)
		return;
	if (held)
		event_del(listener->event);
	else
		loop_resume(listener->event);
}

static void on_readable(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	read_queue(arg, AT_ONCE);
}

/* -- opening and closing */

/* drop if nlmsg_pid == own port and nlmsg_type != NEWGEN. A datagram holds messages of one
 * transaction, and a generation comes alone: the first message stands for all. Loads turn what they
 * read from network order, so the constants are turned as well. */
static int leave_out_own(const struct nft_listener *listener)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_pid)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(listener->own_port), 0, 2),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_type)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(NEWGEN), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog all = {ARRAY_SIZE(program), program};

	return setsockopt(mnl_socket_get_fd(listener->mnl), SOL_SOCKET, SO_ATTACH_FILTER, &all,
			  sizeof(all)) < 0
		       ? -errno
		       : 0;
}

static int set_membership(const struct nft_listener *listener, int option)
{
	int group = NFNLGRP_NFTABLES;

	return mnl_socket_setsockopt(listener->mnl, option, &group, sizeof(group)) < 0 ? -errno : 0;
}

static int join(struct nft_listener *listener, struct err *err)
{
	int r = leave_out_own(listener);

	if (r < 0)
		return err_sys(err, r, "filtering the notifications of nf_tables");
	r = set_membership(listener, NETLINK_ADD_MEMBERSHIP);
	if (r < 0)
		return err_sys(err, r, "listening to the notifications of nf_tables");
	return 0;
}

/* 0 where the kernel does not say. */
static uint64_t namespace_of(const struct mnl_socket *mnl)
{
	uint64_t cookie = 0;
	socklen_t size = sizeof(cookie);

	if (getsockopt(mnl_socket_get_fd(mnl), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) < 0)
		return 0;
	return cookie;
}

int nft_listener_open(struct event_base *loop, uint32_t own_port,
		      const struct nft_listener_events *events, void *arg,
		      struct nft_listener **ret, struct err *err)
{
	cleanup_nft_listener struct nft_listener *listener = xcalloc(1, sizeof(*listener));
	int r;

	listener->buffer = xmalloc(NFT_READ_SIZE);
	listener->own_port = own_port;
	listener->events = *events;
	listener->arg = arg;
	r = nfnetlink_open(RECEIVE_BUFFER, &listener->mnl, err);
	if (r == 0)
		r = join(listener, err);
	if (r < 0)
		return r;
	if (loop)
		listener->event = loop_watch(loop, mnl_socket_get_fd(listener->mnl),
					     EV_READ | EV_PERSIST, on_readable, listener);
	listener->space = namespace_of(listener->mnl);
	listener->next = listeners;
	listeners = listener;
	*ret = take(listener);
	return 0;
}

static void unlist(const struct nft_listener *listener)
{
	for (struct nft_listener **link = &listeners; *link; link = &(*link)->next) {
		if (*link == listener) {
			*link = listener->next;
			return;
		}
	}
}

struct nft_listener *nft_listener_free(struct nft_listener *listener)
{
	if (!listener)
		return NULL;
	unlist(listener);
	loop_free(listener->event);
	if (listener->mnl)
		mnl_socket_close(listener->mnl);
	free(listener->buffer);
	free(listener);
	return NULL;
}

/* -- leaving for a while */

/* The next listener in that namespace, from the first or the one behind another on. */
static struct nft_listener *mate(struct nft_listener *from, const struct nft_listener *of)
{
	while (from && from->space != of->space)
		from = from->next;
	return from;
}

bool nft_listener_pause(struct nft_listener *listener)
{
	bool sure = clock_now_ns() >= listener->pause_from_ns;
	struct nft_listener *one;

	for (one = mate(listeners, listener); one; one = mate(one->next, listener))
		sure &= one == listener || !one->held;
	for (one = mate(listeners, listener); one && sure; one = mate(one->next, listener)) {
		nft_listener_drain(one);
		sure &= one->heard != 0;
	}
	if (!sure)
		return false;
	for (one = mate(listeners, listener); one; one = mate(one->next, listener))
		(void)set_membership(one, NETLINK_DROP_MEMBERSHIP); /* who stays hears more */
	return true;
}

static void tell_own(struct nft_listener *listener, const struct nft_listener *writer, uint32_t id)
{
	if (listener == writer)
		hear_own_generation(listener, id);
	else
		hear_generation(listener, id, (uint32_t)getpid(), program_invocation_short_name);
}

void nft_listener_resume(struct nft_listener *listener, struct nft_socket *socket,
			 enum nft_pause outcome)
{
	bool made = outcome == NFT_PAUSE_NEXT;
	struct nft_listener *one;
	struct err err;
	uint32_t now;
	bool known;

	for (one = mate(listeners, listener); one; one = mate(one->next, listener))
		if (set_membership(one, NETLINK_ADD_MEMBERSHIP) < 0)
			oom("a netlink group", 0);
	known = nft_generation(socket, &now, &err) == 0 && outcome != NFT_PAUSE_UNKNOWN;
	for (one = mate(listeners, listener); one; one = mate(one->next, listener)) {
		if (!known || now != one->heard + made) {
			listener->pause_from_ns = clock_now_ns() + PAUSE_AGAIN_NS;
			start_over(one);
		} else if (made) {
			tell_own(one, listener, now);
		}
	}
}
