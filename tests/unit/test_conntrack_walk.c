/* SPDX-License-Identifier: Apache-2.0 */

/* Real flows in a network namespace of the test's own: read in slices, and heard when they end. */

#include <errno.h>
#include <event2/event.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_tools.h"
#include "kernel/conntrack_listener.h"
#include "kernel/conntrack_walk.h"
#include "kernel/nfnetlink.h"
#include "kernel/sysctl.h"

#define PLAIN      7001 /* a port of loopback */
#define TRANSLATED 7002 /* leads to the one before */
#define MANY       3000
#define PAYLOAD    100
#define HEADERS    (20 + 8) /* IPv4, UDP */

static void run(const char *command)
{
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the tests' own words */
}

static void start_tracking(void)
{
	struct err err;

	if (unshare(CLONE_NEWNET) < 0) {
		print_message("no private network namespace: %s\n", strerror(errno));
		skip();
	}
	run("ip link set lo up");
	run("nft 'add table inet t; add chain inet t c { type nat hook output priority -100; }; "
	    "add rule inet t c udp dport 7002 dnat ip to 127.0.0.1:7001'");
	assert_true(sysctl_ensure("net/netfilter/nf_conntrack_acct", 1, &err) >= 0);
}

/* A flow of one datagram, from a port of its own (0: any). */
static void send_udp(uint16_t from, uint16_t to)
{
	const struct sockaddr_in source = {.sin_family = AF_INET,
					   .sin_port = htons(from),
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in target = {.sin_family = AF_INET,
					   .sin_port = htons(to),
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM, 0);
	static const char payload[PAYLOAD];

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const void *)&source, sizeof(source)), 0);
	assert_int_equal(sendto(fd, payload, PAYLOAD, 0, (const void *)&target, sizeof(target)),
			 PAYLOAD);
}

struct seen {
	struct event_base *loop;
	size_t n;
	struct conntrack_flow last;
	struct conntrack_walk *walk;
	struct conntrack_walk_result result;
	size_t slices;
	size_t turns; /* that others had meanwhile */
	struct event *other;
};

static void note(void *arg, const struct conntrack_flow *flow)
{
	struct seen *seen = arg;

	seen->n++;
	seen->last = *flow;
}

static void on_slice(void *arg)
{
	struct seen *seen = arg;

	seen->slices++;
}

static void on_done(void *arg, const struct conntrack_walk_result *result)
{
	struct seen *seen = arg;

	seen->result = *result;
	seen->walk = conntrack_walk_free(seen->walk);
	event_base_loopbreak(seen->loop);
}

static void on_turn(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	static const struct timeval at_once = {0};
	struct seen *seen = arg;

	seen->turns++;
	event_add(seen->other, &at_once);
}

static struct seen walk_on(struct nfnetlink_conn *line, uint32_t status, size_t most)
{
	struct seen seen = {.loop = event_base_new()};
	const struct conntrack_walk_config config = {.line = line,
						     .status = status,
						     .most = most,
						     .slice = on_slice,
						     .flow = note,
						     .done = on_done,
						     .arg = &seen};
	static const struct timeval at_once = {0};
	struct err err;

	seen.other = evtimer_new(seen.loop, on_turn, &seen);
	event_add(seen.other, &at_once);
	assert_int_equal(conntrack_walk_start(seen.loop, &config, &seen.walk, &err), 0);
	assert_int_equal(seen.n, 0);
	event_base_dispatch(seen.loop);
	event_free(seen.other);
	event_base_free(seen.loop);
	assert_null(seen.walk);
	assert_int_equal(seen.result.error, 0);
	assert_int_equal(seen.result.flows, seen.n);
	return seen;
}

static struct seen walk(uint32_t status, size_t most)
{
	return walk_on(NULL, status, most);
}

static void flows_are_read_with_what_was_counted(void **state attr_unused)
{
	struct seen seen;

	start_tracking();
	send_udp(0, PLAIN);
	send_udp(0, TRANSLATED);
	assert_int_equal(walk(0, 0).n, 2);
	seen = walk(IPS_DST_NAT, 0);
	assert_int_equal(seen.n, 1);
	assert_true(seen.last.counted);
	assert_int_equal(seen.last.original.dst_port, TRANSLATED);
	assert_int_equal(seen.last.reply.src_port, PLAIN);
	assert_int_equal(seen.last.packets[CONNTRACK_ORIGINAL], 1);
	assert_int_equal(seen.last.bytes[CONNTRACK_ORIGINAL], PAYLOAD + HEADERS);
	assert_int_equal(seen.last.packets[CONNTRACK_REPLY], 0);
	assert_true(seen.result.spent_ns > 0);
}

