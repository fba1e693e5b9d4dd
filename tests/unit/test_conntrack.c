/* SPDX-License-Identifier: Apache-2.0 */

/* Real flows in a network namespace of the test's own. */

#include <errno.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_tools.h"
#include "kernel/conntrack.h"
#include "kernel/nfnetlink.h"

#define PORT_A 7001
#define PORT_B 7002

struct seen {
	size_t n;
	struct conntrack_flow last;
};

static void note(void *arg, const struct conntrack_flow *flow)
{
	struct seen *seen = arg;

	seen->n++;
	seen->last = *flow;
}

static struct seen dump(const struct conntrack_filter *filter)
{
	struct seen seen = {0};
	struct err err;

	assert_int_equal(conntrack_dump(NULL, filter, note, &seen, &err), 0);
	return seen;
}

static void run(const char *command)
{
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the tests' own words */
}

/* Loopback up, and one rule that needs connection tracking in each family. */
static void start_tracking(void)
{
	if (unshare(CLONE_NEWNET) < 0) {
		print_message("no private network namespace: %s\n", strerror(errno));
		skip();
	}
	run("ip link set lo up");
	run("nft 'add table inet t; add chain inet t c { type filter hook output priority 0; }; "
	    "add rule inet t c ct state invalid drop'");
}

static void send_udp(enum family family, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
				  .sin6_port = htons(port),
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool is_v4 = family == FAMILY_IPV4;
	cleanup_fd int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(sendto(fd, "x", 1, 0, is_v4 ? (void *)&v4 : (void *)&v6,
				is_v4 ? sizeof(v4) : sizeof(v6)),
			 1);
}

static void flows_are_read_by_the_kernels_own_filter(void **state attr_unused)
{
	static const struct addr loopback = {.family = FAMILY_IPV4, .bytes = {127, 0, 0, 1}};
	static const struct addr other = {.family = FAMILY_IPV4, .bytes = {127, 0, 0, 2}};
	static const struct addr loopback6 = {.family = FAMILY_IPV6, .bytes = {[15] = 1}};
	static const struct addr other6 = {.family = FAMILY_IPV6, .bytes = {[15] = 2}};
	struct conntrack_filter filter = {.family = FAMILY_IPV4, .protocol = IPPROTO_UDP};
	struct seen seen;

	start_tracking();
	send_udp(FAMILY_IPV4, PORT_A);
	send_udp(FAMILY_IPV4, PORT_B);
	send_udp(FAMILY_IPV6, PORT_A);
	assert_int_equal(dump(&filter).n, 2);
	filter.dst_port = PORT_B;
	seen = dump(&filter);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.last.protocol, IPPROTO_UDP);
	assert_int_equal(seen.last.original.dst_port, PORT_B);
	assert_int_equal(seen.last.reply.src_port, PORT_B);
	assert_int_equal(seen.last.reply.dst_port, seen.last.original.src_port);
	assert_true(addr_equal(&seen.last.original.dst, &loopback));
	filter.dst = &loopback;
	assert_int_equal(dump(&filter).n, 1);
	filter.dst = &other;
	assert_int_equal(dump(&filter).n, 0);
	filter = (struct conntrack_filter){.family = FAMILY_IPV4, .protocol = IPPROTO_TCP};
	assert_int_equal(dump(&filter).n, 0);
	filter = (struct conntrack_filter){.family = FAMILY_IPV6};
	seen = dump(&filter); /* the loopback answers with ICMPv6 errors, which are no flows */
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.last.original.dst.family, FAMILY_IPV6);
	/* the kernel's own comparison of these is the wrong way round */
	filter = (struct conntrack_filter){
		.family = FAMILY_IPV6, .protocol = IPPROTO_UDP, .dst = &loopback6};
	assert_int_equal(dump(&filter).n, 1);
	filter.dst_port = PORT_A;
	assert_int_equal(dump(&filter).n, 1);
	filter.dst = &other6;
	assert_int_equal(dump(&filter).n, 0);
}

static void exactly_one_flow_is_deleted(void **state attr_unused)
{
	const struct conntrack_filter all = {.family = FAMILY_IPV4, .protocol = IPPROTO_UDP};
	struct conntrack_filter one = {
		.family = FAMILY_IPV4, .protocol = IPPROTO_UDP, .dst_port = PORT_A};
	struct conntrack_flow flow;
	struct err err;

	start_tracking();
	send_udp(FAMILY_IPV4, PORT_A);
	send_udp(FAMILY_IPV4, PORT_B);
	flow = dump(&one).last;
	assert_int_equal(conntrack_delete(NULL, &flow, &err), 1);
	assert_int_equal(dump(&one).n, 0);
	assert_int_equal(dump(&all).n, 1);
	assert_int_equal(conntrack_delete(NULL, &flow, &err), 0);
	assert_int_equal(dump(&all).n, 1);
}

static void statistics_count_the_entries(void **state attr_unused)
{
	struct conntrack_stats stats;
	struct err err;

	start_tracking();
	send_udp(FAMILY_IPV4, PORT_A);
	send_udp(FAMILY_IPV6, PORT_A);
	assert_int_equal(conntrack_stats(NULL, &stats, &err), 0);
	assert_int_equal(stats.entries, 2);
	assert_true(stats.max > 0);
}

static void what_is_no_flow_is_refused(void **state attr_unused)
{
	_Alignas(struct nlmsghdr) char buffer[512] = {0};
	struct conntrack_flow flow;
	struct nlmsghdr *message =
		nfnetlink_begin(buffer, NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW, AF_INET, 0, 1);
	struct nlattr *nest;

	assert_int_equal(conntrack_decode(message, &flow), -EBADMSG);
	nest = mnl_attr_nest_start(message, CTA_TUPLE_ORIG);
	mnl_attr_put_u32(message, CTA_TUPLE_IP, 0);
	mnl_attr_nest_end(message, nest);
	assert_int_equal(conntrack_decode(message, &flow), -EBADMSG);
	message->nlmsg_type = 0;
	assert_int_equal(conntrack_decode(message, &flow), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_are_read_by_the_kernels_own_filter),
		cmocka_unit_test(exactly_one_flow_is_deleted),
		cmocka_unit_test(statistics_count_the_entries),
		cmocka_unit_test(what_is_no_flow_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
