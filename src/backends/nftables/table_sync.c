/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/table_sync.h"

#include <errno.h>
#include <stdlib.h>

#include "backends/nftables/batch_writer.h"
#include "backends/nftables/clients.h"
#include "backends/nftables/table.h"
#include "backends/nftables/table_full.h"
#include "backends/nftables/table_repair.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/interfaces.h"
#include "kernel/nft_batch.h"
#include "kernel/nft_socket.h"
#include "kernel/nft_watch.h"

/* So often a full sync is written again with less, or otherwise, after it was refused. */
#define ROUNDS 6

struct table_sync {
	struct nft_watch *watch;
	struct nft_socket *socket;
	const struct settings *settings;
	const struct backend_events *const *events;
	table_sync_applied_fn *applied; /* NULL: the owner does not ask */
	void *applied_arg;
	struct state *state;
	struct nft_batch *batch;
	struct table_full full;
	struct refused_services refused;
	bool need_full;
	struct damage *damage; /* by others, not repaired yet */
	size_t n_repaired;     /* elements, in this sync */
	bool ids_asked;        /* what a former life left has been read */
	struct full_clients full_clients;
	size_t n_written;
	size_t cleanup_failures; /* that no result has told yet */
	struct addr *addresses;  /* of this host's interfaces, as last read */
	size_t n_addresses;
	bool blind; /* they could not be read the last time */
};

struct table_sync *table_sync_new(struct nft_watch *watch, struct damage *damage,
				  const struct settings *settings,
				  const struct backend_events *const *events)
{
	struct nft_socket *socket = nft_session_socket(nft_watch_session(watch));
	struct table_sync *sync = xcalloc(1, sizeof(*sync));

	*sync = (struct table_sync){
		.watch = watch,
		.socket = socket,
		.damage = damage,
		.settings = settings,
		.events = events,
		.state = state_new(settings),
		.batch = nft_batch_new(),
		.need_full = true,
		.refused = {.family = settings->family, .events = events},
	};
	sync->full = (struct table_full){
		.settings = settings,
		.socket = socket,
		.batch = sync->batch,
		.state = sync->state,
	};
	return sync;
}

struct table_sync *table_sync_free(struct table_sync *sync)
{
	if (!sync)
		return NULL;
	state_free(sync->state);
	nft_batch_free(sync->batch);
	free(sync->addresses);
	table_full_done(&sync->full);
	refused_services_done(&sync->refused);
	full_clients_done(&sync->full_clients);
	free(sync);
	return NULL;
}

void table_sync_on_applied(struct table_sync *sync, table_sync_applied_fn *fn, void *arg)
{
	sync->applied = fn;
	sync->applied_arg = arg;
}

void table_sync_need_full(struct table_sync *sync)
{
	sync->need_full = true;
}

const struct refused_services *table_sync_refused(const struct table_sync *sync)
{
	return &sync->refused;
}

/* Did the kernel mind what was asked for, or could it not do it just now? */
static bool was_refused(const struct table_sync *sync, int r)
{
	return nft_batch_failure(sync->batch) && r != -ERESTART && r != -ENOMEM && r != -EPERM &&
	       r != -ECANCELED;
}

/* -- a full one */

static int send_full(void *arg, uint32_t generation, struct err *err)
{
	struct table_sync *sync = arg;
	int r;

	if (sync->full.clients_until_ns == 0) /* the first round: the wait for our turn is over */
		sync->full.clients_until_ns = clock_now_ns() + CLIENTS_READ_NS;
	nft_watch_found(sync->watch);
	sync->need_full = false;
	*sync->damage = (struct damage){0};
	r = table_full_commit(&sync->full, generation, err);
	return MIN(r, 0);
}

/* A Service that is to blame stays as it was in the next round, or is left out of it. */
static size_t leave_out(struct table_sync *sync)
{
	cleanup_free struct table_full_culprit *v = NULL;
	size_t n = table_full_culprits(&sync->full, &v);

	for (size_t i = 0; i < n; i++) {
		const char *key = v[i].port->service->key;
		const struct backend_refusal refusal = {
			.service = key,
			.port = v[i].port->id,
			.reason = v[i].reason,
			.kept = state_can_keep(sync->state, key),
		};

		refused_services_add(&sync->refused, &refusal, sync->refused.now_ns);
	}
	return n;
}

