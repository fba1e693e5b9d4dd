/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client of an http_server on the same loop and thread: it lets the server have its turns. Brings cmocka along. */

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "serving/http_server.h"

#define PATIENCE_NS (20 * CLOCK_NS_PER_SECOND)

/* A server on the loopback. */
attr_unused static struct http_server *client_server(struct event_base *loop,
						     const struct http_limits *limits,
						     http_handler_fn *handler, void *arg)
{
	const struct http_config config = {
		.addr = {.family = FAMILY_IPV4, .bytes = {127, 0, 0, 1}},
		.limits = *limits,
		.handler = handler,
		.arg = arg,
	};
	struct http_server *server = NULL;
	struct err err;

	assert_int_equal(http_server_open(loop, &config, &server, &err), 0);
	assert_true(http_server_port(server) > 0);
	return server;
}

/* receive: bytes of its receive buffer; 0: as it comes. */
attr_unused static int client_connect(const struct http_server *server, int receive)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(http_server_port(server)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	if (receive)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof(receive));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

attr_unused static void send_text(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Lets the server do what it can, then waits a moment for something to reach the client. */
attr_unused static void client_turn(struct event_base *loop, int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	event_base_loop(loop, EVLOOP_NONBLOCK);
	poll(&poll_fd, 1, 5);
}

/* Reads until `until` shows up, or (NULL) the end. Returns what came, for the caller to free. */
attr_unused static char *client_read(struct event_base *loop, int fd, const char *until)
{
	cleanup_text struct text text = {0};
	int64_t limit = clock_now_ns() + PATIENCE_NS;
	char *all = text_dup(&text);

	for (;;) {
		char buffer[65536];
		ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);

		assert_true(clock_now_ns() < limit);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return all;
		if (n < 0) {
			client_turn(loop, fd);
			continue;
		}
		text_add(&text, buffer, (size_t)n);
		free(all);
		all = text_dup(&text);
		if (until && strstr(all, until))
			return all;
	}
}
