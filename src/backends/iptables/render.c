/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/render.h"

#include "xtables/restore_writer.h"
#include "xtables/rule_store.h"

const char *const render_formats[] = {
	[RENDER_RESTORE] = "restore",
	[RENDER_SAVE] = "save",
	[RENDER_FORMAT_COUNT] = NULL,
};

static void render_transaction(struct ruleset *ruleset, const struct render_input *input,
			       struct txn *txn)
{
	struct ruleset_stats ignored;
	struct ruleset_input facts = {
		.addresses_known = input->addresses != NULL,
		.addresses = input->addresses,
		.n_addresses = input->n_addresses,
	};

	ruleset_write(ruleset, &facts, txn, &ignored);
}

static void render_restore(struct ruleset *ruleset, const struct render_input *input,
			   struct text *ret)
{
	struct restore_writer writer;

	restore_writer_init(&writer);
	render_transaction(ruleset, input, &writer.txn);
	restore_writer_finish(&writer, ret);
	restore_writer_done(&writer);
}

/* What a full sync does one by one: chains to jump to, the jumps, and the canaries. */
static void render_around(struct rule_store *store)
{
	struct txn *txn = rule_store_txn(store);
	struct rule jump;

	for (size_t i = 0; i < RULESET_JUMPS; i++) {
		ruleset_jump(i, &jump);
		txn_chain(txn, jump.table, jump.target.chain);
		rule_store_prepend(store, &jump);
	}
	for (size_t i = 0; i < TABLE_COUNT; i++)
		txn_chain(txn, (enum table)i, CHAIN_CANARY);
}

static void render_save(struct ruleset *ruleset, const struct render_input *input, struct text *ret)
{
	struct rule_store *store = rule_store_new(input->settings->family);

	render_around(store);
	render_transaction(ruleset, input, rule_store_txn(store));
	rule_store_save(store, ret);
	rule_store_free(store);
}

void render(const struct render_input *input, const struct plan_delta *delta,
	    enum render_format format, struct text *ret)
{
	struct ruleset *ruleset = ruleset_new(input->settings, input->host);
	struct ruleset_begun begun;

	ruleset_begin(ruleset, delta, 0, &begun);
	if (format == RENDER_RESTORE)
		render_restore(ruleset, input, ret);
	else
		render_save(ruleset, input, ret);
	ruleset_end(ruleset, true, 0);
	ruleset_free(ruleset);
}
