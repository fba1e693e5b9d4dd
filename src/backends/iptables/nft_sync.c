/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/nft_sync.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <sys/time.h>

#include "backends/iptables/host_facts.h"
#include "backends/iptables/nft_damage.h"
#include "backends/iptables/nft_left.h"
#include "backends/iptables/nft_txn.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/pace.h"
#include "base/text.h"
#include "kernel/nft_listener.h"
#include "kernel/nft_socket.h"

/*
 * One audit runs at a time, for one of three reasons:
 *
 *	SYNC        a full sync, or a delta that the kernel did not take. Nothing interrupts it.
 *	REPAIR      of the chains that somebody touched. A sync drops it; the damage stays noted.
 *	BACKGROUND  everything, because notifications were lost or somebody asked. A sync interrupts it.
 *
 * The timer takes the next step of whatever runs, without delay, or starts the repair that is due.
 * Damage is noted apart from the damage in hand, so that what happens meanwhile is not forgotten.
 */

#define RESTARTS_MAX 5  /* of an audit that others disturbed */
#define RESEND_MAX   10 /* of a delta; then it goes out whatever the generation is */
#define TOLD_MAX     16 /* chains that a repair names in the log */

enum purpose {
	PURPOSE_NONE = 0,
	PURPOSE_SYNC,
	PURPOSE_REPAIR,
	PURPOSE_BACKGROUND,
};

struct nft_sync {
	struct nft_sync_input input;
	enum family family;
	struct nft_link link;
	struct nft_listener *listener;
	struct nft_damage_jumps jumps;
	struct nft_audit_events audit_events;
	struct event *timer;
	struct nft_sync_stats stats;
	uint32_t generation; /* as of the last notification */
	bool good;           /* at least one sync was; the last one was */

	struct nft_audit *audit;
	enum purpose purpose;
	size_t n_restarts, n_told;
	int64_t audit_began_ns;
	bool audit_wanted, audit_asked;

	struct nft_damage damage;  /* not yet looked at */
	struct nft_damage in_hand; /* of the repair that runs */
	struct nft_deeds met;      /* a flush that a sync came upon and makes good */
	struct pace pace;
	struct nft_left left;

	/* of the sync that runs */
	bool syncing;
	int64_t started_ns;
	struct ruleset_begun begun;
	struct model_changes changes;
	size_t n_rules_before[TABLE_COUNT];

	bool addresses_known; /* as of the last sync that wanted them */
	struct addr *addresses;
	size_t n_addresses;
};

static const char *ip_family(const struct nft_sync *sync)
{
	return family_name(sync->family);
}

static void wake_at(struct nft_sync *sync, int64_t when_ns)
{
	struct timeval after;

	clock_to_timeval(when_ns - clock_now_ns(), &after);
	if (evtimer_add(sync->timer, &after) < 0)
		abort(); /* out of memory, as in util.c */
}

/* -- facts for a ruleset */

static void ensure_counters(struct nft_sync *sync)
{
	if (sync->input.nfacct)
		host_facts_counters(sync->input.host);
}

static void read_addresses(struct nft_sync *sync)
{
	free(take(sync->addresses));
	sync->n_addresses = 0;
	sync->addresses_known =
		host_facts_addresses(sync->family, &sync->addresses, &sync->n_addresses);
}

static struct ruleset_input make_input(const struct nft_sync *sync)
{
	return (struct ruleset_input){
		.now_ns = clock_now_ns(),
		.held_chains = &sync->left.held,
		.addresses_known = sync->addresses_known,
		.addresses = sync->addresses,
		.n_addresses = sync->n_addresses,
	};
}

/* -- what is left as it is */

static bool on_refused(void *arg, const char *key, const struct err *err)
{
	struct nft_sync *sync = arg;
	bool left = nft_left_refused(&sync->left, key, err);

	sync->stats.n_refused += left;
	return left;
}

static void on_held(void *arg, const char *nat_chain)
{
	struct nft_sync *sync = arg;

	nft_left_hold(&sync->left, nat_chain);
}

/* -- what others do */

