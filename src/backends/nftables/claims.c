/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/claims.h"

#include <assert.h>
#include <stdlib.h>

#include "plan/address_owners.h"

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

static int compare_claims(const struct claim *a, const struct claim *b)
{
	int r = address_owners_compare(a->service->next.plan->service, a->destination.external,
				       b->service->next.plan->service, b->destination.external);

	if (r == 0)
		r = (a->port > b->port) - (a->port < b->port);
	return r;
}

/* The owner is the first. The others are in no order: they may be thousands, and only one of them is ever asked for. */
static void line_up(struct spot *spot, struct claim *claim)
{
	bool first = !spot->first || compare_claims(claim, spot->first) < 0;
	struct claim **place = first ? &spot->first : &spot->first->behind;

	claim->behind = *place;
	*place = claim;
}

/* The owner has left. */
static void choose_first(struct spot *spot)
{
	struct claim **best = &spot->first;
	struct claim *claim;

	for (struct claim **place = best; *place; place = &(*place)->behind)
		if (compare_claims(*place, *best) < 0)
			best = place;
	claim = *best;
	if (!claim)
		return;
	*best = claim->behind;
	claim->behind = spot->first;
	spot->first = claim;
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
		if (place == &spot->first)
			choose_first(spot);
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
