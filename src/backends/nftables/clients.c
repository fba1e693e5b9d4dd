/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/clients.h"

#include <errno.h>
#include <stdlib.h>

#include "backends/nftables/batch_writer.h"

void clients_done(struct clients *clients)
{
	free(clients->v);
	*clients = (struct clients){0};
}

struct reading {
	const struct table_map *map;
	struct clients *found;
	size_t n_before; /* what the list held when this map was begun */
	size_t most;
	int64_t deadline_ns;
};

static int take_client(void *arg, const struct table_client *client)
{
	const struct reading *reading = arg;
	struct clients *found = reading->found;

	if (found->n - reading->n_before == reading->most)
		return -ENOSPC;
	if (found->n % 256 == 0 && clock_now_ns() > reading->deadline_ns)
		return -ETIME;
	array_grow(&found->v, &found->capacity, found->n, sizeof(*found->v));
	found->v[found->n++] =
		(struct remembered){reading->map->container, reading->map->number, *client};
	return 0;
}

static void restart(void *arg)
{
	const struct reading *reading = arg;

	reading->found->n = reading->n_before;
}

void clients_read(struct nft_socket *socket, enum family family, const struct table_map *map,
		  size_t most, int64_t deadline_ns, struct clients *ret)
{
	struct reading reading = {map, ret, ret->n, most, deadline_ns};
	int r = -ETIME;

	if (clock_now_ns() > deadline_ns)
		err_set(&ret->err, r, "there are too many of them");
	else
		r = table_each_client(socket, family, map, take_client, restart, &reading,
				      &ret->err);
	ret->n_unread += r < 0 && r != -ENOSPC;
}

static int compare(const void *left, const void *right)
{
	const struct remembered *a = left, *b = right;

	if (a->container != b->container)
		return a->container < b->container ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return addr_compare(&a->client.addr, &b->client.addr);
}

/* A list that was read while the kernel moved its elements may hold one twice. */
void clients_restore(struct clients *clients, struct batch_writer *writer)
{
	if (clients->n > 1)
		qsort(clients->v, clients->n, sizeof(*clients->v), compare);
	for (size_t i = 0; i < clients->n; i++) {
		const struct remembered *one = &clients->v[i];

		if (one->client.expires_ms == 0 || (i > 0 && compare(one - 1, one) == 0))
			continue;
		batch_writer_add_client(writer, &(struct batch_client){
							.container = one->container,
							.number = one->number,
							.addr = one->client.addr,
							.endpoint = one->client.endpoint,
							.timeout_ms = one->client.timeout_ms,
							.expires_ms = one->client.expires_ms,
						});
	}
}
