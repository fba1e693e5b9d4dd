/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A real table with real flows of Services, in a network namespace of the test's own. Its limit is that
 * of the whole machine, so the test says what the limit is; entries are the kernel's word.
 */

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "build.h"
#include "conntrack/conntrack_watch.h"

static struct {
	struct event_base *loop;
	struct model *model;
	struct conntrack_watch *watch;
	uint64_t max;
	int64_t now_ns;
	bool stats_fail;
	size_t n_warnings;
	enum table_level level;
	char note[2048];
} lab;

static int64_t now_ns(void)
{
	return lab.now_ns;
}

static int stats(struct nfnetlink_conn *line, struct conntrack_stats *ret, struct err *err)
{
	int r = lab.stats_fail ? err_set(err, -ENOENT, "no such table")
			       : conntrack_stats(line, ret, err);

	if (r >= 0)
		ret->max = lab.max;
	return r;
}

static void on_warned(void *arg attr_unused, enum table_level level, const char *note)
{
	lab.n_warnings++;
	lab.level = level;
	snprintf(lab.note, sizeof(lab.note), "%s", note);
	event_base_loopbreak(lab.loop);
}

static void run(const char *command)
{
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the tests' own words */
}

static void send_udp(int family, uint16_t port, int times)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
				  .sin6_port = htons(port),
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	static uint16_t source = 20000;
	bool is_v4 = family == AF_INET;

	for (int i = 0; i < times; i++) {
		cleanup_fd int fd = socket(family, SOCK_DGRAM, 0);
		struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(source++)};
		struct sockaddr_in6 from6 = {.sin6_family = AF_INET6, .sin6_port = from.sin_port};

		assert_int_equal(bind(fd, is_v4 ? (void *)&from : (void *)&from6,
				      is_v4 ? sizeof(from) : sizeof(from6)),
				 0);
		assert_int_equal(sendto(fd, "x", 1, 0, is_v4 ? (void *)&v4 : (void *)&v6,
					is_v4 ? sizeof(v4) : sizeof(v6)),
				 1);
	}
}

static void add_service(const char *key, uint16_t port)
{
	struct service *service = build_service(key, "127.0.0.1");

	build_cluster_ip(service, "::1");
	build_port(service, "dns", PROTOCOL_UDP, port, 0);
	model_set_service(lab.model, service);
}

/* 60 flows of one Service, 30 of another, 10 of none. */
static void start(void)
{
	memset(&lab, 0, sizeof(lab));
	if (unshare(CLONE_NEWNET) < 0) {
		print_message("no private network namespace: %s\n", strerror(errno));
		skip();
	}
	run("ip link set lo up");
	run("nft 'add table inet t; add chain inet t c { type filter hook output priority 0; }; "
	    "add rule inet t c ct state invalid drop'");
	lab.loop = event_base_new();
	lab.model = model_new("node-a", 0);
	add_service("kube-system/dns", 7001);
	add_service("default/log", 7002);
	send_udp(AF_INET, 7001, 40);
	send_udp(AF_INET6, 7001, 20);
	send_udp(AF_INET, 7002, 30);
	send_udp(AF_INET, 7003, 10);
	lab.watch = conntrack_watch_new(&(struct conntrack_watch_config){
		.loop = lab.loop,
		.model = lab.model,
		.cores = 4,
		.now_ns = now_ns,
		.stats = stats,
		.warned = on_warned,
	});
}

static void stop(void)
{
	assert_null(conntrack_watch_free(lab.watch));
	assert_null(conntrack_watch_free(NULL));
	model_free(lab.model);
	event_base_free(lab.loop);
}

static void look(uint64_t max)
{
	lab.max = max;
	conntrack_watch_look(lab.watch);
}

#define TOP "kube-system/dns:dns/udp 60%, default/log:dns/udp 30%, no Service 10%"

static void a_warning_names_who_fills_the_table_and_what_helps(void **state attr_unused)
{
	start();
	look(1000);
	event_base_loop(lab.loop, EVLOOP_NONBLOCK);
	assert_int_equal(lab.n_warnings, 0);
	look(120);
	event_base_dispatch(lab.loop);
	assert_int_equal(lab.n_warnings, 1);
	assert_int_equal(lab.level, TABLE_FILLING);
	assert_string_equal(
		lab.note, "The connection tracking table is 83% full (100 of 120 entries); a full "
			  "one drops new connections. Most entries: " TOP ". "
			  "conntrack.maxPerCore=1024 (cores: 4) would leave half of it free.");
	look(120);
	look(130); /* 76 %: not yet below */
	look(120);
	event_base_loop(lab.loop, EVLOOP_NONBLOCK);
	assert_int_equal(lab.n_warnings, 1);
	stop();
}

static void a_second_warning_within_a_minute_reads_nothing(void **state attr_unused)
{
	start();
	look(120);
	event_base_dispatch(lab.loop);
	send_udp(AF_INET, 7003, 100);
	look(205); /* 97 % */
	assert_int_equal(lab.n_warnings, 2);
	assert_int_equal(lab.level, TABLE_NEARLY_FULL);
	assert_non_null(strstr(lab.note, "97% full"));
	assert_non_null(strstr(lab.note, TOP));
	look(1000);
	lab.now_ns += CONNTRACK_WATCH_WALK_NS;
	look(205);
	assert_int_equal(lab.n_warnings, 2);
	event_base_dispatch(lab.loop);
	assert_int_equal(lab.n_warnings, 3);
	assert_non_null(strstr(lab.note, "kube-system/dns:dns/udp 30%, default/log:dns/udp 15%, "
					 "no Service 55%"));
	stop();
}

/* While the table is read it becomes fuller, or empty. */
static void a_warning_says_what_is_true_when_it_comes(void **state attr_unused)
{
	start();
	look(120);
	look(101);
	event_base_dispatch(lab.loop);
	assert_int_equal(lab.n_warnings, 1);
	assert_int_equal(lab.level, TABLE_NEARLY_FULL);
	look(1000);
	lab.now_ns += CONNTRACK_WATCH_WALK_NS;
	look(120);
	look(1000);
	for (int i = 0; i < 10; i++)
		event_base_loop(lab.loop, EVLOOP_NONBLOCK);
	assert_int_equal(lab.n_warnings, 1);
	stop();
}

static void what_cannot_be_read_changes_nothing(void **state attr_unused)
{
	start();
	look(120);
	event_base_dispatch(lab.loop);
	lab.stats_fail = true;
	look(1000);
	look(1000);
	lab.stats_fail = false;
	look(120);
	assert_int_equal(lab.n_warnings, 1);
	stop();
}

/* Freed while it reads the table. */
static void a_watch_can_end_at_any_time(void **state attr_unused)
{
	start();
	look(120);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_warning_names_who_fills_the_table_and_what_helps),
		cmocka_unit_test(a_second_warning_within_a_minute_reads_nothing),
		cmocka_unit_test(a_warning_says_what_is_true_when_it_comes),
		cmocka_unit_test(what_cannot_be_read_changes_nothing),
		cmocka_unit_test(a_watch_can_end_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
