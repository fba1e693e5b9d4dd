/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_sync.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <sys/time.h>

#include "backends/iptables/host_facts.h"
#include "backends/iptables/netlink/nft_sync_parts.h"
#include "backends/iptables/netlink/nft_txn.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/oom.h"
#include "kernel/nft_socket.h"

#define RESEND_MAX 10 /* of a delta; then it goes out whatever the generation is */

void nft_sync_wake_at(struct nft_sync *sync, int64_t when_ns)
{
	struct timeval after;

	clock_to_timeval(when_ns - clock_now_ns(), &after);
	if (evtimer_add(sync->timer, &after) < 0)
		oom("an event", 0);
}

/* -- facts for a ruleset */

static void ensure_counters(struct nft_sync *sync)
{
	if (sync->input.nfacct)
		host_facts_counters(sync->input.host);
}

struct ruleset_input nft_sync_facts(const struct nft_sync *sync)
{
	return (struct ruleset_input){
		.now_ns = clock_now_ns(),
		.held_chains = &sync->undeletable.names,
		.addresses_known = sync->addresses.known,
		.addresses = sync->addresses.v,
		.n_addresses = sync->addresses.n,
	};
}

/* -- what is left as it is */

bool nft_sync_refused(void *arg, const char *key, const struct err *err)
{
	struct nft_sync *sync = arg;
	bool left = refused_services_add(&sync->refused, key, err);

	sync->stats.n_refused += left;
	return left;
}

void nft_sync_held(void *arg, const char *nat_chain)
{
	struct nft_sync *sync = arg;

	undeletable_chains_add(&sync->undeletable, nat_chain);
}

/* -- a sync */

static void count_rules(const struct nft_sync *sync, struct backend_result *ret)
{
	static const enum table tables[] = {
		[BACKEND_FILTER] = TABLE_FILTER,
		[BACKEND_NAT] = TABLE_NAT,
	};
	struct ruleset_stats stats;

	static_assert(ARRAY_SIZE(tables) == BACKEND_TABLE_COUNT, "one for each");
	ruleset_count(sync->input.ruleset, &stats);
	for (size_t i = 0; i < BACKEND_TABLE_COUNT; i++) {
		enum table table = tables[i];

		ret->rules_total[i] = stats.rules_total[table];
		ret->rules_last[i] = sync->link.n_rules[table] - sync->n_rules_before[table];
		ret->rules += ret->rules_last[i];
	}
}

static void log_sync_repair(struct nft_sync *sync)
{
	cleanup_free char *what = foreign_changes_text(&sync->found_by_sync);

	if (!what[0])
		return;
	sync->found_by_sync = (struct foreign_changes){0};
	log_info("Rules were changed by another program, this sync repaired them",
		 KV("ipFamily", LOG_STR(nft_sync_family(sync))), KV("what", LOG_STR(what)));
	if (sync->input.repaired)
		sync->input.repaired(sync->input.arg);
}

void nft_sync_finish(struct nft_sync *sync, int error, const struct err *err)
{
	int64_t now = clock_now_ns();
	struct backend_result *result = &sync->result;

	*result = (struct backend_result){
		.error = error,
		.write_failed = error < 0,
		.full = sync->begun.full,
		.duration_ns = now - sync->started_ns,
	};
	if (error < 0) {
		result->err = *err;
		err_wrap(&result->err, error, "writing the %s rules", nft_sync_family(sync));
	} else {
		log_sync_repair(sync);
	}
	ruleset_end(sync->input.ruleset, error == 0, now);
	count_rules(sync, result);
	sync->good = error == 0;
	sync->syncing = false;
	sync->finished = true;
	if (sync->audit)
		nft_sync_wake_at(sync, 0); /* the one in the background goes on */
}

/* A task is over, and with it perhaps a sync. */
static void on_task_done(void *arg)
{
	struct nft_sync *sync = arg;

	sync->cost_ns += nft_session_spent_ns(sync->session);
	if (!sync->finished)
		return;
	sync->result.cost_ns = sync->cost_ns;
	sync->finished = false;
	sync->delta = NULL;
	sync->input.done(sync->input.arg, &sync->result);
	nft_repair_plan(sync);
}

