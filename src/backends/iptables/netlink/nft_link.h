/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the parts of the netlink writer share: the socket, the transaction being built, and the
 * handles of the rules in shared chains. Each function below puts one message into the batch; none
 * reaches the kernel before nft_link_commit().
 */

#include "backends/iptables/netlink/nft_state.h"
#include "base/err.h"
#include "kernel/nft_batch.h"
#include "xtables/chains.h"

/* From so many bytes on a transaction is cut where that may be: it is held in memory as a whole, here and in
 * the kernel. */
#define NFT_LINK_PIECE (512UL * 1024)

struct nft_socket;
struct nft_watch;

struct nft_link {
	enum family family;
	struct nft_socket *socket; /* borrowed, as the next one */
	struct nft_watch *watch;   /* does not listen to large transactions. NULL: none */
	struct nft_batch *batch;
	struct nft_state *state;
	/* since the start */
	size_t n_transactions;
	size_t n_messages;
	size_t largest;                    /* transaction, in bytes */
	size_t n_rules[TABLE_COUNT];       /* written */
	size_t n_batch_rules[TABLE_COUNT]; /* of the batch in hand */
};

void nft_link_init(struct nft_link *link, enum family family, struct nft_socket *socket,
		   struct nft_watch *watch);
void nft_link_done(struct nft_link *link); /* accepts one that was never made */

/* A chain whose rules are deleted by handle, because many own a part of it. */
static inline bool nft_link_is_shared(const char *chain)
{
	return !chain_is_per_service(chain);
}

void nft_link_reset(struct nft_link *link); /* empties the batch */
void nft_link_new_table(struct nft_link *link, enum table table);
void nft_link_new_chain(struct nft_link *link, enum table table, const char *chain);
void nft_link_new_base_chain(struct nft_link *link, enum table table, const char *chain);
void nft_link_flush(struct nft_link *link, enum table table, const char *chain);
void nft_link_delete_chain(struct nft_link *link, enum table table, const char *chain);
/* The handle of a rule in a shared chain will be in link->state. */
void nft_link_append(struct nft_link *link, const struct rule *rule);
/* The handle of a leading rule will be in link->state too. */
void nft_link_prepend(struct nft_link *link, const struct rule *rule);
void nft_link_delete_rule(struct nft_link *link, enum table table, const char *chain,
			  uint64_t handle);
/* Before another rule, by its handle; 0: at the end of the chain. */
void nft_link_insert(struct nft_link *link, const struct rule *rule, uint64_t before);

/* Whose rules the next messages are about: the key of a Service, or NULL. */
void nft_link_subject(struct nft_link *link, const char *key);
/* The Service whose message was the first that the last commit was refused for; NULL: of none. */
const char *nft_link_refused(const struct nft_link *link);

/*
 * Sends the batch as one transaction; an empty one is not sent. Returns what nft_batch_commit() does;
 * lost echoes only mean that some handles are not known. The batch stays as it is, so that
 * it can be sent again, until nft_link_reset().
 */
int nft_link_commit(struct nft_link *link, uint32_t generation, struct err *err);

/* The rules of one chain, in order; none when there is no such chain. */
struct nft_link_rule {
	uint64_t digest;
	uint64_t handle;
};

struct nft_link_rules {
	struct nft_link_rule *v;
	size_t n, capacity;
};

int nft_link_read(struct nft_link *link, enum table table, const char *chain,
		  struct nft_link_rules *ret, struct err *err);
void nft_link_rules_done(struct nft_link_rules *rules);
/* These are the rules of a shared chain: what link->state knows of it is replaced. */
void nft_link_know(struct nft_link *link, unsigned int number, const struct nft_link_rules *rules);
/* Reads them, too. */
int nft_link_learn(struct nft_link *link, enum table table, const char *chain, struct err *err);

#define cleanup_nft_link_rules attr_cleanup(nft_link_rules_done)
