/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/restore/sync.h"

#include <assert.h>
#include <stdlib.h>

#include "backends/iptables/fixed_rules.h"
#include "backends/iptables/host_facts.h"
#include "backends/iptables/restore/restore_stream.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/iptables_save.h"
#include "xtables/restore_writer.h"

/* A step starts a job of the tool, or does its work at once and goes to the next. */
enum sync_step {
	SYNC_IDLE = 0,
	SYNC_JUMPS,
	SYNC_COUNTERS,
	SYNC_CHAINS,
	SYNC_ADDRESSES,
	SYNC_RESTORE,
	SYNC_STEP_COUNT,
};

/* What has to be done for one jump rule, in this order. */
static const enum iptables_op jump_ops[] = {IPTABLES_NEW_CHAIN, IPTABLES_CHECK, IPTABLES_PREPEND};

struct sync {
	struct iptables_tool *tool;
	struct ruleset *ruleset;
	struct ruleset_host *host;
	const struct settings *settings;
	bool nfacct;
	sync_done_fn *done;
	void *arg;

	/* of the sync that runs */
	enum sync_step step;
	struct iptables_job *job;
	int64_t started_ns;
	struct ruleset_begun begun;
	struct ruleset_stats stats;
	size_t jump;    /* index of the jump rule */
	size_t jump_op; /* index in jump_ops */
	struct arena *chain_names;
	const char **chains; /* NULL: not known */
	size_t n_chains, chains_capacity;
	struct map held_chains; /* by foreign rules */
	bool chains_known;
	struct restore_stream *stream;   /* of a full sync */
	struct host_addresses addresses; /* as of the last sync that wanted them */
};

static void go_on(struct sync *sync);

/* -- begin and end */

struct sync *sync_new(struct iptables_tool *tool, struct ruleset *ruleset,
		      struct ruleset_host *host, const struct settings *settings, bool nfacct,
		      sync_done_fn *done, void *arg)
{
	struct sync *sync = xcalloc(1, sizeof(*sync));

	sync->tool = tool;
	sync->ruleset = ruleset;
	sync->host = host;
	sync->settings = settings;
	sync->nfacct = nfacct;
	sync->done = done;
	sync->arg = arg;
	return sync;
}

/* Releases what belongs to one run. */
static void reset(struct sync *sync)
{
	sync->step = SYNC_IDLE;
	sync->job = NULL;
	sync->stream = restore_stream_free(sync->stream);
	sync->chain_names = arena_free(sync->chain_names);
	free(take(sync->chains));
	map_done(&sync->held_chains);
	sync->n_chains = sync->chains_capacity = 0;
	sync->chains_known = false;
	sync->jump = sync->jump_op = 0;
	sync->stats = (struct ruleset_stats){0};
}

struct sync *sync_free(struct sync *sync)
{
	if (!sync)
		return NULL;
	if (sync->job)
		iptables_tool_cancel(sync->tool, sync->job);
	if (sync->step != SYNC_IDLE)
		ruleset_end(sync->ruleset, false, clock_now_ns());
	reset(sync);
	host_facts_addresses_done(&sync->addresses);
	free(sync);
	return NULL;
}

static void count(const struct ruleset_stats *stats, struct backend_result *result)
{
	static const enum table tables[] = {
		[BACKEND_FILTER] = TABLE_FILTER,
		[BACKEND_NAT] = TABLE_NAT,
	};

	for (enum backend_table table = 0; table < BACKEND_TABLE_COUNT; table++) {
		result->rules_total[table] = stats->rules_total[tables[table]];
		result->rules_last[table] = stats->rules_written[tables[table]];
		result->rules += result->rules_last[table];
	}
}

static void finish(struct sync *sync, int error, const struct err *err)
{
	int64_t now = clock_now_ns();
	struct backend_result result = {
		.error = error,
		.write_failed = error < 0 && sync->step == SYNC_RESTORE,
		.full = sync->begun.full,
		.duration_ns = now - sync->started_ns,
	};

	if (error < 0)
		result.err = *err;
	count(&sync->stats, &result);
	ruleset_end(sync->ruleset, error == 0, now);
	reset(sync);
	sync->done(sync->arg, &result); /* the next sync may begin inside */
}

static void next_step(struct sync *sync)
{
	sync->step++;
	go_on(sync);
}

/* -- JUMPS */

static void start_jump(struct sync *sync);

static void jump_done(void *arg, int r, struct err *err)
{
	struct sync *sync = arg;
	struct rule rule;

	sync->job = NULL;
	if (r < 0) {
		ruleset_jump(sync->jump, &rule);
		r = err_wrap(err, r, "ensuring the jump from chain %s to %s in table %s",
			     rule.chain, rule.target.chain, table_name(rule.table));
		finish(sync, r, err);
		return;
	}
	if (jump_ops[sync->jump_op] == IPTABLES_CHECK && r == 1)
		sync->jump_op++; /* it is there */
	if (++sync->jump_op >= ARRAY_SIZE(jump_ops)) {
		sync->jump_op = 0;
		sync->jump++;
	}
	if (sync->jump < RULESET_JUMPS)
		start_jump(sync);
	else
		next_step(sync);
}

static void start_jump(struct sync *sync)
{
	cleanup_arena struct arena *arena = arena_new(1024);
	struct iptables_command command = {.op = jump_ops[sync->jump_op]};
	struct rule rule;
	size_t unused;

	ruleset_jump(sync->jump, &rule);
	command.table = table_name(rule.table);
	if (command.op == IPTABLES_NEW_CHAIN) {
		command.chain = rule.target.chain;
	} else {
		command.chain = rule.chain;
		command.words = (const char *const *)restore_rule_argv(&rule, arena, &unused);
	}
	sync->job = iptables_tool_start(sync->tool, &command, jump_done, sync);
}

