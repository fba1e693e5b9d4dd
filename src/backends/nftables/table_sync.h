/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One sync of one family: a delta of plans becomes one transaction.
 *
 * A sync is a difference, unless there is reason for a full one (the first, after a failure, on
 * request, or because the kernel refused a difference): see table_full.h. A Service that the kernel refuses is
 * left out, told, and tried again later (backends/refused_services.h); all others are written in the same sync.
 *
 * The transaction names the generation that it stands on (kernel/nft_watch.h). What others did to our table before a
 * sync is repaired first, in a transaction of its own (table_repair.h); what cannot be, and what comes later, makes the
 * sync a full one.
 */

#include "backends/backend.h"
#include "backends/nftables/damage.h"
#include "backends/nftables/full_clients.h"
#include "backends/nftables/state.h"

struct nft_socket;
struct nft_watch;
struct table_sync;

/*
 * All is borrowed. damage: what others did, as the watch hears it; a sync that repairs it empties it. Of the events
 * only refused() and clients_full() are used.
 */
struct table_sync *table_sync_new(struct nft_watch *watch, struct damage *damage,
				  const struct settings *settings,
				  const struct backend_events *const *events);
struct table_sync *table_sync_free(struct table_sync *sync); /* accepts NULL, returns NULL */

/* Called when the kernel has taken a sync, before state_end(). */
typedef void table_sync_applied_fn(void *arg, const struct state *state, bool full);
void table_sync_on_applied(struct table_sync *sync, table_sync_applied_fn *fn, void *arg);

void table_sync_need_full(struct table_sync *sync);
/* Done when it returns. */
void table_sync_run(struct table_sync *sync, const struct plan_delta *delta,
		    struct backend_result *ret);

/* Those that were left out. */
const struct refused_services *table_sync_refused(const struct table_sync *sync);

/* Chains with a number and lingering elements that no Service uses: are there any? A call now and then
 * removes them; false: a sync is needed first. */
bool table_sync_idle(const struct table_sync *sync);
bool table_sync_age(struct table_sync *sync);

/* Is there a service port with affinity? Then a look now and then finds those whose map of clients is full: calls
 * clients_full() for each that was not when last looked for, and returns how many there are, or an error. */
bool table_sync_has_affinity(const struct table_sync *sync);
int table_sync_look_for_full(struct table_sync *sync);

/* Deletes table kube-proxy, by which program it was made does not matter. 1; 0: it was not there. */
int table_sync_delete(struct nft_socket *socket, enum family family, struct err *err);
