/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A small HTTP/1.1 server on the event loop, for pages that a program has at hand: health, metrics,
 * status. It is meant to stand in the open, so everything that a client may do is bounded:
 *
 *   - connections: at most http_limits.connections, and what the budget that servers share has left. One more
 *     takes the place of another one, see connection_budget.h; it is closed only where all are streams;
 *   - a request: its head has 8 KiB and must be there within head_ns, however it trickles in; the
 *     next one on the same connection likewise;
 *   - an answer: the client must have taken it within reply_ns. The next request is not looked at
 *     before, so nothing piles up;
 *   - a stream: a client that lags behind by more than stream_bytes is cut off.
 *
 * A server that cannot accept pauses, for 0.64 s at most.
 *
 * libevent's own evhttp knows no bound on connections, nor on the whole time of a request.
 */

#include "base/addr.h"
#include "base/err.h"
#include "base/text.h"
#include "serving/connection_budget.h"
#include "serving/http_request.h"

struct event_base;
struct http_server;
struct http_exchange; /* a request that waits for its answer */

struct http_limits {
	size_t connections;
	int64_t head_ns;
	int64_t reply_ns;
	size_t stream_bytes;
};

extern const struct http_limits http_limits_default; /* 256, 10 s, 30 s, 1 MiB */

/* Answers, before it returns, with http_reply() or http_stream(). */
typedef void http_handler_fn(void *arg, struct http_exchange *exchange,
			     const struct http_request *request);

struct http_config {
	struct addr addr; /* either unspecified address serves both families, unless one_family */
	bool one_family;  /* its own: another server may have the port in the other one */
	uint16_t port;    /* 0: any; see http_server_port() */
	struct http_limits limits;
	struct connection_budget *budget; /* borrowed; NULL: it shares with no other */
	enum connection_kind kind;
	http_handler_fn *handler;
	void *arg;
};

/* config is copied. The error names the address and the port. */
int http_server_open(struct event_base *loop, const struct http_config *config,
		     struct http_server **ret, struct err *err);
/* Accepts NULL, returns NULL; ends all connections. */
struct http_server *http_server_close(struct http_server *server);
/* One more client, as if it had been accepted; takes the socket, which must not block. */
void http_server_serve(struct http_server *server, int fd);
uint16_t http_server_port(const struct http_server *server);
size_t http_server_connections(const struct http_server *server);

struct http_header {
	const char *name;
	const char *value;
};

/* headers beyond Content-Length, Date and Connection; body is emptied and may be NULL. */
void http_reply(struct http_exchange *exchange, int status, const struct http_header *headers,
		size_t n_headers, struct text *body);
/* One line of plain text. */
void http_reply_text(struct http_exchange *exchange, int status, const char *line);

/*
 * An answer without an end: what is sent with http_stream_send() goes out as it comes. gone() is
 * called once when the client is no longer there, and never after http_stream_close().
 */
struct http_stream;
struct http_stream *http_stream(struct http_exchange *exchange, const char *content_type,
				void (*gone)(void *arg), void *arg);
void http_stream_send(struct http_stream *stream, const char *data, size_t n);
/* Bytes that the kernel has not taken yet: how far the client lags behind. */
size_t http_stream_pending(const struct http_stream *stream);
/* Bytes that it has taken: as long as they grow the client reads. */
uint64_t http_stream_taken(const struct http_stream *stream);
void http_stream_close(struct http_stream *stream);
