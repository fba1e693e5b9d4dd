/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_dump.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/uio.h>

#include "kernel/nfnetlink.h"
#include "kernel/nft_batch.h"
#include "kernel/nft_describe.h"
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"

#define ATTEMPTS 10
/* Datagrams that are read at once: the first piece and the end. So much a small list has. */
#define AT_ONCE 2

struct question {
	uint32_t buffer[256]; /* the head and two names */
	struct nlmsghdr *message;
};

_Static_assert(sizeof(((struct question *)NULL)->buffer) > 2 * (NFT_NAME_SIZE + 4) + 32,
	       "both names fit");

/* nft list chain ip nat X */
static void put_question(struct question *question, const struct nft_dump_request *request,
			 uint32_t sequence)
{
	uint8_t nfproto = request->nfproto ? request->nfproto : nft_family(request->family);

	question->message =
		nfnetlink_begin(question->buffer, NFNL_SUBSYS_NFTABLES, (uint8_t)request->type,
				nfproto, request->one ? NLM_F_ACK : NLM_F_DUMP, sequence);
	if (request->table)
		mnl_attr_put_strz(question->message, NFT_DESCRIBE_TABLE, request->table);
	if (request->chain)
		mnl_attr_put_strz(question->message, nft_describe_name_attribute(request->type),
				  request->chain);
}

static bool same(const char *wanted, const char *found)
{
	return !wanted || (found && streq(wanted, found));
}

/* The kernel lists the chains of all tables whatever it is asked. */
static bool is_asked_for(const struct nft_dump_request *request, const struct nlmsghdr *message)
{
	return same(request->table, nft_describe_table(message)) &&
	       same(request->chain, nft_describe_name(message));
}

static int take_object(struct nft_dump_state *state, const struct nlmsghdr *message,
		       struct err *err)
{
	uint16_t generation = nft_message_generation(message);

	if (state->begun && generation != state->generation && !state->request->moving)
		state->disturbed = true;
	state->begun = true;
	state->generation = generation;
	if (state->disturbed || !is_asked_for(state->request, message))
		return 0;
	return state->ops->message(state->arg, message, err);
}

/* The end of a list: perhaps with an error. */
static int take_end(const struct nlmsghdr *message)
{
	int code = 0;

	if (mnl_nlmsg_get_payload_len(message) >= sizeof(code))
		memcpy(&code, mnl_nlmsg_get_payload(message), sizeof(code));
	if (code < -NFT_ERRNO_MAX)
		return -EBADMSG;
	return code < 0 ? code : 1;
}

static int take_message(struct nft_dump_state *state, const struct nlmsghdr *message,
			struct err *err)
{
	struct nft_error error;

	if (message->nlmsg_seq != state->sequence)
		return 0; /* of an earlier question */
	if (message->nlmsg_flags & NLM_F_DUMP_INTR)
		state->disturbed = true;
	if (nft_message_type(message) >= 0)
		return take_object(state, message, err);
	if (message->nlmsg_type == NLMSG_DONE)
		return take_end(message);
	if (message->nlmsg_type != NLMSG_ERROR)
		return 0;
	if (nft_message_error(message, &error) < 0)
		return -EBADMSG;
	return error.code < 0 ? error.code : 1;
}

int nft_dump_take(struct nft_dump_state *state, const void *data, size_t n, struct err *err)
{
	struct nft_datagram datagram = {data, n, false};
	const struct nlmsghdr *message;
	int r = 0;

	while (r == 0 && (message = nft_datagram_next(&datagram)))
		r = take_message(state, message, err);
	return r == 0 && datagram.broken ? -EBADMSG : r;
}

/* A list is long: the host of the socket reads it, and while it does so does not write elsewhere. */
static int read_on(struct nft_socket *socket, struct nft_dump_state *state)
{
	int r = state->alone || state->request->moving ? 0 : nft_socket_begin(socket);

	if (r < 0)
		return r;
	state->alone = !state->request->moving;
	return nft_socket_fetch(socket);
}

/* 0 when it is complete, 1 when it was disturbed. */
static int dump_once(struct nft_socket *socket, struct nft_dump_state *state, struct err *err)
{
	struct question question;
	const void *data;
	ssize_t n;
	int r;

	state->sequence = nft_socket_sequence(socket);
	state->begun = state->disturbed = false;
	put_question(&question, state->request, state->sequence);
	r = nft_socket_send(socket, &(struct iovec){question.buffer, question.message->nlmsg_len},
			    1);
	for (int i = 0; r == 0; i++) {
		if (i >= AT_ONCE)
			r = read_on(socket, state);
		if (r < 0)
			return r;
		n = nft_socket_read(socket, &data);
		if (n <= 0)
			r = n < 0 ? (int)n : -EPROTO; /* no end */
		else
			r = nft_dump_take(state, data, (size_t)n, err);
	}
	return r < 0 ? r : state->disturbed;
}

static int check(const struct nft_dump_request *request, struct err *err)
{
	if ((request->table && strlen(request->table) >= NFT_NAME_SIZE) ||
	    (request->chain && strlen(request->chain) >= NFT_NAME_SIZE))
		return err_set(err, -ENAMETOOLONG, "names in nf_tables have at most %d bytes",
			       NFT_NAME_SIZE - 1);
	return 0;
}

static void describe(const struct nft_dump_request *request, char *out, size_t size)
{
	struct question question;

	put_question(&question, request, 0);
	nft_describe(question.message, out, size);
}

int nft_dump(struct nft_socket *socket, const struct nft_dump_request *request,
	     const struct nft_dump_ops *ops, void *arg, struct err *err)
{
	struct nft_dump_state state = {.request = request, .ops = ops, .arg = arg};
	struct err told = {0}; /* by the operation */
	char what[NFT_NAME_SIZE * 2 + 64];
	int r = check(request, err);

	if (r < 0)
		return r;
	r = dump_once(socket, &state, &told);
	for (int i = 1; i < ATTEMPTS && r == 1; i++) {
		if (ops->restart)
			ops->restart(arg);
		r = dump_once(socket, &state, &told);
	}
	if (r != 0)
		nft_socket_discard(socket);
	if (state.alone)
		nft_socket_end(socket);
	if (r == 0)
		return 0;
	describe(request, what, sizeof(what));
	if (r == 1)
		return err_set(err, -EINTR, "%s: others wrote meanwhile, %d times", what, ATTEMPTS);
	if (told.code == 0)
		return err_sys(err, r, "%s", what);
	*err = told;
	return err_wrap(err, r, "%s", what);
}
