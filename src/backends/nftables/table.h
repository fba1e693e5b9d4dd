/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Table kube-proxy as the kernel has it: whose it is, what chains and which clients are in it. */

#include "backends/nftables/affinity_ids.h"
#include "backends/nftables/container.h"
#include "base/err.h"
#include "model/service.h"

struct nft_socket;

enum table_kind {
	TABLE_ABSENT = 0,
	TABLE_OURS,         /* laid out as layout.h says */
	TABLE_OTHER_LAYOUT, /* ours, of another version */
	TABLE_FOREIGN,      /* kube-proxy's, or taken over by it */
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

/* Maps of clients. */
struct table_map {
	enum container container;
	uint32_t number; /* of the service port */
	uint32_t size;
	char *comment; /* NULL: none */
};

struct table_maps {
	struct table_map *v;
	size_t n, capacity;
	bool localhost_rejects; /* that map is there, whoever asked for it */
};

int table_list_maps(struct nft_socket *socket, enum family family, struct table_maps *ret,
		    struct err *err);
void table_maps_done(struct table_maps *maps);

#define cleanup_table_maps attr_cleanup(table_maps_done)

/* Named counters. */
struct table_counters {
	bool there[PROTOCOL_COUNT];
	uint64_t packets[PROTOCOL_COUNT];
};

/* Without a table there are none. The list is short: it is asked for and answered at once. */
int table_read_counters(struct nft_socket *socket, enum family family, struct table_counters *ret,
			struct err *err);

/* The ids of service ports with affinity and of their endpoints that a former life gave. */
int table_find_ids(struct nft_socket *socket, enum family family, struct affinity_ids *ids,
		   struct err *err);

/* Elements of a map of clients. Negative from fn ends the list with that error. */
struct table_client {
	struct addr addr;
	uint32_t endpoint;               /* its number */
	uint64_t timeout_ms, expires_ms; /* from its last connection on, and from now on */
};

typedef int table_client_fn(void *arg, const struct table_client *client);
typedef void table_restart_fn(void *arg); /* what came so far does not count */

int table_each_client(struct nft_socket *socket, enum family family, const struct table_map *map,
		      table_client_fn *fn, table_restart_fn *restart, void *arg, struct err *err);

/* Numbers of service ports whose clients could not all be remembered of late; an array for the caller to free. */
int table_find_full(struct nft_socket *socket, enum family family, uint32_t **ret, size_t *ret_n,
		    struct err *err);
