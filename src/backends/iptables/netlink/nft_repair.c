/* SPDX-License-Identifier: Apache-2.0 */

/* What others do to our chains, and making it good; and audits, which full syncs are as well. */

#include <errno.h>
#include <stdlib.h>

#include "backends/iptables/netlink/nft_sync_parts.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#define RESTARTS_MAX 5  /* of an audit that others disturbed */
#define TOLD_MAX     16 /* chains that a repair names in the log */

/* -- what others do */

static void take_message(void *arg, const struct nlmsghdr *message, struct foreign_changes *changes)
{
	struct nft_sync *sync = arg;

	nft_damage_take(&sync->damage, &sync->link, &sync->jumps, message, changes);
}

static void take_loss(void *arg, struct foreign_changes *changes attr_unused)
{
	((struct nft_sync *)arg)->damage.unknown = true;
}

static bool is_damaged(void *arg)
{
	return nft_damage_any(&((struct nft_sync *)arg)->damage);
}

static void repair(void *arg)
{
	struct nft_sync *sync = arg;

	nft_session_run(sync->session, &sync->step_task);
}

const struct nft_watch_ops nft_repair_watch_ops = {take_message, take_loss, is_damaged, repair};

void nft_repair_rest(struct nft_sync *sync)
{
	if (!sync->good || sync->audit)
		return;
	if (sync->audit_wanted)
		loop_arm(sync->timer, 0);
	else
		nft_watch_idle(sync->watch);
}

/* What an audit has not seen: damage that came after it began. */
bool nft_repair_disturbed(void *arg)
{
	struct nft_sync *sync = arg;

	nft_watch_hear(sync->watch);
	return nft_damage_any(&sync->damage);
}

/* -- audits */

static void on_difference(void *arg, const struct nft_difference *difference)
{
	struct nft_sync *sync = arg;

	if (sync->purpose == PURPOSE_SYNC) {
		log_debug(4, "Writing a chain that is not as it should be",
			  KV("ipFamily", LOG_STR(nft_sync_family(sync))),
			  KV("table", LOG_STR(table_name(difference->table))),
			  KV("chain", LOG_STR(difference->chain)),
			  KV("missingRules", LOG_INT(difference->missing)),
			  KV("extraRules", LOG_INT(difference->extra)));
		return;
	}
	if (sync->n_told++ >= TOLD_MAX)
		return;
	log_info("Repairing a chain that another program changed",
		 KV("ipFamily", LOG_STR(nft_sync_family(sync))),
		 KV("table", LOG_STR(table_name(difference->table))),
		 KV("chain", LOG_STR(difference->chain)),
		 KV("missingRules", LOG_INT(difference->missing)),
		 KV("extraRules", LOG_INT(difference->extra)));
}

struct nft_audit_events nft_repair_audit_events(struct nft_sync *sync)
{
	return (struct nft_audit_events){
		.differs = on_difference,
		.refused = nft_sync_refused,
		.held = nft_sync_held,
		.disturbed = nft_repair_disturbed,
		.arg = sync,
	};
}

void nft_repair_drop(struct nft_sync *sync)
{
	sync->audit = nft_audit_free(sync->audit);
	sync->purpose = PURPOSE_NONE;
}

static void start_audit(struct nft_sync *sync, enum purpose purpose,
			const struct nft_audit_scope *scope)
{
	if (scope->all) {
		undeletable_chains_forget(&sync->undeletable);
		if (purpose == PURPOSE_SYNC)
			nft_watch_found(sync->watch);
		else
			nft_watch_forget(sync->watch);
		nft_damage_done(&sync->damage);
		sync->audit_wanted = false;
	}
	nft_watch_busy(sync->watch);
	if (purpose != PURPOSE_SYNC)
		sync->cost_ns = 0;
	sync->purpose = purpose;
	sync->n_told = 0;
	sync->audit_began_ns = clock_now_ns();
	sync->audit = nft_audit_new(&sync->link, sync->input.ruleset, &sync->refused, scope,
				    &sync->audit_events);
	loop_arm(sync->timer, 0);
}

void nft_repair_audit(struct nft_sync *sync, enum purpose purpose)
{
	nft_watch_hear(sync->watch);
	start_audit(sync, purpose, &(const struct nft_audit_scope){.all = true});
}

