/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One family's conversation with nf_tables: the socket that it writes through, the listener for what other programs
 * change, and the tasks that use both, one after another.
 *
 * A task is code that reads from top to bottom: it asks, decides, writes, and looks at the answer. It runs on the
 * loop's thread as a fiber; while the kernel works on a transaction or on a long list, which a worker thread waits
 * for, the loop goes on. Long work of a task itself calls fiber_breathe(). So all decisions are the loop's, and no
 * task sees another one of its session half done. What other programs change is told between tasks, and within one
 * where it drains the listener.
 *
 * The kernel takes one transaction of a network namespace after the other, and a list that it writes into begins
 * again. So the sessions of a process take turns: for a transaction, and for a list that is long.
 */

#include "kernel/nft_listener.h"

struct nft_session;

struct nft_task {
	void (*run)(void *arg); /* in the fiber */
	/* after that, on the loop's own stack; not when the session is freed meanwhile */
	void (*done)(void *arg);
	void *arg;
	/* the session's */
	bool waiting;
	struct nft_task *next;
};

int nft_session_open(struct event_base *loop, const struct nft_listener_events *events, void *arg,
		     struct nft_session **ret, struct err *err);
/*
 * Waits for what the kernel has in hand. Whatever the task that runs asks for after that fails with -ECANCELED, so
 * that it comes to its end; tasks that wait are forgotten. Accepts NULL, returns NULL.
 */
struct nft_session *nft_session_free(struct nft_session *session);

struct nft_socket *nft_session_socket(const struct nft_session *session);
struct nft_listener *nft_session_listener(const struct nft_session *session);

/* Runs the task, at once or when those before it are over. One that waits already is not run twice. */
void nft_session_run(struct nft_session *session, struct nft_task *task);
/* In done(): what the task cost, its own work and the kernel's; not what the loop did meanwhile, or others' turns. */
int64_t nft_session_spent_ns(const struct nft_session *session);