static void on_message(void *arg, const struct nlmsghdr *message)
{
	struct nft_sync *sync = arg;

	nft_damage_take(&sync->damage, &sync->link, &sync->jumps, message);
}

static void plan_repair(struct nft_sync *sync)
{
	bool due = nft_damage_any(&sync->damage) || sync->audit_wanted;

	if (due && sync->good && !sync->syncing && !sync->audit &&
	    !evtimer_pending(sync->timer, NULL))
		wake_at(sync, sync->audit_asked ? 0 : pace_next(&sync->pace, clock_now_ns()));
}

static void on_generation(void *arg, uint32_t id, uint32_t pid, const char *process)
{
	struct nft_sync *sync = arg;

	sync->generation = id;
	if (nft_damage_any(&sync->damage))
		log_debug(3, "Somebody else changed our chains",
			  KV("ipFamily", LOG_STR(ip_family(sync))), KV("process", LOG_STR(process)),
			  KV("pid", LOG_INT(pid)));
	plan_repair(sync);
}

static void on_own_generation(void *arg, uint32_t id)
{
	((struct nft_sync *)arg)->generation = id;
}

static void on_lost(void *arg)
{
	struct nft_sync *sync = arg;
	struct err err;

	log_debug(2, "Notifications were lost, looking at everything",
		  KV("ipFamily", LOG_STR(ip_family(sync))));
	sync->damage.unknown = true;
	nft_handles_forget_all(sync->link.handles);
	if (nft_generation(sync->link.socket, &sync->generation, &err) < 0)
		sync->generation = 0;
	plan_repair(sync);
}

static uint32_t known_generation(void *arg)
{
	struct nft_sync *sync = arg;

	nft_listener_drain(sync->listener);
	return sync->generation;
}

/* What an audit has not seen: damage that came after it began. */
static bool is_disturbed(void *arg)
{
	struct nft_sync *sync = arg;

	nft_listener_drain(sync->listener);
	return nft_damage_any(&sync->damage);
}

/* -- audits */

static void on_difference(void *arg, const struct nft_difference *difference)
{
	struct nft_sync *sync = arg;

	if (sync->purpose == PURPOSE_SYNC) {
		log_debug(4, "Writing a chain that is not as it should be",
			  KV("ipFamily", LOG_STR(ip_family(sync))),
			  KV("table", LOG_STR(table_name(difference->table))),
			  KV("chain", LOG_STR(difference->chain)),
			  KV("missingRules", LOG_INT(difference->missing)),
			  KV("extraRules", LOG_INT(difference->extra)));
		return;
	}
	if (sync->n_told++ >= TOLD_MAX)
		return;
	log_info("Repairing a chain that somebody else changed",
		 KV("ipFamily", LOG_STR(ip_family(sync))),
		 KV("table", LOG_STR(table_name(difference->table))),
		 KV("chain", LOG_STR(difference->chain)),
		 KV("missingRules", LOG_INT(difference->missing)),
		 KV("extraRules", LOG_INT(difference->extra)));
}

static void drop_audit(struct nft_sync *sync)
{
	sync->audit = nft_audit_free(sync->audit);
	sync->purpose = PURPOSE_NONE;
}

static void start_audit(struct nft_sync *sync, enum purpose purpose,
			const struct nft_audit_scope *scope)
{
	if (scope->all) {
		nft_left_retry(&sync->left);
		if (purpose == PURPOSE_SYNC && sync->good)
			nft_deeds_merge(&sync->met, &sync->damage.deeds);
		nft_damage_done(&sync->damage);
		sync->audit_wanted = false;
	}
	sync->purpose = purpose;
	sync->n_told = 0;
	sync->audit_began_ns = clock_now_ns();
	sync->audit = nft_audit_new(&sync->link, sync->input.ruleset, &sync->left.left, scope,
				    &sync->audit_events);
	wake_at(sync, 0);
}

static void audit_everything(struct nft_sync *sync, enum purpose purpose)
{
	nft_listener_drain(sync->listener);
	start_audit(sync, purpose, &(const struct nft_audit_scope){.all = true});
}

