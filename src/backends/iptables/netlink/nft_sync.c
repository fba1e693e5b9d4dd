/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_sync.h"

#include <assert.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "backends/iptables/host_facts.h"
#include "backends/iptables/netlink/nft_sync_parts.h"
#include "backends/iptables/netlink/nft_txn.h"
#include "base/clock.h"
#include "base/log.h"

#define REFUSED_MAX 64 /* when so many Services are refused, something else is wrong */

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

bool nft_sync_refused(void *arg, const char *key)
{
	struct nft_sync *sync = arg;
	char reason[256];
	const struct backend_refusal refusal = {
		.service = key, .port = key, .reason = reason, .kept = true};

	if (refused_services_wait(&sync->refused, key) ||
	    refused_services_count_waiting(&sync->refused) >= REFUSED_MAX)
		return false;
	nft_batch_reason(sync->link.batch, nft_batch_failure(sync->link.batch)->refusals, reason,
			 sizeof(reason));
	refused_services_add(&sync->refused, &refusal, clock_now_ns());
	sync->stats.n_refused++;
	return true;
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
		refused_services_accept(&sync->refused);
	}
	ruleset_end(sync->input.ruleset, error == 0, now);
	count_rules(sync, result);
	sync->good = error == 0;
	sync->syncing = false;
	sync->finished = true;
	if (sync->audit)
		loop_arm(sync->timer, 0); /* the one in the background goes on */
}

static void sync_over(struct nft_sync *sync)
{
	sync->finished = false;
	sync->delta = NULL;
	sync->result.cost_ns = sync->cost_ns;
	if (nft_watch_synced(sync->watch, sync->good, sync->cost_ns))
		nft_repair_tell(sync);
	nft_sync_events(sync)->synced(nft_sync_events(sync)->arg, &sync->result);
}

/* A task is over, and with it perhaps a sync or a repair. */
static void on_task_done(void *arg)
{
	struct nft_sync *sync = arg;

	sync->cost_ns += nft_session_spent_ns(sync->session);
	if (sync->repair_over)
		nft_watch_repaired(sync->watch, sync->cost_ns, sync->repair_wrong);
	else if (sync->finished)
		sync_over(sync);
	else
		return;
	sync->repair_over = false;
	refused_services_arm(&sync->refused, sync->retry_timer);
	nft_repair_rest(sync);
}

static void sync_everything(struct nft_sync *sync)
{
	if (sync->audit)
		nft_repair_drop(sync);
	nft_damage_done(&sync->being_repaired);
	nft_repair_audit(sync, PURPOSE_SYNC);
	sync->audit_wanted = sync->audit_asked; /* who asked hears of one of its own */
}

struct sending {
	const struct nft_sync *sync;
	struct nft_txn *txn;
};

/* Tables that are gone took all known handles with them. */
static int send_delta(void *arg, uint32_t generation, struct err *err)
{
	const struct sending *sending = arg;

	if (sending->sync->damage.flushed)
		return err_set(err, -ESTALE, "another program removed tables meanwhile");
	return nft_txn_commit(sending->txn, generation, err);
}

/*
 * Why was it refused? A chain that cannot be deleted is kept; a Service that the kernel does not take
 * is left as it is. True: it can be tried again without. What should stand and does not (-ENOENT) is
 * no Service's fault: the kernel is not as we think.
 */
static bool leave_out(struct nft_sync *sync)
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
	return key && nft_sync_refused(sync, key);
}

