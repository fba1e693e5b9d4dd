/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_compat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/uio.h>

#include "kernel/nfnetlink.h"
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"

#define COMPAT_MATCH 0 /* NFTA_COMPAT_TYPE: a match, not a target */

/* 1: it knows the match; 0: nothing said so far. */
static int take_answer(const void *data, size_t n)
{
	struct nft_datagram datagram = {data, n, false};
	const struct nlmsghdr *message;

	while ((message = nft_datagram_next(&datagram))) {
		struct nft_error error;

		if (message->nlmsg_type == (NFNL_SUBSYS_NFT_COMPAT << 8 | NFNL_MSG_COMPAT_GET))
			return 1;
		if (nft_message_error(message, &error) == 0 && error.code < 0)
			return error.code;
	}
	return 0;
}

/* Is there a match `comment`? Every kernel that has xtables knows that one. */
static int ask(struct nft_socket *socket, enum family family)
{
	uint32_t request[64];
	struct nlmsghdr *message;
	const void *data;
	ssize_t n;
	int r;

	message = nfnetlink_begin(request, NFNL_SUBSYS_NFT_COMPAT, NFNL_MSG_COMPAT_GET,
				  nft_family(family), 0, nft_socket_sequence(socket));
	mnl_attr_put_strz(message, NFTA_COMPAT_NAME, "comment");
	mnl_attr_put_u32(message, NFTA_COMPAT_REV, htonl(0));
	mnl_attr_put_u32(message, NFTA_COMPAT_TYPE, htonl(COMPAT_MATCH));
	r = nft_socket_send(socket, &(struct iovec){request, message->nlmsg_len}, 1);
	while (r == 0 && (n = nft_socket_read(socket, &data)) != 0)
		r = n < 0 ? (int)n : take_answer(data, (size_t)n);
	return r == 0 ? -EPROTO : r;
}

int nft_compat_supported(enum family family, struct err *err)
{
	cleanup_nft_socket struct nft_socket *socket = NULL;
	uint32_t unused;
	int r;

	if (nft_socket_open(&socket, err) < 0 || nft_generation(socket, &unused, err) < 0)
		return 0;
	r = ask(socket, family);
	if (r < 0) {
		err_sys(err, r, "the kernel has no nft_compat");
		return 0;
	}
	return 1;
}