static void sync_everything(struct nft_sync *sync)
{
	if (sync->audit)
		nft_repair_drop(sync);
	nft_damage_done(&sync->being_repaired);
	nft_repair_audit(sync, PURPOSE_SYNC);
	sync->audit_wanted = sync->audit_asked; /* who asked hears of one of its own */
}

/* Sends until no other program comes in between. Tables that are gone took all known handles with them. */
static int send_delta(struct nft_sync *sync, struct nft_txn *txn, struct err *err)
{
	int r = -ERESTART;

	for (size_t i = 0; r == -ERESTART && i <= RESEND_MAX; i++) {
		uint32_t generation = nft_repair_generation(sync);

		if (sync->damage.flushed)
			return err_set(err, -ESTALE, "another program removed tables meanwhile");
		r = nft_txn_commit(txn, i < RESEND_MAX ? generation : 0, err);
		sync->stats.n_resent += r == -ERESTART;
	}
	return r;
}

/* It is our turn from before the generation is asked for: the other family does not come in between. */
static int commit_delta(struct nft_sync *sync, struct nft_txn *txn, struct err *err)
{
	int r = nft_socket_begin(sync->link.socket);

	if (r < 0)
		return err_sys(err, r, "a transaction of nf_tables");
	r = send_delta(sync, txn, err);
	nft_socket_end(sync->link.socket);
	return r;
}

/*
 * Why was it refused? A chain that cannot be deleted is kept; a Service that the kernel does not take
 * is left as it is. True: it can be tried again without. What should stand and does not (-ENOENT) is
 * no Service's fault: the kernel is not as we think.
 */
static bool leave_out(struct nft_sync *sync, const struct err *err)
{
	const struct nft_batch_failure *failure = nft_batch_failure(sync->link.batch);
	const char *key = nft_link_refused(&sync->link);

	if (!failure || nft_batch_uncertain(sync->link.batch) || nft_repair_disturbed(sync) ||
	    failure->error == -ENOENT)
		return false;
	if (failure->type == NFT_MSG_DELCHAIN && failure->error == -EBUSY &&
	    !map_get(&sync->undeletable.names, failure->chain)) {
		nft_sync_held(sync, failure->chain);
		return true;
	}
	return key && nft_sync_refused(sync, key, err);
}

/* 0: done; 1: try again; negative: this way does not work. */
static int try_delta(struct nft_sync *sync, struct err *err)
{
	struct ruleset_input input = nft_sync_facts(sync);
	cleanup_nft_txn struct nft_txn txn;
	struct ruleset_stats
		stats; /* what is written is counted at the end, for both kinds of sync */
	bool more;
	int r;

	nft_txn_init(&txn, &sync->link);
	txn.held = &sync->undeletable.names;
	txn.left = &sync->refused.left;
	txn.audit = sync->audit;
	ruleset_count(sync->input.ruleset, &stats);
	txn.n_standing = stats.rules_total[TABLE_NAT];
	do {
		more = ruleset_write(sync->input.ruleset, &input, &txn.txn, &stats);
		r = commit_delta(sync, &txn, err);
		if (r >= 0 && more)
			nft_txn_next(&txn);
	} while (r >= 0 && more);
	if (r >= 0)
		return 0;
	/* once a piece has been written, only a comparison of everything can tell what there is */
	r = txn.n_sent == 0 && leave_out(sync, err) ? 1 : r;
	ruleset_rewind(sync->input.ruleset);
	nft_txn_undo(&txn);
	return r;
}

static void sync_delta(struct nft_sync *sync)
{
	struct err err;
	int r;

	do
		r = try_delta(sync, &err);
	while (r > 0);
	if (r == 0) {
		nft_sync_finish(sync, 0, NULL);
		return;
	}
	log_debug(2, "A delta could not be written, comparing everything",
		  KV("ipFamily", LOG_STR(nft_sync_family(sync))), KV("err", LOG_STR(err.text)));
	sync_everything(sync);
}

/* A repair is dropped and its damage noted again; a background audit waits. */
static void give_way(struct nft_sync *sync)
{
	event_del(sync->timer);
	if (!sync->audit)
		return;
	if (sync->purpose == PURPOSE_BACKGROUND) {
		nft_audit_interrupt(sync->audit);
		return;
	}
	nft_repair_drop(sync);
	nft_damage_merge(&sync->damage, &sync->being_repaired);
}

