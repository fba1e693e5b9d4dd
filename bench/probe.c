/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks at a proxy from where its clients are. Connections are made one after the other, each with a
 * socket and a port of its own, so each is a first one to the kernel.
 *
 *   bench-probe until  TARGETS PORT LOW HIGH SECONDS
 *       Waits until each of the targets, in turn, leads to a backend of LOW..HIGH. Before that a
 *       connection is expected to be refused or to reach another backend.
 *   bench-probe rounds TARGETS PORT FIRST REGION ENDPOINTS ROUNDS
 *       Connects to every target ROUNDS times, shuffled, and times connect(). The target on line i
 *       (from 0) must lead to one of the addresses FIRST + r * REGION + i * ENDPOINTS + 1 ... for
 *       some r: a connection that fails or ends elsewhere is counted, not timed.
 *
 * TARGETS is a file with one IPv4 address a line, or "-" for standard input. Prints one JSON
 * object; times are those of CLOCK_MONOTONIC, which all processes of a machine share.
 *
 * The pause between two questions is 1/1000 of the time waited so far, at least PAUSE_MIN_NS: that
 * is the resolution, and it leaves the processor to the proxy.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S        1000000000LL
#define PAUSE_MIN_NS    250000LL
#define PAUSE_MAX_NS    20000000LL
#define PAUSE_PART      1000
#define PATIENCE_US     500000 /* for one connection, and for the backend's answer */
#define NO_BACKEND      0
#define TARGETS_AT_ONCE 1024

struct targets {
	uint32_t *ips; /* host order */
	size_t n;
};

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "bench-probe: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void pause_ns(int64_t ns)
{
	struct timespec time = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static uint32_t address(const char *text)
{
	struct in_addr ip;

	if (inet_pton(AF_INET, text, &ip) != 1) {
		errno = EINVAL;
		fail(text);
	}
	return ntohl(ip.s_addr);
}

static void targets_read(const char *path, struct targets *ret)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char line[64];

	*ret = (struct targets){};
	if (!file)
		fail(path);
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (ret->n % TARGETS_AT_ONCE == 0)
			ret->ips =
				realloc(ret->ips, (ret->n + TARGETS_AT_ONCE) * sizeof(*ret->ips));
		if (!ret->ips)
			fail("remembering targets");
		ret->ips[ret->n++] = address(line);
	}
	if (file != stdin)
		fclose(file);
	if (ret->n == 0) {
		errno = ENODATA;
		fail(path);
	}
}

/* The connection is closed by a reset, so that it leaves nothing behind that waits. */
static int socket_open(void)
{
	struct timeval patience = {.tv_usec = PATIENCE_US};
	struct linger reset = {.l_onoff = 1};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		fail("making a socket");
	return fd;
}

/* Which backend answers, or NO_BACKEND; how long connect() took and when it was done. */
static uint32_t ask(uint32_t ip, uint16_t port, int64_t *ret_duration, int64_t *ret_done)
{
	struct sockaddr_in there = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
	int fd = socket_open();
	uint32_t backend = NO_BACKEND;
	int64_t begin = now_ns();
	int r = connect(fd, (struct sockaddr *)&there, sizeof(there));

	*ret_done = now_ns();
	*ret_duration = *ret_done - begin;
	if (r == 0 && recv(fd, &backend, sizeof(backend), MSG_WAITALL) != sizeof(backend))
		backend = NO_BACKEND;
	close(fd);
	return ntohl(backend);
}

static int64_t pause_after(int64_t waited)
{
	int64_t pause = waited / PAUSE_PART;

	if (pause < PAUSE_MIN_NS)
		return PAUSE_MIN_NS;
	return pause > PAUSE_MAX_NS ? PAUSE_MAX_NS : pause;
}

