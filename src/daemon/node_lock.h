/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One instance writes rules on a node. The lock is a name in the abstract namespace of unix sockets: the
 * kernel keeps one for each network namespace, which is what rules belong to as well, and gives it
 * back when the process ends, however that happens; there is no file that could be left behind.
 *
 *   trying     binds the name: then the lock is held. The name is taken: connects to who has it
 *   waiting    holds that connection. It breaks when the holder ends, which leads back to trying at
 *              once
 *   held       listens: for waiting instances, and for one that asks to take over
 *
 * Any process of the node's network namespace could take the name first, or connect.
 *
 *   as the holder   waited for are uid 0, our own and SANDBOX_USER, which the DaemonSet runs as (as the
 *                   kernel knows them from the moment of listen(2)). Of any other it is logged who it
 *                   is, and the lock is done without: it must not stop a node
 *   who connects    obeyed are uid 0 and the holder's own. Others are kept connected, so that they see
 *                   its end at once. There are eight places for those who are obeyed, for
 *                   SANDBOX_USER and for all others; who finds none comes back, at last once a second
 *
 * A full queue of connections says nothing about the holder: that is waited for too, for a minute.
 *
 * A kube-proxy knows nothing of this lock, and neither does a Portolan that is older than it.
 */

#include "base/err.h"

struct event_base;
struct node_lock;

#define NODE_LOCK_NAME "portolan.run"

struct node_lock_config {
	struct event_base *loop;
	const char *name; /* NODE_LOCK_NAME; tests have others */
	int64_t queue_ns; /* how long a full queue is waited for; 0: a minute; tests have others */
	/* From node_lock_new() or later. */
	void (*waiting)(void *arg); /* for another instance; once */
	void (*mine)(
		void *arg); /* held, or to be done without; once, and nothing but asked() follows */
	void (*asked)(void *arg); /* another instance wants to take over */
	void *arg;
};

struct node_lock *node_lock_new(const struct node_lock_config *config);
struct node_lock *
node_lock_free(struct node_lock *lock); /* accepts NULL, returns NULL; gives it back */
/*
 * While waiting: asks the holder to end, or logs that it would not listen. May be called before that is
 * known, and more than once.
 */
void node_lock_take_over(struct node_lock *lock);

/* Does an instance hold it that node_lock_new() would wait for? For those who only warn of it. */
bool node_lock_is_held(const char *name);
