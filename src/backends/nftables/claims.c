/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/claims.h"

#include <assert.h>
#include <stdlib.h>

static void free_claims(struct spot *spot)
{
	while (spot->first) {
		struct claim *claim = spot->first;

		spot->first = claim->behind;
		free(claim);
	}
}

void claims_done(struct claims *claims)
{
	struct spot *spot;
	size_t at = 0;

	while ((spot = map_next(&claims->spots, &at))) {
		free_claims(spot);
		free(spot);
	}
	map_done(&claims->spots);
	*claims = (struct claims){0};
}

static void touch(struct claims *claims, struct spot *spot)
{
	if (spot->touched)
		return;
	spot->touched = true;
	spot->next_touched = claims->touched;
	claims->touched = spot;
}

static struct spot *ensure_spot(struct claims *claims, const struct destination *destination)
{
	char text[DESTINATION_TEXT_MAX];

	destination_print(destination, text);
	return map_ensure(&claims->spots, text, sizeof(struct spot), offsetof(struct spot, text));
}

/* Older services first; what does not know its age counts as old. */
static int compare_claims(const struct claim *a, const struct claim *b)
{
	const struct service *x = a->service->next->service;
	const struct service *y = b->service->next->service;
	int r = (x->created_s > y->created_s) - (x->created_s < y->created_s);

	if (r == 0)
		r = strcmp(x->ns, y->ns);
	if (r == 0)
		r = strcmp(x->name, y->name);
	if (r == 0)
		r = (a->port > b->port) - (a->port < b->port);
	return r;
}

static void line_up(struct spot *spot, struct claim *claim)
{
	struct claim **place = &spot->first;

	while (*place && compare_claims(*place, claim) < 0)
		place = &(*place)->behind;
	claim->behind = *place;
	*place = claim;
}

void claims_add(struct claims *claims, struct served *service, const struct service_plan *plan)
{
	for (size_t i = 0; i < plan->n_ports; i++) {
		size_t n;
		cleanup_free struct destination *v = elements_destinations(&plan->ports[i], &n);

		for (size_t j = 0; j < n; j++) {
			struct spot *spot = ensure_spot(claims, &v[j]);
			struct claim *claim = xcalloc(1, sizeof(*claim));

			*claim = (struct claim){.service = service, .port = i, .destination = v[j]};
			line_up(spot, claim);
			touch(claims, spot);
		}
	}
}

static void remove_claim(struct spot *spot, const struct served *service, size_t port)
{
	for (struct claim **place = &spot->first; *place; place = &(*place)->behind) {
		struct claim *claim = *place;

		if (claim->service != service || claim->port != port)
			continue;
		*place = claim->behind;
		free(claim);
		return;
	}
	assert(!"a claim that was made is there");
}

void claims_remove(struct claims *claims, struct served *service, const struct service_plan *plan)
{
	for (size_t i = 0; i < plan->n_ports; i++) {
		size_t n;
		cleanup_free struct destination *v = elements_destinations(&plan->ports[i], &n);

		for (size_t j = 0; j < n; j++) {
			struct spot *spot = ensure_spot(claims, &v[j]);

			remove_claim(spot, service, i);
			touch(claims, spot);
		}
	}
}

void claims_settle(struct claims *claims)
{
	while (claims->touched) {
		struct spot *spot = claims->touched;

		claims->touched = spot->next_touched;
		spot->touched = false;
		if (spot->first) {
			spot->owner = *spot->first;
			continue;
		}
		map_remove(&claims->spots, spot->text);
		free(spot);
	}
}
