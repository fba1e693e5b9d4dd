/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nfnetlink.h"

#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

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
