/* SPDX-License-Identifier: Apache-2.0 */

/* A tracer in a network namespace of its own: what it tells, and that nothing of it stays. */

#include <errno.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/nft_dump.h"
#include "kernel/nft_tracer.h"
#include "nft_world.h"

#define PORT 4242

static int set_up(void **state attr_unused)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	private_network();
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	close(fd);
	/* connections are tracked, as on every node that has a proxy */
	assert_int_equal(
		system("nft 'add table ip node; add chain ip node input { type filter hook "
		       "input priority 0; }; add rule ip node input ct state invalid drop'"),
		0);
	return 0;
}

/* -- which tables there are */

static int count_own(void *arg, const struct nlmsghdr *message, struct err *err attr_unused)
{
	const char *name = nft_message_string(message, NFTA_TABLE_NAME);

	*(size_t *)arg += name && has_prefix(name, NFT_TRACER_PREFIX);
	return 0;
}

static void count_anew(void *arg)
{
	*(size_t *)arg = 0;
}

static size_t own_tables(void)
{
	static const struct nft_dump_ops ops = {.restart = count_anew, .message = count_own};
	const struct nft_dump_request request = {.type = NFT_MSG_GETTABLE};
	cleanup_nft_socket struct nft_socket *socket = open_socket();
	struct err err;
	size_t n = 0;

	assert_int_equal(nft_dump(socket, &request, &ops, &n, &err), 0);
	return n;
}

/* -- packets */

static struct addr loopback(void)
{
	struct addr addr = {0};

	assert_int_equal(addr_parse("127.0.0.1", &addr), 0);
	return addr;
}

static struct nft_tracer *arm(uint8_t protocol, const struct addr *destination,
			      const struct addr *source)
{
	const struct nft_tracer_spec spec = {
		.family = FAMILY_IPV4,
		.protocol = protocol,
		.destination = destination,
		.port = PORT,
		.source = source,
	};
	struct nft_tracer *tracer = NULL;
	struct err err;

	if (nft_tracer_open(&spec, &tracer, &err) < 0)
		fail_msg("%s", err.text);
	return tracer;
}

/* Nobody listens there; the first packet is all that is needed. */
static void send_to(int kind, uint16_t port)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	(void)connect(fd, (const struct sockaddr *)&to, sizeof(to));
	if (kind == SOCK_DGRAM)
		assert_int_equal(send(fd, "x", 1, 0), 1);
	close(fd);
}

struct heard {
	size_t begun, first, left, delivered, of_others;
	struct nft_trace_packet packet;
	const char *table;
};

static void on_event(void *arg, const struct nft_trace *trace)
{
	struct heard *heard = arg;

	if (!streq(trace->table, heard->table)) {
		heard->of_others++;
		return;
	}
	if (trace->handle)
		heard->packet = trace->packet;
	heard->begun += trace->handle && streq(trace->chain, "output");
	heard->first += trace->has_packet && has_prefix(trace->chain, NFT_TRACER_NEW);
	heard->left += trace->has_packet && streq(trace->chain, NFT_TRACER_LEFT);
	heard->delivered += trace->has_packet && streq(trace->chain, NFT_TRACER_DELIVERED);
}

/* What the sender's side does has been told when sending returns. */
static struct heard listen_to(struct nft_tracer *tracer)
{
	struct heard heard = {.table = nft_tracer_table(tracer)};
	struct err err;

	assert_int_equal(nft_tracer_read(tracer, on_event, &heard, &err), 0);
	return heard;
}

/* The kernel of a busy machine may leave receiving it for later. */
static struct heard listen_until_delivered(struct nft_tracer *tracer)
{
	struct heard heard = {.table = nft_tracer_table(tracer)};
	int64_t limit = clock_now_ns() + 20 * CLOCK_NS_PER_SECOND;
	struct err err;

	while (heard.delivered == 0) {
		assert_true(clock_now_ns() < limit);
		assert_int_equal(nft_tracer_read(tracer, on_event, &heard, &err), 0);
	}
	return heard;
}

static void the_first_packet_is_told_from_hook_to_hook(void **state attr_unused)
{
	static const struct {
		uint8_t protocol;
		int kind;
	} kinds[] = {{IPPROTO_TCP, SOCK_STREAM}, {IPPROTO_UDP, SOCK_DGRAM}};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct addr to = loopback();
		struct nft_tracer *tracer = arm(kinds[i].protocol, &to, NULL);
		struct heard heard;

		send_to(kinds[i].kind, PORT);
		heard = listen_until_delivered(tracer);
		assert_int_equal(heard.begun, 1);
		assert_int_equal(heard.first, 1);
		assert_int_equal(heard.left, 1);
		assert_int_equal(heard.delivered, 1);
		assert_int_equal(heard.packet.protocol, kinds[i].protocol);
		assert_int_equal(heard.packet.port, PORT);
		assert_true(addr_equal(&heard.packet.destination, &to));
		nft_tracer_free(tracer);
	}
}

