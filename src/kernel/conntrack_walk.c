/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A dump is made by the kernel while it is read: what fits one datagram, each time that one has been
 * taken from the socket. So a walk that pauses costs nothing but the socket, and the kernel goes on
 * from the bucket where it stopped.
 *
 * The status is compared by the kernel since Linux 5.15; an older one hands over all flows, hence it
 * is compared here too.
 */

#include "kernel/conntrack_walk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/loop.h"
#include "kernel/nfnetlink.h"

#define DATAGRAM_MAX 32768 /* as much as the kernel ever makes: some 150 flows */
#define SLICE        8     /* datagrams */

struct conntrack_walk {
	struct conntrack_walk_config config;
	struct mnl_socket *socket;
	uint32_t sequence;
	bool read_out; /* nothing is left in the socket */
	struct event *next;
	struct conntrack_walk_result result;
	struct err err;
	_Alignas(struct nlmsghdr) char datagram[DATAGRAM_MAX];
};

static int take_flow(const struct nlmsghdr *message, void *arg)
{
	struct conntrack_walk *walk = arg;
	struct conntrack_flow flow;

	if (conntrack_decode(message, &flow) < 0 ||
	    (flow.status & walk->config.status) != walk->config.status)
		return MNL_CB_OK;
	walk->result.flows++;
	walk->config.flow(walk->config.arg, &flow);
	return MNL_CB_OK;
}

/* 1: there is more, 0: that was all, or a negative errno. */
static int read_datagram(struct conntrack_walk *walk)
{
	ssize_t n = nfnetlink_read(walk->socket, walk->datagram, sizeof(walk->datagram));
	int r;

	if (n <= 0)
		return n == 0 ? -ENODATA : (int)n;
	r = mnl_cb_run(walk->datagram, (size_t)n, walk->sequence,
		       mnl_socket_get_portid(walk->socket), take_flow, walk);
	walk->read_out = r == MNL_CB_STOP;
	if (r < 0 && errno == EINTR) {
		walk->result.incomplete = true;
		return 0;
	}
	return r < 0 ? -errno : r > MNL_CB_STOP;
}

static bool is_enough(const struct conntrack_walk *walk)
{
	return walk->config.most && walk->result.flows >= walk->config.most;
}

static int read_slice(struct conntrack_walk *walk)
{
	int r = 1;

	for (int i = 0; i < SLICE && r > 0; i++)
		r = is_enough(walk) ? 0 : read_datagram(walk);
	return r;
}

static void on_next(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct conntrack_walk *walk = arg;
	int64_t begun;
	int r;

	if (walk->config.slice)
		walk->config.slice(walk->config.arg);
	begun = clock_cpu_ns();
	r = read_slice(walk);
	walk->result.spent_ns += clock_cpu_ns() - begun;
	if (r > 0) {
		loop_arm(walk->next, 0);
		return;
	}
	if (r < 0) {
		walk->result.error =
			err_sys(&walk->err, r, "reading the connection tracking table");
		walk->result.words = walk->err.text;
	}
	walk->config.done(walk->config.arg, &walk->result);
}

/* conntrack -L, with the status only when one is asked for */
static int ask(struct conntrack_walk *walk, struct err *err)
{
	_Alignas(struct nlmsghdr) char buffer[256];
	struct nlmsghdr *message = nfnetlink_begin(buffer, NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_GET,
						   AF_UNSPEC, NLM_F_DUMP, walk->sequence);

	if (walk->config.status) {
		mnl_attr_put_u32(message, CTA_STATUS, htonl(walk->config.status));
		mnl_attr_put_u32(message, CTA_STATUS_MASK, htonl(walk->config.status));
	}
	if (mnl_socket_sendto(walk->socket, message, message->nlmsg_len) < 0)
		return err_sys(err, -errno, "asking for the connection tracking table");
	return 0;
}

static int get_socket(struct conntrack_walk *walk, struct err *err)
{
	struct nfnetlink_conn *line = walk->config.line;

	walk->sequence = line ? ++line->sequence : 1;
	if (line)
		walk->socket = take(line->socket);
	return walk->socket ? 0 : nfnetlink_open(0, &walk->socket, err);
}

static void leave_socket(struct conntrack_walk *walk)
{
	struct nfnetlink_conn *line = walk->config.line;

	if (walk->read_out && line && !line->socket)
		line->socket = take(walk->socket);
	if (walk->socket)
		mnl_socket_close(walk->socket);
}

DEFINE_CLEANUP(conntrack_walk)

int conntrack_walk_start(struct event_base *loop, const struct conntrack_walk_config *config,
			 struct conntrack_walk **ret, struct err *err)
{
	attr_cleanup(conntrack_walk_cleanup) struct conntrack_walk *walk =
		xcalloc(1, sizeof(*walk));
	int r;

	walk->config = *config;
	walk->result.words = "";
	r = get_socket(walk, err);
	if (r >= 0)
		r = ask(walk, err);
	if (r < 0)
		return r;
	walk->next = loop_timer(loop, on_next, walk);
	loop_arm(walk->next, 0);
	*ret = take(walk);
	return 0;
}

struct conntrack_walk *conntrack_walk_free(struct conntrack_walk *walk)
{
	if (!walk)
		return NULL;
	loop_free(walk->next);
	leave_socket(walk);
	free(walk);
	return NULL;
}
