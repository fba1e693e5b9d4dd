/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Carrying out what a ruleset has prepared, over netlink: what sync.h is for iptables-restore.
 *
 * A delta is one transaction, or several. It is only sent when no other program has written since what it stands on
 * was last looked at; if one has, it is sent again at once (kernel/nft_watch.h). Whatever else goes wrong with it, the
 * same sync goes on as a full one. A full one compares and writes what differs (nft_audit.h), in steps on the loop.
 *
 * From the first good sync on, the kernel's notifications are followed. Chains that another program
 * touched are read back and repaired within some ten milliseconds, or later when that happens again
 * and again (nft_damage.h). When notifications were lost, or on request, everything is looked at, in
 * the background: a sync that comes in between goes first.
 */

#include "backends/backend.h"
#include "backends/iptables/netlink/nft_audit.h"
#include "backends/iptables/ruleset.h"

struct event_base;
struct nft_sync;

struct nft_sync_input {
	struct event_base *loop;
	struct ruleset *ruleset;
	struct ruleset_host *host; /* its counters' flags are set by a full sync, if ... */
	bool nfacct;               /* ... the kernel has them */
	const struct settings *settings;
	/* all but clients_full(); flushed() when tables are gone, and the next sync is a full one */
	const struct backend_events *const *events;
};

/* Since the start. */
struct nft_sync_stats {
	size_t n_transactions;
	size_t n_messages;
	size_t largest;   /* transaction, in bytes */
	size_t n_resent;  /* because another program had written in between */
	size_t n_audits;  /* of everything, in the background */
	size_t n_repairs; /* after foreign changes, that found something wrong */
	size_t n_repaired_chains;
	size_t n_repaired_rules; /* that were missing */
	size_t n_removed_rules;  /* that were not ours */
	size_t n_repaired_jumps;
	size_t n_refused; /* times that the kernel refused the rules of a Service */
};

/* All of the input is borrowed. */
int nft_sync_new(const struct nft_sync_input *input, struct nft_sync **ret, struct err *err);
struct nft_sync *nft_sync_free(struct nft_sync *sync); /* as sync_free() */

void nft_sync_start(struct nft_sync *sync, const struct plan_delta *delta); /* good until done() */
bool nft_sync_running(const struct nft_sync *sync);
/* Looks at everything, as soon as no sync runs, and logs what was found. */
void nft_sync_audit(struct nft_sync *sync);
/*
 * Are the jumps of the base chains there, and nothing known that waits for a repair? Reads the base chains;
 * checked() tells. 0: a repair is planned.
 */
void nft_sync_check(struct nft_sync *sync);
const struct nft_sync_stats *nft_sync_stats(struct nft_sync *sync);
