/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opening is a list of steps. Each says whether it is done (1), waits for its socket (0), or has
 * failed; a step that this way does not need is done at once. When all are done bytes flow.
 */

#include "sources/api_conn.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "sources/api_proxy.h"
#include "sources/api_resolve.h"

#define OPEN_TIMEOUT_S   15
#define ATTEMPT_S        3 /* for an address, while there are others */
#define KEEPALIVE_IDLE_S 30
#define KEEPALIVE_STEP_S 10
#define KEEPALIVE_PROBES 3
#define UNACKED_MS       30000        /* what was sent must be acknowledged by then */
#define READ_BYTES       (16u * 1024) /* a record of TLS */
#define READ_ROUNDS      16u          /* then others have their turn */

enum step {
	STEP_RESOLVE = 0,
	STEP_CONNECT,
	STEP_PROXY_TLS,
	STEP_PROXY,
	STEP_TLS,
	STEP_COUNT, /* open */
};

struct api_conn {
	struct event_base *loop;
	const struct api_route *route;
	struct api_conn_handler handler;
	enum step step;
	bool closed, stillborn;

	struct api_resolve *resolve;
	struct api_addresses addresses;
	size_t next_address;
	int fd;
	struct event *readable, *writable; /* of fd */
	bool wants_write;                  /* what was just tried waits for that */
	struct event *deadline, *attempt;

	SSL *ssl;         /* the innermost; NULL: none yet */
	const char *peer; /* whom it speaks to */
	struct api_proxy *proxy;
	struct text out;

	enum api_failure failure; /* and why, when something returned an error */
	struct err err;
};

/* -- the end -- */

static void drop_socket(struct api_conn *conn)
{
	conn->readable = loop_free(conn->readable);
	conn->writable = loop_free(conn->writable);
	if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
}

void api_conn_close(struct api_conn *conn)
{
	conn->closed = true;
	conn->resolve = api_resolve_cancel(conn->resolve);
	conn->proxy = api_proxy_free(conn->proxy);
	SSL_free(take(conn->ssl));
	drop_socket(conn);
	text_done(&conn->out);
	event_del(conn->deadline);
	event_del(conn->attempt);
}

struct api_conn *api_conn_free(struct api_conn *conn)
{
	if (!conn)
		return NULL;
	api_conn_close(conn);
	loop_free(conn->deadline);
	loop_free(conn->attempt);
	free(conn);
	return NULL;
}

static int fail(struct api_conn *conn, int r)
{
	bool ended = r == -EPIPE && conn->step == STEP_COUNT;

	if (conn->closed)
		return r;
	api_conn_close(conn);
	conn->handler.closed(conn->handler.arg, ended ? API_FAILURE_NONE : conn->failure,
			     conn->err.text);
	return r;
}

/* -- bytes -- */

/* A result of OpenSSL: bytes, 0 when it waits, or an error. */
static ssize_t tls_result(struct api_conn *conn, int r)
{
	return r > 0 ? r
		     : api_tls_result(conn->ssl, r, conn->peer, &conn->wants_write, &conn->failure,
				      &conn->err);
}

static ssize_t socket_result(struct api_conn *conn, ssize_t r, bool writing)
{
	if (r > 0)
		return r;
	conn->failure = API_FAILURE_CONNECT;
	if (r == 0)
		return err_set(&conn->err, -EPIPE, "the connection was closed");
	if (errno != EAGAIN && errno != EINTR)
		return err_set(&conn->err, -ECONNRESET, "the connection was lost: %s",
			       strerror(errno));
	conn->wants_write = writing;
	return 0;
}

static ssize_t get(struct api_conn *conn, void *buffer, size_t n)
{
	if (!conn->ssl)
		return socket_result(conn, recv(conn->fd, buffer, n, 0), false);
	ERR_clear_error();
	errno = 0;
	return tls_result(conn, SSL_read(conn->ssl, buffer, (int)n));
}

static ssize_t put(struct api_conn *conn, const void *data, size_t n)
{
	if (!conn->ssl)
		return socket_result(conn, send(conn->fd, data, n, MSG_NOSIGNAL), true);
	ERR_clear_error();
	errno = 0;
	return tls_result(conn, SSL_write(conn->ssl, data, (int)n));
}

/* 1: all is out. */
static int flush(struct api_conn *conn)
{
	const char *head;
	size_t n;

	while ((head = text_head(&conn->out, &n))) {
		ssize_t sent = put(conn, head, n);

		if (sent <= 0)
			return (int)sent;
		text_consume(&conn->out, (size_t)sent);
	}
	return 1;
}

/* -- steps -- */

static int step_resolve(struct api_conn *conn)
{
	return conn->addresses.n > 0;
}

static void set_options(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_STEP_S},
		{IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKED_MS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) /* without them it works too, only later */
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static void on_io(evutil_socket_t fd, short what, void *arg);

