/* SPDX-License-Identifier: Apache-2.0 */

/* Instances in one process: each with a lock of the same name, on one loop. */

#include <errno.h>
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/node_lock.h"

#define DEADLINE_NS (20 * CLOCK_NS_PER_SECOND)

struct instance {
	struct node_lock *lock;
	int waiting, mine, asked;
};

static struct event_base *loop;
static char name[64];
static int64_t queue_ns; /* 0: what a daemon has */

static void on_waiting(void *arg)
{
	((struct instance *)arg)->waiting++;
}

static void on_mine(void *arg)
{
	((struct instance *)arg)->mine++;
}

static void on_asked(void *arg)
{
	((struct instance *)arg)->asked++;
}

static void start(struct instance *instance)
{
	*instance = (struct instance){0};
	instance->lock = node_lock_new(&(struct node_lock_config){
		.loop = loop,
		.name = name,
		.queue_ns = queue_ns,
		.waiting = on_waiting,
		.mine = on_mine,
		.asked = on_asked,
		.arg = instance,
	});
}

static void run_until(const int *count)
{
	int64_t end_ns = clock_now_ns() + DEADLINE_NS;

	while (*count == 0) {
		assert_true(clock_now_ns() < end_ns);
		event_base_loop(loop, EVLOOP_ONCE);
	}
}

static int set_up(void **state attr_unused)
{
	static int number;

	snprintf(name, sizeof(name), "portolan.test.%d.%d", getpid(), number++);
	loop = event_base_new();
	queue_ns = 0;
	log_set_fd(-1);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	log_set_fd(STDERR_FILENO);
	event_base_free(loop);
	return 0;
}

/* A socket with the name, of this type; it listens if it is told to. */
static int take_name(int type, bool listens)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path + 1, name, strlen(name));
	assert_int_equal(
		bind(fd, (const struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
		0);
	if (listens)
		assert_int_equal(listen(fd, 4), 0);
	return fd;
}

/* A connection to who has the name; -1: its queue is full. */
static int try_to_connect(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path + 1, name, strlen(name));
	if (connect(fd, (const struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) == 0)
		return fd;
	assert_int_equal(errno, EAGAIN);
	close(fd);
	return -1;
}

/* As many as there is room for, and at most n; how many there were. */
static size_t flood(int *clients, size_t n)
{
	size_t made = 0;

	while (made < n && (clients[made] = try_to_connect()) >= 0)
		made++;
	return made;
}

static void end_flood(int *clients, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(clients[i]);
}

static void the_first_has_it_at_once(void **state attr_unused)
{
	struct instance first;

	assert_false(node_lock_is_held(name));
	start(&first);
	assert_int_equal(first.mine, 1);
	assert_int_equal(first.waiting, 0);
	assert_true(node_lock_is_held(name));
	node_lock_free(first.lock);
	assert_false(node_lock_is_held(name));
}

static void the_second_has_it_when_the_first_has_ended(void **state attr_unused)
{
	struct instance first, second;

	start(&first);
	start(&second);
	assert_int_equal(second.waiting, 1);
	for (int i = 0; i < 10; i++)
		event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_int_equal(second.mine, 0);
	node_lock_free(first.lock);
	/* told by the kernel, not found by looking now and then: no time need pass */
	event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_int_equal(second.mine, 1);
	assert_int_equal(second.waiting, 1);
	assert_int_equal(second.asked, 0);
	node_lock_free(second.lock);
}

static void the_first_is_asked_to_end(void **state attr_unused)
{
	struct instance first, second;

	start(&first);
	start(&second);
	event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_int_equal(first.asked, 0);
	node_lock_take_over(second.lock);
	run_until(&first.asked);
	assert_int_equal(second.mine, 0); /* asking is not having */
	node_lock_free(first.lock);
	run_until(&second.mine);
	node_lock_free(second.lock);
}

/* More than the holder keeps connections for: who is turned away looks again and again. */
static void twelve_get_it_one_after_another(void **state attr_unused)
{
	struct instance all[12];
	int64_t end_ns = clock_now_ns() + DEADLINE_NS;
	bool gone[ARRAY_SIZE(all)] = {false};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		start(&all[i]);
	for (size_t left = ARRAY_SIZE(all); left > 0;) {
		size_t holders = 0;

		event_base_loop(loop, EVLOOP_NONBLOCK);
		for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
			if (gone[i] || !all[i].mine)
				continue;
			assert_int_equal(++holders, 1);
			node_lock_free(all[i].lock);
			gone[i] = true;
			left--;
			break;
		}
		assert_true(clock_now_ns() < end_ns);
	}
}