static void log_audit(struct nft_sync *sync, const struct nft_audit_result *result)
{
	bool right = result->n_wrong == 0 && result->n_jumps == 0 && result->n_deleted == 0;
	bool important = !right || sync->audit_asked;

	LOG_CALL(LOG_SEVERITY_INFO, important ? 0 : 2,
		 right ? "Audit done, all rules are right" : "Audit done, rules were repaired",
		 KV("ipFamily", LOG_STR(nft_sync_family(sync))),
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
	log_info("Repaired jumps of base chains that another program removed",
		 KV("ipFamily", LOG_STR(nft_sync_family(sync))),
		 KV("jumps", LOG_INT(result->n_jumps)), KV("what", LOG_STR(what)));
}

void nft_repair_tell(const struct nft_sync *sync)
{
	const struct backend_events *events = nft_sync_events(sync);

	if (events->repaired)
		events->repaired(events->arg);
}

static void count_repair(struct nft_sync *sync, const struct nft_audit_result *result)
{
	bool wrong = result->n_wrong > 0 || result->n_jumps > 0;

	sync->stats.n_repairs += wrong;
	sync->stats.n_repaired_chains += result->n_wrong;
	sync->stats.n_repaired_rules += result->n_missing;
	sync->stats.n_removed_rules += result->n_extra;
	sync->stats.n_repaired_jumps += result->n_jumps;
	sync->repair_over = true;
	sync->repair_wrong = wrong;
	if (result->n_jumps > 0)
		log_jumps(sync, result);
	if (wrong)
		nft_repair_tell(sync);
}

static void audit_done(struct nft_sync *sync)
{
	struct nft_audit_result result = *nft_audit_result(sync->audit);
	enum purpose purpose = sync->purpose;

	sync->n_restarts = 0;
	if (purpose != PURPOSE_SYNC)
		count_repair(sync, &result);
	nft_repair_drop(sync);
	switch (purpose) {
	case PURPOSE_SYNC:
		nft_sync_finish(sync, 0, NULL);
		break;
	case PURPOSE_BACKGROUND:
		sync->stats.n_audits++;
		log_audit(sync, &result);
		sync->audit_asked = false;
		break;
	case PURPOSE_REPAIR:
		nft_damage_done(&sync->being_repaired);
		break;
	case PURPOSE_NONE:
		break;
	}
}

static void ask_for_sync(struct nft_sync *sync)
{
	cleanup_free char *what = nft_watch_ask(sync->watch);

	nft_damage_done(&sync->damage);
	ruleset_need_full_sync(sync->input.ruleset); /* a sync that runs now does not forget it */
	nft_sync_events(sync)->flushed(nft_sync_events(sync)->arg, what);
}

static void repair_failed(struct nft_sync *sync, const struct err *err)
{
	log_error("Could not repair rules that another program changed, trying a full sync",
		  KV("ipFamily", LOG_STR(nft_sync_family(sync))), KV("err", LOG_STR(err->text)));
	nft_damage_done(&sync->being_repaired);
	sync->audit_asked = false;
	nft_repair_drop(sync);
	nft_watch_note(sync->watch, "chains that could not be repaired");
	ask_for_sync(sync);
}

static void audit_failed(struct nft_sync *sync, int r, struct err *err)
{
	enum purpose purpose = sync->purpose;

	if (r == -ESTALE)
		err_set(err, -EBUSY, "another program keeps changing our rules");
	if (r == -ESTALE && sync->n_restarts++ < RESTARTS_MAX) {
		nft_repair_drop(sync);
		nft_damage_done(&sync->being_repaired);
		nft_repair_audit(sync, purpose == PURPOSE_SYNC ? purpose : PURPOSE_BACKGROUND);
		return;
	}
	sync->n_restarts = 0;
	if (purpose != PURPOSE_SYNC) {
		repair_failed(sync, err);
		return;
	}
	nft_repair_drop(sync);
	nft_sync_finish(sync, MIN(r, -1), err);
}

static void step_audit(struct nft_sync *sync)
{
	struct ruleset_input input = nft_sync_facts(sync);
	struct err err = {0};
	int r = nft_audit_step(sync->audit, sync->syncing ? &input : NULL, &err);

	if (r > 0)
		loop_arm(sync->timer, 0);
	else if (r == 0)
		audit_done(sync);
	else if (r != -ECANCELED) /* the end of this all */
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

	nft_damage_merge(&sync->being_repaired, &sync->damage);
	chains = xcalloc(sync->being_repaired.n_shared + 1, sizeof(*chains));
	scope.chains = chains;
	scope.jumps = sync->being_repaired.jumps;
	scope.shared_missing = sync->being_repaired.shared_missing;
	while ((name = map_next_key(&sync->being_repaired.chains, &at)))
		scope.n_services +=
			ruleset_find_chain(sync->input.ruleset, name, &services[scope.n_services]);
	for (size_t i = 0; i < sync->being_repaired.n_shared; i++) {
		const struct nft_damage_shared *shared = &sync->being_repaired.shared[i];

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
	nft_watch_hear(sync->watch);
	if (sync->damage.flushed)
		ask_for_sync(sync);
	else if (sync->damage.unknown || sync->audit_wanted)
		nft_repair_audit(sync, PURPOSE_BACKGROUND);
	else if (nft_damage_any(&sync->damage))
		start_repair(sync);
	else
		nft_repair_rest(sync);
}

void nft_repair_run_step(void *arg)
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
		loop_arm(sync->timer, 0);
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

static int look_at_jumps(struct nft_sync *sync, struct err *err)
{
	struct rule jump;
	int r = 1;

	nft_watch_hear(sync->watch);
	if (nft_damage_any(&sync->damage) || nft_damage_any(&sync->being_repaired)) {
		err_set(err, -EUCLEAN, "rules that another program changed are not repaired yet");
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
	nft_watch_note(sync->watch, NULL);
	return 0;
}

void nft_repair_run_check(void *arg)
{
	struct nft_sync *sync = arg;

	sync->check_err = (struct err){0};
	sync->check_result = look_at_jumps(sync, &sync->check_err);
}
