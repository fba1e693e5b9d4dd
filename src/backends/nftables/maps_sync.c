/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/maps_sync.h"

#include <errno.h>
#include <stdlib.h>

#include "backends/nftables/batch_writer.h"
#include "backends/nftables/sweep.h"
#include "backends/nftables/table.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/interfaces.h"
#include "kernel/nft_batch.h"
#include "kernel/nft_socket.h"

/* So often others may come between before we stop asking whether they did. */
#define ATTEMPTS 5

struct maps_sync {
	struct nft_socket *socket;
	const struct settings *settings;
	struct maps_sync_ops ops;
	struct state *state;
	struct nft_batch *batch;
	bool need_full;
	bool ids_found; /* what a former life left has been read */
	size_t n_written;
	struct addr *addresses; /* of this host's interfaces, as last read */
	size_t n_addresses;
	bool blind; /* they could not be read the last time */
};

struct maps_sync *maps_sync_new(struct nft_socket *socket, const struct settings *settings,
				const struct maps_sync_ops *ops)
{
	struct maps_sync *sync = xcalloc(1, sizeof(*sync));

	*sync = (struct maps_sync){
		.socket = socket,
		.settings = settings,
		.ops = *ops,
		.state = state_new(settings),
		.batch = nft_batch_new(),
		.need_full = true,
	};
	return sync;
}

struct maps_sync *maps_sync_free(struct maps_sync *sync)
{
	if (!sync)
		return NULL;
	state_free(sync->state);
	nft_batch_free(sync->batch);
	free(sync->addresses);
	free(sync);
	return NULL;
}

void maps_sync_need_full(struct maps_sync *sync)
{
	sync->need_full = true;
}

/* -- a full one */

static void delete_stale_chains(const struct maps_sync *sync, struct batch_writer *writer,
				const struct table_chains *chains)
{
	for (size_t i = 0; i < chains->n; i++)
		if (!state_has_chain(sync->state, chains->names[i]))
			batch_writer_delete_chain(writer, chains->names[i]);
}

static void write_full(struct maps_sync *sync, enum table_kind kind,
		       const struct table_chains *chains)
{
	struct batch_writer writer;

	nft_batch_reset(sync->batch);
	batch_writer_init(&writer, sync->settings->family, LAYOUT_TABLE, sync->batch);
	if (kind == TABLE_FOREIGN)
		batch_writer_delete_table(&writer);
	batch_writer_table(&writer, LAYOUT_COMMENT);
	if (kind == TABLE_OURS)
		batch_writer_flush_rules(&writer);
	layout_containers(&writer.writer);
	for (enum container i = 0; kind == TABLE_OURS && i < CONTAINER_COUNT; i++)
		if (!container_types[i].dynamic)
			batch_writer_flush_container(&writer, i);
	state_write_chains(sync->state, &writer.writer);
	state_write_elements(sync->state, &writer.writer);
	batch_writer_flush(&writer);
	if (kind == TABLE_OURS)
		delete_stale_chains(sync, &writer, chains);
	sync->n_written = writer.n_elements;
	batch_writer_done(&writer);
}

/*
 * A table that carries our comment may still have been bent by hand so that it cannot be emptied
 * and filled again: then it is replaced as a whole, and the clients that it remembered are lost.
 */
static int commit_full(struct maps_sync *sync, uint32_t generation, struct err *err)
{
	cleanup_table_chains struct table_chains chains = {0};
	enum table_kind kind;
	int r = table_find(sync->socket, sync->settings->family, &kind, err);

	if (r == 0 && kind == TABLE_OURS)
		r = table_list_chains(sync->socket, sync->settings->family, &chains, err);
	if (r < 0)
		return r;
	write_full(sync, kind, &chains);
	r = nft_batch_commit(sync->socket, sync->batch, generation, NULL, NULL, err);
	if (r >= 0 || r == -ERESTART || kind != TABLE_OURS)
		return r;
	log_warning("The table cannot be brought to what it should be, replacing it",
		    KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
		    KV("err", LOG_STR(err->text)));
	write_full(sync, TABLE_FOREIGN, NULL);
	return nft_batch_commit(sync->socket, sync->batch, generation, NULL, NULL, err);
}

/* -- any other */

static void flush_chain(struct writer *writer, struct chain chain)
{
	batch_writer_flush_chain((struct batch_writer *)writer, chain);
}

static void write_delta(struct maps_sync *sync)
{
	struct batch_writer writer;

	nft_batch_reset(sync->batch);
	batch_writer_init(&writer, sync->settings->family, LAYOUT_TABLE, sync->batch);
	state_write_delta(sync->state, &writer.writer, flush_chain);
	batch_writer_flush(&writer);
	sync->n_written = writer.n_elements;
	batch_writer_done(&writer);
}

/* -- both */

/* What the transaction stands on: nobody has touched our table up to that generation. */
static int find_ground(struct maps_sync *sync, int attempt, uint32_t *ret, struct err *err)
{
	int r = nft_generation(sync->socket, ret, err);

	if (r < 0)
		return r;
	if (sync->ops.foreign(sync->ops.arg))
		sync->need_full = true;
	if (attempt == ATTEMPTS - 1)
		*ret = 0;
	return 0;
}

