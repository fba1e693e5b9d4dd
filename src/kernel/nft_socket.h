/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A netlink socket to nf_tables, for questions (here and in nft_dump.h) and for transactions
 * (nft_batch.h). One at a time: a callback must not use the socket that calls it.
 *
 * The kernel answers while it is asked: by the time sendmsg() returns, all of the answer (of a dump:
 * its first piece, the next while one is read) lies in the receive queue. So the time that an answer takes is spent
 * in sendmsg() or recvmsg(). Questions are answered at once, whatever else the kernel does; a transaction and the rest
 * of a long list take their time, and a socket with a host (nft_session.h) waits for those on another thread.
 */

#include <sys/types.h>

#include "base/err.h"

struct nft_socket;
struct nlmsghdr;
struct iovec;

/* In the network namespace of the caller. */
int nft_socket_open(struct nft_socket **ret, struct err *err);
struct nft_socket *nft_socket_free(struct nft_socket *socket); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(nft_socket)

#define cleanup_nft_socket attr_cleanup(nft_socket_cleanup)

/* The socket's address. Notifications about what was written through it carry it as nlmsg_pid. */
uint32_t nft_socket_port(const struct nft_socket *socket);
/* How many bytes one transaction may have. Without CAP_NET_ADMIN net.core.wmem_max decides. */
size_t nft_socket_send_limit(const struct nft_socket *socket);

/* nft monitor's number: it grows with every transaction in the namespace that changed something. */
int nft_generation(struct nft_socket *socket, uint32_t *ret, struct err *err);

struct nft_socket_host {
	/* Runs the job, and returns when it is done; negative: it was not run, the socket is about to be closed. */
	int (*run)(void *arg, void (*job)(void *job_arg), void *job_arg);
	/* Between these two no other socket with a host writes; negative as above. */
	int (*begin)(void *arg);
	void (*end)(void *arg);
	void *arg;
};

void nft_socket_set_host(struct nft_socket *socket,
			 const struct nft_socket_host *host); /* copied */
/* The host's; may be nested. */
int nft_socket_begin(struct nft_socket *socket);
void nft_socket_end(struct nft_socket *socket);

/* -- for nft_batch.c and nft_dump.c */

#define NFT_READ_SIZE 65536 /* always the same: a larger read would make later answers larger */

/* A fresh sequence number. */
uint32_t nft_socket_sequence(struct nft_socket *socket);
/* Reads the rest of a list that is not wanted any more, with the help of the host. */
void nft_socket_discard(struct nft_socket *socket);
/* Forgets earlier answers and sends a question. 0 or a negative errno. */
int nft_socket_send(struct nft_socket *socket, struct iovec *pieces, size_t n);
/* A transaction, with the help of the host. */
int nft_socket_send_batch(struct nft_socket *socket, struct iovec *pieces, size_t n);
/* The host reads a part of a long list; the next calls of nft_socket_read() return it. Without a host nothing. */
int nft_socket_fetch(struct nft_socket *socket);
/* One datagram of the kernel, in *ret until the next call. Its size; 0: the queue is empty; -ENOBUFS:
 * some were lost, read on; -EMSGSIZE: this one was too large and is lost. */
ssize_t nft_socket_read(struct nft_socket *socket, const void **ret);