static void log_audit(struct nft_sync *sync, const struct nft_audit_result *result)
{
	bool right = result->n_wrong == 0 && result->n_jumps == 0 && result->n_deleted == 0;
	bool important = !right || sync->audit_asked;

	LOG_CALL(LOG_SEVERITY_INFO, important ? 0 : 2,
		 right ? "Audit done, all rules are right" : "Audit done, rules were repaired",
		 KV("ipFamily", LOG_STR(ip_family(sync))),
		 KV("services", LOG_INT(result->n_services)),
		 KV("wrongChains", LOG_INT(result->n_wrong)),
		 KV("missingRules", LOG_INT(result->n_missing)),
		 KV("extraRules", LOG_INT(result->n_extra)),
		 KV("missingJumps", LOG_INT(result->n_jumps)),
		 KV("staleChains", LOG_INT(result->n_deleted)),
		 KV("ms", LOG_INT((clock_now_ns() - sync->audit_began_ns) / CLOCK_NS_PER_MS)));
}

static void log_jumps(const struct nft_sync *sync, const struct nft_audit_result *result)
{
	cleanup_text struct text text = {0};
	cleanup_free char *what = NULL;
	struct rule jump;

	for (size_t i = 0; i < RULESET_JUMPS; i++) {
		ruleset_jump(i, &jump);
		if (result->jumps[i])
			text_printf(&text, "%s%s of table %s to %s", text.size ? ", " : "",
				    jump.chain, table_name(jump.table), jump.target.chain);
	}
	what = text_dup(&text);
	log_info("Repaired jumps of base chains that somebody else removed",
		 KV("ipFamily", LOG_STR(ip_family(sync))), KV("jumps", LOG_INT(result->n_jumps)),
		 KV("what", LOG_STR(what)));
}

static void count_repair(struct nft_sync *sync, const struct nft_audit_result *result)
{
	bool wrong = result->n_wrong > 0 || result->n_jumps > 0;
	int64_t now = clock_now_ns();

	sync->stats.n_repairs += wrong;
	sync->stats.n_repaired_chains += result->n_wrong;
	sync->stats.n_repaired_rules += result->n_missing;
	sync->stats.n_removed_rules += result->n_extra;
	sync->stats.n_repaired_jumps += result->n_jumps;
	pace_repaired(&sync->pace, now - sync->audit_began_ns, wrong, now);
	if (result->n_jumps > 0)
		log_jumps(sync, result);
	if (wrong && sync->input.repaired)
		sync->input.repaired(sync->input.arg);
}

static void finish(struct nft_sync *sync, int error, const struct err *err);

static void audit_done(struct nft_sync *sync)
{
	struct nft_audit_result result = *nft_audit_result(sync->audit);
	enum purpose purpose = sync->purpose;

	sync->n_restarts = 0;
	if (purpose != PURPOSE_SYNC)
		count_repair(sync, &result);
	drop_audit(sync);
	switch (purpose) {
	case PURPOSE_SYNC:
		nft_left_tell_accepted(&sync->left);
		finish(sync, 0, NULL);
		break;
	case PURPOSE_BACKGROUND:
		nft_left_tell_accepted(&sync->left);
		sync->stats.n_audits++;
		log_audit(sync, &result);
		sync->audit_asked = false;
		break;
	case PURPOSE_REPAIR:
		nft_damage_done(&sync->in_hand);
		break;
	case PURPOSE_NONE:
		break;
	}
	plan_repair(sync);
}

static void repair_failed(struct nft_sync *sync, const struct err *err)
{
	int64_t now = clock_now_ns();

	log_error("Could not repair rules that somebody else changed, trying a full sync",
		  KV("ipFamily", LOG_STR(ip_family(sync))), KV("err", LOG_STR(err->text)));
	pace_repaired(&sync->pace, now - sync->audit_began_ns, true, now);
	nft_damage_done(&sync->in_hand);
	nft_damage_done(&sync->damage);
	sync->audit_asked = false;
	drop_audit(sync);
	sync->input.flushed(sync->input.arg, "chains that could not be repaired");
}

