/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every pod of a benchmark's cluster: bench-backend PORT.
 *
 * Listens on one port of all addresses of its namespace, of which there may be hundreds of
 * thousands by one route of type local. Whoever connects gets the address that he was led to, four
 * bytes in network order, and the end of the connection. "ready" on standard output: it listens.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 4096

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(fd, BACKLOG) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A client that went away is his own affair. */
static void answer(int client)
{
	struct sockaddr_in here;
	socklen_t size = sizeof(here);

	if (getsockname(client, (struct sockaddr *)&here, &size) == 0)
		(void)!send(client, &here.sin_addr, sizeof(here.sin_addr), MSG_NOSIGNAL);
	close(client);
}

int main(int argc, char **argv)
{
	int listener;

	if (argc != 2) {
		fprintf(stderr, "usage: bench-backend PORT\n");
		return 2;
	}
	listener = listen_on((uint16_t)atoi(argv[1]));
	if (listener < 0)
		return fail("listening");
	puts("ready");
	fflush(stdout);
	for (;;) {
		int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (client >= 0)
			answer(client);
		else if (errno != EINTR && errno != ECONNABORTED)
			return fail("accepting");
	}
}
