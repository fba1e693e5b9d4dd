/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/localhost/localhost_ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/nftables/localhost/localhost_policy.h"
#include "backends/nftables/localhost/relay.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/loop.h"

#define ACCEPTS_PER_TURN 8 /* of one port */
#define PAUSE_NS         (100 * CLOCK_NS_PER_MS)
/* With more connections than these it is no tool on the node that is served, but a load that wants a cluster IP. */
#define CONNECTIONS_MAX 4096
#define PORTS           65536

/* Of a family's descriptors one in four is for listening sockets, the others are for connections. */
#define LISTENERS_SHARE 4
#define SHARE_MAX       ((size_t)CONNECTIONS_MAX * RELAY_DESCRIPTORS / 3 * 4)

struct listener {
	TAILQ_ENTRY(listener) all, unbound;
	struct localhost_ports *ports;
	uint16_t port;
	char *service; /* "namespace/name" */
	bool told;
	int fd; /* -1: not bound, because there is no endpoint or it cannot be */
	struct event *acceptable;
	bool paused;
	bool is_unbound; /* in the list of those that should be bound */
	int failure;     /* errno that the log knows of; 0: none */
	size_t n_connections;

	struct relay_target *endpoints;
	size_t n_endpoints;
	int64_t sticky_ns; /* 0: no affinity */
	bool pinned;
	struct relay_target pin;
	int64_t pin_used_ns;
};

TAILQ_HEAD(listener_list, listener);

struct localhost_ports {
	struct localhost_ports_config config;
	struct relays *relays;
	struct listener_list all, unbound;
	struct listener *by_port[PORTS]; /* pages that no port is on take no memory */
	struct event *resume;
	bool full;
	size_t connections_max, per_port_max, listeners_max;
	struct localhost_stats stats;
};

size_t localhost_ports_share(size_t descriptors)
{
	return MIN(descriptors / 4, SHARE_MAX);
}

static int64_t now_of(const struct localhost_ports *ports)
{
	return ports->config.now_ns(ports->config.arg);
}

static const char *address_of(const struct listener *listener, char out[static ADDR_PORT_TEXT_MAX])
{
	struct addr addr = localhost_address(listener->ports->config.family);

	addr_port_print(&addr, listener->port, out);
	return out;
}

/* -- endpoints */

static bool same_target(const struct relay_target *a, const struct relay_target *b)
{
	return a->port == b->port && addr_equal(&a->addr, &b->addr);
}

static bool has_endpoint(const struct listener *listener, const struct relay_target *target)
{
	for (size_t i = 0; i < listener->n_endpoints; i++)
		if (same_target(&listener->endpoints[i], target))
			return true;
	return false;
}

static uint32_t below(const struct localhost_ports *ports, size_t n)
{
	return ports->config.random(ports->config.arg, (uint32_t)n);
}

static struct relay_target pinned(struct listener *listener)
{
	int64_t now_ns = now_of(listener->ports);

	if (!listener->pinned || now_ns - listener->pin_used_ns > listener->sticky_ns ||
	    !has_endpoint(listener, &listener->pin))
		listener->pin = listener->endpoints[below(listener->ports, listener->n_endpoints)];
	listener->pinned = true;
	listener->pin_used_ns = now_ns;
	return listener->pin;
}

/* Where a connection goes, and where if not there; returns how many. */
static size_t pick(struct listener *listener, struct relay_target ret[static RELAY_TARGETS])
{
	size_t n = listener->n_endpoints, first;

	if (listener->sticky_ns > 0) {
		ret[0] = pinned(listener);
		return 1;
	}
	first = below(listener->ports, n);
	ret[0] = listener->endpoints[first];
	if (n == 1)
		return 1;
	ret[1] = listener->endpoints[(first + 1 + below(listener->ports, n - 1)) % n];
	return 2;
}

/* -- connections */

static void on_ended(void *arg, void *owner, enum relay_end end, int code)
{
	struct localhost_ports *ports = arg;
	struct listener *listener = owner;
	char address[ADDR_PORT_TEXT_MAX];

	listener->n_connections--;
	ports->stats.connections--;
	if (end == RELAY_UNREACHABLE)
		log_debug(4, "No endpoint takes a connection to a NodePort on localhost",
			  KV("service", LOG_STR(listener->service)),
			  KV("address", LOG_STR(address_of(listener, address))),
			  KV("err", LOG_STR(strerror(code))));
}

static bool has_room(const struct listener *listener)
{
	const struct localhost_ports *ports = listener->ports;

	return listener->n_connections < ports->per_port_max &&
	       ports->stats.connections < ports->connections_max;
}

static void refuse(struct listener *listener, int fd)
{
	char address[ADDR_PORT_TEXT_MAX];

	relay_reset(fd);
	listener->ports->stats.refused++;
	log_warning("Too many connections to a NodePort on localhost, refusing new ones",
		    KV("service", LOG_STR(listener->service)),
		    KV("address", LOG_STR(address_of(listener, address))),
		    KV("connections", LOG_INT((int64_t)listener->n_connections)),
		    KV("connectionsOfAll", LOG_INT((int64_t)listener->ports->stats.connections)));
}

