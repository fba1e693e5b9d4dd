/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_watch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/pace.h"
#include "kernel/nft_socket.h"

/* So often a transaction is sent. The last time it goes out whatever the generation is. */
#define ATTEMPTS 5

struct nft_watch {
	enum family family;
	const struct nft_watch_ops *ops;
	void *arg;
	struct nft_session *session;
	uint32_t generation; /* as of the last notification; 0: some were lost since */
	size_t n_resent;
	struct event *timer;
	struct pace pace;
	bool watching; /* a sync was good: what is changed from there on is told */
	bool idle;
	bool asked;                     /* for a sync that repairs */
	struct foreign_changes changes; /* not dealt with yet */
	struct foreign_changes found;   /* by a sync */
};

/* -- when to repair */

static void plan(struct nft_watch *watch)
{
	int64_t now = clock_now_ns();

	if (watch->idle && !evtimer_pending(watch->timer, NULL) && watch->ops->damaged(watch->arg))
		loop_arm(watch->timer, pace_next(&watch->pace, now) - now);
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct nft_watch *watch = arg;

	watch->idle = false;
	watch->ops->repair(watch->arg);
}

void nft_watch_busy(struct nft_watch *watch)
{
	watch->idle = false;
	event_del(watch->timer);
}

void nft_watch_idle(struct nft_watch *watch)
{
	watch->idle = true;
	plan(watch);
}

void nft_watch_note(struct nft_watch *watch, const char *words)
{
	if (words)
		foreign_changes_add(&watch->changes, words, 1);
	plan(watch);
}

void nft_watch_repaired(struct nft_watch *watch, int64_t cost_ns, bool wrong)
{
	pace_repaired(&watch->pace, cost_ns, wrong, clock_now_ns());
}

char *nft_watch_ask(struct nft_watch *watch)
{
	char *what = foreign_changes_text(&watch->changes);

	nft_watch_forget(watch);
	watch->asked = true;
	return what;
}

void nft_watch_found(struct nft_watch *watch)
{
	foreign_changes_merge(&watch->found, &watch->changes);
}

void nft_watch_forget(struct nft_watch *watch)
{
	watch->changes = (struct foreign_changes){0};
}

/* What came after a sync was asked for is repaired with the rest. */
static bool tell_found(struct nft_watch *watch)
{
	cleanup_free char *what = foreign_changes_text(&watch->found);

	watch->found = (struct foreign_changes){0};
	if (!what[0] || !watch->watching || watch->asked)
		return false;
	log_info("Rules were changed by another program, this sync repaired them",
		 KV("ipFamily", LOG_STR(family_name(watch->family))), KV("what", LOG_STR(what)));
	return true;
}

bool nft_watch_synced(struct nft_watch *watch, bool good, int64_t cost_ns)
{
	bool told = good && tell_found(watch);

	if (watch->asked)
		nft_watch_repaired(watch, cost_ns, true);
	watch->asked = false;
	if (good) {
		watch->watching = true;
		nft_watch_idle(watch);
	}
	return told;
}

/* -- what others do */

static void on_message(void *arg, const struct nlmsghdr *message)
{
	struct nft_watch *watch = arg;

	watch->ops->message(watch->arg, message, &watch->changes);
}

static void on_generation(void *arg, uint32_t id, uint32_t pid, const char *process)
{
	struct nft_watch *watch = arg;

	watch->generation = id;
	if (watch->ops->damaged(watch->arg))
		log_debug(3, "Another program changed our rules",
			  KV("ipFamily", LOG_STR(family_name(watch->family))),
			  KV("process", LOG_STR(process)), KV("pid", LOG_INT(pid)));
	plan(watch);
}

static void on_own_generation(void *arg, uint32_t id)
{
	((struct nft_watch *)arg)->generation = id;
}

static void on_lost(void *arg)
{
	struct nft_watch *watch = arg;

	log_debug(2, "Notifications were lost, looking at everything",
		  KV("ipFamily", LOG_STR(family_name(watch->family))));
	watch->generation = 0; /* a task may be in the middle of a list: this is no time to ask */
	watch->ops->lost(watch->arg, &watch->changes);
	plan(watch);
}

void nft_watch_hear(struct nft_watch *watch)
{
	nft_listener_drain(nft_session_listener(watch->session));
}

/* -- writing */

/* The kernel tells a generation behind what made it. One that is asked for may have more to tell. */
static uint32_t pin_generation(struct nft_watch *watch)
{
	struct nft_socket *socket = nft_session_socket(watch->session);
	struct err ignored;

	nft_watch_hear(watch);
	if (watch->generation == 0 && nft_generation(socket, &watch->generation, &ignored) == 0)
		nft_watch_hear(watch);
	return watch->generation;
}

int nft_watch_write(struct nft_watch *watch, nft_watch_send_fn *send, void *arg, struct err *err)
{
	struct nft_socket *socket = nft_session_socket(watch->session);
	int r = nft_socket_begin(socket);

	if (r < 0)
		return err_sys(err, r, "a transaction of nf_tables");
	for (int left = ATTEMPTS - 1; left >= 0; left--) {
		uint32_t generation = pin_generation(watch);

		r = send(arg, left > 0 ? generation : 0, err);
		if (r != -ERESTART)
			break;
		watch->n_resent++;
	}
	nft_socket_end(socket);
	return r;
}

size_t nft_watch_n_resent(const struct nft_watch *watch)
{
	return watch->n_resent;
}

/* -- begin and end */

int nft_watch_open(struct event_base *loop, enum family family, const struct nft_watch_ops *ops,
		   void *arg, struct nft_watch **ret, struct err *err)
{
	static const struct nft_listener_events events = {on_message, on_generation,
							  on_own_generation, on_lost};
	struct nft_watch *watch = xcalloc(1, sizeof(*watch));
	int r;

	watch->family = family;
	watch->ops = ops;
	watch->arg = arg;
	watch->timer = loop_timer(loop, on_timer, watch);
	r = nft_session_open(loop, &events, watch, &watch->session, err);
	if (r < 0) {
		nft_watch_free(watch);
		return r;
	}
	*ret = watch;
	return 0;
}

struct nft_watch *nft_watch_free(struct nft_watch *watch)
{
	if (!watch)
		return NULL;
	nft_session_free(watch->session);
	loop_free(watch->timer);
	free(watch);
	return NULL;
}

struct nft_session *nft_watch_session(const struct nft_watch *watch)
{
	return watch->session;
}
