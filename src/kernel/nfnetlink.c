/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nfnetlink.h"

#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#define ANSWERS_BUFFER (4 << 20) /* a limit, not memory */
#define ANSWER_MAX     65536

int nfnetlink_buffer(const struct mnl_socket *socket, int option, int size)
{
	int forced = option == SO_SNDBUF ? SO_SNDBUFFORCE : SO_RCVBUFFORCE;
	int fd = mnl_socket_get_fd(socket);
	int granted = 0;
	socklen_t n = sizeof(granted);

	if (setsockopt(fd, SOL_SOCKET, forced, &size, sizeof(size)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, option, &size, sizeof(size));
	(void)getsockopt(fd, SOL_SOCKET, option, &granted, &n);
	return granted;
}

int nfnetlink_open(int receive_buffer, struct mnl_socket **ret, struct err *err)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	int on = 1;
	int r;

	if (!socket)
		return err_sys(err, -errno, "opening a netlink socket to netfilter");
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		r = -errno;
		mnl_socket_close(socket);
		return err_sys(err, r, "binding a netlink socket to netfilter");
	}
	/* Without these two the errors only say less. */
	(void)mnl_socket_setsockopt(socket, NETLINK_EXT_ACK, &on, sizeof(on));
	(void)mnl_socket_setsockopt(socket, NETLINK_CAP_ACK, &on, sizeof(on));
	if (receive_buffer)
		nfnetlink_buffer(socket, SO_RCVBUF, receive_buffer);
	*ret = socket;
	return 0;
}

ssize_t nfnetlink_read(const struct mnl_socket *socket, void *buffer, size_t size)
{
	struct sockaddr_nl from;
	struct iovec piece = {buffer, size};
	ssize_t n;

	for (;;) {
		struct msghdr message = {.msg_name = &from,
					 .msg_namelen = sizeof(from),
					 .msg_iov = &piece,
					 .msg_iovlen = 1};

		n = recvmsg(mnl_socket_get_fd(socket), &message, MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (message.msg_namelen != sizeof(from) || from.nl_pid != 0 || n == 0)
			continue; /* not from the kernel */
		return (size_t)n > size ? -EMSGSIZE : n;
	}
}

void nfnetlink_discard(const struct mnl_socket *socket, void *buffer, size_t size)
{
	ssize_t n;

	do
		n = nfnetlink_read(socket, buffer, size);
	while (n > 0 || n == -ENOBUFS || n == -EMSGSIZE);
}

struct nlmsghdr *nfnetlink_begin(void *buffer, uint8_t subsystem, uint8_t command, uint8_t family,
				 uint16_t flags, uint32_t sequence)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct nfgenmsg *head;

	message->nlmsg_type = (uint16_t)(subsystem << 8 | command);
	message->nlmsg_flags = NLM_F_REQUEST | flags;
	message->nlmsg_seq = sequence;
	head = mnl_nlmsg_put_extra_header(message, sizeof(*head));
	head->nfgen_family = family;
	head->version = NFNETLINK_V0;
	return message;
}

void nfnetlink_conn_done(struct nfnetlink_conn *line)
{
	if (line->socket)
		mnl_socket_close(take(line->socket));
}

static int read_answers(const struct nfnetlink_conn *line, mnl_cb_t fn, void *arg)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
	int r = MNL_CB_OK;

	while (r > MNL_CB_STOP) {
		ssize_t n = nfnetlink_read(line->socket, answer, sizeof(answer));

		if (n == 0)
			return -EPROTO; /* the kernel has answered by now */
		if (n > 0)
			r = mnl_cb_run(answer, (size_t)n, line->sequence,
				       mnl_socket_get_portid(line->socket), fn, arg);
		if (n < 0 || r < 0) {
			r = n < 0 ? (int)n : -errno;
			nfnetlink_discard(line->socket, answer, sizeof(answer));
		}
	}
	return r;
}

static int ask(struct nfnetlink_conn *line, struct nlmsghdr *message, mnl_cb_t fn, void *arg)
{
	struct err unused; /* the caller says what was asked */
	int r = line->socket ? 0 : nfnetlink_open(ANSWERS_BUFFER, &line->socket, &unused);

	if (r < 0)
		return r;
	message->nlmsg_seq = ++line->sequence;
	if (mnl_socket_sendto(line->socket, message, message->nlmsg_len) < 0)
		return -errno;
	return read_answers(line, fn, arg);
}

int nfnetlink_ask(struct nfnetlink_conn *line, struct nlmsghdr *message, mnl_cb_t fn, void *arg)
{
	struct nfnetlink_conn own = {0};
	int r = ask(line ? line : &own, message, fn, arg);

	nfnetlink_conn_done(&own);
	return r;
}
