/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Brings the kernel to the wanted state by comparing the two, in steps that each take a few
 * milliseconds or one transaction, so that the event loop is never kept from its other work.
 *
 *	LIST    which chains exist: one dump
 *	HEAD    shared chains that do not exist, empty
 *	OWN     the chains of each Service: what exists is read, what is wrong or missing is written
 *	READ    the shared chains are read
 *	ADD     entries that they lack
 *	LAST    one transaction: rules that leave, last rules of chains, the jumps of the base chains, canaries
 *	STALE   chains of services that no plan wants are emptied and deleted
 *
 * Nothing that works is gone for a moment. Where nothing exists nothing is read, and nothing is
 * reachable from a base chain before LAST: what cannot be reached, the kernel does not validate, so
 * that a cold start costs hardly more than the rules themselves. Where all is right nothing is sent.
 *
 * A Service whose messages the kernel refuses is told (events->refused), left as it is, and all others
 * go on; while there is one, nothing unknown is removed, because it may be a part of it.
 */

#include "backends/iptables/netlink/nft_shared.h"

struct nft_audit;

struct nft_audit_events {
	nft_difference_fn *differs;
	/*
	 * The kernel refused a Service. It must wait when this returns. False: too many do.
	 */
	bool (*refused)(void *arg, const char *key);
	/* A chain that no plan wants stays, emptied, because a rule that is not ours leads to it. */
	void (*held)(void *arg, const char *nat_chain);
	/* Has another program changed what is ours since the audit began? */
	bool (*disturbed)(void *arg);
	void *arg;
};

struct nft_audit_chain {
	unsigned int number; /* in link->state */
	size_t n_lost;       /* see nft_shared_compare() */
};

/* What to look at. A whole audit looks at everything, and for leftovers. */
struct nft_audit_scope {
	bool all;
	const size_t *services; /* indices in the ruleset; copied */
	size_t n_services;
	const struct nft_audit_chain *chains; /* shared ones; copied */
	size_t n_chains;
	bool shared_missing; /* some shared chain may have been deleted */
	bool jumps;
};

struct nft_audit_result {
	size_t n_services;         /* looked at */
	size_t n_wrong;            /* chains that differed; missing ones too */
	size_t n_missing;          /* rules */
	size_t n_extra;            /* rules */
	size_t n_jumps;            /* of base chains, that were missing */
	bool jumps[RULESET_JUMPS]; /* which; by the index of ruleset_jump() */
	size_t n_deleted;          /* chains */
};

/* All but the scope is borrowed. refused: see nft_shared.h. */
struct nft_audit *nft_audit_new(struct nft_link *link, struct ruleset *ruleset,
				const struct refused_services *refused,
				const struct nft_audit_scope *scope,
				const struct nft_audit_events *events);
struct nft_audit *nft_audit_free(struct nft_audit *audit); /* accepts NULL, returns NULL */

/*
 * The next step; input as for ruleset_fixed(). 1: go on; 0: done. -ESTALE: another program changed
 * what was compared, begin again; other errors: the kernel refused what belongs to no Service.
 */
int nft_audit_step(struct nft_audit *audit, const struct ruleset_input *input, struct err *err);
const struct nft_audit_result *nft_audit_result(const struct nft_audit *audit);

/*
 * A delta wants to go first. Before ruleset_begin(): puts back what is in hand. After it, the audit
 * goes on with the Services it has not seen. The delta's own chains are told by the two others.
 */
void nft_audit_interrupt(struct nft_audit *audit);
void nft_audit_chain_written(struct nft_audit *audit, enum table table, const char *chain);
void nft_audit_chain_deleted(struct nft_audit *audit, enum table table, const char *chain);
