/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/http_server.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/oom.h"

/*
 * A connection waits for a request, then for its answer to be taken, then for the next request.
 * Both waits have a deadline, which a timer looks at once a second.
 *
 * A client that stays away after its answer is like one that sends no request.
 *
 * A listener whose accept() fails would be ready again at once, without end: it pauses, each time for
 * twice as long. libevent's evconnlistener also accepts for as long as clients come; here it is a few at a
 * time, so that others on the loop have their turn.
 */

#define TICK_NS      CLOCK_NS_PER_SECOND
#define BACKLOG      1024 /* a SYN without a place is sent again a second later, too late for a probe */
#define DATE_MAX     32
#define STATUS_OTHER "Status"
#define WRITE_BYTES  (256 * 1024) /* at once, if the kernel takes them; libevent's own is 16 KiB */
#define PAUSE_MIN_NS (10 * CLOCK_NS_PER_MS)
#define PAUSE_MAX_NS (640 * CLOCK_NS_PER_MS) /* the kubelet's probes wait for a second */

const struct http_limits http_limits_default = {
	.connections = 256,
	.head_ns = 10 * CLOCK_NS_PER_SECOND,
	.reply_ns = 30 * CLOCK_NS_PER_SECOND,
	.stream_bytes = 1024 * 1024,
};

struct http_connection {
	TAILQ_ENTRY(http_connection) list;
	struct http_server *server;
	struct bufferevent *bufev;
	struct connection_place place; /* its state; STREAMING has no deadline */
	int64_t deadline_ns;
	bool keep_alive;
	bool head_only;
	struct http_stream *stream; /* STREAMING, and its owner still sends */
};

struct http_exchange {
	struct http_connection *connection;
	bool answered;
};

struct http_stream {
	struct http_connection *connection; /* NULL: the client is gone */
	void (*gone)(void *arg);
	void *arg;
	uint64_t sent; /* bytes, its head included */
};

struct http_server {
	struct http_config config;
	struct connection_budget *own_budget; /* NULL: it shares one */
	struct event_base *loop;
	int fd; /* listens */
	struct event *acceptable;
	struct event *resume;
	int64_t pause_ns; /* the last one; 0: accept() works */
	struct event *timer;
	TAILQ_HEAD(, http_connection) connections;
	size_t n_connections;
};

/* -- connections */

static void end_stream(struct http_connection *connection)
{
	struct http_stream *stream = take(connection->stream);

	if (!stream)
		return;
	stream->connection = NULL;
	stream->gone(stream->arg);
	free(stream);
}

static void end_connection(struct http_connection *connection)
{
	struct http_server *server = connection->server;

	TAILQ_REMOVE(&server->connections, connection, list);
	server->n_connections--;
	connection_budget_give(server->config.budget, &connection->place);
	bufferevent_free(connection->bufev);
	end_stream(connection);
	free(connection);
}

static void enter(struct http_connection *connection, enum place_state state)
{
	const struct http_server *server = connection->server;
	int64_t wait = state == PLACE_WAITING ? server->config.limits.head_ns
					      : server->config.limits.reply_ns;

	connection->place.state = state;
	connection->place.since_ns = clock_now_ns();
	connection->deadline_ns = connection->place.since_ns + wait;
}

static void end_late_ones(struct http_server *server)
{
	struct http_connection *connection = TAILQ_FIRST(&server->connections);
	int64_t now = clock_now_ns();

	while (connection) {
		struct http_connection *next = TAILQ_NEXT(connection, list);

		if (connection->place.state != PLACE_STREAMING && connection->deadline_ns <= now)
			end_connection(connection);
		connection = next;
	}
}

/* The timer runs only while there are connections: idle servers do not wake the daemon. */
static void start_timer(struct http_server *server)
{
	if (server->n_connections > 0 && !evtimer_pending(server->timer, NULL))
		loop_arm(server->timer, TICK_NS);
}

static void on_tick(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	end_late_ones(arg);
	start_timer(arg);
}

/* -- requests */

static void refuse(struct http_connection *connection, int status, const char *text)
{
	struct http_exchange exchange = {.connection = connection};

	connection->keep_alive = connection->head_only = false;
	http_reply_text(&exchange, status, text);
}

static void serve(struct http_connection *connection, const struct http_request *request)
{
	const struct http_config *config = &connection->server->config;
	struct http_exchange exchange = {.connection = connection};

	connection->keep_alive = request->keep_alive;
	connection->head_only = request->method == HTTP_HEAD;
	config->handler(config->arg, &exchange, request);
	assert(exchange.answered);
}

