/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/claims.h"

#include <assert.h>
#include <stdlib.h>

#include "plan/address_owners.h"

static void free_claims(struct claimed_destination *claimed)
{
	while (claimed->first) {
		struct claim *claim = claimed->first;

		claimed->first = claim->behind;
		free(claim);
	}
}

void claims_done(struct claims *claims)
{
	struct claimed_destination *claimed;
	size_t at = 0;

	while ((claimed = map_next(&claims->destinations, &at))) {
		free_claims(claimed);
		free(claimed);
	}
	map_done(&claims->destinations);
	*claims = (struct claims){0};
}

static void touch(struct claims *claims, struct claimed_destination *claimed)
{
	if (claimed->touched)
		return;
	claimed->touched = true;
	claimed->next_touched = claims->touched;
	claims->touched = claimed;
}

static struct claimed_destination *ensure_destination(struct claims *claims,
						      const struct destination *destination)
{
	char text[DESTINATION_TEXT_MAX];

	destination_print(destination, text);
	return map_ensure(&claims->destinations, text, sizeof(struct claimed_destination),
			  offsetof(struct claimed_destination, text));
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
static void line_up(struct claimed_destination *claimed, struct claim *claim)
{
	bool first = !claimed->first || compare_claims(claim, claimed->first) < 0;
	struct claim **place = first ? &claimed->first : &claimed->first->behind;

	claim->behind = *place;
	*place = claim;
}

/* The owner has left. */
static void choose_first(struct claimed_destination *claimed)
{
	struct claim **best = &claimed->first;
	struct claim *claim;

	for (struct claim **place = best; *place; place = &(*place)->behind)
		if (compare_claims(*place, *best) < 0)
			best = place;
	claim = *best;
	if (!claim)
		return;
	*best = claim->behind;
	claim->behind = claimed->first;
	claimed->first = claim;
}

void claims_add(struct claims *claims, struct served *service, const struct service_plan *plan)
{
	for (size_t i = 0; i < plan->n_ports; i++) {
		size_t n;
		cleanup_free struct destination *v = elements_destinations(&plan->ports[i], &n);

		for (size_t j = 0; j < n; j++) {
			struct claimed_destination *claimed = ensure_destination(claims, &v[j]);
			struct claim *claim = xcalloc(1, sizeof(*claim));

			*claim = (struct claim){.service = service, .port = i, .destination = v[j]};
			line_up(claimed, claim);
			touch(claims, claimed);
		}
	}
}

static void remove_claim(struct claimed_destination *claimed, const struct served *service,
			 size_t port)
{
	for (struct claim **place = &claimed->first; *place; place = &(*place)->behind) {
		struct claim *claim = *place;

		if (claim->service != service || claim->port != port)
			continue;
		*place = claim->behind;
		free(claim);
		if (place == &claimed->first)
			choose_first(claimed);
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
			struct claimed_destination *claimed = ensure_destination(claims, &v[j]);

			remove_claim(claimed, service, i);
			touch(claims, claimed);
		}
	}
}

void claims_settle(struct claims *claims)
{
	while (claims->touched) {
		struct claimed_destination *claimed = claims->touched;

		claims->touched = claimed->next_touched;
		claimed->touched = false;
		if (claimed->first) {
			claimed->owner = *claimed->first;
			continue;
		}
		map_remove(&claims->destinations, claimed->text);
		free(claimed);
	}
}