static int until(const struct targets *targets, uint16_t port, char **argv)
{
	uint32_t low = address(argv[0]), high = address(argv[1]);
	int64_t began = now_ns(), limit = began + atoll(argv[2]) * NS_PER_S;
	int64_t duration, done = 0;
	size_t reached = 0, probes = 0;

	while (reached < targets->n) {
		uint32_t backend = ask(targets->ips[reached], port, &duration, &done);

		probes++;
		if (backend >= low && backend <= high) {
			reached++;
			continue;
		}
		if (done > limit)
			break;
		pause_ns(pause_after(done - began));
	}
	printf("{\"began_ns\": %lld, \"done_ns\": %lld, \"reached\": %zu, \"targets\": %zu, "
	       "\"probes\": %zu}\n",
	       (long long)began, (long long)done, reached, targets->n, probes);
	return 0;
}

static int compare(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return (one > other) - (one < other);
}

static void shuffle(size_t *order, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t other = (size_t)random() % i;
		size_t kept = order[i - 1];

		order[i - 1] = order[other];
		order[other] = kept;
	}
}

struct where {
	uint32_t first, region, endpoints;
};

static bool is_backend_of(const struct where *where, size_t target, uint32_t backend)
{
	uint32_t place;

	if (backend < where->first)
		return false;
	place = (backend - where->first) % where->region;
	return place > 0 && (place - 1) / where->endpoints == target;
}

/* Of sorted times. */
static double percentile_us(const int64_t *times, size_t n, size_t percent)
{
	size_t place = n * percent / 100;

	return (double)times[place] / 1e3;
}

static void print_rounds(int64_t *times, size_t n, size_t failed, size_t wrong)
{
	int64_t sum = 0;

	qsort(times, n, sizeof(*times), compare);
	for (size_t i = 0; i < n; i++)
		sum += times[i];
	printf("{\"connections\": %zu, \"failed\": %zu, \"wrong\": %zu", n, failed, wrong);
	if (n > 0)
		printf(", \"median_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f, \"mean_us\": "
		       "%.1f",
		       percentile_us(times, n, 50), percentile_us(times, n, 90),
		       percentile_us(times, n, 99), (double)sum / (double)n / 1e3);
	puts("}");
}

static int rounds(const struct targets *targets, uint16_t port, char **argv)
{
	struct where where = {.first = address(argv[0]),
			      .region = (uint32_t)atoll(argv[1]),
			      .endpoints = (uint32_t)atoll(argv[2])};
	size_t n_rounds = (size_t)atoll(argv[3]);
	int64_t *times = calloc(targets->n * n_rounds, sizeof(*times));
	size_t *order = calloc(targets->n, sizeof(*order));
	size_t n = 0, failed = 0, wrong = 0;
	int64_t done;

	if (!times || !order || where.region == 0 || where.endpoints == 0)
		fail("preparing rounds");
	for (size_t i = 0; i < targets->n; i++)
		order[i] = i;
	for (size_t round = 0; round < n_rounds; round++) {
		shuffle(order, targets->n);
		for (size_t i = 0; i < targets->n; i++) {
			uint32_t backend = ask(targets->ips[order[i]], port, &times[n], &done);

			if (backend == NO_BACKEND)
				failed++;
			else if (!is_backend_of(&where, order[i], backend))
				wrong++;
			else
				n++;
		}
	}
	print_rounds(times, n, failed, wrong);
	free(order);
	free(times);
	return 0;
}

int main(int argc, char **argv)
{
	struct targets targets;
	int r;

	if (argc < 4 || !((strcmp(argv[1], "until") == 0 && argc == 7) ||
			  (strcmp(argv[1], "rounds") == 0 && argc == 8))) {
		fprintf(stderr,
			"usage: bench-probe until TARGETS PORT LOW HIGH SECONDS\n"
			"       bench-probe rounds TARGETS PORT FIRST REGION ENDPOINTS ROUNDS\n");
		return 2;
	}
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	targets_read(argv[2], &targets);
	r = (argc == 7 ? until : rounds)(&targets, (uint16_t)atoi(argv[3]), argv + 4);
	free(targets.ips);
	return r;
}
