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

#define FETCH_SIZE (1 << 20)
#define FETCH_MAX  (FETCH_SIZE / NFT_READ_SIZE * 2)

/* Datagrams that were read ahead, and what the call behind the last of them returned. */
struct fetched {
	size_t n, at;
	ssize_t sizes[FETCH_MAX];
	size_t used, read;
	_Alignas(struct nlmsghdr) char bytes[FETCH_SIZE];
};

struct nft_socket {
	struct mnl_socket *mnl;
	uint32_t sequence;
	size_t send_limit;
	char *buffer;            /* NFT_READ_SIZE */
	struct fetched *fetched; /* NULL: nothing */
	struct nft_socket_host host;
	unsigned int begun;
};

struct nft_socket *nft_socket_free(struct nft_socket *socket)
{
	if (!socket)
		return NULL;
	if (socket->mnl)
		mnl_socket_close(socket->mnl);
	free(socket->buffer);
	free(socket->fetched);
	free(socket);
	return NULL;
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

/* -- the host */

void nft_socket_set_host(struct nft_socket *socket, const struct nft_socket_host *host)
{
	socket->host = *host;
}

int nft_socket_begin(struct nft_socket *socket)
{
	int r = 0;

	if (socket->begun == 0 && socket->host.begin)
		r = socket->host.begin(socket->host.arg);
	socket->begun += r == 0;
	return r;
}

void nft_socket_end(struct nft_socket *socket)
{
	if (--socket->begun == 0 && socket->host.end)
		socket->host.end(socket->host.arg);
}

static int run(const struct nft_socket *socket, void (*job)(void *arg), void *arg)
{
	if (socket->host.run)
		return socket->host.run(socket->host.arg, job, arg);
	job(arg);
	return 0;
}

/* -- reading */

static void fetch(void *arg)
{
	struct nft_socket *socket = arg;
	struct fetched *fetched = socket->fetched;
	ssize_t n = 1;

	while (n > 0 && fetched->n < FETCH_MAX && fetched->used + NFT_READ_SIZE <= FETCH_SIZE) {
		n = nfnetlink_read(socket->mnl, fetched->bytes + fetched->used, NFT_READ_SIZE);
		fetched->sizes[fetched->n++] = n;
		fetched->used += n > 0 ? MNL_ALIGN((size_t)n) : 0;
	}
}

int nft_socket_fetch(struct nft_socket *socket)
{
	if (!socket->host.run || socket->fetched)
		return 0;
	socket->fetched = xmalloc(sizeof(*socket->fetched));
	socket->fetched->n = socket->fetched->at = 0;
	socket->fetched->used = socket->fetched->read = 0;
	return run(socket, fetch, socket);
}

static ssize_t read_fetched(struct nft_socket *socket, const void **ret)
{
	struct fetched *fetched = socket->fetched;
	ssize_t n = fetched->sizes[fetched->at++];

	*ret = fetched->bytes + fetched->read;
	fetched->read += n > 0 ? MNL_ALIGN((size_t)n) : 0;
	return n;
}

ssize_t nft_socket_read(struct nft_socket *socket, const void **ret)
{
	if (socket->fetched && socket->fetched->at < socket->fetched->n)
		return read_fetched(socket, ret);
	free(take(socket->fetched));
	*ret = socket->buffer;
	return nfnetlink_read(socket->mnl, socket->buffer, NFT_READ_SIZE);
}

static void read_rest(void *arg)
{
	struct nft_socket *socket = arg;

	nfnetlink_discard(socket->mnl, socket->buffer, NFT_READ_SIZE);
}

void nft_socket_discard(struct nft_socket *socket)
{
	free(take(socket->fetched));
	(void)run(socket, read_rest, socket);
}

static void forget_answers(struct nft_socket *socket)
{
	free(take(socket->fetched));
	read_rest(socket);
}

/* -- sending */

struct sending {
	struct nft_socket *socket;
	struct iovec *pieces;
	size_t n;
	int result;
};

static void send_now(void *arg)
{
	struct sending *sending = arg;
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct msghdr message = {.msg_name = &kernel,
				 .msg_namelen = sizeof(kernel),
				 .msg_iov = sending->pieces,
				 .msg_iovlen = sending->n};

	while (sendmsg(mnl_socket_get_fd(sending->socket->mnl), &message, 0) < 0) {
		if (errno == EINTR)
			continue;
		sending->result = -errno;
		return;
	}
}

int nft_socket_send(struct nft_socket *socket, struct iovec *pieces, size_t n)
{
	struct sending sending = {socket, pieces, n, 0};

	forget_answers(socket);
	send_now(&sending);
	return sending.result;
}

int nft_socket_send_batch(struct nft_socket *socket, struct iovec *pieces, size_t n)
{
	struct sending sending = {socket, pieces, n, 0};
	int r;

	forget_answers(socket);
	r = run(socket, send_now, &sending);
	return r < 0 ? r : sending.result;
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