static void audit_failed(struct nft_sync *sync, int r, struct err *err)
{
	enum purpose purpose = sync->purpose;

	if (r == -ESTALE)
		err_set(err, -EBUSY, "somebody else keeps changing our rules");
	if (r == -ESTALE && sync->n_restarts++ < RESTARTS_MAX) {
		drop_audit(sync);
		nft_damage_done(&sync->in_hand);
		audit_everything(sync, purpose == PURPOSE_SYNC ? purpose : PURPOSE_BACKGROUND);
		return;
	}
	sync->n_restarts = 0;
	if (purpose != PURPOSE_SYNC) {
		repair_failed(sync, err);
		return;
	}
	drop_audit(sync);
	finish(sync, MIN(r, -1), err);
}

static void step_audit(struct nft_sync *sync)
{
	struct ruleset_input input = make_input(sync);
	struct err err = {0};
	int r = nft_audit_step(sync->audit, sync->syncing ? &input : NULL, &err);

	if (r > 0)
		wake_at(sync, 0);
	else if (r == 0)
		audit_done(sync);
	else
		audit_failed(sync, r, &err);
}

/* -- repairs */

/* What was touched becomes what has to be looked at. A chain of a Service that is gone needs nothing. */
static void start_repair(struct nft_sync *sync)
{
	size_t services[NFT_DAMAGE_CHAINS_MAX];
	cleanup_free struct nft_audit_chain *chains = NULL;
	struct nft_audit_scope scope = {.services = services};
	const char *name;
	size_t at = 0;

	nft_damage_merge(&sync->in_hand, &sync->damage);
	chains = xcalloc(sync->in_hand.n_shared + 1, sizeof(*chains));
	scope.chains = chains;
	scope.jumps = sync->in_hand.jumps;
	scope.shared_missing = sync->in_hand.shared_missing;
	while ((name = map_next_key(&sync->in_hand.chains, &at)))
		scope.n_services +=
			ruleset_find_chain(sync->input.ruleset, name, &services[scope.n_services]);
	for (size_t i = 0; i < sync->in_hand.n_shared; i++) {
		const struct nft_damage_shared *shared = &sync->in_hand.shared[i];

		if (shared->touched)
			chains[scope.n_chains++] = (struct nft_audit_chain){
				.number = (unsigned int)i,
				.n_lost = shared->unclear ? 0 : shared->n_lost,
			};
	}
	start_audit(sync, PURPOSE_REPAIR, &scope);
}

static void start_what_is_due(struct nft_sync *sync)
{
	nft_listener_drain(sync->listener);
	if (sync->damage.flushed) {
		cleanup_free char *what = nft_deeds_text(&sync->damage.deeds);
		int64_t now = clock_now_ns();

		pace_repaired(&sync->pace, 0, true, now);
		nft_damage_done(&sync->damage);
		sync->input.flushed(sync->input.arg, what);
	} else if (sync->damage.unknown || sync->audit_wanted) {
		audit_everything(sync, PURPOSE_BACKGROUND);
	} else if (nft_damage_any(&sync->damage)) {
		start_repair(sync);
	}
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct nft_sync *sync = arg;

	if (sync->audit)
		step_audit(sync);
	else if (!sync->syncing)
		start_what_is_due(sync);
}

void nft_sync_audit(struct nft_sync *sync)
{
	sync->audit_wanted = sync->audit_asked = true;
	if (!sync->audit && !sync->syncing)
		wake_at(sync, 0);
}

/* -- a look at what all hangs on */

/* 1 or 0, or an error. */
static int has_jump(struct nft_sync *sync, size_t index, struct rule *ret, struct err *err)
{
	cleanup_nft_link_rules struct nft_link_rules rules = {0};
	int r;

	ruleset_jump(index, ret);
	r = nft_link_read(&sync->link, ret->table, ret->chain, &rules, err);
	if (r < 0)
		return err_wrap(err, r, "reading chain %s of table %s", ret->chain,
				table_name(ret->table));
	for (size_t i = 0; i < rules.n; i++)
		if (rules.v[i].digest == sync->jumps.digests[index])
			return 1;
	return 0;
}