static void run_sync(void *arg)
{
	struct nft_sync *sync = arg;
	const struct plan_delta *delta = sync->delta;

	give_way(sync);
	sync->cost_ns = 0;
	sync->syncing = true;
	sync->started_ns = clock_now_ns();
	memcpy(sync->n_rules_before, sync->link.n_rules, sizeof(sync->n_rules_before));
	ruleset_begin(sync->input.ruleset, delta, sync->started_ns, &sync->begun);
	if (sync->begun.full)
		ensure_counters(sync);
	if (sync->begun.wants_addresses)
		host_facts_addresses(sync->family, &sync->addresses);
	nft_listener_drain(sync->listener);
	if (sync->begun.full || sync->damage.flushed ||
	    refused_services_any_changed(&sync->refused, delta))
		sync_everything(sync);
	else
		sync_delta(sync);
}

void nft_sync_start(struct nft_sync *sync, const struct plan_delta *delta)
{
	assert(!sync->delta);
	sync->delta = delta;
	nft_session_run(sync->session, &sync->sync_task);
}

bool nft_sync_running(const struct nft_sync *sync)
{
	return sync->delta;
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct nft_sync *sync = arg;

	nft_session_run(sync->session, &sync->step_task);
}

void nft_sync_check(struct nft_sync *sync)
{
	nft_session_run(sync->session, &sync->check_task);
}

static void on_check_done(void *arg)
{
	const struct nft_sync *sync = arg;

	sync->input.checked(sync->input.arg, sync->check_result, &sync->check_err);
}

const struct nft_sync_stats *nft_sync_stats(struct nft_sync *sync)
{
	sync->stats.n_transactions = sync->link.n_transactions;
	sync->stats.n_messages = sync->link.n_messages;
	sync->stats.largest = sync->link.largest;
	return &sync->stats;
}

/* -- begin and end */

static int connect_to_kernel(struct nft_sync *sync, struct err *err)
{
	int r = nft_session_open(sync->input.loop, &nft_repair_listener_events, sync,
				 &sync->session, err);

	if (r < 0)
		return r;
	sync->listener = nft_session_listener(sync->session);
	nft_link_init(&sync->link, sync->family, nft_session_socket(sync->session), sync->listener);
	return nft_generation(sync->link.socket, &sync->generation, err);
}

int nft_sync_new(const struct nft_sync_input *input, struct nft_sync **ret, struct err *err)
{
	struct nft_sync *sync = xcalloc(1, sizeof(*sync));
	int r;

	sync->input = *input;
	sync->family = input->settings->family;
	sync->refused = (struct refused_services){
		.family = sync->family, .refused = input->refused, .arg = input->arg};
	sync->undeletable.family = sync->family;
	sync->audit_events = nft_repair_audit_events(sync);
	nft_damage_jumps_init(&sync->jumps);
	sync->sync_task = (struct nft_task){run_sync, on_task_done, sync};
	sync->step_task = (struct nft_task){nft_repair_run_step, on_task_done, sync};
	sync->check_task = (struct nft_task){nft_repair_run_check, on_check_done, sync};
	sync->timer = evtimer_new(input->loop, on_timer, sync);
	if (!sync->timer)
		oom("an event", 0);
	r = connect_to_kernel(sync, err);
	if (r < 0) {
		nft_sync_free(sync);
		return r;
	}
	*ret = sync;
	return 0;
}

struct nft_sync *nft_sync_free(struct nft_sync *sync)
{
	if (!sync)
		return NULL;
	nft_session_free(sync->session);
	nft_audit_free(sync->audit);
	if (sync->syncing)
		ruleset_end(sync->input.ruleset, false, clock_now_ns());
	nft_link_done(&sync->link);
	nft_damage_done(&sync->damage);
	nft_damage_done(&sync->being_repaired);
	refused_services_done(&sync->refused);
	undeletable_chains_forget(&sync->undeletable);
	event_free(sync->timer);
	host_facts_addresses_done(&sync->addresses);
	free(sync);
	return NULL;
}
