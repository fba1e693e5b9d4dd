/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_audit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "kernel/nft_batch.h"
#include "kernel/nft_watch.h"
#include "xtables/rule_compare.h"

/*
 * OWN, ADD and STALE go in pieces of NFT_LINK_PIECE: a transaction is held in memory as a whole, here and in
 * the kernel. A chain is never split, so the list of clients that `recent` keeps for an endpoint always has a
 * rule that names it; a Service may be, and then the chains that others lead to are written first. A piece that
 * is refused because of one Service is made again without it, from the Service with which it began.
 *
 * Pieces do not ask for a generation: what they write is right whatever else changed, and who
 * changed a chain that is ours is told by the listener. Only LAST does, because jumps are put
 * where there is no equal rule already.
 *
 * What is reachable the kernel validates, whole tables at a time, with each transaction. So a repair,
 * which is small as a rule, is first tried `merged`: OWN, ADD and LAST put their messages into one
 * transaction. When that grows too large, or is refused, it begins again in pieces.
 */

#define SLICE_NS (4 * CLOCK_NS_PER_MS)

enum step {
	STEP_LIST = 0,
	STEP_HEAD,
	STEP_OWN,
	STEP_READ,
	STEP_ADD,
	STEP_LAST,
	STEP_STALE,
	STEP_DONE,
	STEP_COUNT,
};

struct stale {
	size_t index; /* of its first message in the batch */
	struct chain_name name;
	bool deleted;
};

struct nft_audit {
	struct nft_link *link;
	struct ruleset *ruleset;
	const struct refused_services *refused;
	const struct nft_audit_events *events;
	bool all;
	size_t *services;
	size_t n_services;
	struct nft_audit_chain *chains;
	size_t n_chains;
	bool shared_missing, jumps;
	bool merged;

	enum step step;
	struct nft_audit_result result;
	struct nft_found *found; /* NULL unless `all` */
	struct nft_own own;
	struct rule_list list; /* of the Service in hand; without an arena: none is */
	size_t chain;          /* the next one of it */
	struct nft_shared *shared;
	size_t at; /* in OWN: of the next Service; in READ: chain; in ADD: rule; in STALE: place */
	size_t piece; /* `at` where the piece in hand began */

	/* keys of Services that were seen before an interruption */
	struct map seen;
	struct arena *names;
	struct map held; /* stale chains that cannot be deleted */
	struct stale *stale;
	size_t n_stale, stale_capacity;
};

/* -- begin and end */

static void on_difference(void *arg, const struct nft_difference *difference)
{
	struct nft_audit *audit = arg;

	audit->result.n_wrong++;
	audit->result.n_missing += difference->missing;
	audit->result.n_extra += difference->extra;
	audit->events->differs(audit->events->arg, difference);
}

static void copy_scope(struct nft_audit *audit, const struct nft_audit_scope *scope)
{
	audit->all = scope->all;
	audit->merged = !scope->all;
	audit->jumps = scope->all || scope->jumps;
	audit->shared_missing = scope->shared_missing;
	audit->n_services = scope->n_services;
	audit->n_chains = scope->n_chains;
	audit->services = xcalloc(scope->n_services + 1, sizeof(*audit->services));
	audit->chains = xcalloc(scope->n_chains + 1, sizeof(*audit->chains));
	for (size_t i = 0; i < scope->n_services; i++)
		audit->services[i] = scope->services[i];
	for (size_t i = 0; i < scope->n_chains; i++)
		audit->chains[i] = scope->chains[i];
}

struct nft_audit *nft_audit_new(struct nft_link *link, struct ruleset *ruleset,
				const struct refused_services *refused,
				const struct nft_audit_scope *scope,
				const struct nft_audit_events *events)
{
	struct nft_audit *audit = xcalloc(1, sizeof(*audit));

	audit->link = link;
	audit->ruleset = ruleset;
	audit->refused = refused;
	audit->events = events;
	audit->own = (struct nft_own){
		.link = link, .refused = refused, .differs = on_difference, .arg = audit};
	audit->shared = nft_shared_new(link, ruleset, refused, on_difference, audit);
	audit->names = arena_new(1024);
	audit->step = scope->all ? STEP_LIST : STEP_HEAD;
	copy_scope(audit, scope);
	nft_link_reset(link);
	return audit;
}

