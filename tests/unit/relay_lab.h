/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sockets on the loopback of a network namespace of the test's own, on one thread with a loop that what is tested lives
 * on: whoever waits lets the loop go on. Brings cmocka along.
 */

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/addr.h"
#include "base/clock.h"

#define LAB_PATIENCE_NS (30 * CLOCK_NS_PER_SECOND)

static struct event_base *lab_loop;

/* WAIT_UNTIL(condition): the loop goes on until it holds. */
#define WAIT_UNTIL(condition)                                                     \
	do {                                                                      \
		int64_t until_ = clock_now_ns() + LAB_PATIENCE_NS;                \
		while (!(condition)) {                                            \
			assert_true(clock_now_ns() < until_);                     \
			event_base_loop(lab_loop, EVLOOP_ONCE | EVLOOP_NONBLOCK); \
		}                                                                 \
	} while (0)

attr_unused static void lab_turns(int n)
{
	for (int i = 0; i < n; i++)
		event_base_loop(lab_loop, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

attr_unused static struct addr lab_address(enum family family, uint8_t last)
{
	struct addr addr = {.family = (uint8_t)family};

	addr.bytes[0] = family == FAMILY_IPV4 ? 127 : 0;
	addr.bytes[family == FAMILY_IPV4 ? 3 : 15] = last;
	return addr;
}

attr_unused static int lab_listen(const struct addr *addr, uint16_t port, int backlog)
{
	struct sockaddr_storage at;
	socklen_t size = addr_socket(addr, port, &at);
	int fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

/* 0, or the errno. */
attr_unused static int lab_try_connect(const struct addr *addr, uint16_t port, int *ret)
{
	struct sockaddr_storage to;
	socklen_t size = addr_socket(addr, port, &to);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (connect(fd, (struct sockaddr *)&to, size) < 0) {
		int code = errno;

		close(fd);
		return code;
	}
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	*ret = fd;
	return 0;
}

attr_unused static int lab_connect(const struct addr *addr, uint16_t port)
{
	int fd = -1;

	assert_int_equal(lab_try_connect(addr, port, &fd), 0);
	return fd;
}

/* The next connection, which must come. */
attr_unused static int lab_accept(int listener)
{
	int fd = -1;

	WAIT_UNTIL((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
	return fd;
}

attr_unused static void lab_reset(int fd)
{
	const struct linger at_once = {.l_onoff = 1};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	close(fd);
}

/* Until there is something: how much, 0 at the end, or a negative errno. */
attr_unused static ssize_t lab_read(int fd, void *buffer, size_t size)
{
	ssize_t n = -1;

	WAIT_UNTIL((n = read(fd, buffer, size)) >= 0 || errno != EAGAIN);
	return n < 0 ? -errno : n;
}

attr_unused static void lab_write(int fd, const char *words)
{
	assert_int_equal(write(fd, words, strlen(words)), strlen(words));
}

attr_unused static void lab_expect(int fd, const char *words)
{
	char buffer[256] = "";
	size_t n = 0;

	while (n < strlen(words)) {
		ssize_t more = lab_read(fd, buffer + n, sizeof(buffer) - 1 - n);

		assert_true(more > 0);
		n += (size_t)more;
	}
	assert_string_equal(buffer, words);
}

attr_unused static void lab_expect_end(int fd)
{
	char byte;

	assert_int_equal(lab_read(fd, &byte, 1), 0);
}

attr_unused static void lab_expect_reset(int fd)
{
	char byte;

	assert_int_equal(lab_read(fd, &byte, 1), -ECONNRESET);
}

/* Of one that has been read to its end. */
attr_unused static void lab_expect_broken(int fd)
{
	socklen_t size = sizeof(int);
	int code = 0;

	WAIT_UNTIL(getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 && code != 0);
}

/* A stream of bytes, each known by where it stands. */
static inline uint8_t lab_byte(uint64_t at, uint64_t seed)
{
	uint64_t x = (at + seed) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint8_t)(x >> 56);
}

/* As much of it as the socket takes now. */
attr_unused static size_t lab_pour(int fd, uint64_t seed, size_t at, size_t total)
{
	static uint8_t buffer[65536];
	size_t n = MIN(total - at, sizeof(buffer));
	ssize_t written;

	for (size_t i = 0; i < n; i++)
		buffer[i] = lab_byte(at + i, seed);
	written = n > 0 ? write(fd, buffer, n) : 0;
	assert_true(written >= 0 || errno == EAGAIN);
	return written > 0 ? (size_t)written : 0;
}

/* As much of it as has come, compared. */
attr_unused static size_t lab_drink(int fd, uint64_t seed, size_t at)
{
	static uint8_t buffer[65536];
	ssize_t n = read(fd, buffer, sizeof(buffer));

	assert_true(n > 0 || (n < 0 && errno == EAGAIN));
	for (ssize_t i = 0; i < n; i++)
		assert_int_equal(buffer[i], lab_byte(at + (size_t)i, seed));
	return n > 0 ? (size_t)n : 0;
}

attr_unused static size_t lab_count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(folder);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}