static int open_socket(struct api_conn *conn)
{
	size_t i = conn->next_address++;
	const struct sockaddr *to = (struct sockaddr *)&conn->addresses.v[i];

	conn->fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		return -errno;
	set_options(conn->fd);
	conn->readable = event_new(conn->loop, conn->fd, EV_READ | EV_PERSIST, on_io, conn);
	conn->writable = event_new(conn->loop, conn->fd, EV_WRITE | EV_PERSIST, on_io, conn);
	if (conn->next_address < conn->addresses.n)
		loop_arm(conn->attempt, ATTEMPT_S * CLOCK_NS_PER_SECOND);
	if (connect(conn->fd, to, conn->addresses.size[i]) < 0 && errno != EINPROGRESS)
		return -errno;
	return 0;
}

/* 1: it is connected, 0: it waits. */
static int check_socket(struct api_conn *conn)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer), n = sizeof(int);
	int problem = 0;

	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &problem, &n) < 0)
		return -errno;
	if (problem)
		return -problem;
	conn->wants_write = true;
	return getpeername(conn->fd, (struct sockaddr *)&peer, &size) == 0;
}

static int explain_address(struct api_conn *conn, int r)
{
	const struct sockaddr *at = (struct sockaddr *)&conn->addresses.v[conn->next_address - 1];
	socklen_t size = conn->addresses.size[conn->next_address - 1];
	char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";

	getnameinfo(at, size, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	conn->failure = API_FAILURE_CONNECT;
	return err_sys(&conn->err, r, "connecting to %s port %s", host, port);
}

/* Without a socket it is the first attempt, or time was up for the last one. */
static int step_connect(struct api_conn *conn)
{
	int r = conn->fd >= 0 ? check_socket(conn) : -ETIMEDOUT;

	while (r < 0) {
		if (conn->next_address > 0)
			explain_address(conn, r);
		drop_socket(conn);
		event_del(conn->attempt);
		if (conn->next_address == conn->addresses.n)
			return r;
		r = open_socket(conn);
		if (r == 0)
			r = check_socket(conn);
	}
	if (r > 0)
		event_del(conn->attempt);
	return r;
}

/* One TLS may run inside of another: the server's inside the proxy's. */
static int start_tls(struct api_conn *conn, SSL_CTX *context, const char *peer, bool h2)
{
	BIO *bio;

	if (conn->ssl) {
		bio = BIO_new(BIO_f_ssl());
		BIO_set_ssl(bio, conn->ssl, BIO_CLOSE);
		conn->ssl = NULL;
	} else {
		bio = api_tls_socket(conn->fd);
	}
	conn->peer = peer;
	conn->failure = API_FAILURE_TLS;
	return api_tls_open(context, bio, peer, h2, &conn->ssl, &conn->err);
}

static int shake_hands(struct api_conn *conn)
{
	ERR_clear_error();
	errno = 0;
	return (int)tls_result(conn, SSL_do_handshake(conn->ssl));
}

static int wrap_proxy(struct api_conn *conn, int r)
{
	return r < 0 ? err_wrap(&conn->err, r, "proxy %s", conn->route->proxy.authority) : r;
}

static int step_proxy_tls(struct api_conn *conn)
{
	int r = 0;

	if (!conn->route->proxy_tls)
		return 1;
	if (!conn->ssl)
		r = start_tls(conn, conn->route->proxy_tls, conn->route->proxy.host, false);
	return wrap_proxy(conn, r < 0 ? r : shake_hands(conn));
}

static int ask_proxy(struct api_conn *conn)
{
	uint8_t buffer[1024];
	ssize_t n;
	int r;

	do {
		r = flush(conn);
		if (r <= 0)
			return r;
		n = get(conn, buffer, sizeof(buffer));
		if (n <= 0)
			return (int)n;
		conn->failure = API_FAILURE_CONNECT;
		r = api_proxy_feed(conn->proxy, (struct api_bytes){buffer, (size_t)n}, &conn->out,
				   &conn->err);
	} while (r == 0);
	return r;
}

static int step_proxy(struct api_conn *conn)
{
	const struct api_route *route = conn->route;
	int r;

	if (!route->proxy.host || api_route_asks_proxy(route))
		return 1;
	if (!conn->proxy) {
		conn->proxy = api_proxy_new(&route->proxy, &route->server);
		api_proxy_begin(conn->proxy, &conn->out);
	}
	r = wrap_proxy(conn, ask_proxy(conn));
	if (r > 0)
		conn->proxy = api_proxy_free(conn->proxy);
	return r;
}

static int step_tls(struct api_conn *conn)
{
	int r = 0;

	if (!conn->route->tls)
		return 1;
	if (conn->peer != conn->route->peer)
		r = start_tls(conn, conn->route->tls, conn->route->peer, true);
	return r < 0 ? r : shake_hands(conn);
}

static const struct {
	int (*fn)(struct api_conn *conn);
	const char *doing;
} steps[] = {
	[STEP_RESOLVE] = {step_resolve, "resolving its name"},
	[STEP_CONNECT] = {step_connect, "connecting"},
	[STEP_PROXY_TLS] = {step_proxy_tls, "TLS with the proxy"},
	[STEP_PROXY] = {step_proxy, "asking the proxy"},
	[STEP_TLS] = {step_tls, "TLS"},
};
_Static_assert(ARRAY_SIZE(steps) == STEP_COUNT, "what each step does");

/* -- the loop -- */

static void wait_for(struct event *event, bool wanted)
{
	if (!wanted)
		event_del(event);
	else if (!event_pending(event, EV_READ | EV_WRITE, NULL))
		event_add(event, NULL);
}

static bool speaks_h2(const struct api_conn *conn)
{
	const unsigned char *name = NULL;
	unsigned int n = 0;

	if (conn->route->tls)
		SSL_get0_alpn_selected(conn->ssl, &name, &n);
	return n == 2 && memcmp(name, "h2", 2) == 0;
}

/* All that is to be sent, and whatever that asks to be sent in turn. */
static int send_all(struct api_conn *conn)
{
	int r;

	do {
		r = flush(conn);
		if (r > 0)
			conn->handler.drained(conn->handler.arg, &conn->out);
	} while (r > 0 && conn->out.size > 0);
	return r;
}

/* 1: there may be more, but others have their turn. */
static int receive(struct api_conn *conn)
{
	uint8_t buffer[READ_BYTES];

	for (unsigned int i = 0; i < READ_ROUNDS; i++) {
		ssize_t n = get(conn, buffer, sizeof(buffer));

		if (n <= 0)
			return (int)n;
		conn->handler.data(conn->handler.arg, (struct api_bytes){buffer, (size_t)n});
		if (conn->closed)
			return 0;
	}
	return 1;
}

static int serve(struct api_conn *conn)
{
	bool read_wants_write;
	int more = receive(conn);
	int sent;

	if (conn->closed)
		return 0;
	if (more < 0)
		return fail(conn, more);
	read_wants_write = more == 0 && conn->wants_write;
	sent = send_all(conn);
	if (sent < 0 || conn->closed)
		return fail(conn, sent);
	wait_for(conn->readable, true);
	wait_for(conn->writable, read_wants_write || (sent == 0 && conn->wants_write));
	if (more > 0) /* what TLS has read already makes no socket readable */
		event_active(conn->readable, EV_READ, 0);
	return 0;
}

static void advance(struct api_conn *conn)
{
	while (conn->step < STEP_COUNT) {
		int r = steps[conn->step].fn(conn);

		if (r == -EPIPE || r == -ECONNRESET)
			err_wrap(&conn->err, r, "%s", steps[conn->step].doing);
		if (r < 0) {
			fail(conn, r);
			return;
		}
		if (r == 0) {
			if (conn->readable) {
				wait_for(conn->readable, !conn->wants_write);
				wait_for(conn->writable, conn->wants_write);
			}
			return;
		}
		conn->step++;
	}
	event_del(conn->deadline);
	conn->handler.open(conn->handler.arg, speaks_h2(conn));
	if (!conn->closed)
		serve(conn);
}

static void on_io(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct api_conn *conn = arg;

	if (conn->step < STEP_COUNT)
		advance(conn);
	else
		serve(conn);
}

static void on_addresses(void *arg, const struct api_addresses *found, const struct err *err)
{
	struct api_conn *conn = arg;

	conn->resolve = NULL;
	if (err) {
		conn->err = *err;
		conn->failure = API_FAILURE_CONNECT;
		fail(conn, err->code);
		return;
	}
	conn->addresses = *found;
	advance(conn);
}

/* The next address, if this one does not answer. */
static void on_attempt(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct api_conn *conn = arg;

	drop_socket(conn);
	advance(conn);
}

static void on_deadline(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct api_conn *conn = arg;

	if (!conn->stillborn) {
		err_set(&conn->err, -ETIMEDOUT, "no connection within %d s (%s)", OPEN_TIMEOUT_S,
			steps[conn->step].doing);
		conn->failure = API_FAILURE_CONNECT;
	}
	fail(conn, conn->err.code);
}

struct api_conn *api_conn_new(struct event_base *loop, const struct api_route *route,
			      const struct api_conn_handler *handler)
{
	const struct api_url *to = route->proxy.host ? &route->proxy : &route->server;
	struct api_conn *conn = xcalloc(1, sizeof(*conn));

	conn->loop = loop;
	conn->route = route;
	conn->handler = *handler;
	conn->fd = -1;
	text_init(&conn->out);
	conn->deadline = loop_timer(loop, on_deadline, conn);
	conn->attempt = loop_timer(loop, on_attempt, conn);
	if (api_resolve_start(loop, to->host, to->port, on_addresses, conn, &conn->resolve,
			      &conn->err) < 0) {
		conn->failure = API_FAILURE_CONNECT;
		conn->stillborn = true;
	}
	loop_arm(conn->deadline, conn->stillborn ? 0 : OPEN_TIMEOUT_S * CLOCK_NS_PER_SECOND);
	return conn;
}

void api_conn_send(struct api_conn *conn)
{
	int r;

	if (conn->closed || conn->step < STEP_COUNT)
		return;
	r = send_all(conn);
	if (r < 0)
		fail(conn, r);
	else if (r == 0 && !conn->closed && conn->wants_write)
		wait_for(conn->writable, true);
}