struct nft_audit *nft_audit_free(struct nft_audit *audit)
{
	if (!audit)
		return NULL;
	nft_link_reset(audit->link);
	nft_found_free(audit->found);
	rule_list_done(&audit->list);
	nft_shared_free(audit->shared);
	map_done(&audit->seen);
	map_done(&audit->held);
	arena_free(audit->names);
	free(audit->stale);
	free(audit->services);
	free(audit->chains);
	free(audit);
	return NULL;
}

const struct nft_audit_result *nft_audit_result(const struct nft_audit *audit)
{
	return &audit->result;
}

static void next(struct nft_audit *audit)
{
	audit->step++;
	audit->at = audit->piece = 0;
	if (!audit->merged)
		nft_link_reset(audit->link);
}

/* Nothing has been sent: begins again, in pieces. */
static int unmerge(struct nft_audit *audit)
{
	audit->merged = false;
	audit->step = STEP_HEAD;
	audit->result = (struct nft_audit_result){0};
	next(audit);
	return 1;
}

static bool looks_at_shared(const struct nft_audit *audit)
{
	return audit->all || audit->n_chains > 0;
}

/* -- the way to the kernel */

/*
 * 0: done, and the batch is empty. -EAGAIN: a Service was refused and is left out from now on, the
 * piece must be made again.
 */
static int send(struct nft_audit *audit, uint32_t generation, struct err *err)
{
	int r = nft_link_commit(audit->link, generation, err);
	const char *key;

	if (r >= 0) {
		nft_link_reset(audit->link);
		return 0;
	}
	if (r == -ERESTART)
		return r;
	if (nft_batch_uncertain(audit->link->batch) || audit->events->disturbed(audit->events->arg))
		return -ESTALE;
	key = nft_link_refused(audit->link);
	if (!key || !audit->events->refused(audit->events->arg, key))
		return r;
	return -EAGAIN;
}

/* The Service in hand begins again with its first chain, which a former piece may have written. */
static void drop_piece(struct nft_audit *audit)
{
	nft_link_reset(audit->link);
	rule_list_done(&audit->list);
	audit->own.interrupted = true;
}

/* Sends what OWN or ADD put together; when it was refused, goes back to where that began. */
static int send_piece(struct nft_audit *audit, struct err *err)
{
	int r = send(audit, 0, err);

	if (r == -EAGAIN) {
		drop_piece(audit);
		audit->at = audit->piece;
		return 1;
	}
	if (r < 0)
		return r;
	audit->piece = audit->at;
	return 0;
}

static bool has_chain(const struct nft_audit *audit, enum table table, const char *chain)
{
	return !audit->found || nft_found_has(audit->found, table, chain);
}

/* -- LIST */

static int step_list(struct nft_audit *audit, const struct ruleset_input *input attr_unused,
		     struct err *err)
{
	int r = nft_found_read(audit->link, &audit->found, err);

	if (r < 0)
		return r;
	audit->own.found = audit->found;
	next(audit);
	return 1;
}

/* -- HEAD */

static void need_chain(struct nft_audit *audit, enum table table, const char *chain,
		       bool made[static TABLE_COUNT])
{
	bool there =
		audit->found ? nft_found_has(audit->found, table, chain) : !audit->shared_missing;

	if (there)
		return;
	if (!made[table])
		nft_link_new_table(audit->link, table);
	made[table] = true;
	nft_link_new_chain(audit->link, table, chain);
}

static int step_head(struct nft_audit *audit, const struct ruleset_input *input, struct err *err)
{
	const struct rule_chain *chain;
	bool made[TABLE_COUNT] = {false};
	int r;

	if (!audit->all && !audit->shared_missing) {
		next(audit);
		return 1;
	}
	chain = ruleset_fixed(audit->ruleset, input)->chains;
	for (; chain; chain = chain->next)
		need_chain(audit, chain->table, chain->name, made);
	for (size_t i = 0; i < RULESET_JUMPS && audit->jumps; i++) {
		struct rule jump;

		ruleset_jump(i, &jump);
		need_chain(audit, jump.table, jump.target.chain, made);
	}
	r = send(audit, 0, err);
	if (r < 0)
		return r;
	next(audit);
	return 1;
}

