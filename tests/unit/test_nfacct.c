/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_acct.h>

#include "fake_tools.h"
#include "kernel/nfacct.h"
#include "kernel/nfnetlink.h"

/* -- against the kernel, in a namespace of its own */

static void need_nfacct(void)
{
	private_network();
	if (nfacct_supported() == 1)
		return;
	print_message("this kernel has no nfacct\n");
	skip();
}

static void add_valid_and_duplicate(void **state attr_unused)
{
	struct err err;

	need_nfacct();
	assert_int_equal(nfacct_add(NULL, "metric-1", &err), 0);
	assert_int_equal(nfacct_add(NULL, "metric-1", &err), -EEXIST);
	assert_string_equal(err.text, "creating nfacct counter 'metric-1': File exists");
}

static void add_name_too_long_or_empty(void **state attr_unused)
{
	struct err err;

	assert_int_equal(nfacct_add(NULL, "", &err), -EINVAL);
	assert_int_equal(nfacct_add(NULL, "0123456789012345678901234567890x", &err), -ENAMETOOLONG);
	need_nfacct();
	assert_int_equal(nfacct_add(NULL, "0123456789012345678901234567890", &err), 0);
}

static void get_found_missing_and_too_long(void **state attr_unused)
{
	struct nfacct_counter counter;
	struct err err;

	assert_int_equal(nfacct_get(NULL, "0123456789012345678901234567890x", &counter, &err),
			 -ENAMETOOLONG);
	need_nfacct();
	assert_int_equal(nfacct_get(NULL, "metric-2", &counter, &err), -ENOENT);
	assert_int_equal(nfacct_add(NULL, "metric-2", &err), 0);
	assert_int_equal(nfacct_get(NULL, "metric-2", &counter, &err), 0);
	assert_string_equal(counter.name, "metric-2");
	assert_int_equal(counter.packets, 0);
	assert_int_equal(counter.bytes, 0);
}

static void ensure_creates_once(void **state attr_unused)
{
	struct err err;

	need_nfacct();
	assert_int_equal(nfacct_ensure(NULL, "ct_state_invalid_dropped_pkts", &err), 1);
	assert_int_equal(nfacct_ensure(NULL, "ct_state_invalid_dropped_pkts", &err), 0);
	assert_int_equal(nfacct_ensure(NULL, "localhost_nps_accepted_pkts", &err), 1);
}

/* What one question leaves behind must not reach the next. */
static void questions_share_a_line(void **state attr_unused)
{
	struct nfnetlink_conn line = {0};
	struct nfacct_counter counter;
	struct mnl_socket *socket;
	struct err err;

	need_nfacct();
	assert_int_equal(nfacct_get(&line, "metric-3", &counter, &err), -ENOENT);
	socket = line.socket;
	assert_non_null(socket);
	assert_int_equal(nfacct_ensure(&line, "metric-3", &err), 1);
	assert_int_equal(nfacct_add(&line, "metric-3", &err), -EEXIST);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(nfacct_get(&line, "metric-3", &counter, &err), 0);
		assert_string_equal(counter.name, "metric-3");
		assert_int_equal(nfacct_get(&line, "metric-4", &counter, &err), -ENOENT);
	}
	assert_ptr_equal(line.socket, socket);
	nfnetlink_conn_done(&line);
	assert_null(line.socket);
	assert_int_equal(nfacct_get(&line, "metric-3", &counter, &err), 0); /* opened again */
	nfnetlink_conn_done(&line);
}

static void counts_packets(void **state attr_unused)
{
	struct nfacct_counter counter;
	struct err err;

	need_nfacct();
	assert_int_equal(nfacct_ensure(NULL, "counted", &err), 1);
	if (system("ip link set lo up && iptables -A OUTPUT -m nfacct --nfacct-name counted") != 0)
		skip(); /* no xt_nfacct */
	assert_int_equal(system("ping -c 1 -W 1 127.0.0.1 >/dev/null 2>&1 || "
				"/usr/bin/python3 -c 'import socket; "
				"socket.socket(2, 2).sendto(b\"x\", (\"127.0.0.1\", 9))'"),
			 0);
	assert_int_equal(nfacct_get(NULL, "counted", &counter, &err), 0);
	assert_true(counter.packets > 0 && counter.bytes > 20);
}

