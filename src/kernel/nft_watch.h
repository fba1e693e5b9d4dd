/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The session of a mode that owns rules: what other programs change of them, when that is repaired, and on which
 * generation the mode writes.
 *
 * The mode says which notifications are about its rules, and keeps the damage in a form of its own. When a transaction
 * of another program is over and left damage, repair() is called after a pause (base/pace.h), unless the mode is busy:
 * it is, from nft_watch_busy() or repair() on, until nft_watch_idle() or the end of a good sync.
 *
 * The mode repairs, and says what that cost; or it asks its owner for a sync that does (nft_watch_ask()).
 */

#include "base/addr.h"
#include "kernel/foreign_changes.h"
#include "kernel/nft_session.h"

struct nft_watch;

struct nft_watch_ops {
	/* A message of another program. If it touches what is ours, it is damage; changes: what is told of that. */
	void (*message)(void *arg, const struct nlmsghdr *message, struct foreign_changes *changes);
	/* Notifications were lost: anything may be damaged. */
	void (*lost)(void *arg, struct foreign_changes *changes);
	bool (*damaged)(void *arg);
	void (*repair)(void *arg);
};

int nft_watch_open(struct event_base *loop, enum family family, const struct nft_watch_ops *ops,
		   void *arg, struct nft_watch **ret, struct err *err);
struct nft_watch *nft_watch_free(struct nft_watch *watch); /* as nft_session_free() */
struct nft_session *nft_watch_session(const struct nft_watch *watch);

/* Takes all that is to be heard now. */
void nft_watch_hear(struct nft_watch *watch);
/*
 * Writes: waits for its turn among the sessions of the process, hears what others did up to a generation, and calls
 * send(), which commits on that one, or returns because of damage. Another program may write first (-ERESTART): then
 * again. generation 0: others have done so too often, or it is not known.
 */
typedef int nft_watch_send_fn(void *arg, uint32_t generation, struct err *err);
int nft_watch_write(struct nft_watch *watch, nft_watch_send_fn *send, void *arg, struct err *err);
size_t nft_watch_n_resent(const struct nft_watch *watch); /* since the start */

/* -- repairs */

void nft_watch_busy(struct nft_watch *watch);
void nft_watch_idle(struct nft_watch *watch); /* if there is damage, repair() will be called */
/* Damage that no notification told of: what is told of it, or NULL. */
void nft_watch_note(struct nft_watch *watch, const char *words);
/* The mode repaired: what that cost, and whether anything was wrong. */
void nft_watch_repaired(struct nft_watch *watch, int64_t cost_ns, bool wrong);
/* A sync is asked for to repair. Returns what is told of the damage, which the caller frees. */
char *nft_watch_ask(struct nft_watch *watch);
/* What was heard is dealt with: by the sync that runs, which tells it at its end if it is good; or without telling. */
void nft_watch_found(struct nft_watch *watch);
void nft_watch_forget(struct nft_watch *watch);
/* A sync is over. True: it has repaired what was found, which is logged. */
bool nft_watch_synced(struct nft_watch *watch, bool good, int64_t cost_ns);