/* -- OWN */

static size_t n_services(const struct nft_audit *audit)
{
	return audit->all ? ruleset_n_services(audit->ruleset) : audit->n_services;
}

static void open_service(struct nft_audit *audit)
{
	size_t index = audit->all ? audit->at : audit->services[audit->at];
	const char *key = ruleset_service_key(audit->ruleset, index);

	audit->chain = 0;
	if (refused_services_wait(audit->refused, key) || map_get(&audit->seen, key)) {
		rule_list_init(&audit->list, 0); /* nothing of it */
		return;
	}
	ruleset_make_service(audit->ruleset, index, RULESET_OWN, &audit->list);
	rule_list_order(&audit->list);
	audit->result.n_services++;
}

/* Takes the next chain, or the next Service. */
static int compare_next(struct nft_audit *audit, struct err *err)
{
	int r = 0;

	if (!audit->list.arena)
		open_service(audit);
	if (audit->chain < audit->list.n_own) {
		nft_link_subject(audit->link, audit->list.subject);
		r = nft_own_compare(&audit->own, audit->list.own[audit->chain], err);
		audit->chain++;
	} else {
		rule_list_done(&audit->list);
		audit->at++;
	}
	return MIN(r, 0);
}

static int step_own(struct nft_audit *audit, const struct ruleset_input *input attr_unused,
		    struct err *err)
{
	int64_t until = clock_now_ns() + SLICE_NS;
	int r;

	while (audit->at < n_services(audit)) {
		r = compare_next(audit, err);
		if (r < 0)
			return r;
		if (nft_batch_size(audit->link->batch) >= NFT_LINK_PIECE)
			break;
		if (clock_now_ns() >= until)
			return 1;
	}
	if (nft_batch_size(audit->link->batch) >= NFT_LINK_PIECE)
		audit->merged = false;
	r = audit->merged ? 0 : send_piece(audit, err);
	if (r != 0)
		return r;
	if (audit->at >= n_services(audit))
		next(audit);
	return 1;
}

/* -- READ and ADD */

static bool in_scope(const struct nft_audit *audit, unsigned int number, size_t *ret_lost)
{
	*ret_lost = 0;
	for (size_t i = 0; i < audit->n_chains; i++) {
		if (audit->chains[i].number != number)
			continue;
		*ret_lost = audit->chains[i].n_lost;
		return true;
	}
	return audit->all;
}

static int step_read(struct nft_audit *audit, const struct ruleset_input *input, struct err *err)
{
	int64_t until = clock_now_ns() + SLICE_NS;

	if (!looks_at_shared(audit)) {
		next(audit);
		return 1;
	}
	if (audit->at == 0)
		nft_shared_collect(audit->shared, ruleset_fixed(audit->ruleset, input));
	while (audit->at < nft_shared_n_chains(audit->shared)) {
		size_t at = audit->at++;
		unsigned int number;
		const struct rule_chain *chain = nft_shared_chain(audit->shared, at, &number);
		size_t n_lost;
		int r = 0;

		if (in_scope(audit, number, &n_lost))
			r = nft_shared_compare(audit->shared, at,
					       has_chain(audit, chain->table, chain->name), n_lost,
					       err);
		if (r < 0)
			return r;
		if (clock_now_ns() >= until)
			return 1;
	}
	next(audit);
	return 1;
}

static int step_add(struct nft_audit *audit, const struct ruleset_input *input attr_unused,
		    struct err *err)
{
	bool more =
		looks_at_shared(audit) && nft_shared_add(audit->shared, NFT_LINK_PIECE, &audit->at);
	int r;

	if (audit->merged && more)
		return unmerge(audit);
	r = audit->merged ? 0 : send_piece(audit, err);
	if (r < 0)
		return r;
	if (!more && r == 0)
		next(audit);
	return 1;
}

/* -- LAST */

static bool has_rule(const struct nft_link_rules *rules, uint64_t digest)
{
	for (size_t i = 0; i < rules->n; i++)
		if (rules->v[i].digest == digest)
			return true;
	return false;
}

static void put_jump(struct nft_audit *audit, const struct rule *jump, bool base_there)
{
	if (!base_there) {
		nft_link_new_table(audit->link, jump->table);
		nft_link_new_base_chain(audit->link, jump->table, jump->chain);
	}
	nft_link_prepend(audit->link, jump);
}

