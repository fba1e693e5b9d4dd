/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lists of what nf_tables holds.
 *
 * A list comes in pieces, and a program may write between two of them. The kernel's mark for that is
 * watched, and the generation that each message carries (lists of elements have no mark); a list that
 * was disturbed is begun again. What a list costs grows with the square of its length, except for
 * chains: ask for the rules of one chain, not of a table, where there are many.
 */

#include "base/addr.h"
#include "base/err.h"

struct nft_socket;
struct nlmsghdr;

struct nft_dump_request {
	uint16_t type; /* NFT_MSG_GETTABLE, GETCHAIN, GETRULE, GETSET, GETSETELEM, GETOBJ */
	enum family family;
	const char *table; /* NULL: all */
	const char *chain; /* or set; NULL: all. Element lists need it */
	bool one;          /* only that table, chain or set itself: -ENOENT when it is not there */
	uint8_t nfproto; /* NFPROTO_* of tables that are of no family (inet); 0: that of `family` */
	bool moving;     /* a map that packets write: a list of it is as good as it gets */
};

struct nft_dump_ops {
	/* What came so far does not count; may be NULL. */
	void (*restart)(void *arg);
	/* One object of the table and chain asked for, a NFT_MSG_NEW*. Negative ends the list with that
	 * error. Must not use the socket. */
	int (*message)(void *arg, const struct nlmsghdr *message, struct err *err);
};

/* 0, or the kernel's error; -EINTR: others wrote again and again. A chain that is not there has an
 * empty list of rules or, in some kernels, gives -ENOENT. */
int nft_dump(struct nft_socket *socket, const struct nft_dump_request *request,
	     const struct nft_dump_ops *ops, void *arg, struct err *err);

/* -- for nft_dump.c and tests */

struct nft_dump_state {
	const struct nft_dump_request *request;
	const struct nft_dump_ops *ops;
	void *arg;
	uint32_t sequence;
	uint16_t generation;
	bool begun, disturbed;
	bool alone; /* nft_socket_begin() was called */
};

/* A datagram of the list: 1 when it was the last one, 0 when there is more, or an error. err is set
 * only when the operation failed, not for errors of the kernel. */
int nft_dump_take(struct nft_dump_state *state, const void *data, size_t n, struct err *err);