/* One request at most: the next one is looked at when the answer has been taken. */
static void read_request(struct http_connection *connection)
{
	struct evbuffer *input = bufferevent_get_input(connection->bufev);
	size_t n = MIN(evbuffer_get_length(input), HTTP_HEAD_MAX);
	struct http_request request;
	char head[HTTP_HEAD_MAX];
	int r;

	if (connection->place.state != PLACE_WAITING || n == 0)
		return;
	evbuffer_copyout(input, head, n);
	r = http_request_parse(head, n, &request);
	if (r > 0) {
		evbuffer_drain(input, (size_t)r);
		serve(connection, &request);
	} else if (r < 0) {
		refuse(connection, 400, "This is not an HTTP request.\n");
	} else if (n == HTTP_HEAD_MAX) {
		refuse(connection, 431, "The request's headers are too long.\n");
	}
}

/*
 * What comes while an answer is under way is left alone. Once it is as much as is ever read at a time no more is
 * taken in: libevent would call again and again, for as long as the client does not take its answer.
 */
static void on_read(struct bufferevent *bufev, void *arg)
{
	struct http_connection *connection = arg;

	if (connection->place.state == PLACE_WAITING)
		read_request(connection);
	else if (evbuffer_get_length(bufferevent_get_input(bufev)) >= HTTP_HEAD_MAX)
		bufferevent_disable(bufev, EV_READ);
}

/* Everything has been taken by the kernel. */
static void on_written(struct bufferevent *bufev attr_unused, void *arg)
{
	struct http_connection *connection = arg;

	if (connection->place.state != PLACE_REPLYING)
		return;
	if (!connection->keep_alive) {
		end_connection(connection);
		return;
	}
	enter(connection, PLACE_WAITING);
	bufferevent_enable(connection->bufev, EV_READ);
	read_request(connection);
}

/* The end of the client's side, or an error. An answer under way still goes out after an end. */
static void on_event(struct bufferevent *bufev attr_unused, short what, void *arg)
{
	struct http_connection *connection = arg;

	if (what & BEV_EVENT_EOF && connection->place.state == PLACE_REPLYING)
		connection->keep_alive = false;
	else
		end_connection(connection);
}

/* -- accepting */

static struct http_connection *connection_at(struct connection_place *place)
{
	return (struct http_connection *)((char *)place - offsetof(struct http_connection, place));
}

/* Of this server or, where all servers together have too many, of its kind. */
static bool make_room(struct http_server *server)
{
	const struct http_config *config = &server->config;
	bool full = server->n_connections >= config->limits.connections;
	struct connection_place *victim;

	if (!full && connection_budget_has_room(config->budget, config->kind))
		return true;
	connection_budget_count_refused(config->budget, config->kind);
	victim = connection_budget_victim(config->budget, config->kind, full ? server : NULL);
	if (victim)
		end_connection(connection_at(victim));
	return victim != NULL;
}

/* Answers are written whole, so the kernel need not wait for more: that took 40 ms for long ones. */
static void send_at_once(struct http_connection *connection, int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* slower without, no more */
	bufferevent_set_max_single_write(connection->bufev, WRITE_BYTES);
}

void http_server_serve(struct http_server *server, int fd)
{
	struct http_connection *connection;

	if (!make_room(server)) {
		close(fd);
		return;
	}
	connection = xcalloc(1, sizeof(*connection));
	connection->server = server;
	connection->bufev = bufferevent_socket_new(server->loop, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!connection->bufev)
		oom("a connection", 0);
	send_at_once(connection, fd);
	TAILQ_INSERT_TAIL(&server->connections, connection, list);
	server->n_connections++;
	connection->place.server = server;
	connection->place.kind = server->config.kind;
	enter(connection, PLACE_WAITING);
	connection_budget_take(server->config.budget, &connection->place);
	start_timer(server);
	bufferevent_setcb(connection->bufev, on_read, on_written, on_event, connection);
	bufferevent_setwatermark(connection->bufev, EV_READ, 0, HTTP_HEAD_MAX);
	bufferevent_enable(connection->bufev, EV_READ | EV_WRITE);
}

static void pause_listening(struct http_server *server, int code)
{
	server->pause_ns = MIN(MAX(2 * server->pause_ns, PAUSE_MIN_NS), PAUSE_MAX_NS);
	if (event_del(server->acceptable) < 0)
		oom("an event of a server", 0);
	loop_arm(server->resume, server->pause_ns);
	connection_budget_cannot_accept(server->config.budget, code);
}

static void on_resume(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct http_server *server = arg;

	if (event_add(server->acceptable, NULL) < 0)
		oom("an event of a server", 0);
}

