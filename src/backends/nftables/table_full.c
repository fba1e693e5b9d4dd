/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/table_full.h"

#include <stdlib.h>

#include "backends/nftables/clients.h"
#include "backends/nftables/localhost/localhost_policy.h"
#include "backends/nftables/table.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/nft_batch.h"

void table_full_done(struct table_full *full)
{
	batch_owners_done(&full->owners);
}

/* -- writing */

static void delete_stale_chains(const struct table_full *full, struct batch_writer *writer,
				const struct table_chains *chains)
{
	for (size_t i = 0; i < chains->n; i++)
		if (!state_has_chain(full->state, chains->names[i]))
			batch_writer_delete_chain(writer, chains->names[i]);
}

/* An older kernel does not heed a size above its own: its maps are as they should be. */
static bool has_right_size(const struct table_full *full, const struct table_map *map)
{
	uint32_t wanted = full->settings->mode.affinity_clients;

	return map->size == wanted || (map->size == CONTAINER_KERNEL_SIZE &&
				       (wanted == 0 || wanted > CONTAINER_KERNEL_SIZE));
}

/* Those that are not wanted, and those that are made anew because of their size: no rule uses them now. */
static void delete_maps(const struct table_full *full, struct batch_writer *writer,
			const struct table_maps *maps, bool stale)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct table_map *map = &maps->v[i];
		bool wanted = state_has_clients(full->state, map->container, map->number);

		if (stale ? !wanted : wanted && !has_right_size(full, map))
			batch_writer_delete_clients(writer, map->container, map->number);
	}
}

/* What was found, and is to be written. */
struct found {
	enum table_kind kind;
	struct table_counters counters;
	struct table_chains chains;
	struct table_maps maps;
	struct clients clients; /* whose maps are made anew */
};

static void found_done(struct found *found)
{
	table_chains_done(&found->chains);
	table_maps_done(&found->maps);
	clients_done(&found->clients);
}

/* What only some settings ask for, and these do not. No rule uses it now; the map's elements still lead to chains. */
static void delete_unasked(const struct table_full *full, struct batch_writer *writer,
			   const struct found *found)
{
	if (found->maps.localhost_rejects &&
	    !layout_has_container(full->settings, CONTAINER_LOCALHOST_REJECTS))
		batch_writer_delete_container(writer, CONTAINER_LOCALHOST_REJECTS);
	for (enum protocol i = 0; i < PROTOCOL_COUNT; i++)
		if (found->counters.there[i] && !localhost_is_refused(full->settings, i))
			batch_writer_delete_counter(writer, i);
}

static void write_full(struct table_full *full, struct found *found)
{
	enum table_kind kind = found->kind;
	struct batch_writer writer;

	nft_batch_reset(full->batch);
	batch_writer_init(&writer, full->settings->family, LAYOUT_TABLE, full->batch);
	if (full->by_owner)
		batch_writer_note_owners(&writer, &full->owners);
	if (kind == TABLE_FOREIGN)
		batch_writer_delete_table(&writer);
	batch_writer_table(&writer, LAYOUT_COMMENT);
	if (kind == TABLE_OURS) {
		batch_writer_flush_rules(&writer);
		delete_maps(full, &writer, &found->maps, false);
	}
	layout_containers(&writer.writer, full->settings);
	for (enum container i = 0; kind == TABLE_OURS && i < CONTAINER_FIXED_COUNT; i++)
		if (!container_types[i].dynamic && layout_has_container(full->settings, i))
			batch_writer_flush_container(&writer, i);
	state_write_chains(full->state, &writer.writer);
	state_write_elements(full->state, &writer.writer);
	full->n_written = writer.n_elements;
	clients_restore(&found->clients, &writer);
	batch_writer_flush(&writer);
	if (kind == TABLE_OURS) {
		delete_unasked(full, &writer, found);
		delete_stale_chains(full, &writer, &found->chains);
		delete_maps(full, &writer, &found->maps, true);
	}
	batch_writer_done(&writer);
}

/* Clients of maps that are made anew: of all, when the table is, else of those whose size is to be another. */
static void find_clients(const struct table_full *full, struct found *found, bool all)
{
	enum family family = full->settings->family;
	uint32_t size = full->settings->mode.affinity_clients;
	uint32_t most = size > 0 ? MIN(size, CONTAINER_KERNEL_SIZE) : CONTAINER_KERNEL_SIZE;

	for (size_t i = 0; i < found->maps.n; i++) {
		const struct table_map *map = &found->maps.v[i];

		if (state_has_clients(full->state, map->container, map->number) &&
		    (all || !has_right_size(full, map)))
			clients_read(full->socket, family, map, most, full->clients_until_ns,
				     &found->clients);
	}
	if (found->clients.n_unread > 0)
		log_warning("Cannot read the clients of maps that are replaced, their affinity "
			    "starts afresh",
			    KV("ipFamily", LOG_STR(family_name(family))),
			    KV("maps", LOG_INT((int64_t)found->clients.n_unread)),
			    KV("err", LOG_STR(found->clients.err.text)));
}

static int look(const struct table_full *full, struct found *found, struct err *err)
{
	enum family family = full->settings->family;
	bool replace = full->replace || !full->ids_known;
	int r = table_find(full->socket, family, &found->kind, err);

	if (r < 0 || found->kind == TABLE_ABSENT)
		return r;
	if (found->kind == TABLE_OTHER_LAYOUT)
		log_info("Another version has laid out the table, replacing it: affinity starts "
			 "afresh",
			 KV("ipFamily", LOG_STR(family_name(family))));
	if (found->kind == TABLE_OURS)
		r = table_list_maps(full->socket, family, &found->maps, err);
	if (r == 0 && found->kind == TABLE_OURS)
		r = table_read_counters(full->socket, family, &found->counters, err);
	if (r == 0 && found->kind == TABLE_OURS && !replace)
		r = table_list_chains(full->socket, family, &found->chains, err);
	if (r == 0 && found->kind == TABLE_OURS && full->ids_known)
		find_clients(full, found, replace);
	if (found->kind != TABLE_OURS || replace)
		found->kind = TABLE_FOREIGN;
	return r;
}

int table_full_commit(struct table_full *full, uint32_t generation, struct err *err)
{
	attr_cleanup(found_done) struct found found = {.kind = TABLE_ABSENT};
	int r = look(full, &found, err);

	if (r < 0)
		return r;
	write_full(full, &found);
	return nft_batch_commit(full->socket, full->batch, generation, NULL, NULL, err);
}

/* -- whose fault it was */

static bool has_culprit(const struct table_full_culprit *v, size_t n, const struct port_plan *port)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].port->service == port->service)
			return true;
	return false;
}

size_t table_full_culprits(const struct table_full *full, struct table_full_culprit **ret)
{
	const struct nft_batch_failure *failure = nft_batch_failure(full->batch);
	size_t n_most = state_count_services(full->state) / 2;
	cleanup_free struct table_full_culprit *v = NULL;
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
		nft_batch_reason(full->batch, refusal, v[n].reason, sizeof(v[n].reason));
		n++;
	}
	*ret = take(v);
	return n;
}
