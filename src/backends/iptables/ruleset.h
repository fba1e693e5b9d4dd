/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules of iptables mode for one family: state and decisions, no processes, no clock of its own.
 *
 * A sync is prepared here and carried out elsewhere (sync.h, or a dry run):
 *
 *	ruleset_begin()   takes a delta of plans, decides full or partial, and says whether a list of
 *	                  existing chains is wanted
 *	ruleset_write()   says the whole transaction to a writer
 *	ruleset_end()     notes success or failure; after a failure the next sync is full
 *
 * In KUBE-SERVICES, of nat and of filter, the entries of all cluster IPs lead: no external IP or load
 * balancer's IP of any Service stands before them, in whatever order Services come and go. A destination that
 * several Services ask for has entries of its owner alone (plan->withheld).
 *
 * A full sync writes everything. A partial one is a delta: only chains of changed services that
 * differ, only entries in shared chains that differ, and nothing at all when nothing does; it reads
 * no list of chains.
 */

#include "base/map.h"
#include "plan/plan_store.h"
#include "xtables/chains.h"
#include "xtables/txn.h"

/* More endpoints than this: comments go, and hourly full syncs too. */
#define RULESET_LARGE_CLUSTER       1000
#define RULESET_FULL_SYNC_PERIOD_NS (3600LL * 1000000000)

/* What the running system offers; found out at start. */
struct ruleset_host {
	bool be_liberal;     /* nf_conntrack_tcp_be_liberal was set at start: no INVALID rule */
	bool nfacct_invalid; /* counters that exist and may be named in rules */
	bool nfacct_localhost;
};

/* Facts read anew for each sync. */
struct ruleset_input {
	int64_t now_ns; /* monotonic */
	/* for a full sync: names of the nat chains that exist; NULL: no stale one is deleted */
	const char *const *nat_chains;
	size_t n_nat_chains;
	/*
	 * Those of them that foreign rules lead to, by name; NULL: none. The kernel would refuse to
	 * delete them, and all that is written with it, so a stale one is only emptied.
	 */
	const struct map *held_chains;
	/* addresses of the node's interfaces; only read when node ports are limited to CIDRs */
	bool addresses_known;
	const struct addr *addresses;
	size_t n_addresses;
};

/* What a sync wrote; the source of metrics. */
struct ruleset_stats {
	bool full;
	bool large_cluster;
	size_t rules_total[TABLE_COUNT];   /* owned: written now or left standing */
	size_t rules_written[TABLE_COUNT]; /* by this sync, without chain deletions */
	size_t chains_deleted;
};

struct ruleset;

/*
 * settings and host are borrowed. The host's flags may change between syncs (the next one is full
 * then) and in a full one before it is written; the settings only with ruleset_need_full_sync().
 */
struct ruleset *ruleset_new(const struct settings *settings, const struct ruleset_host *host);
struct ruleset *ruleset_free(struct ruleset *ruleset); /* accepts NULL, returns NULL */

void ruleset_need_full_sync(struct ruleset *ruleset);

struct ruleset_begun {
	bool full;
	bool wants_nat_chains; /* ruleset_input.nat_chains should be filled in */
	bool wants_addresses;
};

/* Keeps references to the plans of the delta. The next one after a failure is a full one. */
void ruleset_begin(struct ruleset *ruleset, const struct plan_delta *delta, int64_t now_ns,
		   struct ruleset_begun *ret);
/*
 * True: a delta is too large for one transaction of a writer that is full (txn.h) at some time. What was said
 * so far is one that may be carried out; then this is called again. After the first failure
 * ruleset_rewind() has all of it said again; after a later one the rest of the world is not known any more.
 */
bool ruleset_write(struct ruleset *ruleset, const struct ruleset_input *input, struct txn *txn,
		   struct ruleset_stats *ret);
void ruleset_rewind(struct ruleset *ruleset);
void ruleset_end(struct ruleset *ruleset, bool success, int64_t now_ns);

/*
 * The same wanted state in pieces, for an engine that compares it with the kernel's, or for one that
 * cannot hold all of it. An index is good until the next ruleset_begin(). Between begin and end all
 * this is what is wanted, and may not be written yet.
 *
 * A full sync in pieces calls begin, these in any order and as often as it likes (each Service with
 * all its parts, and the shared chains or head and tail, at least once), and end.
 */
enum ruleset_part {
	RULESET_LEADING = 1 << 0,    /* rules in the shared chains: those that lead there, */
	RULESET_FOLLOWING = 1 << 1,  /* and those that follow the leading ones of all Services */
	RULESET_OWN_CHAINS = 1 << 2, /* declares the chains of its own */
	RULESET_OWN_RULES = 1 << 3,  /* the rules in them */
	RULESET_ENTRIES = RULESET_LEADING | RULESET_FOLLOWING,
	RULESET_OWN = RULESET_OWN_CHAINS | RULESET_OWN_RULES,
	RULESET_ALL = RULESET_ENTRIES | RULESET_OWN,
};

/*
 * Behind the services come the chains of the index of services, if there is one, each as if it were
 * a Service with one chain of its own and no entries. They lead to chains of those before them, and
 * may be written one by one in this order. Their key is their name, good until the next call.
 */
size_t ruleset_n_services(const struct ruleset *ruleset);
const char *ruleset_service_key(struct ruleset *ruleset, size_t index);
/* Initialises the list. */
void ruleset_make_service(struct ruleset *ruleset, size_t index, unsigned int parts,
			  struct rule_list *ret);
void ruleset_write_service(struct ruleset *ruleset, size_t index, unsigned int parts,
			   struct txn *txn);
/*
 * The rules of no Service, in a list that has all shared chains. input: the facts of a sync that has
 * begun; NULL, between syncs: those of the last one. Good until it is asked for again, or until the next sync.
 */
const struct rule_list *ruleset_fixed(struct ruleset *ruleset, const struct ruleset_input *input);
/*
 * All rules of shared chains, as lists, each chain's in order: of all Services what leads, of all Services what
 * follows, and the rest, which are ruleset_fixed()'s and more. Initialises the list.
 */
size_t ruleset_n_shared(const struct ruleset *ruleset);
void ruleset_make_shared(struct ruleset *ruleset, size_t source, struct rule_list *ret);
/* What ruleset_write() says before the services and behind them, in a full sync. */
void ruleset_write_head(struct ruleset *ruleset, const struct ruleset_input *input,
			struct txn *txn);
void ruleset_write_tail(struct ruleset *ruleset, const struct ruleset_input *input,
			struct txn *txn);
/* The Service whose own chain it is, if it is one that is wanted. May walk them all. */
bool ruleset_find_chain(const struct ruleset *ruleset, const char *nat_chain, size_t *ret_index);
/*
 * Counts what is wanted, as ruleset_write() does; rules_written is 0. In a full sync chains_deleted
 * are those that ruleset_write_tail() deletes.
 */
void ruleset_count(const struct ruleset *ruleset, struct ruleset_stats *ret);

/* The jump rules of the base chains, in the order in which they are ensured. */
#define RULESET_JUMPS         14
#define RULESET_JUMPS_CLEANED 12 /* the first 12 are removed by cleanup */
void ruleset_jump(size_t index, struct rule *ret);