/* The client has already gone, or comes no more: nothing that a pause would mend. */
static bool is_harmless(int code)
{
	return code == EAGAIN || code == EINTR || code == ECONNABORTED;
}

/*
 * How many clients in one turn of the loop. There may be a thousand health check ports of Services; of the
 * others there is one each, where those who probe must not wait behind a crowd for long. But fewer than a
 * kind of server is sure of: who was let in has a turn to ask before it could have to give way.
 */
static int accepts_per_turn(const struct http_server *server)
{
	return server->config.kind == CONNECTION_SERVICE ? 4 : 16;
}

static void on_acceptable(evutil_socket_t listener, short what attr_unused, void *arg)
{
	struct http_server *server = arg;
	int n = accepts_per_turn(server);

	for (int i = 0; i < n; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (!is_harmless(errno))
				pause_listening(server, -errno);
			return;
		}
		server->pause_ns = 0;
		http_server_serve(server, fd);
	}
}

/* -- open and close */

static int start_listening(int fd, const struct http_config *config)
{
	struct sockaddr_storage address;
	socklen_t length = addr_socket(&config->addr, config->port, &address);
	int only_ipv6 = config->one_family;
	int one = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return -errno;
	if (address.ss_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_ipv6, sizeof(only_ipv6)) < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, length) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

static int listen_on(const struct http_config *config, int *ret)
{
	int domain = config->addr.family == FAMILY_IPV4 ? AF_INET : AF_INET6;
	int fd = socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = start_listening(fd, config);
	if (r < 0)
		close(fd);
	else
		*ret = fd;
	return r;
}

/*
 * One socket of IPv6 takes the clients of both families. IPv6 that is turned off by sysctl does not
 * hinder that; a kernel without it leaves IPv4.
 */
static int listen_on_both(const struct http_config *config, int *ret)
{
	struct http_config any = *config;
	int r;

	any.addr = (struct addr){.family = FAMILY_IPV6};
	r = listen_on(&any, ret);
	if (r != -EAFNOSUPPORT && r != -EADDRNOTAVAIL)
		return r;
	any.addr = (struct addr){.family = FAMILY_IPV4};
	return listen_on(&any, ret);
}

/* A server that shares with no other has a budget of its own. */
static struct connection_budget *own_budget(void)
{
	return connection_budget_new(&(struct connection_budget_config){.descriptors = SIZE_MAX});
}

static int open_listener(const struct http_config *config, int *ret, struct err *err)
{
	char name[ADDR_PORT_TEXT_MAX];
	bool both = addr_is_unspecified(&config->addr) && !config->one_family;
	int r = connection_budget_listen(config->budget, config->kind, err);

	addr_port_print(&config->addr, config->port, name);
	if (r < 0)
		return err_wrap(err, r, "listening on %s", name);
	r = both ? listen_on_both(config, ret) : listen_on(config, ret);
	if (r < 0) {
		connection_budget_unlisten(config->budget);
		return err_sys(err, r, "listening on %s", name);
	}
	return 0;
}

int http_server_open(struct event_base *loop, const struct http_config *config,
		     struct http_server **ret, struct err *err)
{
	struct http_server *server = xcalloc(1, sizeof(*server));
	int r;

	server->config = *config;
	if (!config->budget)
		server->config.budget = server->own_budget = own_budget();
	r = open_listener(&server->config, &server->fd, err);
	if (r < 0) {
		connection_budget_free(server->own_budget);
		free(server);
		return r;
	}
	server->loop = loop;
	TAILQ_INIT(&server->connections);
	server->acceptable =
		loop_watch(loop, server->fd, EV_READ | EV_PERSIST, on_acceptable, server);
	server->resume = loop_timer(loop, on_resume, server);
	server->timer = loop_timer(loop, on_tick, server);
	*ret = server;
	return 0;
}

struct http_server *http_server_close(struct http_server *server)
{
	struct http_connection *connection, *next;

	if (!server)
		return NULL;
	for (connection = TAILQ_FIRST(&server->connections); connection; connection = next) {
		next = TAILQ_NEXT(connection, list);
		end_connection(connection);
	}
	loop_free(server->timer);
	loop_free(server->resume);
	loop_free(server->acceptable);
	close(server->fd);
	connection_budget_unlisten(server->config.budget);
	connection_budget_free(server->own_budget);
	free(server);
	return NULL;
}

uint16_t http_server_port(const struct http_server *server)
{
	struct sockaddr_in6 address = {0}; /* IPv4 has its port in the same place */
	socklen_t length = sizeof(address);

	_Static_assert(offsetof(struct sockaddr_in, sin_port) ==
			       offsetof(struct sockaddr_in6, sin6_port),
		       "in the same place");
	if (getsockname(server->fd, (struct sockaddr *)&address, &length) < 0)
		return 0;
	return ntohs(address.sin6_port);
}

