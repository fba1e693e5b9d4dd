/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/worker.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/thread.h"
#include "base/util.h"

#define STACK_BYTES (256 * 1024)

struct worker {
	worker_fn *ready;
	void *ready_arg;
	struct event *event;
	int fd; /* an eventfd: written by the thread when a job is done */
	bool in_hand;
	bool started;
	pthread_t thread;

	/* the queue, which both sides use */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	worker_fn *job; /* NULL: there is none */
	void *arg;
	bool quit;
	int64_t job_ns; /* that the last one took */
};

/* -- the thread */

static bool next_job(struct worker *worker, worker_fn **ret_job, void **ret_arg)
{
	pthread_mutex_lock(&worker->lock);
	while (!worker->job && !worker->quit)
		pthread_cond_wait(&worker->changed, &worker->lock);
	*ret_job = worker->job;
	*ret_arg = worker->arg;
	pthread_mutex_unlock(&worker->lock);
	return *ret_job;
}

static void job_done(struct worker *worker, int64_t took_ns)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&worker->lock);
	worker->job_ns = took_ns;
	(void)!write(worker->fd, &one, sizeof(one));
	worker->job = NULL;
	pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
}

static void *work(void *data)
{
	struct worker *worker = data;
	worker_fn *job;
	void *arg;

	while (next_job(worker, &job, &arg)) {
		int64_t began = clock_now_ns();

		job(arg);
		job_done(worker, clock_now_ns() - began);
	}
	return NULL;
}

/* -- the loop */

static void forget_signal(const struct worker *worker)
{
	uint64_t n;

	(void)!read(worker->fd, &n, sizeof(n));
}

static void on_done(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct worker *worker = arg;

	forget_signal(worker);
	assert(worker->in_hand);
	worker->in_hand = false;
	worker->ready(worker->ready_arg);
}

int worker_open(struct event_base *loop, worker_fn *ready, void *arg, struct worker **ret,
		struct err *err)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct worker *worker;

	if (fd < 0)
		return err_sys(err, -errno, "an eventfd");
	worker = xcalloc(1, sizeof(*worker));
	worker->ready = ready;
	worker->ready_arg = arg;
	worker->fd = fd;
	worker->event = loop_watch(loop, fd, EV_READ | EV_PERSIST, on_done, worker);
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	*ret = worker;
	return 0;
}

struct worker *worker_free(struct worker *worker)
{
	if (!worker)
		return NULL;
	worker_join(worker);
	if (worker->started) {
		pthread_mutex_lock(&worker->lock);
		worker->quit = true;
		pthread_cond_signal(&worker->changed);
		pthread_mutex_unlock(&worker->lock);
		pthread_join(worker->thread, NULL);
	}
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
	loop_free(worker->event);
	close(worker->fd);
	free(worker);
	return NULL;
}

int worker_start(struct worker *worker, worker_fn *job, void *arg)
{
	assert(!worker->in_hand);
	if (!worker->started) {
		int r = thread_start(STACK_BYTES, work, worker, &worker->thread);

		if (r < 0)
			return r;
		worker->started = true;
	}
	worker->in_hand = true;
	pthread_mutex_lock(&worker->lock);
	worker->job = job;
	worker->arg = arg;
	pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	return 0;
}

void worker_join(struct worker *worker)
{
	if (!worker || !worker->in_hand)
		return;
	pthread_mutex_lock(&worker->lock);
	while (worker->job)
		pthread_cond_wait(&worker->changed, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
	worker->in_hand = false;
	forget_signal(worker);
}

int64_t worker_job_ns(struct worker *worker)
{
	int64_t took;

	pthread_mutex_lock(&worker->lock);
	took = worker->job_ns;
	pthread_mutex_unlock(&worker->lock);
	return took;
}
