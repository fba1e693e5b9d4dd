/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Table kube-proxy as the kernel has it: whose it is, what chains and which clients are in it. */

#include "backends/nftables/affinity_ids.h"
#include "backends/nftables/container.h"
#include "base/err.h"

struct nft_socket;

enum table_kind {
	TABLE_ABSENT = 0,
	TABLE_OURS,    /* laid out as layout.h says */
	TABLE_FOREIGN, /* kube-proxy's, or taken over by it, or of another version */
	TABLE_KIND_COUNT,
};

int table_find(struct nft_socket *socket, enum family family, enum table_kind *ret,
	       struct err *err);

/* Names of its chains. */
struct table_chains {
	char **names;
	size_t n, capacity;
};

int table_list_chains(struct nft_socket *socket, enum family family, struct table_chains *ret,
		      struct err *err);
void table_chains_done(struct table_chains *chains);

#define cleanup_table_chains attr_cleanup(table_chains_done)

/*
 * Is it ours, with every base chain, and a rule in each? 1; 0: err says what is missing; or an error. What
 * is in sets and maps is not looked at.
 */
int table_check(struct nft_socket *socket, enum family family, struct err *err);

/* The ids of service ports with affinity that a former life gave. */
int table_find_ids(struct nft_socket *socket, enum family family, struct affinity_ids *ids,
		   struct err *err);

/* A client that is remembered. */
struct table_client {
	struct addr client;
	uint32_t id;
	struct addr endpoint;
	uint16_t port;
	uint64_t timeout_ms, expires_ms; /* from its last connection on, and from now on */
};

typedef void table_client_fn(void *arg, const struct table_client *client);
typedef void table_restart_fn(void *arg); /* what came so far does not count */

int table_each_client(struct nft_socket *socket, enum family family, enum container container,
		      table_client_fn *fn, table_restart_fn *restart, void *arg, struct err *err);

/* -- for table.c and tests: one element of a list */

struct nlattr;
struct table_element {
	const uint8_t *key, *data; /* data NULL: none, or a verdict */
	size_t key_size, data_size;
	const uint8_t *key_end;          /* of a range, as long as the key; NULL: it is none */
	const struct nlattr *user_data;  /* NULL: none */
	bool verdict;                    /* its data is a verdict ... */
	int32_t code;                    /* ... NF_* or NFT_* ... */
	const char *chain;               /* ... that leads to this chain; NULL: to none */
	uint64_t timeout_ms, expires_ms; /* 0: none */
};

/* Each element of a NFT_MSG_NEWSETELEM; -EBADMSG for one without a key. */
struct nlmsghdr;
typedef void table_element_fn(void *arg, const struct table_element *element);
int table_each_element(const struct nlmsghdr *message, table_element_fn *fn, void *arg,
		       struct err *err);