/* After a refusal: can something be said otherwise? */
static bool try_otherwise(struct table_sync *sync, const struct err *err)
{
	if (!sync->full.by_owner)
		return sync->full.by_owner = true;
	if (leave_out(sync) > 0)
		return true;
	if (sync->full.replace)
		return false;
	log_warning("The table cannot be brought to what it should be, replacing it",
		    KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
		    KV("err", LOG_STR(err->text)));
	return sync->full.replace = true;
}

static int run_full(struct table_sync *sync, const struct state_input *input, struct err *err)
{
	int r;

	sync->full.by_owner = sync->full.replace = false;
	sync->full.clients_until_ns = 0;
	for (int i = 0;; i++) {
		state_begin(sync->state, input);
		r = nft_watch_write(sync->watch, send_full, sync, err);
		if (r == 0 || i == ROUNDS || !was_refused(sync, r) || !try_otherwise(sync, err))
			break;
	}
	sync->n_written = sync->full.n_written;
	return r;
}

/* -- any other */

static int send_batch(const struct table_sync *sync, uint32_t generation, struct err *err)
{
	int r = nft_batch_commit(sync->socket, sync->batch, generation, NULL, NULL, err);

	return MIN(r, 0);
}

/* -ESTALE: another program has touched the table. */
static int send_delta(void *arg, uint32_t generation, struct err *err)
{
	const struct table_sync *sync = arg;

	if (sync->damage->any)
		return err_set(err, -ESTALE, "another program has changed the table");
	return send_batch(sync, generation, err);
}

static void begin_batch(const struct table_sync *sync, struct batch_writer *writer)
{
	nft_batch_reset(sync->batch);
	batch_writer_init(writer, sync->settings->family, LAYOUT_TABLE, sync->batch);
}

static void end_batch(struct batch_writer *writer)
{
	batch_writer_flush(writer);
	batch_writer_done(writer);
}

static void flush_chain(struct writer *writer, struct chain chain)
{
	batch_writer_flush_chain((struct batch_writer *)writer, chain);
}

static void delete_chain(struct writer *writer, struct chain chain)
{
	char name[CHAIN_NAME_MAX];

	chain_name(chain, name);
	batch_writer_delete_chain((struct batch_writer *)writer, name);
}

static void delete_clients(struct writer *writer, enum container container, uint32_t number)
{
	batch_writer_delete_clients((struct batch_writer *)writer, container, number);
}

static const struct state_delta_ops delta_ops = {flush_chain, delete_chain, delete_clients};

static int run_delta(struct table_sync *sync, const struct state_input *input, struct err *err)
{
	struct batch_writer writer;

	state_begin(sync->state, input);
	begin_batch(sync, &writer);
	state_write_delta(sync->state, &writer.writer, &delta_ops);
	sync->n_written = writer.n_elements;
	batch_writer_flush(&writer);
	state_write_departed(sync->state, &writer.writer, &delta_ops);
	end_batch(&writer);
	return nft_watch_write(sync->watch, send_delta, sync, err);
}

/* -- a repair */

static bool write_repair(struct table_sync *sync, size_t *ret_n)
{
	struct batch_writer writer;
	bool possible;

	begin_batch(sync, &writer);
	possible = table_repair_write(sync->damage, sync->state, &writer);
	*ret_n = writer.n_elements;
	end_batch(&writer);
	return possible;
}

/* -ESTALE: it takes a full sync. */
static int send_repair(void *arg, uint32_t generation, struct err *err)
{
	struct table_sync *sync = arg;
	size_t n;
	int r;

	if (generation == 0)
		return err_set(err, -ESTALE, "another program changes the table again and again");
	if (!write_repair(sync, &n))
		return err_set(err, -ESTALE, "another program has changed too much");
	r = send_batch(sync, generation, err);
	if (r < 0)
		return r;
	nft_watch_found(sync->watch);
	*sync->damage = (struct damage){0};
	sync->n_repaired = n;
	return 0;
}

/* -- both */

/* Addresses of interfaces, for node ports that are limited to some; those last known while they cannot be read. */
static void find_addresses(struct table_sync *sync)
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
static void find_ids(struct table_sync *sync)
{
	enum family family = sync->settings->family;
	enum table_kind kind;
	struct err err;
	int r;

	if (sync->ids_asked)
		return;
	sync->ids_asked = true;
	r = table_find(sync->socket, family, &kind, &err);
	if (r == 0 && kind == TABLE_OURS)
		r = table_find_ids(sync->socket, family, state_affinity_ids(sync->state), &err);
	sync->full.ids_known = r == 0;
	if (r < 0)
		log_warning("Cannot read what clients were promised, affinity starts afresh",
			    KV("ipFamily", LOG_STR(family_name(family))),
			    KV("err", LOG_STR(err.text)));
}