int nft_sync_check(struct nft_sync *sync, struct err *err)
{
	struct rule jump;
	int r = 1;

	nft_listener_drain(sync->listener);
	if (nft_damage_any(&sync->damage) || nft_damage_any(&sync->in_hand)) {
		err_set(err, -EUCLEAN, "rules that somebody else changed are not repaired yet");
		return 0;
	}
	for (size_t i = 0; i < RULESET_JUMPS && r > 0; i++)
		r = has_jump(sync, i, &jump, err);
	if (r != 0)
		return r;
	err_set(err, -ENOENT, "chain %s of table %s does not lead to %s", jump.chain,
		table_name(jump.table), jump.target.chain);
	sync->damage.jumps = true;
	sync->damage.n_messages++;
	plan_repair(sync);
	return 0;
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
	ret->no_local_internal = stats.no_local_internal;
	ret->no_local_external = stats.no_local_external;
	for (size_t i = 0; i < BACKEND_TABLE_COUNT; i++) {
		enum table table = tables[i];

		ret->rules_total[i] = stats.rules_total[table];
		ret->rules_last[i] = sync->link.n_rules[table] - sync->n_rules_before[table];
		ret->rules += ret->rules_last[i];
	}
}

static void tell_met(struct nft_sync *sync)
{
	cleanup_free char *what = nft_deeds_text(&sync->met);

	if (!what[0])
		return;
	sync->met = (struct nft_deeds){0};
	log_info("Rules were changed by somebody else, this sync wrote all of them again",
		 KV("ipFamily", LOG_STR(ip_family(sync))), KV("what", LOG_STR(what)));
	if (sync->input.repaired)
		sync->input.repaired(sync->input.arg);
}

static void finish(struct nft_sync *sync, int error, const struct err *err)
{
	int64_t now = clock_now_ns();
	struct model_changes changes = sync->changes;
	struct backend_result result = {
		.error = error,
		.write_failed = error < 0,
		.full = sync->begun.full,
		.services = changes.n_services,
		.changes = &changes,
		.duration_ns = now - sync->started_ns,
	};

	if (error < 0) {
		result.err = *err;
		err_wrap(&result.err, error, "writing the %s rules", ip_family(sync));
	} else {
		tell_met(sync);
	}
	ruleset_end(sync->input.ruleset, error == 0, now);
	count_rules(sync, &result);
	sync->good = error == 0;
	sync->syncing = false;
	sync->changes = (struct model_changes){0};
	if (sync->audit)
		wake_at(sync, 0); /* the one in the background goes on */
	sync->input.done(sync->input.arg, &result);
	model_changes_done(&changes);
	plan_repair(sync);
}

static void sync_everything(struct nft_sync *sync)
{
	if (sync->audit)
		drop_audit(sync);
	nft_damage_done(&sync->in_hand);
	audit_everything(sync, PURPOSE_SYNC);
	sync->audit_wanted = sync->audit_asked; /* who asked hears of one of its own */
}

/* Sends until nobody else comes in between. Tables that are gone took all known handles with them. */
static int commit_delta(struct nft_sync *sync, struct nft_txn *txn, struct err *err)
{
	int r = -ERESTART;

	for (size_t i = 0; r == -ERESTART && i <= RESEND_MAX; i++) {
		nft_listener_drain(sync->listener);
		if (sync->damage.flushed)
			return err_set(err, -ESTALE, "somebody else removed tables meanwhile");
		r = nft_txn_commit(txn, i < RESEND_MAX ? sync->generation : 0, err);
		sync->stats.n_resent += r == -ERESTART;
	}
	return r;
}

/*
 * Why was it refused? A chain that cannot be deleted is kept; a Service that the kernel does not take
 * is left as it is. True: it can be tried again without. What should stand and does not (-ENOENT) is
 * nobody's fault: the kernel is not as we think.
 */
static bool leave_out(struct nft_sync *sync, const struct err *err)
{
	const struct nft_batch_failure *failure = nft_batch_failure(sync->link.batch);
	const char *key = nft_link_refused(&sync->link);

	if (!failure || nft_batch_uncertain(sync->link.batch) || is_disturbed(sync) ||
	    failure->error == -ENOENT)
		return false;
	if (failure->type == NFT_MSG_DELCHAIN && failure->error == -EBUSY &&
	    !map_get(&sync->left.held, failure->chain)) {
		on_held(sync, failure->chain);
		return true;
	}
	return key && on_refused(sync, key, err);
}

