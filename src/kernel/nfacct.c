/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nfacct.h"

#include <endian.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_acct.h>
#include <sys/socket.h>
#include <time.h>

#include "kernel/nfnetlink.h"

_Static_assert(NFACCT_NAME_LENGTH + 1 == NFACCT_NAME_MAX, "the kernel counts the NUL");

#define PROBE_NAME    "portolan-probe" /* whether it exists does not matter */
#define DUMP_ATTEMPTS 5                /* a dump that was disturbed is repeated */

struct request {
	struct nlmsghdr *message;
	uint32_t buffer[64]; /* the head and a name */
};

static void request_begin(struct request *request, uint8_t command, uint16_t flags)
{
	request->message = nfnetlink_begin(request->buffer, NFNL_SUBSYS_ACCT, command, AF_UNSPEC,
					   flags, (uint32_t)time(NULL));
}

/* Hands each answer to the callback, until the last one. The kernel has answered by now. */
static int read_answers(const struct mnl_socket *socket, uint32_t seq, mnl_cb_t callback, void *arg)
{
	uint32_t answer[4096];
	ssize_t n;
	int r;

	do {
		n = nfnetlink_read(socket, answer, sizeof(answer));
		if (n <= 0)
			return n < 0 ? (int)n : -EPROTO;
		r = mnl_cb_run(answer, (size_t)n, seq, mnl_socket_get_portid(socket), callback,
			       arg);
		if (r < 0)
			return -errno;
	} while (r > MNL_CB_STOP);
	return 0;
}

/* 0, or the negative errno of the socket or of the kernel's answer. */
static int request_run(const struct request *request, mnl_cb_t callback, void *arg)
{
	struct mnl_socket *socket;
	struct err unused; /* the caller says what was asked */
	int r = nfnetlink_open(0, &socket, &unused);

	if (r < 0)
		return r;
	if (mnl_socket_sendto(socket, request->message, request->message->nlmsg_len) < 0)
		r = -errno;
	if (r == 0)
		r = read_answers(socket, request->message->nlmsg_seq, callback, arg);
	mnl_socket_close(socket);
	return r;
}

static int check_name(const char *name, struct err *err)
{
	if (name[0] == '\0')
		return err_set(err, -EINVAL, "an nfacct counter needs a name");
	if (strlen(name) > NFACCT_NAME_LENGTH)
		return err_set(err, -ENAMETOOLONG,
			       "nfacct counter '%s': the name has more than %d letters", name,
			       NFACCT_NAME_LENGTH);
	return 0;
}

/* nfacct add NAME */
int nfacct_add(const char *name, struct err *err)
{
	struct request request;
	int r = check_name(name, err);

	if (r < 0)
		return r;
	request_begin(&request, NFNL_MSG_ACCT_NEW, NLM_F_CREATE | NLM_F_ACK);
	mnl_attr_put_strz(request.message, NFACCT_NAME, name);
	r = request_run(&request, NULL, NULL);
	if (r == -EBUSY)
		r = -EEXIST; /* how this part of the kernel says it */
	return r < 0 ? err_sys(err, r, "creating nfacct counter '%s'", name) : 0;
}

struct answers {
	struct nfacct_counter *counters;
	size_t n, capacity;
	struct err err;
	int error;
};

static int take_answer(const struct nlmsghdr *message, void *arg)
{
	struct answers *answers = arg;
	struct nfacct_counter counter;
	int r = nfacct_decode(message, &counter, &answers->err);

	if (r < 0) {
		answers->error = r;
		return MNL_CB_OK; /* read on: the end must come */
	}
	array_grow(&answers->counters, &answers->capacity, answers->n, sizeof(counter));
	answers->counters[answers->n++] = counter;
	return MNL_CB_OK;
}

/* nfacct get NAME */
int nfacct_get(const char *name, struct nfacct_counter *ret, struct err *err)
{
	struct answers answers = {0};
	cleanup_free struct nfacct_counter *counters = NULL;
	struct request request;
	int r = check_name(name, err);

	if (r < 0)
		return r;
	request_begin(&request, NFNL_MSG_ACCT_GET, NLM_F_ACK);
	mnl_attr_put_strz(request.message, NFACCT_NAME, name);
	r = request_run(&request, take_answer, &answers);
	counters = answers.counters;
	if (r < 0)
		return err_sys(err, r, "reading nfacct counter '%s'", name);
	if (answers.error < 0) {
		*err = answers.err;
		return err_wrap(err, answers.error, "reading nfacct counter '%s'", name);
	}
	if (answers.n == 0)
		return err_set(err, -ENOENT, "reading nfacct counter '%s': no answer", name);
	*ret = counters[answers.n - 1];
	return 0;
}

int nfacct_ensure(const char *name, struct err *err)
{
	struct nfacct_counter unused;
	int r = nfacct_get(name, &unused, err);

	if (r != -ENOENT)
		return r;
	r = nfacct_add(name, err);
	if (r == -EEXIST)
		return 0; /* the other family was quicker */
	return r < 0 ? r : 1;
}

int nfacct_supported(void)
{
	struct nfacct_counter unused;
	struct err ignored;
	int r = nfacct_get(PROBE_NAME, &unused, &ignored);

	return r == 0 || r == -ENOENT;
}

static int list_once(struct answers *answers, struct err *err)
{
	struct request request;
	int r;

	request_begin(&request, NFNL_MSG_ACCT_GET, NLM_F_DUMP);
	r = request_run(&request, take_answer, answers);
	if (r < 0)
		return err_sys(err, r, "listing the nfacct counters");
	if (answers->error < 0)
		*err = answers->err;
	return answers->error;
}

/* nfacct list */
int nfacct_list(struct nfacct_counter **ret, size_t *ret_n, struct err *err)
{
	struct answers answers = {0};
	int r = -EINTR;

	for (int i = 0; i < DUMP_ATTEMPTS && r == -EINTR; i++) {
		answers.n = 0;
		r = list_once(&answers, err);
	}
	if (r < 0) {
		util_free_pointer(&answers.counters);
		return r;
	}
	*ret = answers.counters;
	*ret_n = answers.n;
	return 0;
}

int nfacct_decode(const struct nlmsghdr *message, struct nfacct_counter *ret, struct err *err)
{
	struct nfacct_counter counter = {0};
	const struct nlattr *attribute;
	unsigned int seen = 0;
	uint64_t number;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(struct nfgenmsg))
		return err_set(err, -EBADMSG, "the kernel's nfacct message is too short");
	mnl_attr_for_each(attribute, message, sizeof(struct nfgenmsg))
	{
		uint16_t type = mnl_attr_get_type(attribute);
		uint16_t size = mnl_attr_get_payload_len(attribute);

		if (type == NFACCT_NAME && size > 0 && size <= sizeof(counter.name)) {
			memcpy(counter.name, mnl_attr_get_payload(attribute), size);
			counter.name[sizeof(counter.name) - 1] = '\0';
		} else if ((type == NFACCT_PKTS || type == NFACCT_BYTES) &&
			   size == sizeof(number)) {
			memcpy(&number, mnl_attr_get_payload(attribute), sizeof(number));
			*(type == NFACCT_PKTS ? &counter.packets : &counter.bytes) =
				be64toh(number);
		} else {
			continue;
		}
		seen |= 1u << type;
	}
	if (seen != (1u << NFACCT_NAME | 1u << NFACCT_PKTS | 1u << NFACCT_BYTES))
		return err_set(err, -EBADMSG,
			       "the kernel's nfacct message lacks name, packets or bytes");
	*ret = counter;
	return 0;
}
