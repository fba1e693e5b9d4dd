/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small tables, chains and rules in a network namespace of the test's own. */

#include <arpa/inet.h>
#include <linux/netfilter/nf_tables.h>

#include "fake_tools.h"
#include "kernel/nft_batch.h"
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"

attr_unused static struct nft_socket *open_socket(void)
{
	struct nft_socket *socket = NULL;
	struct err err;

	assert_int_equal(nft_socket_open(&socket, &err), 0);
	return socket;
}

attr_unused static void put_table(struct nft_batch *batch, const char *table)
{
	struct nlmsghdr *message =
		nft_batch_message(batch, NFT_MSG_NEWTABLE, FAMILY_IPV4, NLM_F_CREATE);

	mnl_attr_put_strz(message, NFTA_TABLE_NAME, table);
}

attr_unused static void put_chain(struct nft_batch *batch, int type, const char *chain)
{
	struct nlmsghdr *message = nft_batch_message(batch, (uint16_t)type, FAMILY_IPV4,
						     type == NFT_MSG_NEWCHAIN ? NLM_F_CREATE : 0);

	mnl_attr_put_strz(message, NFTA_CHAIN_TABLE, "test");
	mnl_attr_put_strz(message, NFTA_CHAIN_NAME, chain);
}

/* A rule that holds nothing but a comment of `size` bytes. */
attr_unused static struct nlmsghdr *put_rule(struct nft_batch *batch, const char *chain,
					     size_t size, uint16_t flags)
{
	static const char text[256];
	struct nlmsghdr *message = nft_batch_message(batch, NFT_MSG_NEWRULE, FAMILY_IPV4,
						     NLM_F_CREATE | NLM_F_APPEND | flags);

	mnl_attr_put_strz(message, NFTA_RULE_TABLE, "test");
	mnl_attr_put_strz(message, NFTA_RULE_CHAIN, chain);
	mnl_attr_nest_end(message, mnl_attr_nest_start(message, NFTA_RULE_EXPRESSIONS));
	if (size)
		mnl_attr_put(message, NFTA_RULE_USERDATA, size, text);
	return message;
}

attr_unused static void commit(struct nft_socket *socket, struct nft_batch *batch)
{
	struct err err;
	int r = nft_batch_commit(socket, batch, 0, NULL, NULL, &err);

	if (r < 0)
		fail_msg("%s", err.text);
	assert_int_equal(r, 0);
	nft_batch_reset(batch);
}

attr_unused static uint32_t generation_of(struct nft_socket *socket)
{
	uint32_t generation = 0;
	struct err err;

	assert_int_equal(nft_generation(socket, &generation, &err), 0);
	return generation;
}

/* An empty namespace with table "test", and in it chain "c". */
attr_unused static void fresh_table(struct nft_socket *socket, struct nft_batch *batch)
{
	struct nlmsghdr *message;

	put_table(batch, "test");
	message = nft_batch_message(batch, NFT_MSG_DELTABLE, FAMILY_IPV4, 0);
	mnl_attr_put_strz(message, NFTA_TABLE_NAME, "test");
	put_table(batch, "test");
	put_chain(batch, NFT_MSG_NEWCHAIN, "c");
	commit(socket, batch);
}
