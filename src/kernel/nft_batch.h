/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Transactions of nf_tables: a list of messages that the kernel takes all or none of.
 *
 *	nft_batch_subject(batch, "service 'default/web'");
 *	message = nft_batch_message(batch, NFT_MSG_NEWCHAIN, FAMILY_IPV4, NLM_F_CREATE);
 *	mnl_attr_put_strz(message, NFTA_CHAIN_TABLE, "nat");
 *	mnl_attr_put_strz(message, NFTA_CHAIN_NAME, "KUBE-SVC-X");
 *	r = nft_batch_commit(socket, batch, generation, NULL, NULL, err);
 *	nft_batch_reset(batch);
 *
 * Order matters to the kernel: chains before rules that jump to them. Messages grow in blocks that
 * are never moved or copied; a few are kept for the next transaction, the rest goes back to the
 * system with nft_batch_reset().
 */

#include "base/addr.h"
#include "base/err.h"

#define NFT_MESSAGE_MAX  16384    /* bytes of attributes that a message has room for */
#define NFT_NAME_SIZE    256      /* of tables, chains and sets, with NUL */
#define NFT_BATCH_WHOLE  SIZE_MAX /* instead of an index: no message in particular */
#define NFT_REFUSALS_MAX 4096     /* so many are remembered one by one */

struct nft_batch;
struct nft_socket;
struct nlmsghdr;

struct nft_batch *nft_batch_new(void);
struct nft_batch *nft_batch_free(struct nft_batch *batch); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(nft_batch)
void nft_batch_reset(struct nft_batch *batch); /* empty, as new */

#define cleanup_nft_batch attr_cleanup(nft_batch_cleanup)

/* Begins a message (NFT_MSG_*), to which the caller puts attributes until the next call for this
 * batch. flags: NLM_F_CREATE, NLM_F_APPEND, NLM_F_ECHO... Its index is what nft_batch_count() was. */
struct nlmsghdr *nft_batch_message(struct nft_batch *batch, uint16_t type, enum family family,
				   uint16_t flags);
/* Bytes of attributes that the message just begun still has room for, their heads included. */
size_t nft_batch_room(const struct nft_batch *batch);
/* What the next messages are about, for errors ("service 'default/web'"); copied. NULL: nothing in
 * particular. */
void nft_batch_subject(struct nft_batch *batch, const char *subject);

size_t nft_batch_count(const struct nft_batch *batch); /* messages */
size_t nft_batch_size(const struct nft_batch *batch);  /* their bytes */

/* An answer to a message with NLM_F_ECHO: the message as the kernel took it, with the handle it
 * gave. index: of the message in the batch. The new generation (NFT_MSG_NEWGEN, NFT_BATCH_WHOLE) comes
 * too, if the very first message has NLM_F_ECHO. Must not use socket or batch. */
typedef void nft_echo_fn(void *arg, size_t index, const struct nlmsghdr *message);

enum nft_commit_result {
	NFT_COMMIT_DONE = 0,
	NFT_COMMIT_ECHOES_LOST = 1, /* done, but the kernel had no room for some of the echoes */
};

/*
 * Sends the whole batch as one transaction. generation: what nft_generation() said; 0: whatever it is.
 * An empty batch does nothing.
 *
 * Negative: nothing was changed, and err says what was refused, about which subject, and why.
 *	-ERESTART   the generation has moved: another program wrote
 *	-EMSGSIZE   larger than nft_socket_send_limit()
 *	-ENOBUFS    the kernel had no memory for it; or, with nft_batch_uncertain(), for any
 *	            answer: only then it may have been applied, and the rules must be read back
 *	others      the kernel's error for the first message that it refused
 * The batch stays as it is, and can be committed again. With echo NULL the echoes are skipped.
 */
int nft_batch_commit(struct nft_socket *socket, struct nft_batch *batch, uint32_t generation,
		     nft_echo_fn *echo, void *arg, struct err *err);

/* Is unknown whether the last commit was applied? Then it has returned -ENOBUFS or -EPROTO. */
bool nft_batch_uncertain(const struct nft_batch *batch);

struct nft_batch_refusal {
	uint32_t index;
	int error; /* negative */
};

/* Why the last commit failed. The kernel looks at all messages whatever it finds, so these are all
 * that it minds; the first is told in detail. Pointers hold until the batch is changed. */
struct nft_batch_failure {
	size_t index;        /* of the first one, or NFT_BATCH_WHOLE */
	int error;           /* negative */
	uint16_t type;       /* NFT_MSG_* */
	const char *subject; /* or NULL */
	char table[NFT_NAME_SIZE];
	char chain[NFT_NAME_SIZE]; /* or set; "" */
	char words[256];           /* the kernel's; "" */
	const struct nft_batch_refusal *refusals;
	size_t n_refusals; /* in the list, the first one included: at most NFT_REFUSALS_MAX */
	size_t n_refused;  /* in all, as far as the kernel had room to tell */
};

const struct nft_batch_failure *nft_batch_failure(const struct nft_batch *batch); /* NULL: none */
/* "adding elements to map X of IPv4 table T: File exists": the same whatever else is in the batch. */
void nft_batch_reason(const struct nft_batch *batch, const struct nft_batch_refusal *refusal,
		      char *out, size_t size);

/* -- the parts of a commit, for nft_batch.c and tests: what came is told, then judged. */

struct nft_batch_outcome {
	bool acknowledged, echoed, lost;
};

void nft_batch_answer(struct nft_batch *batch, const void *data, size_t n, nft_echo_fn *echo,
		      void *arg, struct nft_batch_outcome *outcome);
int nft_batch_judge(struct nft_batch *batch, const struct nft_batch_outcome *outcome,
		    struct err *err);