size_t http_server_connections(const struct http_server *server)
{
	return server->n_connections;
}

/* -- answers */

static const char *status_text(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 421:
		return "Misdirected Request";
	case 422:
		return "Unprocessable Content";
	case 431:
		return "Request Header Fields Too Large";
	case 500:
		return "Internal Server Error";
	case 501:
		return "Not Implemented";
	case 503:
		return "Service Unavailable";
	default:
		return STATUS_OTHER;
	}
}

static void print_date(char out[static DATE_MAX])
{
	time_t now = time(NULL);
	struct tm parts;

	gmtime_r(&now, &parts);
	strftime(out, DATE_MAX, "%a, %d %b %Y %H:%M:%S GMT", &parts);
}

static void put_head(const struct http_connection *connection, struct evbuffer *out, int status,
		     const struct http_header *headers, size_t n_headers)
{
	char date[DATE_MAX];

	print_date(date);
	evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, status_text(status),
			    date);
	for (size_t i = 0; i < n_headers; i++)
		evbuffer_add_printf(out, "%s: %s\r\n", headers[i].name, headers[i].value);
	evbuffer_add_printf(out, "Connection: %s\r\n",
			    connection->keep_alive ? "keep-alive" : "close");
}

static void put_body(struct evbuffer *out, struct text *body)
{
	const char *data;
	size_t n;

	while ((data = text_head(body, &n))) {
		if (evbuffer_add(out, data, n) < 0)
			oom("an answer", n);
		text_consume(body, n);
	}
}

void http_reply(struct http_exchange *exchange, int status, const struct http_header *headers,
		size_t n_headers, struct text *body)
{
	struct http_connection *connection = exchange->connection;
	struct evbuffer *out = bufferevent_get_output(connection->bufev);

	assert(!exchange->answered);
	exchange->answered = true;
	put_head(connection, out, status, headers, n_headers);
	evbuffer_add_printf(out, "Content-Length: %zu\r\n\r\n", body ? body->size : 0);
	if (body && !connection->head_only)
		put_body(out, body);
	enter(connection, PLACE_REPLYING);
}

void http_reply_text(struct http_exchange *exchange, int status, const char *line)
{
	static const struct http_header headers[] = {
		{"Content-Type", "text/plain; charset=utf-8"},
		{"X-Content-Type-Options", "nosniff"},
	};
	cleanup_text struct text body = {0};

	text_str(&body, line);
	http_reply(exchange, status, headers, ARRAY_SIZE(headers), &body);
}

/* -- streams */

struct http_stream *http_stream(struct http_exchange *exchange, const char *content_type,
				void (*gone)(void *arg), void *arg)
{
	struct http_connection *connection = exchange->connection;
	struct evbuffer *out = bufferevent_get_output(connection->bufev);
	const struct http_header headers[] = {
		{"Content-Type", content_type},
		{"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"},
	};
	struct http_stream *stream = xcalloc(1, sizeof(*stream));

	assert(!exchange->answered);
	exchange->answered = true;
	connection->keep_alive = false;
	put_head(connection, out, 200, headers, ARRAY_SIZE(headers));
	evbuffer_add_printf(out, "\r\n");
	enter(connection, PLACE_STREAMING);
	stream->connection = connection;
	stream->gone = gone;
	stream->arg = arg;
	stream->sent = evbuffer_get_length(out);
	connection->stream = stream;
	return stream;
}

void http_stream_send(struct http_stream *stream, const char *data, size_t n)
{
	struct http_connection *connection = stream->connection;
	struct evbuffer *out = bufferevent_get_output(connection->bufev);

	if (evbuffer_get_length(out) + n > connection->server->config.limits.stream_bytes)
		end_connection(connection); /* frees the stream and tells its owner */
	else if (evbuffer_add(out, data, n) < 0)
		oom("an answer", n);
	else
		stream->sent += n;
}

size_t http_stream_pending(const struct http_stream *stream)
{
	return evbuffer_get_length(bufferevent_get_output(stream->connection->bufev));
}

uint64_t http_stream_taken(const struct http_stream *stream)
{
	return stream->sent - http_stream_pending(stream);
}

void http_stream_close(struct http_stream *stream)
{
	struct http_connection *connection = stream->connection;

	connection->stream = NULL;
	free(stream);
	enter(connection, PLACE_REPLYING);
	if (evbuffer_get_length(bufferevent_get_output(connection->bufev)) == 0)
		end_connection(connection);
}
