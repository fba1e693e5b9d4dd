/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/pick_chains.h"

#include <assert.h>
#include <stdlib.h>

#include "backends/nftables/layout.h"

void pick_chains_done(struct pick_chains *chains)
{
	free(chains->v);
	*chains = (struct pick_chains){0};
}

/* What a chain leads to comes before it: pick-1 before pick-n, pick-n before masq-pick-n. */
static int compare(const struct chain *a, const struct chain *b)
{
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

/* The place of a chain, or the one where it belongs. */
static size_t place_of(const struct pick_chains *chains, struct chain chain)
{
	size_t low = 0, high = chains->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare(&chains->v[middle].chain, &chain) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct pick_chains *chains, size_t place, struct chain chain)
{
	return place < chains->n && compare(&chains->v[place].chain, &chain) == 0;
}

/* The chain that this one ends in; number 0: none. */
static struct chain behind(struct chain chain)
{
	if (chain.id == CHAIN_MASQ_PICK)
		return (struct chain){CHAIN_PICK, chain.number};
	if (chain.id == CHAIN_NODEPORT_MASQ_PICK)
		return (struct chain){CHAIN_NODEPORT_PICK, chain.number};
	if (chain.number > 1)
		return (struct chain){chain.id, 1};
	return (struct chain){.number = 0};
}

static void use(struct pick_chains *chains, struct chain chain)
{
	size_t place = place_of(chains, chain);

	if (!is_at(chains, place, chain)) {
		struct chain next = behind(chain);

		if (next.number)
			use(chains, next);
		place = place_of(chains, chain);
		array_grow(&chains->v, &chains->capacity, chains->n, sizeof(*chains->v));
		memmove(chains->v + place + 1, chains->v + place,
			(chains->n - place) * sizeof(*chains->v));
		chains->v[place] = (struct pick_chain){.chain = chain};
		chains->n++;
	}
	chains->v[place].uses++;
	chains->v[place].aged = false;
}

static void release(struct pick_chains *chains, struct chain chain)
{
	size_t place = place_of(chains, chain);

	assert(is_at(chains, place, chain) && chains->v[place].uses > 0);
	chains->v[place].uses--;
}

void pick_chains_begin(struct pick_chains *chains)
{
	chains->n = 0;
	for (enum chain_id id = CHAIN_PICK; id < CHAIN_PICKS_END; id++)
		for (uint32_t number = 1; number <= PICK_CHAINS_AT_START; number++)
			use(chains, (struct chain){id, number}); /* once more than Services do */
}

void pick_chains_count(struct pick_chains *chains, const struct element *element, bool up)
{
	if (element->verdict != VERDICT_GOTO || element->chain.id < CHAIN_PICK ||
	    element->chain.id >= CHAIN_PICKS_END)
		return;
	if (up)
		use(chains, element->chain);
	else
		release(chains, element->chain);
}

void pick_chains_write(struct pick_chains *chains, struct writer *writer,
		       const struct settings *settings)
{
	for (size_t i = 0; i < chains->n; i++)
		if (!chains->v[i].written)
			layout_numbered(writer, settings, chains->v[i].chain);
}

void pick_chains_settle(struct pick_chains *chains)
{
	for (size_t i = 0; i < chains->n; i++)
		chains->v[i].written = true;
}

bool pick_chains_has(const struct pick_chains *chains, const char *name)
{
	char own[CHAIN_NAME_MAX];

	for (size_t i = 0; i < chains->n; i++) {
		chain_name(chains->v[i].chain, own);
		if (streq(own, name))
			return true;
	}
	return false;
}

bool pick_chains_idle(const struct pick_chains *chains)
{
	for (size_t i = 0; i < chains->n; i++)
		if (chains->v[i].uses == 0)
			return true;
	return false;
}

void pick_chains_age(struct pick_chains *chains, pick_chains_remove_fn *remove, void *arg)
{
	for (size_t i = chains->n; i-- > 0;) {
		struct pick_chain *one = &chains->v[i];
		struct chain next = behind(one->chain);

		if (one->uses > 0 || !one->aged) {
			one->aged = one->uses == 0;
			continue;
		}
		remove(arg, one->chain);
		chains->n--;
		memmove(one, one + 1, (chains->n - i) * sizeof(*one));
		if (next.number)
			release(chains, next);
	}
}
