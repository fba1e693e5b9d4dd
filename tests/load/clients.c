/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HTTP clients that ask at a steady pace: load-clients SECONDS {PORT PATH RATE CONNECTIONS}...
 *
 * Each line of clients keeps its connections to 127.0.0.1:PORT open and sends RATE requests a second
 * over them in turn. A request is sent when its time has come, not when the last answer is there, so
 * that a slow server is seen as slow; when all connections wait it is made up for later. Prints one
 * JSON list with an object for each line: how many requests were answered with 200, how many
 * otherwise, how often all connections waited when a request was due, and the longest wait in ms.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS    1000000000LL
#define HEAD_MAX     4096
#define READ_BYTES   (1 << 16)
#define LINES_MAX    8
#define LINE_ARGS    4
#define LAST_WAIT_NS (10 * SECOND_NS) /* for answers when the time is up */

struct line;

struct client {
	struct line *line;
	int fd;
	bool waiting;
	int64_t sent_ns;
	char head[HEAD_MAX + 1];
	size_t n_head;
	size_t body_left;
	bool in_body;
	bool ok;
};

struct line {
	const char *path;
	uint16_t port;
	long rate;
	size_t n_clients;
	struct client *clients;
	size_t turn;
	int64_t next_ns;
	size_t n_waiting;
	unsigned long answered, others, late;
	int64_t longest_ns;
};

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "load-clients: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* -- one client */

static void client_connect(struct client *client, int epoll)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(client->line->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
	int one = 1;

	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->fd < 0 ||
	    connect(client->fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, client->fd, &event) < 0)
		fail("connecting");
}

static void client_send(struct client *client, int64_t now)
{
	char request[256];
	int n = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
			 client->line->path);

	if (send(client->fd, request, (size_t)n, MSG_NOSIGNAL) != n)
		fail("sending a request");
	client->waiting = true;
	client->sent_ns = now;
	client->n_head = 0;
	client->in_body = false;
	client->line->n_waiting++;
}

static void client_answered(struct client *client)
{
	struct line *line = client->line;
	int64_t took = now_ns() - client->sent_ns;

	client->waiting = false;
	line->n_waiting--;
	if (client->ok)
		line->answered++;
	else
		line->others++;
	if (took > line->longest_ns)
		line->longest_ns = took;
}

/* The head is complete when it holds an empty line; what follows is the body. */
static size_t client_take_head(struct client *client, const char *data, size_t n)
{
	const char *length;
	size_t taken = 0;

	while (taken < n && client->n_head < HEAD_MAX) {
		client->head[client->n_head++] = data[taken++];
		client->head[client->n_head] = '\0';
		if (client->n_head < 4 ||
		    strcmp(client->head + client->n_head - 4, "\r\n\r\n") != 0)
			continue;
		length = strstr(client->head, "Content-Length: ");
		client->body_left =
			length ? strtoul(length + strlen("Content-Length: "), NULL, 10) : 0;
		client->ok = strncmp(client->head, "HTTP/1.1 200 ", 13) == 0;
		client->in_body = true;
		return taken;
	}
	if (client->n_head == HEAD_MAX) {
		errno = EMSGSIZE;
		fail("the head of an answer");
	}
	return taken;
}

/* The server closes a connection on which nothing was asked for some seconds, as when this program got no
 * processor: then there is another one. One that waits for an answer must get it. */
static void client_read(struct client *client, int epoll)
{
	static char data[READ_BYTES];
	ssize_t n = recv(client->fd, data, sizeof(data), 0);
	size_t at = 0;

	if (n == 0 && !client->waiting) {
		close(client->fd);
		client_connect(client, epoll);
		return;
	}
	if (n <= 0)
		fail("a connection ended");
	if (!client->in_body)
		at = client_take_head(client, data, (size_t)n);
	if (!client->in_body)
		return;
	if ((size_t)n - at > client->body_left) {
		errno = EPROTO;
		fail("more than was announced");
	}
	client->body_left -= (size_t)n - at;
	if (client->body_left == 0 && client->waiting)
		client_answered(client);
}

/* -- a line of clients */

static struct client *line_idle(struct line *line)
{
	for (size_t i = 0; i < line->n_clients; i++) {
		struct client *client = &line->clients[line->turn++ % line->n_clients];

		if (!client->waiting)
			return client;
	}
	return NULL;
}

static void line_send_due(struct line *line, int64_t now)
{
	while (line->next_ns <= now) {
		struct client *client = line_idle(line);

		if (!client) {
			line->late++;
			return;
		}
		client_send(client, now);
		line->next_ns += SECOND_NS / line->rate;
	}
}

static void line_open(struct line *line, char **argv, int epoll)
{
	line->port = (uint16_t)strtoul(argv[0], NULL, 10);
	line->path = argv[1];
	line->rate = strtol(argv[2], NULL, 10);
	line->n_clients = strtoul(argv[3], NULL, 10);
	line->clients = calloc(line->n_clients, sizeof(*line->clients));
	if (!line->clients || line->rate <= 0) {
		errno = EINVAL;
		fail("arguments");
	}
	for (size_t i = 0; i < line->n_clients; i++) {
		line->clients[i].line = line;
		client_connect(&line->clients[i], epoll);
	}
}

static void line_print(const struct line *line, bool first)
{
	printf("%s{\"path\": \"%s\", \"answered\": %lu, \"others\": %lu, \"late\": %lu, "
	       "\"longest_ms\": %.1f}",
	       first ? "" : ", ", line->path, line->answered, line->others, line->late,
	       (double)line->longest_ns / 1e6);
}

/* -- all */

/* Waits for at most a millisecond, and reads what has come. */
static void take_answers(int epoll)
{
	struct epoll_event events[64];
	int n = epoll_wait(epoll, events, 64, 1);

	if (n < 0 && errno != EINTR)
		fail("waiting");
	for (int i = 0; i < n; i++)
		client_read(events[i].data.ptr, epoll);
}

static bool any_waits(const struct line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (lines[i].n_waiting > 0)
			return true;
	return false;
}

static void ask(struct line *lines, size_t n, int epoll, int64_t end)
{
	int64_t now = now_ns();

	for (size_t i = 0; i < n; i++)
		lines[i].next_ns = now;
	for (; now < end; now = now_ns()) {
		for (size_t i = 0; i < n; i++)
			line_send_due(&lines[i], now);
		take_answers(epoll);
	}
	while (any_waits(lines, n) && now_ns() < end + LAST_WAIT_NS)
		take_answers(epoll);
}

int main(int argc, char **argv)
{
	struct line lines[LINES_MAX] = {0};
	size_t n = (size_t)(argc - 2) / LINE_ARGS;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || argc < 2 + LINE_ARGS || (argc - 2) % LINE_ARGS != 0 || n > LINES_MAX) {
		fprintf(stderr, "use: load-clients SECONDS {PORT PATH RATE CONNECTIONS}...\n");
		return 2;
	}
	for (size_t i = 0; i < n; i++)
		line_open(&lines[i], argv + 2 + i * LINE_ARGS, epoll);
	ask(lines, n, epoll, now_ns() + strtol(argv[1], NULL, 10) * SECOND_NS);
	printf("[");
	for (size_t i = 0; i < n; i++) {
		line_print(&lines[i], i == 0);
		for (size_t j = 0; j < lines[i].n_clients; j++)
			close(lines[i].clients[j].fd);
		free(lines[i].clients);
	}
	printf("]\n");
	close(epoll);
	return 0;
}
