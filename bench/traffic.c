/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Traffic for bench/traffic.py, as much as goes through.
 *
 *	bench-traffic serve PORT                      takes TCP connections and datagrams, and drops what comes
 *	bench-traffic connect ADDRESS PORT SECONDS    connections a second, one after the other, closed by a reset
 *	bench-traffic handshakes ADDRESS PORT SECONDS    1,000 connections a second: microseconds until one stands, median
 *	bench-traffic packets ADDRESS PORT SECONDS    datagrams of 64 bytes a second
 *	bench-traffic stream ADDRESS PORT SECONDS     bytes a second over one connection
 *	bench-traffic flows ADDRESS PORT COUNT        so many datagrams, each from a port of its own: how many were sent
 *
 * Prints the number.
 */

#include <arpa/inet.h>
#include <err.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FIRST_PORT 1024
#define PORTS      64000
#define DATAGRAM   64
#define PACE       1000 /* handshakes a second */

static char buffer[1 << 16];

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct sockaddr_in parse(const char *address, const char *port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		errx(1, "%s is no address", address);
	return to;
}

static int open_socket(int kind, const struct sockaddr_in *to)
{
	const struct linger reset = {.l_onoff = 1};
	int fd = socket(AF_INET, kind, 0);

	if (fd < 0)
		err(1, "socket");
	if (kind == SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (to && connect(fd, (const void *)to, sizeof(*to)) < 0)
		err(1, "connect");
	return fd;
}

/* One connection at a time is all that the clients above have. */
static void serve(const char *port)
{
	struct sockaddr_in here = parse("0.0.0.0", port);
	int listener = open_socket(SOCK_STREAM, NULL);
	int datagrams = open_socket(SOCK_DGRAM, NULL);
	int on = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (void *)&here, sizeof(here)) < 0 || listen(listener, 1024) < 0 ||
	    bind(datagrams, (void *)&here, sizeof(here)) < 0)
		err(1, "port %s", port);
	for (;;) {
		struct pollfd both[] = {{listener, POLLIN, 0}, {datagrams, POLLIN, 0}};

		if (poll(both, 2, -1) < 0)
			err(1, "poll");
		if (both[1].revents)
			while (recv(datagrams, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
				;
		if (both[0].revents) {
			int fd = accept(listener, NULL, NULL);

			while (fd >= 0 && read(fd, buffer, sizeof(buffer)) > 0)
				;
			if (fd >= 0)
				close(fd);
		}
	}
}

static double run_connect(const struct sockaddr_in *to, double seconds)
{
	double begin = now();
	double n = 0;

	for (; now() - begin < seconds; n++)
		close(open_socket(SOCK_STREAM, to));
	return n / (now() - begin);
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double run_handshakes(const struct sockaddr_in *to, double seconds)
{
	size_t n = (size_t)(seconds * PACE);
	double *took = calloc(n + 1, sizeof(*took));
	double begin = now();
	double median;

	if (!took || n == 0)
		errx(1, "%g seconds", seconds);
	for (size_t i = 0; i < n; i++) {
		double wait = begin + (double)i / PACE - now();
		double start;
		int fd;

		if (wait > 0)
			usleep((useconds_t)(wait * 1e6));
		start = now();
		fd = open_socket(SOCK_STREAM, to);
		took[i] = now() - start;
		close(fd);
	}
	qsort(took, n, sizeof(*took), compare);
	median = took[n / 2] * 1e6;
	free(took);
	return median;
}

static double run_sends(int kind, size_t size, const struct sockaddr_in *to, double seconds)
{
	int fd = open_socket(kind, to);
	double begin = now();
	double sum = 0;

	while (now() - begin < seconds)
		for (int i = 0; i < 64; i++) {
			ssize_t n = send(fd, buffer, size, 0);

			sum += kind == SOCK_DGRAM ? n > 0 : n > 0 ? (double)n : 0;
		}
	sum /= now() - begin;
	close(fd);
	return sum;
}

static double run_flows(const struct sockaddr_in *to, long count)
{
	double sent = 0;

	for (long i = 0; i < count; i++) {
		struct sockaddr_in from = {.sin_family = AF_INET,
					   .sin_port = htons((uint16_t)(FIRST_PORT + i % PORTS))};
		struct sockaddr_in target = *to;
		int fd = open_socket(SOCK_DGRAM, NULL);

		/* more than there are ports: the next target */
		target.sin_port = htons((uint16_t)(ntohs(to->sin_port) + i / PORTS));
		if (bind(fd, (void *)&from, sizeof(from)) == 0)
			sent += sendto(fd, buffer, DATAGRAM, 0, (void *)&target, sizeof(target)) >
				0;
		close(fd);
	}
	return sent;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to;
	double number;

	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(argv[2]);
	if (argc != 5)
		errx(2, "see the head of the source");
	to = parse(argv[2], argv[3]);
	number = strtod(argv[4], NULL);
	if (strcmp(argv[1], "connect") == 0)
		number = run_connect(&to, number);
	else if (strcmp(argv[1], "handshakes") == 0)
		number = run_handshakes(&to, number);
	else if (strcmp(argv[1], "packets") == 0)
		number = run_sends(SOCK_DGRAM, DATAGRAM, &to, number);
	else if (strcmp(argv[1], "stream") == 0)
		number = run_sends(SOCK_STREAM, sizeof(buffer), &to, number);
	else
		number = run_flows(&to, (long)number);
	printf("%.2f\n", number);
	return 0;
}
