/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Services that wait for a destination that another one owns, and who has been told so: each is told
 * once, and again after it had the destination, or had stopped asking for it.
 */

#include "backends/nftables/claims.h"

/* Texts are borrowed. */
struct state_conflict {
	const char *destination; /* "198.51.100.1:80/tcp" */
	const char *service;     /* "namespace/name": who waits */
	const char *owner;
};

typedef void state_conflict_fn(void *arg, const struct state_conflict *conflict);

struct waiting {
	struct map told; /* "SERVICE DESTINATION" */
};

void waiting_done(struct waiting *waiting);
/* Who waits at the destinations that were touched. full: these are all that there are. */
void waiting_tell(struct waiting *waiting, const struct claims *claims, bool full,
		  state_conflict_fn *conflict, void *arg);
/* Its claims are already those of service->next. */
void waiting_forget(struct waiting *waiting, const struct claims *claims,
		    const struct served *service);
