/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_socket.h"

#include <errno.h>
#include <limits.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "kernel/nfnetlink.h"
#include "kernel/nft_message.h"

/*
 * Both buffer sizes are limits, not memory. The kernel refuses a transaction that is larger than the
 * send buffer (EMSGSIZE), and drops answers beyond the receive buffer: the echoes of a transaction
 * all come at once.
 */

#define SEND_BUFFER    (INT_MAX / 2) /* the kernel doubles it */
#define RECEIVE_BUFFER (256 << 20)
#define SEND_OVERHEAD  32 /* what the kernel sets aside of the send buffer */

struct nft_socket {
	struct mnl_socket *mnl;
	uint32_t sequence;
	size_t send_limit;
	char *buffer; /* NFT_READ_SIZE */
};

struct nft_socket *nft_socket_free(struct nft_socket *socket)
{
	if (!socket)
		return NULL;
	if (socket->mnl)
		mnl_socket_close(socket->mnl);
	free(socket->buffer);
	free(socket);
	return NULL;
}

void nft_socket_cleanup(struct nft_socket **socket)
{
	*socket = nft_socket_free(*socket);
}

int nft_socket_open(struct nft_socket **ret, struct err *err)
{
	cleanup_nft_socket struct nft_socket *socket = xcalloc(1, sizeof(*socket));
	int granted;
	int r = nfnetlink_open(RECEIVE_BUFFER, &socket->mnl, err);

	if (r < 0)
		return r;
	socket->buffer = xmalloc(NFT_READ_SIZE);
	granted = nfnetlink_buffer(socket->mnl, SO_SNDBUF, SEND_BUFFER);
	socket->send_limit = (size_t)MAX(granted, SEND_OVERHEAD) - SEND_OVERHEAD;
	*ret = take(socket);
	return 0;
}

uint32_t nft_socket_port(const struct nft_socket *socket)
{
	return mnl_socket_get_portid(socket->mnl);
}

size_t nft_socket_send_limit(const struct nft_socket *socket)
{
	return socket->send_limit;
}

uint32_t nft_socket_sequence(struct nft_socket *socket)
{
	return ++socket->sequence;
}

ssize_t nft_socket_read(struct nft_socket *socket, const void **ret)
{
	*ret = socket->buffer;
	return nfnetlink_read(socket->mnl, socket->buffer, NFT_READ_SIZE);
}

void nft_socket_discard(struct nft_socket *socket)
{
	nfnetlink_discard(socket->mnl, socket->buffer, NFT_READ_SIZE);
}

int nft_socket_send(struct nft_socket *socket, struct iovec *pieces, size_t n)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct msghdr message = {.msg_name = &kernel,
				 .msg_namelen = sizeof(kernel),
				 .msg_iov = pieces,
				 .msg_iovlen = n};

	nft_socket_discard(socket);
	while (sendmsg(mnl_socket_get_fd(socket->mnl), &message, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* The answer to GETGEN: 1 when it was in the datagram. */
static int take_generation(const void *data, size_t n, uint32_t *ret)
{
	struct nft_datagram datagram = {data, n, false};
	const struct nlmsghdr *message;
	struct nft_error error;

	while ((message = nft_datagram_next(&datagram))) {
		if (nft_message_type(message) == NFT_MSG_NEWGEN)
			return nft_message_u32(message, NFTA_GEN_ID, ret) ? 1 : -EBADMSG;
		if (nft_message_error(message, &error) == 0 && error.code < 0)
			return error.code;
	}
	return 0;
}

int nft_generation(struct nft_socket *socket, uint32_t *ret, struct err *err)
{
	uint32_t request[16];
	const void *data;
	ssize_t n;
	int r;

	nfnetlink_begin(request, NFNL_SUBSYS_NFTABLES, NFT_MSG_GETGEN, AF_UNSPEC, 0,
			nft_socket_sequence(socket));
	r = nft_socket_send(socket, &(struct iovec){request, request[0]}, 1);
	while (r == 0 && (n = nft_socket_read(socket, &data)) != 0)
		r = n < 0 ? (int)n : take_generation(data, (size_t)n, ret);
	if (r == 0)
		r = -EPROTO; /* the kernel never leaves it out */
	return r < 0 ? err_sys(err, r, "asking nf_tables for its generation") : 0;
}
