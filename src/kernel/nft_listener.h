/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Notifications about what others change in nf_tables, in this network namespace.
 *
 * For each transaction come its messages and then its generation. What was written through our own
 * socket never gets here, but for its generation: the kernel is told to leave the rest out, so that
 * own transactions, however large, cannot fill the queue.
 *
 * When the queue overflows all the same, everything in it is dropped and lost() is called once the
 * queue is empty: from then on notifications are complete again, so a task that reads the rules after
 * lost() misses nothing.
 */

#include "base/err.h"

struct event_base;
struct nft_listener;
struct nft_socket;
struct nlmsghdr;

/* None may free the listener or drain it; all are there. */
struct nft_listener_events {
	/* A NFT_MSG_NEW* or NFT_MSG_DEL* of another program: the object as a list would show it. */
	void (*message)(void *arg, const struct nlmsghdr *message);
	/* The end of a transaction of another program. process: its name, "" when unknown. */
	void (*generation)(void *arg, uint32_t id, uint32_t pid, const char *process);
	void (*own_generation)(void *arg, uint32_t id);
	void (*lost)(void *arg);
};

/* own_port: nft_socket_port() of the socket we write through. loop: may be NULL, then only
 * nft_listener_drain() reads. */
int nft_listener_open(struct event_base *loop, uint32_t own_port,
		      const struct nft_listener_events *events, void *arg,
		      struct nft_listener **ret, struct err *err);
struct nft_listener *nft_listener_free(struct nft_listener *listener); /* accepts NULL */
DEFINE_CLEANUP(nft_listener)

#define cleanup_nft_listener attr_cleanup(nft_listener_cleanup)

/* Tells all that is queued now, without waiting. */
void nft_listener_drain(struct nft_listener *listener);
/* Held back, the loop tells nothing; who drains it does. */
void nft_listener_hold(struct nft_listener *listener, bool held);

/*
 * Around a large transaction of our own. The kernel makes notifications for all that have joined, and only
 * then asks filters: for thousands of rules that is a fifth of the price, for nothing. So all listeners
 * of this process (in the listener's namespace) leave, and join again. No foreign change is lost
 * unnoticed: when another program wrote meanwhile, which the generation tells, lost() is called.
 *
 *	paused = nft_listener_pause(listener);
 *	r = nft_batch_commit(...);
 *	if (paused)
 *		nft_listener_resume(listener, socket, r >= 0 ? NFT_PAUSE_NEXT : NFT_PAUSE_SAME);
 *
 * Tells what is queued. False: they go on listening, because it is not known which generation they
 * have heard of, because another one is held, or because another program wrote during one of the last such ones.
 */
bool nft_listener_pause(struct nft_listener *listener);

enum nft_pause {
	NFT_PAUSE_SAME = 0, /* nothing was written */
	NFT_PAUSE_NEXT, /* a transaction that surely made a generation: it made a rule, for one */
	NFT_PAUSE_UNKNOWN,
};

/* socket: in the same namespace, idle. The new generation is told, to the others as a foreign one. */
void nft_listener_resume(struct nft_listener *listener, struct nft_socket *socket,
			 enum nft_pause outcome);

/* -- for nft_listener.c and tests */

/* One datagram; false when it is malformed. */
bool nft_listener_take(const struct nft_listener_events *events, void *arg, uint32_t own_port,
		       const void *data, size_t n);
