/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One sync of one family: what the model asks for becomes one transaction.
 *
 * A sync is a difference, unless there is reason for a full one (the first, after a failure, after
 * foreign hands, on request). A full one empties and rewrites what is there in the same
 * transaction; the clients that affinity remembers stay. It does not read the table, because lists
 * of large maps cost the square of their size. A table of another kind is replaced as a whole.
 *
 * The transaction names the generation that it stands on. If somebody else has written meanwhile,
 * `foreign` is asked whether our table was meant.
 */

#include "backends/backend.h"
#include "backends/nftables/state.h"

struct nft_socket;
struct maps_sync;

struct maps_sync_ops {
	/* Hears all that is to be heard now. Has somebody else changed our table since the last call? */
	bool (*foreign)(void *arg);
	state_conflict_fn *conflict;
	void *arg;
};

struct maps_sync *maps_sync_new(struct nft_socket *socket, const struct settings *settings,
				const struct maps_sync_ops *ops); /* all borrowed, ops copied */
struct maps_sync *maps_sync_free(struct maps_sync *sync);         /* accepts NULL, returns NULL */

void maps_sync_need_full(struct maps_sync *sync);
/* Done when it returns. changes: those taken from the model, borrowed by *ret. */
void maps_sync_run(struct maps_sync *sync, const struct model *model,
		   const struct model_changes *changes, struct backend_result *ret);

/* Deletes table kube-proxy, whoever made it. 1; 0: it was not there. */
int maps_sync_delete(struct nft_socket *socket, enum family family, struct err *err);
