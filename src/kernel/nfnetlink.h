/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What all netlink sockets to netfilter (nf_tables, nfacct, connection tracking) have in common. */

#include <libmnl/libmnl.h>

#include "base/err.h"

/* Bound to an address of its own, with extended error reports that do not repeat what was sent.
 * receive_buffer: how many bytes of answers the kernel may hold for it, as far as it allows that;
 * 0: as it pleases. */
int nfnetlink_open(int receive_buffer, struct mnl_socket **ret, struct err *err);

/* Asks for a buffer of `size` bytes (the kernel doubles it), with force if CAP_NET_ADMIN lets us; what
 * the kernel granted, in its own (doubled) bytes. option: SO_SNDBUF or SO_RCVBUF. */
int nfnetlink_buffer(const struct mnl_socket *socket, int option, int size);

/* One datagram of the kernel, without waiting. Its size; 0: there is none; -ENOBUFS: some were lost,
 * read on for the others; -EMSGSIZE: it is larger than the buffer, and lost; another errno. */
ssize_t nfnetlink_read(const struct mnl_socket *socket, void *buffer, size_t size);

/* Reads what is there and drops it; a dump that broke off goes on being made as it is read. */
void nfnetlink_discard(const struct mnl_socket *socket, void *buffer, size_t size);

/* The head of a message, at the start of an aligned buffer; attributes come next. */
struct nlmsghdr *nfnetlink_begin(void *buffer, uint8_t subsystem, uint8_t command, uint8_t family,
				 uint16_t flags, uint32_t sequence);

/*
 * Questions that the kernel answers at once, over a socket that is opened for the first one and kept.
 * A caller that asks again and again keeps one: closing a socket to netfilter waits until nf_tables has
 * freed what the transactions before removed, which takes a grace period of RCU (some 10 ms, and
 * several times that on a busy machine).
 */
struct nfnetlink_conn {
	struct mnl_socket *socket; /* NULL: not opened yet */
	uint32_t sequence;
};

void nfnetlink_conn_done(struct nfnetlink_conn *line);
/*
 * Sends the message, and hands answers to fn, which returns MNL_CB_OK, until the last one. 0, the
 * negative errno of the socket or of the kernel's answer, or -EINTR: a dump was disturbed. line: NULL:
 * one for this question alone.
 */
int nfnetlink_ask(struct nfnetlink_conn *line, struct nlmsghdr *message, mnl_cb_t fn, void *arg);