/* A jump that is anywhere in its base chain is there; else it becomes the first rule. */
static int put_jumps(struct nft_audit *audit, struct err *err)
{
	cleanup_nft_link_rules struct nft_link_rules rules = {0};

	audit->result.n_jumps = 0;
	memset(audit->result.jumps, 0, sizeof(audit->result.jumps));
	for (size_t i = 0; i < RULESET_JUMPS && audit->jumps; i++) {
		struct rule jump;
		bool base_there;
		int r = 0;

		ruleset_jump(i, &jump);
		base_there = has_chain(audit, jump.table, jump.chain);
		rules.n = 0;
		if (base_there)
			r = nft_link_read(audit->link, jump.table, jump.chain, &rules, err);
		if (r < 0)
			return err_wrap(err, r, "reading chain %s of table %s", jump.chain,
					table_name(jump.table));
		if (has_rule(&rules, rule_hash(&jump)))
			continue;
		/* it may not exist when its list is empty; a hook of its own is never refused then */
		put_jump(audit, &jump, base_there && (audit->found || rules.n > 0));
		audit->result.n_jumps++;
		audit->result.jumps[i] = true;
	}
	return 0;
}

static void put_canaries(struct nft_audit *audit)
{
	for (size_t i = 0; i < TABLE_COUNT && audit->all; i++) {
		if (has_chain(audit, (enum table)i, CHAIN_CANARY))
			continue;
		nft_link_new_table(audit->link, (enum table)i);
		nft_link_new_chain(audit->link, (enum table)i, CHAIN_CANARY);
	}
}

static int write_last(void *arg, uint32_t generation, struct err *err)
{
	struct nft_audit *audit = arg;
	int r;

	if (!audit->merged)
		nft_link_reset(audit->link);
	if (looks_at_shared(audit))
		nft_shared_finish(audit->shared);
	nft_link_subject(audit->link, NULL);
	r = put_jumps(audit, err);
	if (r < 0)
		return r;
	put_canaries(audit);
	r = send(audit, generation, err);
	if (audit->merged && (r == -ERESTART || r == -EAGAIN))
		return unmerge(audit);
	if (r < 0)
		return r == -EAGAIN ? 1 : r;
	next(audit);
	return 1;
}

static int step_last(struct nft_audit *audit, const struct ruleset_input *input attr_unused,
		     struct err *err)
{
	return nft_watch_write(audit->link->watch, write_last, audit, err);
}

/* -- STALE */

static void put_stale(struct nft_audit *audit, const struct chain_name *name)
{
	bool held = map_get(&audit->held, name->text);

	array_grow(&audit->stale, &audit->stale_capacity, audit->n_stale, sizeof(*audit->stale));
	audit->stale[audit->n_stale++] = (struct stale){
		.index = nft_batch_count(audit->link->batch),
		.name = *name,
		.deleted = !held,
	};
	nft_link_flush(audit->link, TABLE_NAT, name->text);
	if (!held)
		nft_link_delete_chain(audit->link, TABLE_NAT, name->text);
}

/* Chains of the index lead to each other: all are emptied before the first one is deleted. */
static void empty_stale_index(struct nft_audit *audit)
{
	struct chain_name name;
	struct chain_hash hash;
	enum chain_kind kind;
	size_t at = 0;

	while (nft_found_next_stale(audit->found, &at, &name) &&
	       chain_name_parse(name.text, &kind, &hash) && kind == CHAIN_KIND_INDEX) {
		array_grow(&audit->stale, &audit->stale_capacity, audit->n_stale,
			   sizeof(*audit->stale));
		audit->stale[audit->n_stale++] = (struct stale){
			.index = nft_batch_count(audit->link->batch),
			.name = name,
		};
		nft_link_flush(audit->link, TABLE_NAT, name.text);
	}
}

/* The chain that the message with that index is about. */
static struct stale *find_stale(struct nft_audit *audit, size_t index)
{
	size_t low = 0, high = audit->n_stale;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (audit->stale[middle].index <= index)
			low = middle;
		else
			high = middle;
	}
	return &audit->stale[low];
}