static void end(struct table_sync *sync, bool full, int r)
{
	nft_batch_reset(sync->batch);
	if (r == 0 && sync->applied)
		sync->applied(sync->applied_arg, sync->state, full);
	state_end(sync->state, r == 0);
	if (r == 0) {
		refused_services_accept(&sync->refused);
		sync->full.ids_known = true;
	} else {
		sync->need_full = true;
	}
}

/* A difference that cannot be written makes everything be written, at once. */
static int run(struct table_sync *sync, struct state_input *input, struct err *err)
{
	int r = 0;

	if (!input->full) {
		nft_watch_hear(sync->watch);
		if (sync->damage->any)
			r = nft_watch_write(sync->watch, send_repair, sync, err);
		if (r == 0)
			r = run_delta(sync, input, err);
		if (r < 0 && (r == -ESTALE || was_refused(sync, r))) {
			log_debug(2, "A difference cannot be written, writing everything",
				  KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
				  KV("err", LOG_STR(err->text)));
			input->full = true;
		}
	}
	if (input->full)
		r = run_full(sync, input, err);
	end(sync, input->full, r);
	return r;
}

void table_sync_run(struct table_sync *sync, const struct plan_delta *delta,
		    struct backend_result *ret)
{
	struct state_input input = {
		.delta = delta,
		.full = sync->need_full || delta->full,
		.refused = &sync->refused,
	};
	int64_t start = clock_now_ns();

	find_addresses(sync);
	input.addresses = sync->addresses;
	input.n_addresses = sync->n_addresses;

	*ret = (struct backend_result){0};
	find_ids(sync);
	sync->n_repaired = 0;
	refused_services_begin(&sync->refused, delta, start);
	ret->error = run(sync, &input, &ret->err);
	ret->full = input.full;
	ret->rules = sync->n_written + sync->n_repaired;
	ret->write_failed = ret->error < 0;
	ret->cleanup_failures = sync->cleanup_failures;
	sync->cleanup_failures = 0;
	ret->duration_ns = clock_now_ns() - start;
}

/* -- what no Service uses */

bool table_sync_idle(const struct table_sync *sync)
{
	return !sync->need_full && state_has_idle(sync->state);
}

static void remove_chain(void *arg, struct chain chain)
{
	delete_chain(arg, chain);
}

static void remove_element(void *arg, const struct element *element)
{
	struct writer *writer = arg;

	writer->ops->remove(writer, element);
}

bool table_sync_age(struct table_sync *sync)
{
	struct batch_writer writer;
	struct err err;
	int r;

	nft_watch_hear(sync->watch);
	if (sync->need_full || sync->damage->any)
		return false;
	begin_batch(sync, &writer);
	state_age(sync->state, remove_chain, remove_element, &writer);
	end_batch(&writer);
	r = nft_watch_write(sync->watch, send_delta, sync, &err);
	if (r < 0) {
		sync->need_full = true;                 /* which removes them too */
		sync->cleanup_failures += r != -ESTALE; /* which was not even tried */
		log_debug(2, "Cannot remove what is out of use, the next sync is full",
			  KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
			  KV("err", LOG_STR(err.text)));
	}
	nft_batch_reset(sync->batch);
	return !sync->need_full;
}

/* -- full maps of clients */

bool table_sync_has_affinity(const struct table_sync *sync)
{
	return state_count_affinity(sync->state) > 0;
}

static void tell_full(void *arg, const struct backend_full *full)
{
	const struct backend_events *events = *((const struct table_sync *)arg)->events;

	if (events->clients_full)
		events->clients_full(events->arg, full);
}

int table_sync_look_for_full(struct table_sync *sync)
{
	struct err err;
	int r;

	if (sync->need_full)
		return -EAGAIN; /* what ids mean is not known before that */
	r = full_clients_look(&sync->full_clients, sync->socket, sync->state, sync->settings,
			      tell_full, sync, &err);
	if (r < 0)
		log_debug(2, "Cannot look for full maps of clients",
			  KV("ipFamily", LOG_STR(family_name(sync->settings->family))),
			  KV("err", LOG_STR(err.text)));
	return r;
}

int table_sync_delete(struct nft_socket *socket, enum family family, struct err *err)
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
		return 0; /* another program was quicker */
	return r < 0 ? r : 1;
}
