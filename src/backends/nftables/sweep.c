/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/sweep.h"

#include <errno.h>
#include <stdlib.h>

#include "backends/nftables/batch_writer.h"
#include "backends/nftables/members.h"
#include "backends/nftables/table.h"
#include "kernel/nft_batch.h"

/*
 * An entry may time out between our reading it and its removal, and then the kernel refuses the
 * whole transaction. So it is tried again, and what is left after that dies within its time-out:
 * nothing renews it, since it is no member any more.
 */
#define ATTEMPTS 5

struct known {
	uint32_t id;
	const struct port_plan *port;
};

struct sweeping {
	enum container container;
	struct known *known; /* sorted by id */
	size_t n_known, capacity;
	struct element_list stale;
};

static void note_known(void *arg, uint32_t id, const struct port_plan *port)
{
	struct sweeping *sweeping = arg;

	array_grow(&sweeping->known, &sweeping->capacity, sweeping->n_known,
		   sizeof(*sweeping->known));
	sweeping->known[sweeping->n_known++] = (struct known){id, port};
}

static int compare_known(const void *left, const void *right)
{
	const struct known *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

static bool is_member(const struct sweeping *sweeping, const struct table_client *client)
{
	const struct known wanted = {.id = client->id};
	const struct known *known = NULL;

	if (sweeping->n_known > 0)
		known = bsearch(&wanted, sweeping->known, sweeping->n_known, sizeof(wanted),
				compare_known);
	return known &&
	       members_have(known->port, sweeping->container, &client->endpoint, client->port);
}

static void take_client(void *arg, const struct table_client *client)
{
	struct sweeping *sweeping = arg;
	struct element element;

	if (is_member(sweeping, client))
		return;
	element_begin(&element, sweeping->container);
	element_key_addr(&element, &client->client);
	element_key_number(&element, client->id);
	element_list_add(&sweeping->stale, &element);
}

static void restart(void *arg)
{
	struct sweeping *sweeping = arg;

	sweeping->stale.n = 0;
}

static int forget(struct nft_socket *socket, struct nft_batch *batch, enum family family,
		  struct sweeping *sweeping, struct err *err)
{
	struct batch_writer writer;
	int r;

	element_list_sort(&sweeping->stale);
	batch_writer_init(&writer, family, LAYOUT_TABLE, batch);
	for (size_t i = 0; i < sweeping->stale.n; i++)
		writer.writer.ops->remove(&writer.writer, &sweeping->stale.v[i]);
	batch_writer_flush(&writer);
	batch_writer_done(&writer);
	r = nft_batch_commit(socket, batch, 0, NULL, NULL, err);
	nft_batch_reset(batch);
	return r;
}

static int sweep_container(struct nft_socket *socket, struct nft_batch *batch, enum family family,
			   struct sweeping *sweeping, struct err *err)
{
	int r = -ENOENT;

	for (int i = 0; r == -ENOENT && i < ATTEMPTS; i++) {
		sweeping->stale.n = 0;
		r = table_each_client(socket, family, sweeping->container, take_client, restart,
				      sweeping, err);
		if (r == 0)
			r = forget(socket, batch, family, sweeping, err);
	}
	return r < 0 ? r : (int)sweeping->stale.n;
}

int sweep(struct nft_socket *socket, struct nft_batch *batch, enum family family,
	  struct state *state, struct err *err)
{
	struct sweeping sweeping = {.container = CONTAINER_AFFINITY};
	int r, n = 0;

	state_each_affinity(state, note_known, &sweeping);
	if (sweeping.n_known > 1)
		qsort(sweeping.known, sweeping.n_known, sizeof(*sweeping.known), compare_known);
	r = sweep_container(socket, batch, family, &sweeping, err);
	if (r >= 0) {
		n = r;
		sweeping.container = CONTAINER_LOCAL_AFFINITY;
		r = sweep_container(socket, batch, family, &sweeping, err);
	}
	free(sweeping.known);
	element_list_done(&sweeping.stale);
	return r < 0 ? r : n + r;
}
