/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/nftables/numbered.h"

#include <assert.h>
#include <stdlib.h>

#include "backends/nftables/layout.h"

void numbered_done(struct numbered *numbered)
{
	free(numbered->v);
	*numbered = (struct numbered){0};
}

/* What a chain leads to comes before it: pick-1 before pick-n, pick-n before masq-pick-n. */
static int compare(const struct chain *a, const struct chain *b)
{
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

/* The place of a chain, or the one where it belongs. */
static size_t place_of(const struct numbered *numbered, struct chain chain)
{
	size_t low = 0, high = numbered->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare(&numbered->v[middle].chain, &chain) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct numbered *numbered, size_t place, struct chain chain)
{
	return place < numbered->n && compare(&numbered->v[place].chain, &chain) == 0;
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

static void use(struct numbered *numbered, struct chain chain)
{
	size_t place = place_of(numbered, chain);

	if (!is_at(numbered, place, chain)) {
		struct chain next = behind(chain);

		if (next.number)
			use(numbered, next);
		place = place_of(numbered, chain);
		array_grow(&numbered->v, &numbered->capacity, numbered->n, sizeof(*numbered->v));
		memmove(numbered->v + place + 1, numbered->v + place,
			(numbered->n - place) * sizeof(*numbered->v));
		numbered->v[place] = (struct numbered_chain){.chain = chain};
		numbered->n++;
	}
	numbered->v[place].uses++;
	numbered->v[place].aged = false;
}

static void release(struct numbered *numbered, struct chain chain)
{
	size_t place = place_of(numbered, chain);

	assert(is_at(numbered, place, chain) && numbered->v[place].uses > 0);
	numbered->v[place].uses--;
}

void numbered_begin(struct numbered *numbered)
{
	numbered->n = 0;
	for (enum chain_id id = CHAIN_PICK; id < CHAIN_PICKS_END; id++)
		for (uint32_t number = 1; number <= NUMBERED_AT_START; number++)
			use(numbered, (struct chain){id, number}); /* once more than anybody does */
}

void numbered_count(struct numbered *numbered, const struct element *element, bool up)
{
	if (element->verdict != VERDICT_GOTO || element->chain.id < CHAIN_PICK ||
	    element->chain.id >= CHAIN_PICKS_END)
		return;
	if (up)
		use(numbered, element->chain);
	else
		release(numbered, element->chain);
}

void numbered_write(struct numbered *numbered, struct writer *writer,
		    const struct settings *settings)
{
	for (size_t i = 0; i < numbered->n; i++)
		if (!numbered->v[i].written)
			layout_numbered(writer, settings, numbered->v[i].chain);
}

void numbered_settle(struct numbered *numbered)
{
	for (size_t i = 0; i < numbered->n; i++)
		numbered->v[i].written = true;
}

bool numbered_has(const struct numbered *numbered, const char *name)
{
	char own[CHAIN_NAME_MAX];

	for (size_t i = 0; i < numbered->n; i++) {
		chain_name(numbered->v[i].chain, own);
		if (streq(own, name))
			return true;
	}
	return false;
}

bool numbered_idle(const struct numbered *numbered)
{
	for (size_t i = 0; i < numbered->n; i++)
		if (numbered->v[i].uses == 0)
			return true;
	return false;
}

void numbered_age(struct numbered *numbered, numbered_remove_fn *remove, void *arg)
{
	for (size_t i = numbered->n; i-- > 0;) {
		struct numbered_chain *one = &numbered->v[i];
		struct chain next = behind(one->chain);

		if (one->uses > 0 || !one->aged) {
			one->aged = one->uses == 0;
			continue;
		}
		remove(arg, one->chain);
		numbered->n--;
		memmove(one, one + 1, (numbered->n - i) * sizeof(*one));
		if (next.number)
			release(numbered, next);
	}
}
