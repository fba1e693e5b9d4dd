/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/clients.h"

#include <stdlib.h>

#include "backends/nftables/batch_writer.h"
#include "backends/nftables/members.h"

struct known {
	uint32_t id;
	const struct port_plan *port;
};

struct finding {
	enum container container;
	bool stale;
	struct known *known; /* sorted by id */
	size_t n_known, capacity;
	size_t n_before; /* what the list held when this container was begun */
	struct clients *found;
};

void clients_done(struct clients *clients)
{
	free(clients->v);
	*clients = (struct clients){0};
}

static void note_known(void *arg, uint32_t id, const struct port_plan *port)
{
	struct finding *finding = arg;

	array_grow(&finding->known, &finding->capacity, finding->n_known, sizeof(*finding->known));
	finding->known[finding->n_known++] = (struct known){id, port};
}

static int compare_known(const void *left, const void *right)
{
	const struct known *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

static bool is_member(const struct finding *finding, const struct table_client *client)
{
	const struct known wanted = {.id = client->id};
	const struct known *known = NULL;

	if (finding->n_known > 0)
		known = bsearch(&wanted, finding->known, finding->n_known, sizeof(wanted),
				compare_known);
	return known &&
	       members_have(known->port, finding->container, &client->endpoint, client->port);
}

static void take_client(void *arg, const struct table_client *client)
{
	struct finding *finding = arg;
	struct clients *found = finding->found;

	if (is_member(finding, client) == finding->stale)
		return;
	array_grow(&found->v, &found->capacity, found->n, sizeof(*found->v));
	found->v[found->n++] = (struct remembered){finding->container, *client};
}

static void restart(void *arg)
{
	const struct finding *finding = arg;

	finding->found->n = finding->n_before;
}

int clients_find(struct nft_socket *socket, enum family family, struct state *state, bool stale,
		 struct clients *ret, struct err *err)
{
	static const enum container containers[] = {CONTAINER_AFFINITY, CONTAINER_LOCAL_AFFINITY};
	struct finding finding = {.stale = stale, .found = ret};
	int r = 0;

	ret->n = 0;
	state_each_affinity(state, note_known, &finding);
	if (finding.n_known > 1)
		qsort(finding.known, finding.n_known, sizeof(*finding.known), compare_known);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(containers); i++) {
		finding.container = containers[i];
		finding.n_before = ret->n;
		r = table_each_client(socket, family, containers[i], take_client, restart, &finding,
				      err);
	}
	free(finding.known);
	return r;
}

static void make_element(const struct remembered *one, struct element *ret)
{
	element_begin(ret, one->container);
	element_key_addr(ret, &one->client.client);
	element_key_number(ret, one->client.id);
}

/* A list that was read while the kernel moved its elements may hold one twice. */
static void list_elements(const struct clients *clients, struct element_list *ret)
{
	for (size_t i = 0; i < clients->n; i++) {
		struct element element;

		make_element(&clients->v[i], &element);
		element_list_add(ret, &element);
	}
	element_list_sort(ret);
}

void clients_forget(const struct clients *clients, struct batch_writer *writer)
{
	cleanup_element_list struct element_list list = {0};

	list_elements(clients, &list);
	for (size_t i = 0; i < list.n; i++)
		writer->writer.ops->remove(&writer->writer, &list.v[i]);
}

void clients_restore(const struct clients *clients, struct batch_writer *writer)
{
	for (size_t i = 0; i < clients->n; i++) {
		const struct table_client *client = &clients->v[i].client;
		struct element element;

		if (client->expires_ms == 0)
			continue;
		make_element(&clients->v[i], &element);
		element_data_endpoint(&element, &client->endpoint, client->port);
		batch_writer_add_timed(writer, &element, client->timeout_ms, client->expires_ms);
	}
}