static void a_large_table_is_read_in_slices(void **state attr_unused)
{
	struct seen seen;

	start_tracking();
	for (uint16_t i = 0; i < MANY; i++)
		send_udp((uint16_t)(10000 + i), PLAIN);
	seen = walk(0, 0);
	assert_int_equal(seen.n, MANY);
	assert_true(seen.slices > 1);
	assert_true(seen.turns > 1);
	seen = walk(0, MANY / 2);
	assert_in_range(seen.n, MANY / 2, MANY - 1);
	assert_int_equal(walk(IPS_DST_NAT, 0).n, 0);
}

/* A walk that ended early has left answers in its socket: nobody may read them. */
static void only_a_socket_without_answers_is_given_back(void **state attr_unused)
{
	struct nfnetlink_conn line = {0};
	struct conntrack_stats stats;
	struct mnl_socket *socket;
	struct err err;

	start_tracking();
	for (uint16_t i = 0; i < MANY; i++)
		send_udp((uint16_t)(10000 + i), PLAIN);
	assert_int_equal(walk_on(&line, 0, 0).n, MANY);
	socket = line.socket;
	assert_non_null(socket);
	assert_int_equal(walk_on(&line, 0, 0).n, MANY);
	assert_ptr_equal(line.socket, socket);
	assert_int_equal(conntrack_stats(&line, &stats, &err), 0);
	assert_int_equal(stats.entries, MANY);
	assert_in_range(walk_on(&line, 0, MANY / 2).n, MANY / 2, MANY - 1);
	assert_null(line.socket);
	assert_int_equal(conntrack_stats(&line, &stats, &err), 0);
	assert_int_equal(walk_on(&line, 0, 0).n, MANY);
	nfnetlink_conn_done(&line);
}

static int refuse(const struct nlmsghdr *message attr_unused, void *arg attr_unused)
{
	errno = EIO;
	return MNL_CB_ERROR;
}

static void what_a_broken_dump_leaves_reaches_nobody(void **state attr_unused)
{
	struct nfnetlink_conn line = {0};
	struct conntrack_stats stats;
	struct mnl_socket *socket;
	struct err err;
	uint32_t buffer[64];

	start_tracking();
	for (uint16_t i = 0; i < MANY; i++)
		send_udp((uint16_t)(10000 + i), PLAIN);
	assert_int_equal(nfnetlink_ask(&line,
				       nfnetlink_begin(buffer, NFNL_SUBSYS_CTNETLINK,
						       IPCTNL_MSG_CT_GET, AF_INET, NLM_F_DUMP, 0),
				       refuse, NULL),
			 -EIO);
	socket = line.socket;
	assert_int_equal(conntrack_stats(&line, &stats, &err), 0);
	assert_int_equal(stats.entries, MANY);
	assert_ptr_equal(line.socket, socket);
	nfnetlink_conn_done(&line);
}

static void a_walk_can_be_given_up(void **state attr_unused)
{
	struct seen seen = {.loop = event_base_new()};
	const struct conntrack_walk_config config = {.flow = note, .done = on_done, .arg = &seen};
	struct err err;

	start_tracking();
	send_udp(0, PLAIN);
	assert_int_equal(conntrack_walk_start(seen.loop, &config, &seen.walk, &err), 0);
	assert_null(conntrack_walk_free(seen.walk));
	event_base_dispatch(seen.loop);
	assert_int_equal(seen.n, 0);
	event_base_free(seen.loop);
}

/* -- ends */

static void on_end(void *arg, const struct conntrack_flow *flow)
{
	struct seen *seen = arg;

	note(seen, flow);
	event_base_loopbreak(seen->loop);
}

struct ends {
	struct seen seen;
	size_t lost;
	struct conntrack_listener *listener;
	int fd; /* its socket */
};

static void on_lost(void *arg)
{
	struct ends *ends = arg;

	ends->lost++;
}

static void listen_to_ends(struct ends *ends)
{
	const struct conntrack_listener_events events = {on_end, on_lost, ends};
	int domain = 0;
	socklen_t n = sizeof(domain);
	struct err err;

	*ends = (struct ends){.seen.loop = event_base_new()};
	start_tracking();
	ends->fd = dup(STDIN_FILENO);
	close(ends->fd); /* the number of the next one */
	assert_int_equal(conntrack_listener_open(ends->seen.loop, &events, &ends->listener, &err),
			 0);
	assert_int_equal(getsockopt(ends->fd, SOL_SOCKET, SO_DOMAIN, &domain, &n), 0);
	assert_int_equal(domain, AF_NETLINK);
}