/* 0: done; 1: try again; negative: this way does not work. */
static int try_delta(struct nft_sync *sync, struct err *err)
{
	struct ruleset_input input = nft_sync_facts(sync);
	cleanup_nft_txn struct nft_txn txn;
	struct sending sending = {sync, &txn};
	struct ruleset_stats
		stats; /* what is written is counted at the end, for both kinds of sync */
	bool more;
	int r;

	nft_txn_init(&txn, &sync->link);
	txn.held = &sync->undeletable.names;
	txn.refused = &sync->refused;
	txn.audit = sync->audit;
	ruleset_count(sync->input.ruleset, &stats);
	txn.n_standing = stats.rules_total[TABLE_NAT];
	do {
		more = ruleset_write(sync->input.ruleset, &input, &txn.txn, &stats);
		r = nft_watch_write(sync->watch, send_delta, &sending, err);
		if (r >= 0 && more)
			nft_txn_next(&txn);
	} while (r >= 0 && more);
	if (r >= 0)
		return 0;
	/* once a piece has been written, only a comparison of everything can tell what there is */
	r = txn.n_sent == 0 && leave_out(sync) ? 1 : r;
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
	nft_watch_busy(sync->watch);
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
	bool retries;

	give_way(sync);
	sync->cost_ns = 0;
	sync->syncing = true;
	sync->started_ns = clock_now_ns();
	retries = refused_services_begin(&sync->refused, delta, sync->started_ns);
	memcpy(sync->n_rules_before, sync->link.n_rules, sizeof(sync->n_rules_before));
	ruleset_begin(sync->input.ruleset, delta, sync->started_ns, &sync->begun);
	if (sync->begun.full)
		ensure_counters(sync);
	if (sync->begun.wants_addresses)
		host_facts_addresses(sync->family, &sync->addresses);
	nft_watch_hear(sync->watch);
	if (sync->begun.full || sync->damage.flushed || retries)
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

static void on_retry_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	const struct backend_events *events = nft_sync_events(arg);

	events->wanted(events->arg);
}

void nft_sync_check(struct nft_sync *sync)
{
	nft_session_run(sync->session, &sync->check_task);
}

static void on_check_done(void *arg)
{
	const struct nft_sync *sync = arg;

	nft_sync_events(sync)->checked(nft_sync_events(sync)->arg, sync->check_result,
				       &sync->check_err);
}

const struct nft_sync_stats *nft_sync_stats(struct nft_sync *sync)
{
	sync->stats.n_transactions = sync->link.n_transactions;
	sync->stats.n_resent = nft_watch_n_resent(sync->watch);
	sync->stats.n_messages = sync->link.n_messages;
	sync->stats.largest = sync->link.largest;
	return &sync->stats;
}

/* -- begin and end */

int nft_sync_new(const struct nft_sync_input *input, struct nft_sync **ret, struct err *err)
{
	struct nft_sync *sync = xcalloc(1, sizeof(*sync));
	int r;

	sync->input = *input;
	sync->family = input->settings->family;
	sync->refused = (struct refused_services){.family = sync->family, .events = input->events};
	sync->undeletable.family = sync->family;
	sync->audit_events = nft_repair_audit_events(sync);
	nft_damage_jumps_init(&sync->jumps);
	sync->sync_task = (struct nft_task){run_sync, on_task_done, sync};
	sync->step_task = (struct nft_task){nft_repair_run_step, on_task_done, sync};
	sync->check_task = (struct nft_task){nft_repair_run_check, on_check_done, sync};
	sync->timer = loop_timer(input->loop, on_timer, sync);
	sync->retry_timer = loop_timer(input->loop, on_retry_timer, sync);
	r = nft_watch_open(input->loop, sync->family, &nft_repair_watch_ops, sync, &sync->watch,
			   err);
	if (r < 0) {
		nft_sync_free(sync);
		return r;
	}
	sync->session = nft_watch_session(sync->watch);
	nft_link_init(&sync->link, sync->family, nft_session_socket(sync->session), sync->watch);
	*ret = sync;
	return 0;
}

struct nft_sync *nft_sync_free(struct nft_sync *sync)
{
	if (!sync)
		return NULL;
	nft_watch_free(sync->watch);
	nft_audit_free(sync->audit);
	if (sync->syncing)
		ruleset_end(sync->input.ruleset, false, clock_now_ns());
	nft_link_done(&sync->link);
	nft_damage_done(&sync->damage);
	nft_damage_done(&sync->being_repaired);
	refused_services_done(&sync->refused);
	undeletable_chains_forget(&sync->undeletable);
	loop_free(sync->timer);
	loop_free(sync->retry_timer);
	host_facts_addresses_done(&sync->addresses);
	free(sync);
	return NULL;
}
