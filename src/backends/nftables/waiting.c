/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/waiting.h"

#include <stdlib.h>

void waiting_done(struct waiting *waiting)
{
	map_free_values(&waiting->told);
}

/* `before`: who has been told up to now. */
static void tell_spot(struct waiting *waiting, const struct spot *spot, struct map *before,
		      state_conflict_fn *conflict, void *arg)
{
	for (const struct claim *claim = spot->first; claim; claim = claim->behind) {
		const struct state_conflict found = {
			.destination = spot->text,
			.service = claim->service->key,
			.owner = spot->first->service->key,
		};
		cleanup_free char *key = xasprintf("%s %s", found.service, found.destination);
		char *told = map_remove(before, key);

		if (claim->service != spot->first->service) {
			if (!told)
				conflict(arg, &found);
			free(map_set(&waiting->told, key, key));
			take(key);
		}
		free(told);
	}
}

void waiting_tell(struct waiting *waiting, const struct claims *claims, bool full,
		  state_conflict_fn *conflict, void *arg)
{
	struct map all = {0};
	struct map *before = &waiting->told;

	if (full) { /* every destination is touched: who is not among them waits no longer */
		all = waiting->told;
		waiting->told = (struct map){0};
		before = &all;
	}
	for (const struct spot *spot = claims->touched; spot; spot = spot->next_touched)
		tell_spot(waiting, spot, before, conflict, arg);
	map_free_values(&all);
}

static bool claims_it(const struct claims *claims, const struct served *service, const char *text)
{
	const struct spot *spot = map_get(&claims->spots, text);

	for (const struct claim *claim = spot ? spot->first : NULL; claim; claim = claim->behind)
		if (claim->service == service)
			return true;
	return false;
}

static void forget_port(struct waiting *waiting, const struct claims *claims,
			const struct served *service, const struct port_plan *port)
{
	size_t n;
	cleanup_free struct destination *v = elements_destinations(port, &n);

	for (size_t i = 0; i < n; i++) {
		char text[DESTINATION_TEXT_MAX];
		cleanup_free char *key = NULL;

		destination_print(&v[i], text);
		key = xasprintf("%s %s", service->key, text);
		if (!claims_it(claims, service, text))
			free(map_remove(&waiting->told, key));
	}
}

void waiting_forget(struct waiting *waiting, const struct claims *claims,
		    const struct served *service)
{
	const struct service_plan *plan = service->applied;

	for (size_t i = 0; waiting->told.count > 0 && plan && i < plan->n_ports; i++)
		forget_port(waiting, claims, service, &plan->ports[i]);
}
