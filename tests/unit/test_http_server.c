/* SPDX-License-Identifier: Apache-2.0 */

/* A server and its clients on one loop, over the loopback: what clients see, and what they may not do. */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "http_client.h"
#include "serving/http_server.h"

struct lab {
	struct event_base *loop;
	struct http_server *server;
	struct http_stream *stream;
	unsigned int streams_gone;
	size_t body_bytes;
};

/* accept4() as it is where descriptors are short, for so many times. */
static unsigned int n_accepts, n_failures;

int __real_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	n_accepts++;
	if (n_failures == 0)
		return __real_accept4(fd, address, length, flags);
	n_failures--;
	errno = EMFILE;
	return -1;
}

static void stream_gone(void *arg)
{
	struct lab *lab = arg;

	lab->streams_gone++;
	lab->stream = NULL;
}

static void handle(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	static const struct http_header header = {"X-Test", "yes"};
	cleanup_text struct text body = {0};
	struct lab *lab = arg;

	if (streq(request->path, "/stream")) {
		lab->stream = http_stream(exchange, "text/event-stream", stream_gone, lab);
		return;
	}
	for (size_t i = 0; i < lab->body_bytes; i++)
		text_add(&body, "x", 1);
	text_str(&body, request->path);
	http_reply(exchange, 200, &header, 1, &body);
}

static void lab_open(struct lab *lab, const struct http_limits *limits)
{
	*lab = (struct lab){.loop = event_base_new()};
	lab->server = client_server(lab->loop, limits, handle, lab);
}

static void lab_close(struct lab *lab)
{
	http_server_close(lab->server);
	event_base_free(lab->loop);
}

static int client(struct lab *lab)
{
	return client_connect(lab->server, 0);
}

static void turn(struct lab *lab, int fd)
{
	client_turn(lab->loop, fd);
}

static char *read_until(struct lab *lab, int fd, const char *until)
{
	return client_read(lab->loop, fd, until);
}

