/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The thread has a job of its own and gives its answer as one message over a socket. Nothing is
 * shared, so nothing is locked, and one who does not want the answer any more closes the socket.
 */

#include "sources/api_resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/thread.h"

#define STACK_BYTES (512u * 1024) /* getaddrinfo() and the modules of nsswitch.conf */

struct answer {
	int error; /* of getaddrinfo(); 0: found */
	int system_error;
	struct api_addresses found;
};

struct job {
	char *host;
	char port[8];
	int fd;
};

struct api_resolve {
	char *host;
	int fd;
	struct event *event;
	api_resolve_fn *done;
	void *arg;
};

/* -- the thread -- */

static void look_up(const char *host, const char *port, int flags, struct answer *ret)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | flags,
	};
	struct addrinfo *list = NULL;

	*ret = (struct answer){0};
	ret->error = getaddrinfo(host, port, &hints, &list);
	ret->system_error = errno;
	if (ret->error)
		return;
	for (struct addrinfo *at = list; at && ret->found.n < API_RESOLVE_MAX; at = at->ai_next) {
		if (at->ai_addrlen > sizeof(ret->found.v[0]))
			continue;
		memcpy(&ret->found.v[ret->found.n], at->ai_addr, at->ai_addrlen);
		ret->found.size[ret->found.n++] = at->ai_addrlen;
	}
	freeaddrinfo(list);
}

static void job_free(struct job *job)
{
	close(job->fd);
	free(job->host);
	free(job);
}

static void *work(void *arg)
{
	struct job *job = arg;
	struct answer answer;

	look_up(job->host, job->port, AI_ADDRCONFIG, &answer);
	send(job->fd, &answer, sizeof(answer), MSG_NOSIGNAL);
	job_free(job);
	return NULL;
}

/* -- the loop -- */

static void tell(struct api_resolve *resolve, const struct answer *answer)
{
	api_resolve_fn *done = resolve->done;
	void *arg = resolve->arg;
	struct err err;

	if (answer->error == EAI_SYSTEM)
		err_sys(&err, -(answer->system_error ? answer->system_error : EIO),
			"the name %s cannot be resolved", resolve->host);
	else if (answer->error || answer->found.n == 0)
		err_set(&err, -ENOENT, "the name %s cannot be resolved: %s", resolve->host,
			answer->error ? gai_strerror(answer->error) : "it has no address");
	api_resolve_cancel(resolve);
	done(arg, &answer->found, answer->error || answer->found.n == 0 ? &err : NULL);
}

static void on_answer(evutil_socket_t fd, short what attr_unused, void *arg)
{
	struct answer answer = {.error = EAI_AGAIN};

	if (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) != (ssize_t)sizeof(answer))
		answer = (struct answer){.error = EAI_AGAIN};
	tell(arg, &answer);
}

struct api_resolve *api_resolve_cancel(struct api_resolve *resolve)
{
	if (!resolve)
		return NULL;
	loop_free(resolve->event);
	util_close_fd(&resolve->fd);
	free(resolve->host);
	free(resolve);
	return NULL;
}

/* An address is sent to ourselves, so that who asks is always answered from the loop. */
static int ask(const char *host, uint16_t port, int fd, struct err *err)
{
	struct job *job = xcalloc(1, sizeof(*job));
	struct answer answer;
	pthread_t thread;
	int r = 0;

	job->host = xstrdup(host);
	job->fd = fd;
	snprintf(job->port, sizeof(job->port), "%u", port);
	look_up(host, job->port, AI_NUMERICHOST, &answer);
	if (!answer.error) {
		if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			r = err_sys(err, -errno, "a message to ourselves");
		job_free(job);
		return r;
	}
	r = thread_start(STACK_BYTES, work, job, &thread);
	if (r < 0) {
		job_free(job);
		return err_sys(err, r, "a thread that resolves the name %s", host);
	}
	pthread_detach(thread);
	return 0;
}

int api_resolve_start(struct event_base *loop, const char *host, uint16_t port,
		      api_resolve_fn *done, void *arg, struct api_resolve **ret, struct err *err)
{
	struct api_resolve *resolve;
	int pair[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, -errno, "a socket to resolve the name %s", host);
	r = ask(host, port, pair[1], err);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	resolve = xcalloc(1, sizeof(*resolve));
	resolve->host = xstrdup(host);
	resolve->fd = pair[0];
	resolve->done = done;
	resolve->arg = arg;
	resolve->event = loop_watch(loop, pair[0], EV_READ, on_answer, resolve);
	*ret = resolve;
	return 0;
}