/* One that is held stays; one that is gone needs nothing. Both show as refusals. */
static bool note_refusals(struct nft_audit *audit)
{
	const struct nft_batch_failure *failure = nft_batch_failure(audit->link->batch);

	if (!failure || failure->index == NFT_BATCH_WHOLE || failure->n_refusals == 0)
		return false;
	for (size_t i = 0; i < failure->n_refusals; i++) {
		const struct nft_batch_refusal *refusal = &failure->refusals[i];
		const char *name = find_stale(audit, refusal->index)->name.text;

		if (refusal->error == -ENOENT) {
			nft_found_remove(audit->found, TABLE_NAT, name);
		} else if (refusal->error == -EBUSY && !map_get(&audit->held, name)) {
			char *copy = arena_strdup(audit->names, name);

			map_set(&audit->held, copy, copy);
			audit->events->held(audit->events->arg, name);
		} else {
			return false;
		}
	}
	return true;
}

static void note_deleted(struct nft_audit *audit)
{
	for (size_t i = 0; i < audit->n_stale; i++) {
		if (!audit->stale[i].deleted)
			continue;
		nft_found_remove(audit->found, TABLE_NAT, audit->stale[i].name.text);
		audit->result.n_deleted++;
	}
}

static int step_stale(struct nft_audit *audit, const struct ruleset_input *input attr_unused,
		      struct err *err)
{
	struct chain_name name;
	bool more = true;
	int r;

	if (!audit->found || refused_services_count_waiting(audit->refused) > 0) {
		next(audit);
		return 1;
	}
	audit->n_stale = 0;
	nft_link_reset(audit->link);
	if (audit->at == 0)
		empty_stale_index(audit);
	while (nft_batch_size(audit->link->batch) < NFT_LINK_PIECE &&
	       (more = nft_found_next_stale(audit->found, &audit->at, &name)))
		put_stale(audit, &name);
	r = nft_link_commit(audit->link, 0, err);
	if (r < 0 && note_refusals(audit)) {
		audit->at = audit->piece;
		return 1;
	}
	if (r < 0)
		return nft_batch_uncertain(audit->link->batch) ? -ESTALE : r;
	note_deleted(audit);
	audit->piece = audit->at;
	if (!more)
		next(audit);
	return 1;
}

static int step_done(struct nft_audit *audit attr_unused,
		     const struct ruleset_input *input attr_unused, struct err *err attr_unused)
{
	return 0;
}

/* -- the steps */

static int (*const steps[])(struct nft_audit *audit, const struct ruleset_input *input,
			    struct err *err) = {
	[STEP_LIST] = step_list,   [STEP_HEAD] = step_head, [STEP_OWN] = step_own,
	[STEP_READ] = step_read,   [STEP_ADD] = step_add,   [STEP_LAST] = step_last,
	[STEP_STALE] = step_stale, [STEP_DONE] = step_done,
};
_Static_assert(ARRAY_SIZE(steps) == STEP_COUNT, "a step without its function");

int nft_audit_step(struct nft_audit *audit, const struct ruleset_input *input, struct err *err)
{
	int r = steps[audit->step](audit, input, err);

	return r == 1 && audit->step == STEP_DONE ? 0 : r;
}

/* -- giving way */

void nft_audit_interrupt(struct nft_audit *audit)
{
	size_t n = audit->step == STEP_OWN  ? audit->piece
		   : audit->step > STEP_OWN ? ruleset_n_services(audit->ruleset)
					    : 0;

	drop_piece(audit);
	for (size_t i = 0; i < n && audit->all; i++) {
		char *key = arena_strdup(audit->names, ruleset_service_key(audit->ruleset, i));

		if (!map_get(&audit->seen, key))
			map_set(&audit->seen, key, key);
	}
	if (audit->step > STEP_OWN)
		audit->step = STEP_OWN;
	audit->at = audit->piece = 0;
}

void nft_audit_chain_written(struct nft_audit *audit, enum table table, const char *chain)
{
	if (!audit->found)
		return;
	nft_found_add(audit->found, table, chain);
	if (table == TABLE_NAT)
		nft_found_want(audit->found, chain);
}

void nft_audit_chain_deleted(struct nft_audit *audit, enum table table, const char *chain)
{
	if (audit->found)
		nft_found_remove(audit->found, table, chain);
}