static void other_words_are_not_listened_to(void **state attr_unused)
{
	struct instance first;
	char byte;
	int fd;

	start(&first);
	fd = try_to_connect();
	assert_int_equal(send(fd, "takeover, please\n", 17, 0), 17);
	for (int i = 0; i < 10; i++)
		event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_int_equal(first.asked, 0);
	/* it was closed, over words that were not read */
	assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == ECONNRESET);
	close(fd);
	node_lock_free(first.lock);
}

/* Bound, and no connection is possible: that is not one of us. */
static void a_name_that_is_no_lock_is_done_without(void **state attr_unused)
{
	int fd = take_name(SOCK_STREAM, false);
	struct instance first;

	start(&first);
	assert_int_equal(first.mine, 0);
	run_until(&first.mine);
	assert_int_equal(first.waiting, 0);
	node_lock_free(first.lock);
	close(fd);
}

/* It closes every connection at once: that is waited for without haste. */
static void a_holder_that_hangs_up_is_not_hammered(void **state attr_unused)
{
	int fd = take_name(SOCK_STREAM | SOCK_NONBLOCK, true);
	int64_t end_ns = clock_now_ns() + 300 * CLOCK_NS_PER_MS;
	struct instance second;
	int connections = 0;

	start(&second);
	while (clock_now_ns() < end_ns || connections < 2) { /* a busy machine may lose that time */
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		connections += client >= 0;
		if (client >= 0)
			close(client);
		event_base_loop(loop, EVLOOP_NONBLOCK);
	}
	assert_in_range(connections, 2, 6); /* each wait is twice as long as the one before */
	assert_int_equal(second.mine, 0);
	close(fd);
	run_until(&second.mine);
	node_lock_free(second.lock);
}

/* -- a queue that other users keep full */

static void a_crowd_does_not_fill_the_queue_of_a_holder(void **state attr_unused)
{
	struct instance first;
	int clients[100];

	start(&first);
	assert_int_equal(flood(clients, ARRAY_SIZE(clients)), ARRAY_SIZE(clients));
	end_flood(clients, ARRAY_SIZE(clients));
	node_lock_free(first.lock);
}

/* It is longer full than a holder is silent. */
static void a_full_queue_is_waited_in(void **state attr_unused)
{
	int fd = take_name(SOCK_STREAM | SOCK_NONBLOCK, true), client;
	int64_t end_ns = clock_now_ns() + 2500 * CLOCK_NS_PER_MS;
	struct instance second;
	int clients[100];
	size_t n = flood(clients, ARRAY_SIZE(clients));

	assert_in_range(n, 1, ARRAY_SIZE(clients) - 1);
	start(&second);
	assert_int_equal(second.waiting, 1);
	assert_true(node_lock_is_held(name));
	while (clock_now_ns() < end_ns)
		event_base_loop(loop, EVLOOP_ONCE);
	assert_int_equal(second.mine, 0);
	for (size_t i = 0; i < n; i++)
		close(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
	end_ns = clock_now_ns() + DEADLINE_NS;
	while ((client = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) < 0) {
		assert_true(clock_now_ns() < end_ns);
		event_base_loop(loop, EVLOOP_ONCE);
	}
	assert_int_equal(second.mine, 0); /* it has its place, and waits as ever */
	close(fd);
	close(client);
	run_until(&second.mine);
	assert_int_equal(second.waiting, 1);
	end_flood(clients, n);
	node_lock_free(second.lock);
}

/* Or a process that fills its own queue would stop a node. */
static void a_full_queue_is_not_waited_in_for_ever(void **state attr_unused)
{
	int fd = take_name(SOCK_STREAM, true);
	struct instance first;
	int clients[100];
	size_t n = flood(clients, ARRAY_SIZE(clients));

	queue_ns = 100 * CLOCK_NS_PER_MS;
	start(&first);
	assert_int_equal(first.mine, 0);
	run_until(&first.mine);
	end_flood(clients, n);
	node_lock_free(first.lock);
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_first_has_it_at_once),
		TEST(the_second_has_it_when_the_first_has_ended),
		TEST(the_first_is_asked_to_end),
		TEST(twelve_get_it_one_after_another),
		TEST(other_words_are_not_listened_to),
		TEST(a_name_that_is_no_lock_is_done_without),
		TEST(a_holder_that_hangs_up_is_not_hammered),
		TEST(a_crowd_does_not_fill_the_queue_of_a_holder),
		TEST(a_full_queue_is_waited_in),
		TEST(a_full_queue_is_not_waited_in_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