/* -- decoding */

struct message {
	char buffer[1024];
	struct nlmsghdr *head;
};

static void begin(struct message *message)
{
	struct nfgenmsg *generic;

	message->head = mnl_nlmsg_put_header(message->buffer);
	message->head->nlmsg_type = NFNL_SUBSYS_ACCT << 8 | NFNL_MSG_ACCT_NEW;
	generic = mnl_nlmsg_put_extra_header(message->head, sizeof(*generic));
	generic->version = NFNETLINK_V0;
}

static void add_all(struct message *message, const char *name)
{
	mnl_attr_put_strz(message->head, NFACCT_NAME, name);
	mnl_attr_put_u64(message->head, NFACCT_PKTS, htobe64(123));
	mnl_attr_put_u64(message->head, NFACCT_BYTES, htobe64(54321));
}

static void expect_counter(const struct message *message, const char *name)
{
	struct nfacct_counter counter;
	struct err err;

	assert_int_equal(nfacct_decode(message->head, &counter, &err), 0);
	assert_string_equal(counter.name, name);
	assert_int_equal(counter.packets, 123);
	assert_int_equal(counter.bytes, 54321);
}

static void decode_with_and_without_padding(void **state attr_unused)
{
	struct message message;

	begin(&message);
	add_all(&message, "dummy-metric"); /* 13 bytes: padded */
	expect_counter(&message, "dummy-metric");
	begin(&message);
	add_all(&message, "dummy-metr1"); /* 12 bytes */
	expect_counter(&message, "dummy-metr1");
}

static void decode_unknown_attributes_first_and_last(void **state attr_unused)
{
	struct message message;

	begin(&message);
	mnl_attr_put_u32(message.head, 99, 7);
	add_all(&message, "x");
	mnl_attr_put_strz(message.head, NFACCT_FLAGS, "?");
	mnl_attr_put_u64(message.head, 12345, 1);
	expect_counter(&message, "x");
}

static void decode_missing_attributes(void **state attr_unused)
{
	for (unsigned int present = 0; present < 7; present++) {
		struct nfacct_counter counter = {.packets = 9};
		struct message message;
		struct err err;

		begin(&message);
		if (present & 1)
			mnl_attr_put_strz(message.head, NFACCT_NAME, "x");
		if (present & 2)
			mnl_attr_put_u64(message.head, NFACCT_PKTS, 1);
		if (present & 4)
			mnl_attr_put_u64(message.head, NFACCT_BYTES, 1);
		assert_int_equal(nfacct_decode(message.head, &counter, &err), -EBADMSG);
		assert_int_equal(counter.packets, 9);
	}
}

static void decode_without_generic_header_or_of_wrong_sizes(void **state attr_unused)
{
	struct nfacct_counter counter;
	struct message message;
	struct err err;

	message.head = mnl_nlmsg_put_header(message.buffer);
	assert_int_equal(nfacct_decode(message.head, &counter, &err), -EBADMSG);
	begin(&message);
	mnl_attr_put_strz(message.head, NFACCT_NAME,
			  "a name that is longer than the kernel allows");
	mnl_attr_put_u32(message.head, NFACCT_PKTS, 1);
	mnl_attr_put_u64(message.head, NFACCT_BYTES, 1);
	assert_int_equal(nfacct_decode(message.head, &counter, &err), -EBADMSG);
	begin(&message);
	add_all(&message, "x");
	message.head->nlmsg_len -= 4; /* cut in the last attribute */
	assert_int_equal(nfacct_decode(message.head, &counter, &err), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_valid_and_duplicate),
		cmocka_unit_test(add_name_too_long_or_empty),
		cmocka_unit_test(get_found_missing_and_too_long),
		cmocka_unit_test(ensure_creates_once),
		cmocka_unit_test(questions_share_a_line),
		cmocka_unit_test(counts_packets),
		cmocka_unit_test(decode_with_and_without_padding),
		cmocka_unit_test(decode_unknown_attributes_first_and_last),
		cmocka_unit_test(decode_missing_attributes),
		cmocka_unit_test(decode_without_generic_header_or_of_wrong_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
