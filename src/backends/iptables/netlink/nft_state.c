/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_state.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"

/*
 * Open addressing with linear steps. A digest is as good as random and is its own place, with the
 * chain's number mixed in. Entries that leave close the gap behind them, so that there are no dead
 * ones. Handles are counted up from 1 for each table and never reach 2^48.
 */

struct entry {
	uint64_t digest;
	uint64_t handle : 48; /* 0: free */
	uint64_t chain : 16;
};

static_assert(sizeof(struct entry) == 16, "entries are small");

struct chain {
	enum table table;
	char key[]; /* a letter for the table, then the name */
};

struct nft_state {
	struct entry *entries;
	size_t size; /* a power of two */
	size_t count;
	struct chain **chains; /* by number */
	size_t n_chains, chains_capacity;
	struct map by_name; /* its number and one, as a pointer */
};

#define MIN_SIZE   64
#define CHAINS_MAX 64000
#define KEY_MAX    128

struct nft_state *nft_state_new(void)
{
	struct nft_state *state = xcalloc(1, sizeof(*state));

	state->size = MIN_SIZE;
	state->entries = xcalloc(state->size, sizeof(*state->entries));
	return state;
}

struct nft_state *nft_state_free(struct nft_state *state)
{
	if (!state)
		return NULL;
	for (size_t i = 0; i < state->n_chains; i++)
		free(state->chains[i]);
	free(state->chains);
	map_done(&state->by_name);
	free(state->entries);
	free(state);
	return NULL;
}

/* -- chains */

static void make_key(enum table table, const char *name, char key[static KEY_MAX])
{
	key[0] = (char)('a' + table);
	key[1] = '\0';
	strncat(key, name, KEY_MAX - 2);
}

bool nft_state_find_chain(const struct nft_state *state, enum table table, const char *name,
			  unsigned int *ret)
{
	char key[KEY_MAX];
	void *number;

	make_key(table, name, key);
	number = map_get(&state->by_name, key);
	if (number)
		*ret = (unsigned int)((uintptr_t)number - 1);
	return number != NULL;
}

unsigned int nft_state_chain(struct nft_state *state, enum table table, const char *name)
{
	struct chain *chain;
	unsigned int number;
	char key[KEY_MAX];

	if (nft_state_find_chain(state, table, name, &number))
		return number;
	assert(state->n_chains < CHAINS_MAX);
	make_key(table, name, key);
	chain = xmalloc(sizeof(*chain) + strlen(key) + 1);
	chain->table = table;
	strcpy(chain->key, key);
	number = (unsigned int)state->n_chains;
	array_grow(&state->chains, &state->chains_capacity, state->n_chains,
		   sizeof(struct chain *));
	state->chains[state->n_chains++] = chain;
	/* a number instead of a pointer: never NULL, because it counts from one */
	map_set(&state->by_name, chain->key, (void *)(uintptr_t)(number + 1));
	return number;
}

size_t nft_state_n_chains(const struct nft_state *state)
{
	return state->n_chains;
}

const char *nft_state_chain_name(const struct nft_state *state, unsigned int chain)
{
	return state->chains[chain]->key + 1;
}

enum table nft_state_chain_table(const struct nft_state *state, unsigned int chain)
{
	return state->chains[chain]->table;
}

/* -- entries */

static size_t home(const struct nft_state *state, unsigned int chain, uint64_t digest)
{
	return (size_t)(digest + chain * 0x9e3779b97f4a7c15ULL) & (state->size - 1);
}

static void place(struct nft_state *state, const struct entry *entry)
{
	size_t at = home(state, entry->chain, entry->digest);

	while (state->entries[at].handle)
		at = (at + 1) & (state->size - 1);
	state->entries[at] = *entry;
}

static void resize(struct nft_state *state, size_t size)
{
	struct entry *old = state->entries;
	size_t old_size = state->size;

	state->entries = xcalloc(size, sizeof(*state->entries));
	state->size = size;
	for (size_t i = 0; i < old_size; i++)
		if (old[i].handle)
			place(state, &old[i]);
	free(old);
}

void nft_state_add(struct nft_state *state, unsigned int chain, uint64_t digest, uint64_t handle)
{
	const struct entry entry = {
		.digest = digest,
		.handle = handle & 0xffffffffffffULL,
		.chain = chain & 0xffff,
	};

	if (!entry.handle)
		return;
	if (4 * (state->count + 1) > 3 * state->size)
		resize(state, 2 * state->size);
	place(state, &entry);
	state->count++;
}

/* Closes the gap at `at`: an entry behind it that may stand nearer to its home moves there. */
static void remove_at(struct nft_state *state, size_t at)
{
	size_t mask = state->size - 1;

	for (size_t next = (at + 1) & mask; state->entries[next].handle; next = (next + 1) & mask) {
		const struct entry *entry = &state->entries[next];
		size_t from_home = (next - home(state, entry->chain, entry->digest)) & mask;

		if (from_home < ((next - at) & mask))
			continue;
		state->entries[at] = *entry;
		at = next;
	}
	state->entries[at] = (struct entry){0};
	state->count--;
}

/* handle 0: any */
static struct entry *find(const struct nft_state *state, unsigned int chain, uint64_t digest,
			  uint64_t handle)
{
	for (size_t at = home(state, chain, digest);; at = (at + 1) & (state->size - 1)) {
		struct entry *entry = &state->entries[at];

		if (!entry->handle)
			return NULL;
		if (entry->digest == digest && entry->chain == chain &&
		    (!handle || entry->handle == handle))
			return entry;
	}
}

bool nft_state_take(struct nft_state *state, unsigned int chain, uint64_t digest,
		    uint64_t *ret_handle)
{
	struct entry *entry = find(state, chain, digest, 0);

	if (!entry)
		return false;
	*ret_handle = entry->handle;
	remove_at(state, (size_t)(entry - state->entries));
	return true;
}

bool nft_state_remove(struct nft_state *state, unsigned int chain, uint64_t digest, uint64_t handle)
{
	struct entry *entry = find(state, chain, digest, handle);

	if (!entry)
		return false;
	remove_at(state, (size_t)(entry - state->entries));
	return true;
}

/* Everybody else moves into a table of the right size: no gap is closed twice. */
void nft_state_forget(struct nft_state *state, unsigned int chain, nft_state_fn *fn, void *arg)
{
	struct entry *old = state->entries;
	size_t old_size = state->size;
	size_t kept = 0;

	for (size_t i = 0; i < old_size; i++)
		kept += old[i].handle && old[i].chain != chain;
	if (kept == state->count)
		return;
	state->size = MIN_SIZE;
	while (4 * (kept + 1) > 3 * state->size)
		state->size *= 2;
	state->entries = xcalloc(state->size, sizeof(*state->entries));
	state->count = kept;
	for (size_t i = 0; i < old_size; i++) {
		if (!old[i].handle)
			continue;
		if (old[i].chain != chain)
			place(state, &old[i]);
		else if (fn)
			fn(arg, chain, old[i].digest, old[i].handle);
	}
	free(old);
}

void nft_state_forget_all(struct nft_state *state)
{
	free(state->entries);
	state->size = MIN_SIZE;
	state->count = 0;
	state->entries = xcalloc(state->size, sizeof(*state->entries));
}

size_t nft_state_count(const struct nft_state *state)
{
	return state->count;
}