/* A delta that finds the table touched gives up with -ESTALE. */
static int commit(struct maps_sync *sync, bool full, struct err *err)
{
	int r = -ERESTART;

	if (!full)
		write_delta(sync);
	for (int i = 0; r == -ERESTART && i < ATTEMPTS; i++) {
		uint32_t generation;

		r = find_ground(sync, i, &generation, err);
		if (r < 0)
			return r;
		if (!full && sync->need_full)
			return err_set(err, -ESTALE, "somebody else has changed the table");
		sync->need_full = false;
		r = full ? commit_full(sync, generation, err)
			 : nft_batch_commit(sync->socket, sync->batch, generation, NULL, NULL, err);
	}
	return r < 0 ? r : 0;
}

/* Addresses of interfaces, for node ports that are limited to some; those last known while they cannot be read. */
static void find_addresses(struct maps_sync *sync)
{
	struct addr *addresses;
	struct err err;
	size_t n;

	if (sync->settings->node_ports.match_all)
		return;
	if (interfaces_addresses(sync->settings->family, &addresses, &n, &err) == 0) {
		free(sync->addresses);
		sync->addresses = addresses;
		sync->n_addresses = n;
		sync->blind = false;
		return;
	}
	if (!sync->blind)
		log_error(sync->n_addresses > 0
				  ? "Cannot read the addresses of this host, NodePorts stay where "
				    "they are"
				  : "Cannot read the addresses of this host, NodePorts may not be "
				    "answered",
			  KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
			  KV("err", LOG_STR(err.text)));
	sync->blind = true;
}

/* Clients keep their endpoints over a restart of ours. */
static void find_ids(struct maps_sync *sync)
{
	enum family family = sync->settings->family;
	enum table_kind kind;
	struct err err;
	int r;

	if (sync->ids_found)
		return;
	sync->ids_found = true;
	r = table_find(sync->socket, family, &kind, &err);
	if (r == 0 && kind == TABLE_OURS)
		r = table_find_ids(sync->socket, family, state_affinity_ids(sync->state), &err);
	if (r < 0)
		log_warning("Cannot read what clients were promised, affinity starts afresh",
			    KV("ipFamily", LOG_STR(family_name(family))),
			    KV("err", LOG_STR(err.text)));
}

static void forget_clients(struct maps_sync *sync)
{
	struct err err;
	int r;

	if (!state_lost_members(sync->state))
		return;
	r = sweep(sync->socket, sync->batch, sync->settings->family, sync->state, &err);
	if (r < 0)
		log_warning("Cannot forget clients of endpoints that are gone, they time out",
			    KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
			    KV("err", LOG_STR(err.text)));
	else if (r > 0)
		log_debug(2, "Forgot clients of endpoints that are gone",
			  KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
			  KV("clients", LOG_INT(r)));
}

static int run(struct maps_sync *sync, const struct model *model,
	       const struct model_changes *changes, bool full, struct backend_result *ret)
{
	int r;

	find_addresses(sync);
	state_begin(sync->state, model, changes, full, sync->addresses, sync->n_addresses);
	r = commit(sync, full, &ret->err);
	nft_batch_reset(sync->batch);
	state_end(sync->state, r == 0, sync->ops.conflict, sync->ops.arg);
	if (r == 0)
		forget_clients(sync);
	else
		sync->need_full = true;
	ret->full = full;
	ret->rules = sync->n_written;
	state_count_no_local(sync->state, &ret->no_local_internal, &ret->no_local_external);
	return r;
}

void maps_sync_run(struct maps_sync *sync, const struct model *model,
		   const struct model_changes *changes, struct backend_result *ret)
{
	int64_t start = clock_now_ns();

	*ret = (struct backend_result){.services = changes->n_services, .changes = changes};
	find_ids(sync);
	ret->error = run(sync, model, changes, sync->need_full, ret);
	if (ret->error == -ESTALE)
		ret->error = run(sync, model, changes, true, ret);
	ret->write_failed = ret->error < 0;
	ret->duration_ns = clock_now_ns() - start;
}

int maps_sync_delete(struct nft_socket *socket, enum family family, struct err *err)
{
	cleanup_nft_batch struct nft_batch *batch = nft_batch_new();
	struct batch_writer writer;
	enum table_kind kind;
	int r = table_find(socket, family, &kind, err);

	if (r == -EINVAL || r == -EOPNOTSUPP)
		return 0; /* no nf_tables in this kernel */
	if (r < 0 || kind == TABLE_ABSENT)
		return r;
	batch_writer_init(&writer, family, LAYOUT_TABLE, batch);
	batch_writer_delete_table(&writer);
	batch_writer_done(&writer);
	r = nft_batch_commit(socket, batch, 0, NULL, NULL, err);
	if (r == -ENOENT)
		return 0; /* somebody else was quicker */
	return r < 0 ? r : 1;
}
