/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Carrying out what a ruleset has prepared, as steps on the event loop:
 *
 *	JUMPS      full sync only: each jump rule of the base chains, one by one: create the target
 *	           chain, check for the rule, put it first when it is absent. Any failure ends the
 *	           sync here, before anything is restored.
 *	COUNTERS   full sync only: the nfacct counters, if the kernel has them
 *	CHAINS     if the ruleset wants to look for stale chains: names of the nat chains that exist.
 *	           A failure is logged, and the sync goes on without deletions.
 *	ADDRESSES  if the ruleset wants them: those of the interfaces. A failure is logged likewise.
 *	RESTORE    one iptables-restore for both tables
 *
 * The delta is taken at the start; what changes while a sync runs waits for the next one.
 */

#include "backends/backend.h"
#include "backends/iptables/ruleset.h"
#include "kernel/iptables_tool.h"

struct sync;

typedef void sync_done_fn(void *arg, const struct backend_result *result);

/*
 * All is borrowed. The counters' flags in *host are set by a full sync, if nfacct says that the
 * kernel has them.
 */
struct sync *sync_new(struct iptables_tool *tool, struct ruleset *ruleset,
		      struct ruleset_host *host, const struct settings *settings, bool nfacct,
		      sync_done_fn *done, void *arg);
struct sync *sync_free(struct sync *sync); /* accepts NULL; a running one ends without callback */

/* Ends with done(), from the loop. Not while one runs. */
void sync_start(struct sync *sync, const struct plan_delta *delta);
bool sync_running(const struct sync *sync);