static void serve(struct listener *listener, int fd)
{
	struct relay_target targets[RELAY_TARGETS];
	size_t n;

	if (!has_room(listener)) {
		refuse(listener, fd);
		return;
	}
	n = pick(listener, targets);
	listener->n_connections++;
	listener->ports->stats.connections++;
	relay_start(listener->ports->relays, fd, targets, n, listener);
}

/* The process or the host has no descriptor left: nothing is gained by asking again at once. */
static void pause_accepting(struct listener *listener, int code)
{
	char address[ADDR_PORT_TEXT_MAX];

	log_warning("Cannot accept connections to a NodePort on localhost",
		    KV("address", LOG_STR(address_of(listener, address))),
		    KV("err", LOG_STR(strerror(code))));
	listener->paused = true;
	event_del(listener->acceptable);
	if (!evtimer_pending(listener->ports->resume, NULL))
		loop_arm(listener->ports->resume, PAUSE_NS);
}

static void on_resume(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct localhost_ports *ports = arg;
	struct listener *listener;

	TAILQ_FOREACH(listener, &ports->all, all)
	{
		if (listener->paused)
			event_add(listener->acceptable, NULL);
		listener->paused = false;
	}
}

/* The client has already gone, or comes no more. */
static bool is_harmless(int code)
{
	return code == EAGAIN || code == EINTR || code == ECONNABORTED;
}

static void on_acceptable(evutil_socket_t fd, short what attr_unused, void *arg)
{
	struct listener *listener = arg;

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (client >= 0) {
			serve(listener, client);
			continue;
		}
		if (!is_harmless(errno))
			pause_accepting(listener, errno);
		return;
	}
}

/* -- sockets */

static void set_unbound(struct listener *listener, bool unbound)
{
	struct listener_list *list = &listener->ports->unbound;

	if (unbound == listener->is_unbound)
		return;
	if (unbound)
		TAILQ_INSERT_TAIL(list, listener, unbound);
	else
		TAILQ_REMOVE(list, listener, unbound);
	listener->is_unbound = unbound;
}

static void close_socket(struct listener *listener)
{
	if (listener->fd < 0)
		return;
	listener->acceptable = loop_free(listener->acceptable);
	listener->paused = false;
	close(listener->fd);
	listener->fd = -1;
	listener->ports->stats.listeners--;
}

static int start_listening(int fd, const struct listener *listener)
{
	struct addr addr = localhost_address(listener->ports->config.family);
	struct sockaddr_storage at;
	socklen_t size = addr_socket(&addr, listener->port, &at);
	int one = 1;

	/* connections of an earlier life of ours may still be closing */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, (const struct sockaddr *)&at, size) < 0 || listen(fd, SOMAXCONN) < 0)
		return -errno;
	return 0;
}

