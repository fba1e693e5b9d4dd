/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/maps_full.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/nftables/clients.h"
#include "backends/nftables/table.h"
#include "base/log.h"
#include "kernel/nft_batch.h"

void maps_full_done(struct maps_full *full)
{
	batch_owners_done(&full->owners);
}

/* -- writing */

static void delete_stale_chains(const struct maps_full *full, struct batch_writer *writer,
				const struct table_chains *chains)
{
	for (size_t i = 0; i < chains->n; i++)
		if (!state_has_chain(full->state, chains->names[i]))
			batch_writer_delete_chain(writer, chains->names[i]);
}

static void write_full(struct maps_full *full, enum table_kind kind,
		       const struct table_chains *chains, const struct clients *clients)
{
	struct batch_writer writer;

	nft_batch_reset(full->batch);
	batch_writer_init(&writer, full->settings->family, LAYOUT_TABLE, full->batch);
	if (full->by_owner)
		batch_writer_note_owners(&writer, &full->owners);
	if (kind == TABLE_FOREIGN)
		batch_writer_delete_table(&writer);
	batch_writer_table(&writer, LAYOUT_COMMENT);
	if (kind == TABLE_OURS)
		batch_writer_flush_rules(&writer);
	layout_containers(&writer.writer);
	for (enum container i = 0; kind == TABLE_OURS && i < CONTAINER_COUNT; i++)
		if (!container_types[i].dynamic)
			batch_writer_flush_container(&writer, i);
	state_write_chains(full->state, &writer.writer);
	state_write_elements(full->state, &writer.writer);
	full->n_written = writer.n_elements;
	clients_restore(clients, &writer);
	batch_writer_flush(&writer);
	if (kind == TABLE_OURS)
		delete_stale_chains(full, &writer, chains);
	batch_writer_done(&writer);
}

static void find_clients(const struct maps_full *full, struct clients *ret)
{
	enum family family = full->settings->family;
	struct err err;

	if (!full->ids_known)
		return; /* what they were remembered by may mean others now */
	if (clients_find(full->socket, family, full->state, false, ret, &err) == 0)
		return;
	clients_done(ret);
	log_warning("Cannot read the clients of the table that is replaced, affinity starts afresh",
		    KV("ipFamily", LOG_STR(family_name(family))), KV("err", LOG_STR(err.text)));
}

int maps_full_commit(struct maps_full *full, uint32_t generation, struct err *err)
{
	enum family family = full->settings->family;
	cleanup_table_chains struct table_chains chains = {0};
	cleanup_clients struct clients clients = {0};
	enum table_kind kind;
	int r = table_find(full->socket, family, &kind, err);

	if (r == 0 && kind == TABLE_OURS && full->replace) {
		find_clients(full, &clients);
		kind = TABLE_FOREIGN;
	}
	if (r == 0 && kind == TABLE_OURS)
		r = table_list_chains(full->socket, family, &chains, err);
	if (r < 0)
		return r;
	write_full(full, kind, &chains, &clients);
	return nft_batch_commit(full->socket, full->batch, generation, NULL, NULL, err);
}

/* -- whose fault it was */

static bool has_culprit(const struct maps_full_culprit *v, size_t n, const struct port_plan *port)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].port->service == port->service)
			return true;
	return false;
}

static void describe(const struct maps_full *full, const struct nft_batch_refusal *refusal,
		     char out[static 256])
{
	char what[160];

	nft_batch_describe(full->batch, refusal->index, what, sizeof(what));
	snprintf(out, 256, "%s: %s", what, strerror(-refusal->error));
}

size_t maps_full_culprits(const struct maps_full *full, struct maps_full_culprit **ret)
{
	const struct nft_batch_failure *failure = nft_batch_failure(full->batch);
	size_t n_most = state_count_services(full->state) / 2;
	cleanup_free struct maps_full_culprit *v = NULL;
	size_t n = 0, capacity = 0;

	if (!failure || !full->by_owner)
		return 0;
	for (size_t i = 0; i < failure->n_refusals; i++) {
		const struct nft_batch_refusal *refusal = &failure->refusals[i];
		const struct port_plan *port = batch_owners_find(&full->owners, refusal->index);

		if (port && has_culprit(v, n, port))
			continue;
		if (!port || (n == n_most && !full->replace))
			return 0;
		array_grow(&v, &capacity, n, sizeof(*v));
		v[n].port = port;
		describe(full, refusal, v[n++].reason);
	}
	*ret = take(v);
	return n;
}