static void ends_done(struct ends *ends)
{
	assert_null(conntrack_listener_free(ends->listener));
	event_base_free(ends->seen.loop);
}

static void end_all(uint16_t port)
{
	char command[100];

	snprintf(command, sizeof(command), "conntrack -D -p udp --orig-port-dst %u >/dev/null 2>&1",
		 port);
	run(command);
}

static void ends_of_translated_flows_are_heard(void **state attr_unused)
{
	struct ends ends;

	listen_to_ends(&ends);
	send_udp(0, PLAIN);
	send_udp(0, TRANSLATED);
	end_all(PLAIN);
	conntrack_listener_read(ends.listener);
	assert_int_equal(ends.seen.n, 0); /* that one was not translated */
	end_all(TRANSLATED);
	event_base_dispatch(ends.seen.loop);
	assert_int_equal(ends.seen.n, 1);
	assert_int_equal(ends.seen.last.original.dst_port, TRANSLATED);
	assert_true(ends.seen.last.counted);
	assert_int_equal(ends.seen.last.bytes[CONNTRACK_ORIGINAL], PAYLOAD + HEADERS);
	assert_true(ends.seen.last.status & IPS_DST_NAT);
	ends_done(&ends);
	assert_null(conntrack_listener_free(NULL));
}

static void ends_are_read_together_or_when_asked_for(void **state attr_unused)
{
	struct ends ends;

	listen_to_ends(&ends);
	for (size_t turn = 1; turn <= 2; turn++) {
		send_udp(0, TRANSLATED);
		end_all(TRANSLATED);
		event_base_loop(ends.seen.loop, EVLOOP_NONBLOCK);
		assert_int_equal(ends.seen.n, 3 * (turn - 1)); /* it waits for others */
		send_udp(0, TRANSLATED);
		end_all(TRANSLATED);
		event_base_dispatch(ends.seen.loop);
		assert_int_equal(ends.seen.n, 3 * turn - 1);
		send_udp(0, TRANSLATED);
		end_all(TRANSLATED);
		conntrack_listener_read(ends.listener);
		assert_int_equal(ends.seen.n, 3 * turn);
	}
	conntrack_listener_read(NULL);
	ends_done(&ends);
}

static void very_many_ends_leave_the_loop_its_turn(void **state attr_unused)
{
	enum { VERY_MANY = 10000 };
	struct ends ends;

	listen_to_ends(&ends);
	for (uint16_t i = 0; i < VERY_MANY; i++)
		send_udp((uint16_t)(10000 + i), TRANSLATED);
	run("conntrack -F >/dev/null 2>&1");
	conntrack_listener_read(ends.listener);
	assert_in_range(ends.seen.n, 1, VERY_MANY - 1);
	while (ends.seen.n < VERY_MANY)
		event_base_loop(ends.seen.loop, EVLOOP_ONCE);
	assert_int_equal(ends.seen.n, VERY_MANY);
	assert_int_equal(ends.lost, 0);
	ends_done(&ends);
}

static void an_overflow_is_told_and_those_before_it_are_heard(void **state attr_unused)
{
	const int little = 1 << 16;
	struct ends ends;

	listen_to_ends(&ends);
	assert_int_equal(setsockopt(ends.fd, SOL_SOCKET, SO_RCVBUFFORCE, &little, sizeof(little)),
			 0);
	for (uint16_t i = 0; i < MANY; i++)
		send_udp((uint16_t)(10000 + i), TRANSLATED);
	run("conntrack -F >/dev/null 2>&1");
	conntrack_listener_read(ends.listener);
	assert_int_equal(ends.lost, 1);
	assert_in_range(ends.seen.n, 1, MANY - 1);
	ends_done(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_are_read_with_what_was_counted),
		cmocka_unit_test(a_large_table_is_read_in_slices),
		cmocka_unit_test(only_a_socket_without_answers_is_given_back),
		cmocka_unit_test(what_a_broken_dump_leaves_reaches_nobody),
		cmocka_unit_test(a_walk_can_be_given_up),
		cmocka_unit_test(ends_of_translated_flows_are_heard),
		cmocka_unit_test(ends_are_read_together_or_when_asked_for),
		cmocka_unit_test(very_many_ends_leave_the_loop_its_turn),
		cmocka_unit_test(an_overflow_is_told_and_those_before_it_are_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
