/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nfacct.h"

#include <endian.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_acct.h>
#include <sys/socket.h>

#include "kernel/nfnetlink.h"
#include "kernel/nl_attr.h"

_Static_assert(NFACCT_NAME_LENGTH + 1 == NFACCT_NAME_MAX, "the kernel counts the NUL");

#define PROBE_NAME "portolan-probe" /* whether it exists does not matter */

struct request {
	struct nlmsghdr *message;
	uint32_t buffer[64]; /* the head and a name */
};

static void request_begin(struct request *request, uint8_t command, uint16_t flags)
{
	request->message =
		nfnetlink_begin(request->buffer, NFNL_SUBSYS_ACCT, command, AF_UNSPEC, flags, 0);
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
int nfacct_add(struct nfnetlink_conn *line, const char *name, struct err *err)
{
	struct request request;
	int r = check_name(name, err);

	if (r < 0)
		return r;
	request_begin(&request, NFNL_MSG_ACCT_NEW, NLM_F_CREATE | NLM_F_ACK);
	mnl_attr_put_strz(request.message, NFACCT_NAME, name);
	r = nfnetlink_ask(line, request.message, NULL, NULL);
	if (r == -EBUSY)
		r = -EEXIST; /* how this part of the kernel says it */
	return r < 0 ? err_sys(err, r, "creating nfacct counter '%s'", name) : 0;
}

struct answer {
	struct nfacct_counter counter;
	bool given;
	int error;
	struct err err;
};

static int take_answer(const struct nlmsghdr *message, void *arg)
{
	struct answer *answer = arg;

	answer->error = nfacct_decode(message, &answer->counter, &answer->err);
	answer->given = true;
	return MNL_CB_OK; /* read on: the end must come */
}

/* nfacct get NAME */
int nfacct_get(struct nfnetlink_conn *line, const char *name, struct nfacct_counter *ret,
	       struct err *err)
{
	struct answer answer = {0};
	struct request request;
	int r = check_name(name, err);

	if (r < 0)
		return r;
	request_begin(&request, NFNL_MSG_ACCT_GET, NLM_F_ACK);
	mnl_attr_put_strz(request.message, NFACCT_NAME, name);
	r = nfnetlink_ask(line, request.message, take_answer, &answer);
	if (r < 0)
		return err_sys(err, r, "reading nfacct counter '%s'", name);
	if (!answer.given)
		return err_set(err, -ENOENT, "reading nfacct counter '%s': no answer", name);
	if (answer.error < 0) {
		*err = answer.err;
		return err_wrap(err, answer.error, "reading nfacct counter '%s'", name);
	}
	*ret = answer.counter;
	return 0;
}

int nfacct_ensure(struct nfnetlink_conn *line, const char *name, struct err *err)
{
	struct nfacct_counter unused;
	int r = nfacct_get(line, name, &unused, err);

	if (r != -ENOENT)
		return r;
	r = nfacct_add(line, name, err);
	if (r == -EEXIST)
		return 0; /* the other family was quicker */
	return r < 0 ? r : 1;
}

int nfacct_supported(void)
{
	struct nfacct_counter unused;
	struct err ignored;
	int r = nfacct_get(NULL, PROBE_NAME, &unused, &ignored);

	return r == 0 || r == -ENOENT;
}

int nfacct_decode(const struct nlmsghdr *message, struct nfacct_counter *ret, struct err *err)
{
	const struct nlattr *v[NFACCT_BYTES + 1];
	struct nfacct_counter counter = {0};
	const uint8_t *name;
	size_t n;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(struct nfgenmsg))
		return err_set(err, -EBADMSG, "the kernel's nfacct message is too short");
	nl_attr_by_type(nl_attr_message(message, sizeof(struct nfgenmsg)), v, NFACCT_BYTES);
	name = nl_attr_bytes(v[NFACCT_NAME], &n);
	if (n == 0 || n > sizeof(counter.name) ||
	    !nl_attr_copy(v[NFACCT_PKTS], &counter.packets, sizeof(counter.packets)) ||
	    !nl_attr_copy(v[NFACCT_BYTES], &counter.bytes, sizeof(counter.bytes)))
		return err_set(err, -EBADMSG,
			       "the kernel's nfacct message lacks name, packets or bytes");
	memcpy(counter.name, name, n);
	counter.name[sizeof(counter.name) - 1] = '\0';
	counter.packets = be64toh(counter.packets);
	counter.bytes = be64toh(counter.bytes);
	*ret = counter;
	return 0;
}