/* -- COUNTERS */

static void ensure_counters(struct sync *sync)
{
	if (sync->nfacct)
		host_facts_counters(sync->host);
	next_step(sync);
}

/* -- CHAINS */

/* A rule of another program that leads to a chain of ours holds it: it cannot be deleted. */
static void take_rule(struct sync *sync, const char *line)
{
	struct iptables_jump jump;
	char *name;

	if (!has_prefix(line, "-A ") || chain_is_per_service(line + 3))
		return; /* ours, as most are */
	if (!iptables_save_jump(line, &jump) || !chain_is_per_service(jump.target) ||
	    fixed_rules_is_shared(jump.chain))
		return;
	name = arena_strdup(sync->chain_names, jump.target);
	map_set(&sync->held_chains, name, name);
}

static void take_line(void *arg, const char *line, size_t length attr_unused)
{
	struct sync *sync = arg;
	size_t n = iptables_save_chain(line);

	if (n == 0) {
		take_rule(sync, line);
		return;
	}
	array_grow(&sync->chains, &sync->chains_capacity, sync->n_chains, sizeof(*sync->chains));
	sync->chains[sync->n_chains++] = arena_printf(sync->chain_names, "%.*s", (int)n, line + 1);
}

static void chains_done(void *arg, int r, struct err *err)
{
	struct sync *sync = arg;

	sync->job = NULL;
	sync->chains_known = r >= 0;
	if (r < 0)
		log_warning("Could not list the nat chains, stale ones are kept for now",
			    KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
			    KV("err", LOG_STR(err->text)));
	next_step(sync);
}

static void start_chains(struct sync *sync)
{
	sync->chain_names = arena_new(4096);
	sync->job =
		iptables_tool_save(sync->tool, table_name(TABLE_NAT), take_line, chains_done, sync);
}

/* -- ADDRESSES */

static void read_addresses(struct sync *sync)
{
	host_facts_addresses(sync->settings->family, &sync->addresses);
	next_step(sync);
}

/* -- RESTORE */

/* All was written. */
static void count_written(struct sync *sync)
{
	ruleset_count(sync->ruleset, &sync->stats);
	memcpy(sync->stats.rules_written, sync->stats.rules_total,
	       sizeof(sync->stats.rules_written));
}

static void restore_done(void *arg, int r, struct err *err)
{
	struct sync *sync = arg;

	sync->job = NULL;
	if (r < 0)
		r = err_wrap(err, r, "writing the %s rules", family_name(sync->settings->family));
	else if (sync->stream)
		count_written(sync);
	finish(sync, MIN(r, 0), err);
}

static bool more(void *arg, struct text *input)
{
	struct sync *sync = arg;

	return restore_stream_more(sync->stream, input);
}

/* What changed is small enough to be held as a whole. */
static void start_delta(struct sync *sync, const struct ruleset_input *input)
{
	cleanup_text struct text text = {0};
	struct restore_writer writer;

	restore_writer_init(&writer);
	ruleset_write(sync->ruleset, input, &writer.txn, &sync->stats);
	restore_writer_finish(&writer, &text);
	restore_writer_done(&writer);
	sync->job = iptables_tool_restore(sync->tool, NULL, &text, restore_done, sync);
}

static void start_restore(struct sync *sync)
{
	static const char *const none[] = {NULL};
	const struct ruleset_input input = {
		.now_ns = clock_now_ns(),
		.nat_chains = !sync->chains_known ? NULL
			      : sync->chains      ? sync->chains
						  : none,
		.n_nat_chains = sync->n_chains,
		.held_chains = &sync->held_chains,
		.addresses_known = sync->addresses.known,
		.addresses = sync->addresses.v,
		.n_addresses = sync->addresses.n,
	};

	if (!sync->begun.full) {
		start_delta(sync, &input);
		return;
	}
	sync->stream = restore_stream_new(sync->ruleset, &input);
	sync->job = iptables_tool_restore_pieces(sync->tool, NULL, more, restore_done, sync);
}

/* -- the steps */

static bool always(const struct sync *sync attr_unused)
{
	return true;
}

static bool is_full(const struct sync *sync)
{
	return sync->begun.full;
}

static bool wants_chains(const struct sync *sync)
{
	return sync->begun.wants_nat_chains;
}

static bool wants_addresses(const struct sync *sync)
{
	return sync->begun.wants_addresses;
}

static const struct {
	bool (*wanted)(const struct sync *sync);
	void (*start)(struct sync *sync);
} steps[] = {
	[SYNC_IDLE] = {NULL, NULL},
	[SYNC_JUMPS] = {is_full, start_jump},
	[SYNC_COUNTERS] = {is_full, ensure_counters},
	[SYNC_CHAINS] = {wants_chains, start_chains},
	[SYNC_ADDRESSES] = {wants_addresses, read_addresses},
	[SYNC_RESTORE] = {always, start_restore},
};
_Static_assert(ARRAY_SIZE(steps) == SYNC_STEP_COUNT, "a step without its functions");

static void go_on(struct sync *sync)
{
	while (!steps[sync->step].wanted(sync))
		sync->step++;
	steps[sync->step].start(sync);
}

void sync_start(struct sync *sync, const struct plan_delta *delta)
{
	assert(sync->step == SYNC_IDLE);
	sync->started_ns = clock_now_ns();
	ruleset_begin(sync->ruleset, delta, sync->started_ns, &sync->begun);
	sync->step = SYNC_JUMPS;
	go_on(sync);
}

bool sync_running(const struct sync *sync)
{
	return sync->step != SYNC_IDLE;
}