/* The descriptor, or a negative errno. */
static int open_socket(const struct listener *listener)
{
	const struct localhost_ports *ports = listener->ports;
	int domain = ports->config.family == FAMILY_IPV4 ? AF_INET : AF_INET6;
	int fd, r;

	if (ports->stats.listeners >= ports->listeners_max)
		return -EMFILE;
	fd = socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	r = start_listening(fd, listener);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

/* What an operator can do about it. */
static const char *advice(int code)
{
	switch (code) {
	case EADDRINUSE:
		return "another program listens there";
	case EADDRNOTAVAIL:
		return "this host has no such address";
	case EACCES:
		return "the port is below net.ipv4.ip_unprivileged_port_start";
	case EMFILE:
		return "raise the limit of open files (LimitNOFILE=, ulimit -n)";
	default:
		return "";
	}
}

static void tell_failure(struct listener *listener, int code)
{
	char address[ADDR_PORT_TEXT_MAX];

	listener->ports->stats.failures++;
	if (code == listener->failure)
		return;
	listener->failure = code;
	log_error("Cannot serve a NodePort on localhost, trying again now and then",
		  KV("service", LOG_STR(listener->service)),
		  KV("address", LOG_STR(address_of(listener, address))),
		  KV("err", LOG_STR(strerror(code))), KV("reason", LOG_STR(advice(code))));
}

static void tell_success(struct listener *listener)
{
	char address[ADDR_PORT_TEXT_MAX];

	if (listener->failure)
		log_info("A NodePort is served on localhost after all",
			 KV("service", LOG_STR(listener->service)),
			 KV("address", LOG_STR(address_of(listener, address))));
	listener->failure = 0;
}

static void open_listener(struct listener *listener)
{
	struct localhost_ports *ports = listener->ports;
	int fd = open_socket(listener);

	if (fd < 0) {
		tell_failure(listener, -fd);
		return;
	}
	set_unbound(listener, false);
	tell_success(listener);
	listener->fd = fd;
	listener->acceptable =
		loop_watch(ports->config.loop, fd, EV_READ | EV_PERSIST, on_acceptable, listener);
	ports->stats.listeners++;
}

/* -- what is told */

static struct listener *new_listener(struct localhost_ports *ports, uint16_t node_port,
				     const char *service)
{
	struct listener *listener = xcalloc(1, sizeof(*listener));

	listener->ports = ports;
	listener->port = node_port;
	listener->service = xstrdup(service);
	listener->fd = -1;
	TAILQ_INSERT_TAIL(&ports->all, listener, all);
	return ports->by_port[node_port] = listener;
}

static void drop_listener(struct listener *listener)
{
	struct localhost_ports *ports = listener->ports;

	close_socket(listener);
	set_unbound(listener, false);
	if (listener->n_connections > 0)
		relays_cut(ports->relays, listener);
	ports->stats.connections -= listener->n_connections;
	TAILQ_REMOVE(&ports->all, listener, all);
	ports->by_port[listener->port] = NULL;
	free(listener->endpoints);
	free(listener->service);
	free(listener);
}

static void set_endpoints(struct listener *listener, const struct port_plan *plan)
{
	const struct index_list *list =
		plan->service->external_local ? &plan->use.local : &plan->use.cluster;

	listener->n_endpoints = list->n;
	listener->endpoints =
		xrealloc(listener->endpoints, MAX(list->n, 1) * sizeof(*listener->endpoints));
	for (size_t i = 0; i < list->n; i++) {
		const struct endpoint *endpoint = &plan->endpoints->v[list->v[i]];

		listener->endpoints[i] = (struct relay_target){endpoint->addr, endpoint->port};
	}
}

static void set_affinity(struct listener *listener, const struct port_plan *plan)
{
	int64_t sticky_ns = plan->service->sticky_seconds * CLOCK_NS_PER_SECOND;

	if (sticky_ns != listener->sticky_ns)
		listener->pinned = false;
	listener->sticky_ns = sticky_ns;
}

void localhost_ports_begin(struct localhost_ports *ports, bool full)
{
	struct listener *listener;

	ports->full = full;
	for (listener = TAILQ_FIRST(&ports->all); full && listener;
	     listener = TAILQ_NEXT(listener, all))
		listener->told = false;
}

void localhost_ports_tell(struct localhost_ports *ports, uint16_t node_port,
			  const struct port_plan *plan)
{
	struct listener *listener = ports->by_port[node_port];

	if (!plan) {
		if (listener)
			drop_listener(listener);
		return;
	}
	/* another Service's clients have no business with its endpoints */
	if (listener && !streq(listener->service, plan->service->key)) {
		drop_listener(listener);
		listener = NULL;
	}
	if (!listener)
		listener = new_listener(ports, node_port, plan->service->key);
	listener->told = true;
	set_endpoints(listener, plan);
	set_affinity(listener, plan);
	if (listener->n_endpoints == 0)
		close_socket(listener);
	set_unbound(listener, listener->n_endpoints > 0 && listener->fd < 0);
}

void localhost_ports_end(struct localhost_ports *ports)
{
	struct listener *listener, *next;

	for (listener = TAILQ_FIRST(&ports->all); ports->full && listener; listener = next) {
		next = TAILQ_NEXT(listener, all);
		if (!listener->told)
			drop_listener(listener);
		fiber_breathe(); /* only a sync drops: the next one stays */
	}
	for (listener = TAILQ_FIRST(&ports->unbound); listener; listener = next) {
		next = TAILQ_NEXT(listener, unbound);
		open_listener(listener);
		fiber_breathe();
	}
}

bool localhost_ports_wait(const struct localhost_ports *ports)
{
	return !TAILQ_EMPTY(&ports->unbound);
}

void localhost_ports_stats(const struct localhost_ports *ports, struct localhost_stats *ret)
{
	*ret = ports->stats;
}

/* -- life */

static int64_t relays_now_ns(void *arg)
{
	return now_of(arg);
}

struct localhost_ports *localhost_ports_new(const struct localhost_ports_config *config)
{
	struct localhost_ports *ports = xcalloc(1, sizeof(*ports));
	size_t left;

	ports->config = *config;
	ports->listeners_max = config->descriptors / LISTENERS_SHARE;
	left = config->descriptors - ports->listeners_max;
	ports->connections_max = MIN(MAX(left / RELAY_DESCRIPTORS, 1), CONNECTIONS_MAX);
	ports->per_port_max = MAX(ports->connections_max / 2, 1);
	TAILQ_INIT(&ports->all);
	TAILQ_INIT(&ports->unbound);
	ports->resume = loop_timer(config->loop, on_resume, ports);
	ports->relays = relays_new(&(struct relays_config){
		.loop = config->loop,
		.dial_ns = config->dial_ns,
		.half_closed_ns = config->half_closed_ns,
		.now_ns = relays_now_ns,
		.ended = on_ended,
		.arg = ports,
	});
	return ports;
}

struct localhost_ports *localhost_ports_free(struct localhost_ports *ports)
{
	struct listener *listener, *next;

	if (!ports)
		return NULL;
	for (listener = TAILQ_FIRST(&ports->all); listener; listener = next) {
		next = TAILQ_NEXT(listener, all);
		drop_listener(listener);
	}
	relays_free(ports->relays);
	loop_free(ports->resume);
	free(ports);
	return NULL;
}