static void other_ports_and_senders_are_not_told(void **state attr_unused)
{
	struct addr to = loopback(), elsewhere = {0};
	struct nft_tracer *tracer;

	assert_int_equal(addr_parse("127.0.0.9", &elsewhere), 0);
	tracer = arm(IPPROTO_TCP, &to, &elsewhere);
	send_to(SOCK_STREAM, PORT);
	send_to(SOCK_STREAM, PORT + 1);
	assert_int_equal(listen_to(tracer).begun, 0);
	nft_tracer_free(tracer);
}

static void any_address_of_the_node_can_be_meant(void **state attr_unused)
{
	struct nft_tracer *tracer = arm(IPPROTO_TCP, NULL, NULL);

	send_to(SOCK_STREAM, PORT);
	assert_int_equal(listen_to(tracer).begun, 1);
	nft_tracer_free(tracer);
}

static void a_busy_service_is_not_told_packet_by_packet(void **state attr_unused)
{
	struct nft_tracer *tracer = arm(IPPROTO_TCP, NULL, NULL);
	size_t begun;

	for (size_t i = 0; i < 200; i++)
		send_to(SOCK_STREAM, PORT);
	begun = listen_to(tracer).begun;
	assert_in_range(begun, 1, 100);
	nft_tracer_free(tracer);
}

/* -- the end */

static void the_table_goes_with_the_tracer(void **state attr_unused)
{
	struct nft_tracer *tracer = arm(IPPROTO_TCP, NULL, NULL);

	assert_int_equal(own_tables(), 1);
	nft_tracer_free(tracer);
	assert_int_equal(own_tables(), 0);
}

static void the_table_goes_with_a_process_that_is_killed(void **state attr_unused)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		arm(IPPROTO_TCP, NULL, NULL);
		(void)!write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(own_tables(), 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(own_tables(), 0);
	close(ready[0]);
	close(ready[1]);
}

static void nobody_else_can_change_the_table(void **state attr_unused)
{
	struct nft_tracer *tracer = arm(IPPROTO_TCP, NULL, NULL);
	cleanup_nft_socket struct nft_socket *socket = open_socket();
	cleanup_nft_batch struct nft_batch *batch = nft_batch_new();
	struct err err;

	mnl_attr_put_strz(nft_batch_message(batch, NFT_MSG_DELTABLE, FAMILY_IPV4, 0),
			  NFTA_TABLE_NAME, nft_tracer_table(tracer));
	assert_int_equal(nft_batch_commit(socket, batch, 0, NULL, NULL, &err), -EPERM);
	nft_tracer_free(tracer);
}

/* Another program's trace of the same packets: its rules are told too, and its table stays. */
static void the_traces_of_others_are_left_alone(void **state attr_unused)
{
	const struct addr to = loopback();
	struct nft_tracer *tracer;
	struct heard heard;

	assert_int_equal(system("nft 'add table ip other; add chain ip other output { type filter "
				"hook output priority -400; }; add rule ip other output meta "
				"nftrace set 1'"),
			 0);
	tracer = arm(IPPROTO_TCP, &to, NULL);
	send_to(SOCK_STREAM, PORT);
	heard = listen_to(tracer);
	assert_int_equal(heard.begun, 1);
	assert_true(heard.of_others > 0);
	nft_tracer_free(tracer);
	assert_int_equal(system("nft list chain ip other output | grep -q nftrace"), 0);
	assert_int_equal(system("nft delete table ip other"), 0);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	if (syscall(SYS_capset, &head, none) < 0)
		_exit(99);
}

static void without_the_capability_it_is_refused(void **state attr_unused)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		const struct nft_tracer_spec spec = {.protocol = IPPROTO_TCP, .port = PORT};
		struct nft_tracer *tracer = NULL;
		struct err err;

		drop_capabilities();
		_exit(nft_tracer_open(&spec, &tracer, &err) == -EPERM ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(own_tables(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_packet_is_told_from_hook_to_hook),
		cmocka_unit_test(other_ports_and_senders_are_not_told),
		cmocka_unit_test(any_address_of_the_node_can_be_meant),
		cmocka_unit_test(a_busy_service_is_not_told_packet_by_packet),
		cmocka_unit_test(the_table_goes_with_the_tracer),
		cmocka_unit_test(the_table_goes_with_a_process_that_is_killed),
		cmocka_unit_test(nobody_else_can_change_the_table),
		cmocka_unit_test(the_traces_of_others_are_left_alone),
		cmocka_unit_test(without_the_capability_it_is_refused),
	};

	return cmocka_run_group_tests_name("nft_tracer", tests, set_up, NULL);
}
