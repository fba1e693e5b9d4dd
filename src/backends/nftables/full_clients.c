/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/full_clients.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/nftables/table.h"

struct told {
	bool full; /* when we last looked */
	char key[];
};

#define KEY_MAX 256

void full_clients_done(struct full_clients *full)
{
	map_free_values(&full->told);
}

struct looking {
	struct full_clients *full;
	const struct settings *settings;
	const uint32_t *ports; /* sorted */
	size_t n_ports;
	int n_full;
	full_clients_fn *fn;
	void *arg;
};

static int compare_numbers(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static void look_at_port(void *arg, uint32_t number, const struct port_plan *port)
{
	struct looking *looking = arg;
	char key[KEY_MAX];
	struct told *told;
	bool known;

	if (!bsearch(&number, looking->ports, looking->n_ports, sizeof(number), compare_numbers))
		return;
	looking->n_full++;
	snprintf(key, sizeof(key), "%s/%s", port->id, protocol_name(port->port->protocol));
	known = map_get(&looking->full->told, key);
	told = map_ensure(&looking->full->told, key, sizeof(*told), offsetof(struct told, key));
	told->full = true;
	if (!known)
		looking->fn(looking->arg,
			    &(struct backend_full){
				    .service = port->service->key,
				    .port = port->id,
				    .clients = looking->settings->mode.affinity_clients});
}

static void begin(const struct full_clients *full)
{
	struct told *told;
	size_t at = 0;

	while ((told = map_next(&full->told, &at)))
		told->full = false;
}

static void forget_others(struct full_clients *full)
{
	struct told *told;
	size_t at = 0;

	while ((told = map_next(&full->told, &at))) {
		if (told->full)
			continue;
		map_remove(&full->told, told->key);
		free(told);
	}
}

int full_clients_look(struct full_clients *full, struct nft_socket *socket, struct state *state,
		      const struct settings *settings, full_clients_fn *fn, void *arg,
		      struct err *err)
{
	cleanup_free uint32_t *numbers = NULL;
	struct looking looking = {.full = full, .settings = settings, .fn = fn, .arg = arg};
	size_t n = 0;
	int r = table_find_full(socket, settings->family, &numbers, &n, err);

	if (r < 0)
		return r;
	begin(full);
	if (n > 0) {
		qsort(numbers, n, sizeof(*numbers), compare_numbers);
		looking.ports = numbers;
		looking.n_ports = n;
		state_each_affinity(state, look_at_port, &looking);
	}
	forget_others(full);
	return looking.n_full;
}
