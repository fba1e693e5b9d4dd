/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What nft_sync.c (syncs) and nft_repair.c (what others do, and making it good) share. */

#include "backends/iptables/host_facts.h"
#include "backends/iptables/netlink/nft_damage.h"
#include "backends/iptables/netlink/nft_sync.h"
#include "backends/iptables/netlink/undeletable_chains.h"
#include "backends/refused_services.h"
#include "base/loop.h"
#include "kernel/nft_watch.h"

/*
 * One audit runs at a time, for one of three reasons:
 *
 *	SYNC        a full sync, or a delta that the kernel did not take. Nothing interrupts it.
 *	REPAIR      of the chains that another program touched. A sync drops it; the damage stays noted.
 *	BACKGROUND  everything, because notifications were lost or the operator asked. A sync interrupts it.
 *
 * The timer takes the next step of what runs, without delay; the watch says when a repair is due. Syncs, steps and
 * looks are tasks of the session: none begins while the kernel works for another one.
 * Damage is noted apart from the damage in hand, so that what happens meanwhile is not forgotten.
 */

enum purpose {
	PURPOSE_NONE = 0,
	PURPOSE_SYNC,
	PURPOSE_REPAIR,
	PURPOSE_BACKGROUND,
};

struct nft_sync {
	struct nft_sync_input input;
	enum family family;
	struct nft_watch *watch;
	struct nft_session *session; /* the watch's */
	struct nft_task sync_task, step_task, check_task;
	struct nft_link link;
	struct nft_damage_jumps jumps;
	struct nft_audit_events audit_events;
	struct event *timer, *retry_timer;
	struct nft_sync_stats stats;
	bool good; /* at least one sync was; the last one was */

	struct nft_audit *audit;
	enum purpose purpose;
	size_t n_restarts, n_told;
	int64_t audit_began_ns;
	bool audit_wanted, audit_asked;
	bool repair_over,
		repair_wrong; /* an audit that was no sync is, which is to be told; it found something */

	struct nft_damage damage;         /* not yet looked at */
	struct nft_damage being_repaired; /* of the repair that runs */
	struct refused_services refused;
	struct undeletable_chains undeletable;

	/* of the sync that runs */
	const struct plan_delta *delta; /* NULL: none was asked for */
	bool syncing;                   /* it has begun */
	bool finished;                  /* and is over, which is to be told */
	int64_t cost_ns;                /* of its tasks so far, or of a repair's */
	struct backend_result result;
	int64_t started_ns;
	struct ruleset_begun begun;
	size_t n_rules_before[TABLE_COUNT];

	int check_result; /* of the last look */
	struct err check_err;

	struct host_addresses addresses; /* as of the last sync that wanted them */
};

static inline const char *nft_sync_family(const struct nft_sync *sync)
{
	return family_name(sync->family);
}

static inline const struct backend_events *nft_sync_events(const struct nft_sync *sync)
{
	return *sync->input.events;
}

/* -- nft_sync.c */

struct ruleset_input nft_sync_facts(const struct nft_sync *sync);
bool nft_sync_refused(void *arg, const char *key); /* as nft_audit_events */
void nft_sync_held(void *arg, const char *nat_chain);
void nft_sync_finish(struct nft_sync *sync, int error, const struct err *err);

/* -- nft_repair.c */

extern const struct nft_watch_ops nft_repair_watch_ops;
struct nft_audit_events nft_repair_audit_events(struct nft_sync *sync);
void nft_repair_run_step(void *arg);
void nft_repair_run_check(void *arg);
/* What others had changed is right again. */
void nft_repair_tell(const struct nft_sync *sync);
/* Nothing runs: an audit that is wanted begins, or a repair when it is due. */
void nft_repair_rest(struct nft_sync *sync);
/* Has another program touched our chains since that was last looked at? */
bool nft_repair_disturbed(void *arg);
/* An audit of everything begins; none runs. */
void nft_repair_audit(struct nft_sync *sync, enum purpose purpose);
void nft_repair_drop(struct nft_sync *sync);