static void answers_and_ends_as_asked(void **state attr_unused)
{
	cleanup_free char *answer = NULL;
	struct lab lab;
	int fd;

	lab_open(&lab, &http_limits_default);
	fd = client(&lab);
	send_text(fd, "GET /abc?x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	answer = read_until(&lab, fd, NULL);
	assert_true(has_prefix(answer, "HTTP/1.1 200 OK\r\nDate: "));
	assert_non_null(strstr(answer, "\r\nX-Test: yes\r\n"));
	assert_non_null(strstr(answer, "\r\nConnection: close\r\n"));
	assert_non_null(strstr(answer, "\r\nContent-Length: 4\r\n\r\n/abc"));
	assert_int_equal(http_server_connections(lab.server), 0);
	close(fd);
	lab_close(&lab);
}

static void several_requests_come_one_after_another(void **state attr_unused)
{
	cleanup_free char *first = NULL, *rest = NULL;
	struct lab lab;
	int fd;

	lab_open(&lab, &http_limits_default);
	fd = client(&lab);
	send_text(fd, "GET /one HTTP/1.1\r\nHost: a\r\n\r\n");
	first = read_until(&lab, fd, "/one");
	send_text(fd, "HEAD /two HTTP/1.1\r\nHost: a\r\n\r\nGET /three HTTP/1.0\r\n\r\nGET /four "
		      "HTTP/1.1\r\nHost: a\r\n\r\n");
	rest = read_until(&lab, fd, NULL);
	assert_non_null(strstr(first, "Connection: keep-alive"));
	assert_non_null(strstr(rest, "Content-Length: 4\r\n\r\nHTTP/1.1 200 OK")); /* no body */
	assert_non_null(strstr(rest, "/three"));
	assert_null(strstr(rest, "/four"));
	close(fd);
	lab_close(&lab);
}

static void long_answers_arrive_whole(void **state attr_unused)
{
	cleanup_free char *answer = NULL;
	struct lab lab;
	int fd;

	lab_open(&lab, &http_limits_default);
	lab.body_bytes = 3 * 1024 * 1024;
	fd = client(&lab);
	send_text(fd, "GET /end HTTP/1.0\r\n\r\n");
	answer = read_until(&lab, fd, NULL);
	assert_int_equal(strlen(strstr(answer, "\r\n\r\n") + 4), lab.body_bytes + 4);
	close(fd);
	lab_close(&lab);
}

static void nonsense_and_huge_headers_are_refused(void **state attr_unused)
{
	char huge[2 * HTTP_HEAD_MAX];
	struct lab lab;

	memset(huge, 'a', sizeof(huge));
	memcpy(huge, "GET / HTTP/1.1\r\nA: ", 19);
	huge[HTTP_HEAD_MAX] = '\0';
	lab_open(&lab, &http_limits_default);
	for (int i = 0; i < 2; i++) {
		cleanup_free char *answer = NULL;
		int fd = client(&lab);

		send_text(fd, i == 0 ? "nonsense\r\n\r\n" : huge);
		answer = read_until(&lab, fd, NULL);
		assert_true(has_prefix(answer, i == 0 ? "HTTP/1.1 400 Bad Request"
						      : "HTTP/1.1 431 Request Header Fields"));
		close(fd);
	}
	lab_close(&lab);
}

static void a_request_that_trickles_in_is_cut_off(void **state attr_unused)
{
	struct http_limits limits = http_limits_default;
	struct lab lab;
	int64_t start = clock_now_ns();
	int fd;

	limits.head_ns = 300 * CLOCK_NS_PER_MS;
	lab_open(&lab, &limits);
	fd = client(&lab);
	for (;;) { /* something comes all the time, but never the end */
		char c;

		if (send(fd, "G", 1, MSG_NOSIGNAL) < 0)
			break;
		turn(&lab, fd);
		if (recv(fd, &c, 1, MSG_DONTWAIT) == 0)
			break;
		assert_true(clock_now_ns() - start < PATIENCE_NS);
	}
	assert_true(clock_now_ns() - start >= limits.head_ns);
	assert_int_equal(http_server_connections(lab.server), 0);
	close(fd);
	lab_close(&lab);
}

static void a_client_that_does_not_read_is_cut_off(void **state attr_unused)
{
	struct http_limits limits = http_limits_default;
	int64_t limit = clock_now_ns() + PATIENCE_NS;
	struct lab lab;
	int fd;

	limits.reply_ns = 300 * CLOCK_NS_PER_MS;
	lab_open(&lab, &limits);
	lab.body_bytes = 16 * 1024 * 1024;
	fd = client(&lab);
	send_text(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	while (http_server_connections(lab.server) == 0)
		turn(&lab, fd);
	while (http_server_connections(lab.server) > 0) {
		assert_true(clock_now_ns() < limit);
		turn(&lab, fd);
	}
	close(fd);
	lab_close(&lab);
}

/* Reads on until the server ends the connection: these are its last words. */
static void assert_end(struct lab *lab, int fd, const char *words)
{
	int64_t limit = clock_now_ns() + PATIENCE_NS;
	static char data[1024 * 1024];
	size_t used = 0;
	ssize_t n;

	while ((n = recv(fd, data + used, sizeof(data) - 1 - used, MSG_DONTWAIT)) != 0) {
		assert_true(clock_now_ns() < limit);
		if (n < 0)
			turn(lab, fd);
		used += n > 0 ? (size_t)n : 0;
		if (used > sizeof(data) / 2) { /* the end is enough */
			memmove(data, data + used - 1024, 1024);
			used = 1024;
		}
	}
	data[used] = '\0';
	assert_true(has_suffix(data, words));
}

static void requests_behind_an_answer_that_is_not_taken_cost_nothing(void **state attr_unused)
{
	const struct timeval moment = {.tv_usec = 300 * 1000};
	struct lab lab;
	int64_t work;
	int fd;

	lab_open(&lab, &http_limits_default);
	lab.body_bytes = 16 * 1024 * 1024;
	fd = client_connect(lab.server, 4096);
	send_text(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	for (int i = 0; i < 1000; i++)
		send_text(fd, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
	turn(&lab, fd);
	lab.body_bytes = 0;
	work = clock_cpu_ns();
	event_base_loopexit(lab.loop, &moment);
	event_base_dispatch(lab.loop);
	assert_in_range(clock_cpu_ns() - work, 0, 100 * CLOCK_NS_PER_MS);
	send_text(fd, "GET /last HTTP/1.0\r\n\r\n");
	assert_end(&lab, fd, "/last"); /* and they are answered when it is */
	close(fd);
	lab_close(&lab);
}

static void one_connection_too_many_takes_the_place_of_an_idle_one(void **state attr_unused)
{
	struct http_limits limits = http_limits_default;
	cleanup_free char *answer = NULL, *nothing = NULL;
	struct lab lab;
	int fds[3];

	limits.connections = 2;
	lab_open(&lab, &limits);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = client(&lab);
		while (http_server_connections(lab.server) < MIN(i + 1, 2))
			turn(&lab, fds[i]);
	}
	send_text(fds[2], "GET /new HTTP/1.1\r\nHost: a\r\n\r\n");
	answer = read_until(&lab, fds[2], "/new");
	nothing = read_until(&lab, fds[0], NULL);
	assert_string_equal(nothing, "");
	assert_int_equal(http_server_connections(lab.server), 2);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	lab_close(&lab);
}

static void who_came_last_is_served_though_all_others_look_busy(void **state attr_unused)
{
	struct http_limits limits = http_limits_default;
	cleanup_free char *answer = NULL;
	struct lab lab;
	int fds[3];

	limits.connections = 2;
	lab_open(&lab, &limits);
	lab.body_bytes = 16 * 1024 * 1024;
	for (size_t i = 0; i < 2; i++) { /* they ask, and never read */
		fds[i] = client_connect(lab.server, 4096);
		send_text(fds[i], "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
		while (http_server_connections(lab.server) < i + 1)
			turn(&lab, fds[i]);
	}
	turn(&lab, fds[1]);
	lab.body_bytes = 0;
	fds[2] = client(&lab);
	send_text(fds[2], "GET /new HTTP/1.1\r\nHost: a\r\n\r\n");
	answer = read_until(&lab, fds[2], "/new");
	assert_int_equal(http_server_connections(lab.server), 2);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	lab_close(&lab);
}

/* Two servers, and room for less than both may have. */
static void connections_of_another_port_give_way(void **state attr_unused)
{
	struct connection_budget *budget =
		connection_budget_new(&(struct connection_budget_config){.descriptors = 48});
	struct event_base *loop = event_base_new();
	struct http_config config = {
		.addr = {.family = FAMILY_IPV4, .bytes = {127, 0, 0, 1}},
		.limits = http_limits_default,
		.budget = budget,
		.kind = CONNECTION_SERVICE,
		.handler = handle,
		.arg = &(struct lab){0},
	};
	struct http_server *servers[2];
	cleanup_free char *answer = NULL;
	struct err err;
	int fds[32];

	for (size_t i = 0; i < 2; i++)
		assert_int_equal(http_server_open(loop, &config, &servers[i], &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = client_connect(servers[i == ARRAY_SIZE(fds) - 1], 0);
		client_turn(loop, fds[i]);
	}
	assert_in_range(http_server_connections(servers[0]), 3, 16);
	send_text(fds[ARRAY_SIZE(fds) - 1], "GET /other HTTP/1.1\r\nHost: a\r\n\r\n");
	answer = client_read(loop, fds[ARRAY_SIZE(fds) - 1], "/other");
	assert_true(connection_budget_refused(budget, CONNECTION_SERVICE) > 16);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	for (size_t i = 0; i < 2; i++)
		http_server_close(servers[i]);
	event_base_free(loop);
	connection_budget_free(budget);
}

static void who_cannot_accept_pauses_and_goes_on(void **state attr_unused)
{
	const struct timeval while_it_fails = {.tv_usec = 300 * 1000};
	cleanup_free char *answer = NULL;
	struct lab lab;
	int fd;

	lab_open(&lab, &http_limits_default);
	fd = client(&lab);
	send_text(fd, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
	n_accepts = 0;
	n_failures = 1000000;
	event_base_loopexit(lab.loop, &while_it_fails);
	event_base_dispatch(lab.loop);
	assert_in_range(n_accepts, 1, 6); /* 10, 20, 40, 80 and 160 ms behind one another */
	n_failures = 0;
	answer = read_until(&lab, fd, "/later");
	close(fd);
	lab_close(&lab);
}

static void a_stream_goes_on_until_the_client_leaves(void **state attr_unused)
{
	int64_t limit = clock_now_ns() + PATIENCE_NS;
	cleanup_free char *head = NULL, *data = NULL;
	struct lab lab;
	int fd;

	lab_open(&lab, &http_limits_default);
	fd = client(&lab);
	send_text(fd, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	head = read_until(&lab, fd, "\r\n\r\n");
	assert_non_null(strstr(head, "Content-Type: text/event-stream\r\n"));
	http_stream_send(lab.stream, "data: 1\n\n", 9);
	data = read_until(&lab, fd, "\n\n");
	assert_string_equal(data, "data: 1\n\n");
	close(fd);
	while (lab.streams_gone == 0) {
		assert_true(clock_now_ns() < limit);
		turn(&lab, -1);
	}
	assert_int_equal(http_server_connections(lab.server), 0);
	lab_close(&lab);
}

static void a_stream_that_lags_behind_is_cut_off(void **state attr_unused)
{
	struct http_limits limits = http_limits_default;
	static char block[65536];
	struct lab lab;
	int fd;

	limits.stream_bytes = sizeof(block) + 1024;
	lab_open(&lab, &limits);
	fd = client(&lab);
	send_text(fd, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	while (!lab.stream)
		turn(&lab, fd);
	http_stream_send(lab.stream, block, sizeof(block));
	assert_true(http_stream_pending(lab.stream) >= sizeof(block));
	http_stream_send(lab.stream, block, sizeof(block));
	assert_int_equal(lab.streams_gone, 1);
	close(fd);
	lab_close(&lab);
}

static void an_address_in_use_is_named(void **state attr_unused)
{
	struct http_config config = {
		.addr = {.family = FAMILY_IPV4, .bytes = {127, 0, 0, 1}},
		.limits = http_limits_default,
		.handler = handle,
	};
	struct http_server *server = NULL;
	char wanted[64];
	struct lab lab;
	struct err err;

	lab_open(&lab, &http_limits_default);
	config.port = http_server_port(lab.server);
	assert_int_equal(http_server_open(lab.loop, &config, &server, &err), -EADDRINUSE);
	snprintf(wanted, sizeof(wanted), "listening on 127.0.0.1:%u", config.port);
	assert_non_null(strstr(err.text, wanted));
	lab_close(&lab);
}

/* -- which families an address serves */

static const struct addr any[] = {
	[FAMILY_IPV4] = {.family = FAMILY_IPV4},
	[FAMILY_IPV6] = {.family = FAMILY_IPV6},
};

/* All ports are free there, and the loopback has both families. */
static void enter_private_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	cleanup_fd int fd = -1;

	if (unshare(CLONE_NEWNET) < 0) {
		print_message("no private network namespace: %s\n", strerror(errno));
		skip();
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
}

static bool reaches(enum family family, uint16_t port)
{
	const struct sockaddr_in v4 = {.sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
					.sin6_port = htons(port),
					.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool is_v4 = family == FAMILY_IPV4;
	cleanup_fd int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM, 0);

	return connect(fd, is_v4 ? (const void *)&v4 : (const void *)&v6,
		       is_v4 ? sizeof(v4) : sizeof(v6)) == 0;
}

static struct http_server *open_any(struct event_base *loop, enum family family, bool one_family,
				    uint16_t port)
{
	const struct http_config config = {
		.addr = any[family],
		.one_family = one_family,
		.port = port,
		.limits = http_limits_default,
		.handler = handle,
	};
	struct http_server *server = NULL;
	struct err err;

	return http_server_open(loop, &config, &server, &err) == 0 ? server : NULL;
}

static void either_unspecified_address_serves_both_families(void **state attr_unused)
{
	struct event_base *loop;

	enter_private_network();
	loop = event_base_new();
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		struct http_server *server = open_any(loop, family, false, 0);
		uint16_t port;

		assert_non_null(server);
		port = http_server_port(server);
		assert_true(reaches(FAMILY_IPV4, port));
		assert_true(reaches(FAMILY_IPV6, port));
		http_server_close(server);
	}
	event_base_free(loop);
}

static void servers_of_one_family_share_a_port(void **state attr_unused)
{
	struct http_server *v4, *v6;
	struct event_base *loop;
	uint16_t port;

	enter_private_network();
	loop = event_base_new();
	v4 = open_any(loop, FAMILY_IPV4, true, 0);
	assert_non_null(v4);
	port = http_server_port(v4);
	assert_false(reaches(FAMILY_IPV6, port));
	v6 = open_any(loop, FAMILY_IPV6, true, port);
	assert_non_null(v6);
	http_server_close(v4);
	assert_false(reaches(FAMILY_IPV4, port));
	assert_true(reaches(FAMILY_IPV6, port));
	http_server_close(v6);
	event_base_free(loop);
}

/* From now on socket() does as in a kernel that was started with ipv6.disable=1. */
static bool lose_ipv6(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = ARRAY_SIZE(steps), .filter = steps};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In a process of its own, which ends with the number of the first thing that is wrong. */
static int served_without_ipv6(enum family family)
{
	struct event_base *loop = event_base_new();
	struct http_server *server;

	if (!lose_ipv6() || socket(AF_INET6, SOCK_STREAM, 0) >= 0 || errno != EAFNOSUPPORT)
		return 1;
	server = open_any(loop, family, false, 0);
	if (!server)
		return 2;
	return reaches(FAMILY_IPV4, http_server_port(server)) ? 0 : 3;
}

static void a_host_without_ipv6_serves_ipv4(void **state attr_unused)
{
	enter_private_network();
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(served_without_ipv6(family));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_and_ends_as_asked),
		cmocka_unit_test(several_requests_come_one_after_another),
		cmocka_unit_test(long_answers_arrive_whole),
		cmocka_unit_test(nonsense_and_huge_headers_are_refused),
		cmocka_unit_test(a_request_that_trickles_in_is_cut_off),
		cmocka_unit_test(a_client_that_does_not_read_is_cut_off),
		cmocka_unit_test(requests_behind_an_answer_that_is_not_taken_cost_nothing),
		cmocka_unit_test(one_connection_too_many_takes_the_place_of_an_idle_one),
		cmocka_unit_test(who_came_last_is_served_though_all_others_look_busy),
		cmocka_unit_test(connections_of_another_port_give_way),
		cmocka_unit_test(who_cannot_accept_pauses_and_goes_on),
		cmocka_unit_test(a_stream_goes_on_until_the_client_leaves),
		cmocka_unit_test(a_stream_that_lags_behind_is_cut_off),
		cmocka_unit_test(an_address_in_use_is_named),
		cmocka_unit_test(either_unspecified_address_serves_both_families),
		cmocka_unit_test(servers_of_one_family_share_a_port),
		cmocka_unit_test(a_host_without_ipv6_serves_ipv4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
