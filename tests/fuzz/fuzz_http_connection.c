/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as what a client sends on one connection, request behind request, through the real server: once in one piece, once in
 * pieces as the first byte says. Both times the same requests must be understood, and each gets one answer.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_http_connection
 *	build-fuzz/tests/fuzz/fuzz_http_connection tests/fuzz/corpus/http_connection
 */

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serving/http_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEND_BUFFER 4096
#define LONG_ANSWER (20UL * 1024) /* more than a socket takes at once */
#define QUIET_TURNS 2             /* of the loop without news: nothing more comes */
#define PIECES_MAX  100           /* turns take time */

/* One way of sending it all, and what came of it. */
struct run {
	struct text requests; /* as they were understood */
	size_t n_requests;
	size_t n_answers, n_bytes; /* that the client got */
	char last[16];             /* bytes, in a ring */
	bool ended;                /* by the server */
};

static struct event_base *loop;
static struct http_server *server;
static struct run *running;

static void stream_gone(void *arg attr_unused)
{
	assert(!"nobody goes before the stream ends");
}

static void reply_long(struct http_exchange *exchange)
{
	cleanup_text struct text body = {0};
	cleanup_free char *many = xcalloc(1, LONG_ANSWER);

	memset(many, 'x', LONG_ANSWER - 1);
	text_str(&body, many);
	http_reply(exchange, 200, NULL, 0, &body);
}

static void handle(void *arg attr_unused, struct http_exchange *exchange,
		   const struct http_request *request)
{
	struct http_stream *stream;

	running->n_requests++;
	text_printf(&running->requests, "%d %s?%s %s %s %.*s %d\n", request->method, request->path,
		    request->query, request->host, request->accept, (int)request->n_body,
		    request->body, request->keep_alive);
	if (streq(request->path, "/stream")) {
		stream = http_stream(exchange, "text/event-stream", stream_gone, NULL);
		http_stream_send(stream, "data\n", 5);
		http_stream_close(stream);
	} else if (streq(request->path, "/long")) {
		reply_long(exchange);
	} else {
		http_reply_text(exchange, 200, "text\n");
	}
}

static void open_server(void)
{
	const struct http_config config = {
		.addr = {.family = FAMILY_IPV4, .bytes = {127, 0, 0, 1}},
		.limits = http_limits_default,
		.handler = handle,
	};
	struct err err;
	int r;

	loop = event_base_new();
	r = http_server_open(loop, &config, &server, &err);
	assert(r == 0);
}

/* Each answer begins with this, and nothing else does: paths and hosts are not sent back. */
static void count_answers(struct run *run, const char *data, size_t n)
{
	static const char begin[] = "HTTP/1.1 ";
	const size_t length = sizeof(begin) - 1;

	for (size_t i = 0; i < n; i++) {
		memmove(run->last, run->last + 1, length - 1);
		run->last[length - 1] = data[i];
		run->n_answers += memcmp(run->last, begin, length) == 0;
	}
	run->n_bytes += n;
}

/* Lets the server do what it can, and takes what it answers. */
static void turn(struct run *run, int client)
{
	static char data[64 * 1024];
	ssize_t n;

	event_base_loop(loop, EVLOOP_NONBLOCK);
	while ((n = recv(client, data, sizeof(data), MSG_DONTWAIT)) > 0)
		count_answers(run, data, (size_t)n);
	run->ended = run->ended || n == 0 || errno == ECONNRESET;
}

static void turn_until_quiet(struct run *run, int client)
{
	for (int quiet = 0; quiet < QUIET_TURNS; quiet++) {
		size_t before = run->n_bytes + run->n_requests;

		turn(run, client);
		if (run->n_bytes + run->n_requests != before)
			quiet = -1;
	}
}

static void send_all(struct run *run, const uint8_t *data, size_t size, size_t piece)
{
	const int bytes = SEND_BUFFER;
	int fds[2];
	int r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds);

	assert(r == 0 && setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == 0);
	running = run;
	http_server_serve(server, fds[1]);
	for (size_t at = 0; at < size && !run->ended; at += piece) {
		size_t n = MIN(piece, size - at);

		if (send(fds[0], data + at, n, MSG_NOSIGNAL) != (ssize_t)n)
			break; /* it has ended; or is full of what the server does not read any more */
		turn_until_quiet(run, fds[0]);
	}
	turn_until_quiet(run, fds[0]);
	close(fds[0]);
	while (http_server_connections(server) > 0)
		event_base_loop(loop, EVLOOP_ONCE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run whole = {0}, pieces = {0};
	cleanup_free char *one = NULL, *other = NULL;

	if (size < 2)
		return 0;
	if (!server)
		open_server();
	send_all(&whole, data + 1, size - 1, size);
	send_all(&pieces, data + 1, size - 1, MAX((size_t)data[0] + 1, size / PIECES_MAX));
	one = text_dup(&whole.requests);
	other = text_dup(&pieces.requests);
	assert(streq(one, other));
	/* what is no request gets one answer too, the last */
	assert(whole.n_answers == pieces.n_answers && whole.n_answers >= whole.n_requests &&
	       whole.n_answers <= whole.n_requests + 1 && whole.ended == pieces.ended);
	text_done(&whole.requests);
	text_done(&pieces.requests);
	return 0;
}