/* 0: done; 1: try again; negative: this way does not work. */
static int try_delta(struct nft_sync *sync, struct err *err)
{
	struct ruleset_input input = make_input(sync);
	cleanup_nft_txn struct nft_txn txn;
	struct ruleset_stats ignored; /* they are counted at the end, for both kinds of sync */
	int r;

	nft_txn_init(&txn, &sync->link);
	txn.held = &sync->left.held;
	txn.left = &sync->left.left;
	txn.audit = sync->audit;
	ruleset_write(sync->input.ruleset, &input, &txn.txn, &ignored);
	r = commit_delta(sync, &txn, err);
	if (r >= 0)
		return 0;
	r = leave_out(sync, err) ? 1 : r;
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
		finish(sync, 0, NULL);
		return;
	}
	log_debug(2, "A delta could not be written, comparing everything",
		  KV("ipFamily", LOG_STR(ip_family(sync))), KV("err", LOG_STR(err.text)));
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
	drop_audit(sync);
	nft_damage_merge(&sync->damage, &sync->in_hand);
}

void nft_sync_start(struct nft_sync *sync, struct model *model)
{
	assert(!sync->syncing);
	give_way(sync);
	sync->syncing = true;
	sync->started_ns = clock_now_ns();
	memcpy(sync->n_rules_before, sync->link.n_rules, sizeof(sync->n_rules_before));
	ruleset_begin(sync->input.ruleset, model, sync->started_ns, &sync->changes, &sync->begun);
	if (sync->begun.full)
		ensure_counters(sync);
	if (sync->begun.wants_addresses)
		read_addresses(sync);
	nft_listener_drain(sync->listener);
	if (sync->begun.full || sync->damage.flushed ||
	    nft_left_any_changed(&sync->left, &sync->changes))
		sync_everything(sync);
	else
		sync_delta(sync);
}

bool nft_sync_running(const struct nft_sync *sync)
{
	return sync->syncing;
}

const struct nft_sync_stats *nft_sync_stats(struct nft_sync *sync)
{
	sync->stats.n_transactions = sync->link.n_transactions;
	sync->stats.n_messages = sync->link.n_messages;
	return &sync->stats;
}

/* -- begin and end */

static const struct nft_listener_events listener_events = {
	.message = on_message,
	.generation = on_generation,
	.own_generation = on_own_generation,
	.lost = on_lost,
};

static int connect_to_kernel(struct nft_sync *sync, struct err *err)
{
	int r = nft_link_open(&sync->link, sync->family, err);

	if (r < 0)
		return r;
	r = nft_listener_open(sync->input.loop, nft_socket_port(sync->link.socket),
			      &listener_events, sync, &sync->listener, err);
	if (r < 0)
		return r;
	sync->link.listener = sync->listener;
	return nft_generation(sync->link.socket, &sync->generation, err);
}

int nft_sync_new(const struct nft_sync_input *input, struct nft_sync **ret, struct err *err)
{
	struct nft_sync *sync = xcalloc(1, sizeof(*sync));
	int r;

	sync->input = *input;
	sync->family = sync->left.family = input->settings->family;
	sync->audit_events = (struct nft_audit_events){
		.differs = on_difference,
		.refused = on_refused,
		.held = on_held,
		.generation = known_generation,
		.disturbed = is_disturbed,
		.arg = sync,
	};
	nft_damage_jumps_init(&sync->jumps, sync->family);
	sync->timer = evtimer_new(input->loop, on_timer, sync);
	if (!sync->timer)
		abort(); /* out of memory, as in util.c */
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
	nft_audit_free(sync->audit);
	if (sync->syncing)
		ruleset_end(sync->input.ruleset, false, clock_now_ns());
	model_changes_done(&sync->changes);
	nft_listener_free(sync->listener);
	nft_link_close(&sync->link);
	nft_damage_done(&sync->damage);
	nft_damage_done(&sync->in_hand);
	nft_left_done(&sync->left);
	event_free(sync->timer);
	free(sync->addresses);
	free(sync);
	return NULL;
}
