/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_session.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/loop.h"
#include "kernel/nft_socket.h"
#include "kernel/worker.h"

#define BREATHE_NS (4 * CLOCK_NS_PER_MS)

struct nft_session {
	struct nft_socket *socket;
	struct nft_listener *listener;
	struct worker *worker;
	struct fiber *fiber;
	struct event *wake; /* the fiber, which waits for its turn or lets the loop go on */
	struct nft_task *running;
	struct nft_task *first, **last; /* those that wait */
	bool closing;
	int64_t since_ns; /* the fiber has the processor */
	int64_t spent_ns; /* before that, on the task */
	bool wants_turn;
	struct nft_session *next_turn;
};

/* Whose turn it is, of all sessions of this process, and who waits for it, in order. */
static struct nft_session *turn, *turn_first, **turn_last = &turn_first;

static bool in_task(const struct nft_session *session)
{
	return fiber_current() == session->fiber;
}

/* What comes until the fiber is resumed is not its own work. */
static void wait_for_loop(struct nft_session *session)
{
	session->spent_ns += clock_now_ns() - session->since_ns;
	fiber_wait();
}

/* -- tasks */

static void run_task(void *arg)
{
	struct nft_session *session = arg;

	session->running->run(session->running->arg);
	session->spent_ns += clock_now_ns() - session->since_ns;
}

static void end_task(struct nft_session *session)
{
	struct nft_task *task = take(session->running);

	nft_listener_hold(session->listener, false);
	task->done(task->arg);
}

static void start_tasks(struct nft_session *session)
{
	while (!session->running && session->first) {
		struct nft_task *task = session->first;

		session->first = task->next;
		if (!session->first)
			session->last = &session->first;
		task->waiting = false;
		session->running = task;
		nft_listener_hold(session->listener, true);
		session->since_ns = clock_now_ns();
		session->spent_ns = 0;
		fiber_start(session->fiber, run_task, session);
		if (!fiber_is_busy(session->fiber))
			end_task(session);
	}
}

void nft_session_run(struct nft_session *session, struct nft_task *task)
{
	if (task->waiting)
		return;
	task->waiting = true;
	task->next = NULL;
	*session->last = task;
	session->last = &task->next;
	start_tasks(session);
}

static void go_on(void *arg)
{
	struct nft_session *session = arg;

	session->since_ns = clock_now_ns();
	fiber_resume(session->fiber);
	if (fiber_is_busy(session->fiber))
		return;
	end_task(session);
	start_tasks(session);
}

static void on_wake(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	go_on(arg);
}

static void breathe(void *arg)
{
	struct nft_session *session = arg;

	if (session->closing || clock_now_ns() - session->since_ns < BREATHE_NS)
		return;
	loop_arm(session->wake, 0); /* behind what the loop has to do now */
	wait_for_loop(session);
}

/* -- turns */

static void leave_queue(struct nft_session *session)
{
	struct nft_session **link = &turn_first;

	while (*link != session)
		link = &(*link)->next_turn;
	*link = session->next_turn;
	if (!*link)
		turn_last = link;
	session->wants_turn = false;
}

static int begin_turn(void *arg)
{
	struct nft_session *session = arg;

	if (!in_task(session))
		return 0;
	if (session->closing)
		return -ECANCELED;
	if (!turn) {
		turn = session;
		return 0;
	}
	session->wants_turn = true;
	session->next_turn = NULL;
	*turn_last = session;
	turn_last = &session->next_turn;
	wait_for_loop(session);
	if (!session->wants_turn)
		return 0; /* it was given to us */
	leave_queue(session);
	return -ECANCELED;
}

static void end_turn(void *arg)
{
	const struct nft_session *session = arg;

	if (turn != session)
		return;
	turn = turn_first;
	if (!turn)
		return;
	leave_queue(turn);
	loop_arm(turn->wake, 0);
}

/* -- waiting for the kernel */

/* Without a thread the loop waits itself, which is better than to write no rules. */
static int run_job(void *arg, void (*job)(void *arg), void *job_arg)
{
	struct nft_session *session = arg;

	if (in_task(session) && session->closing)
		return -ECANCELED;
	if (in_task(session) && worker_start(session->worker, job, job_arg) == 0) {
		wait_for_loop(session);
		session->spent_ns += worker_job_ns(session->worker);
	} else {
		job(job_arg);
	}
	return 0;
}

/* -- begin and end */

static int connect_to_kernel(struct nft_session *session, struct event_base *loop,
			     const struct nft_listener_events *events, void *arg, struct err *err)
{
	const struct nft_socket_host host = {
		.run = run_job, .begin = begin_turn, .end = end_turn, .arg = session};
	int r = nft_socket_open(&session->socket, err);

	if (r < 0)
		return r;
	nft_socket_set_host(session->socket, &host);
	return nft_listener_open(loop, nft_socket_port(session->socket), events, arg,
				 &session->listener, err);
}

int nft_session_open(struct event_base *loop, const struct nft_listener_events *events, void *arg,
		     struct nft_session **ret, struct err *err)
{
	struct nft_session *session = xcalloc(1, sizeof(*session));
	int r;

	session->last = &session->first;
	session->fiber = fiber_new(breathe, session);
	session->wake = loop_timer(loop, on_wake, session);
	r = worker_open(loop, go_on, session, &session->worker, err);
	if (r == 0)
		r = connect_to_kernel(session, loop, events, arg, err);
	if (r < 0) {
		nft_session_free(session);
		return r;
	}
	*ret = session;
	return 0;
}

struct nft_session *nft_session_free(struct nft_session *session)
{
	if (!session)
		return NULL;
	session->closing = true;
	worker_join(session->worker);
	while (fiber_is_busy(session->fiber))
		fiber_resume(session->fiber);
	assert(turn != session);
	nft_listener_free(session->listener);
	nft_socket_free(session->socket);
	loop_free(session->wake);
	worker_free(session->worker);
	fiber_free(session->fiber);
	free(session);
	return NULL;
}

struct nft_socket *nft_session_socket(const struct nft_session *session)
{
	return session->socket;
}

struct nft_listener *nft_session_listener(const struct nft_session *session)
{
	return session->listener;
}

int64_t nft_session_spent_ns(const struct nft_session *session)
{
	return session->spent_ns;
}
