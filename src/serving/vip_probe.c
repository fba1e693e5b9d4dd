/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/vip_probe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/oom.h"

struct vip_probe {
	struct event_base *loop;
	int64_t timeout_ns;
	vip_probe_fn *done;
	void *arg;
	int fd;              /* -1: none */
	struct event *event; /* NULL: none runs */
	struct addr addr;
	uint16_t port;
	int refused; /* errno of a connect() that failed at once */
};

static void stop(struct vip_probe *probe)
{
	probe->event = loop_free(probe->event);
	util_close_fd(&probe->fd);
	probe->fd = -1;
}

/* What became of it: 0 or an errno. */
static int outcome(const struct vip_probe *probe, short what)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (probe->refused)
		return probe->refused;
	if (what & EV_TIMEOUT)
		return ETIMEDOUT;
	if (getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return errno;
	return error;
}

static void on_event(evutil_socket_t fd attr_unused, short what, void *arg)
{
	struct vip_probe *probe = arg;
	char where[ADDR_PORT_TEXT_MAX];
	int error = outcome(probe, what);
	struct err err;

	stop(probe);
	if (error) {
		addr_port_print(&probe->addr, probe->port, where);
		err_sys(&err, -error, "connecting to %s", where);
	}
	probe->done(probe->arg, error ? &err : NULL);
}

/* 0: on its way or there; else an errno. */
static int begin(struct vip_probe *probe)
{
	struct sockaddr_storage to;
	socklen_t size = addr_socket(&probe->addr, probe->port, &to);

	probe->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (probe->fd < 0)
		return errno;
	if (connect(probe->fd, (const struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
		return errno;
	return 0;
}

bool vip_probe_running(const struct vip_probe *probe)
{
	return probe->event;
}

void vip_probe_start(struct vip_probe *probe, const struct addr *addr, uint16_t port)
{
	struct timeval timeout = {0};

	assert(!probe->event);
	probe->addr = *addr;
	probe->port = port;
	probe->refused = begin(probe);
	if (!probe->refused)
		clock_to_timeval(probe->timeout_ns, &timeout);
	probe->event = event_new(probe->loop, probe->refused ? -1 : probe->fd,
				 probe->refused ? 0 : EV_WRITE, on_event, probe);
	if (!probe->event || event_add(probe->event, &timeout) < 0)
		oom("an event", 0);
}

struct vip_probe *vip_probe_new(struct event_base *loop, int64_t timeout_ns, vip_probe_fn *done,
				void *arg)
{
	struct vip_probe *probe = xcalloc(1, sizeof(*probe));

	*probe = (struct vip_probe){
		.loop = loop, .timeout_ns = timeout_ns, .done = done, .arg = arg, .fd = -1};
	return probe;
}

struct vip_probe *vip_probe_free(struct vip_probe *probe)
{
	if (!probe)
		return NULL;
	stop(probe);
	free(probe);
	return NULL;
}
