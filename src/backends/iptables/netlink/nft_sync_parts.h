/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What nft_sync.c (syncs) and nft_repair.c (what others do, and making it good) share. */

#include <event2/util.h>

#include "backends/iptables/host_facts.h"
#include "backends/iptables/netlink/nft_damage.h"
#include "backends/iptables/netlink/nft_sync.h"
#include "backends/iptables/netlink/refused_services.h"
#include "backends/iptables/netlink/undeletable_chains.h"
#include "base/pace.h"
#include "kernel/nft_session.h"

struct event;

/*
 * One audit runs at a time, for one of three reasons:
 *
 *	SYNC        a full sync, or a delta that the kernel did not take. Nothing interrupts it.
 *	REPAIR      of the chains that another program touched. A sync drops it; the damage stays noted.
 *	BACKGROUND  everything, because notifications were lost or the operator asked. A sync interrupts it.
 *
 * The timer takes the next step of what runs, without delay, or starts the repair that is due. Syncs, steps and looks are
 * tasks of the session: none begins while the kernel works for another one.
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
	struct nft_session *session;
	struct nft_listener *listener; /* the session's */
	struct nft_task sync_task, step_task, check_task;
	struct nft_link link;
	struct nft_damage_jumps jumps;
	struct nft_audit_events audit_events;
	struct event *timer;
	struct nft_sync_stats stats;
	uint32_t generation; /* as of the last notification; 0: some were lost since */
	bool good;           /* at least one sync was; the last one was */

	struct nft_audit *audit;
	enum purpose purpose;
	size_t n_restarts, n_told;
	int64_t audit_began_ns;
	bool audit_wanted, audit_asked;

	struct nft_damage damage;             /* not yet looked at */
	struct nft_damage being_repaired;     /* of the repair that runs */
	struct foreign_changes found_by_sync; /* a flush that a sync came upon and makes good */
	struct pace pace;
	struct refused_services refused;
	struct undeletable_chains undeletable;

	/* of the sync that runs */
	const struct plan_delta *delta; /* NULL: none was asked for */
	bool syncing;                   /* it has begun */
	bool finished;                  /* and is over, which is to be told */
	int64_t cost_ns;                /* of its tasks so far */
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

/* -- nft_sync.c */

void nft_sync_wake_at(struct nft_sync *sync, int64_t when_ns);
struct ruleset_input nft_sync_facts(const struct nft_sync *sync);
bool nft_sync_refused(void *arg, const char *key, const struct err *err); /* as nft_audit_events */
void nft_sync_held(void *arg, const char *nat_chain);
void nft_sync_finish(struct nft_sync *sync, int error, const struct err *err);

/* -- nft_repair.c */

extern const struct nft_listener_events nft_repair_listener_events;
struct nft_audit_events nft_repair_audit_events(struct nft_sync *sync);
void nft_repair_run_step(void *arg);
void nft_repair_run_check(void *arg);
/* Sets the timer, if there is something to repair and nothing else to do. */
void nft_repair_plan(struct nft_sync *sync);
/* In a task: up to which generation all is known; 0: that cannot be told. */
uint32_t nft_repair_generation(void *arg);
/* Has another program touched our chains since that was last looked at? */
bool nft_repair_disturbed(void *arg);
/* An audit of everything begins; none runs. */
void nft_repair_audit(struct nft_sync *sync, enum purpose purpose);
void nft_repair_drop(struct nft_sync *sync);
