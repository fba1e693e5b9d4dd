/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/iptables/netlink/nft_handles.h"

#include <assert.h>
#include <stdlib.h>

/*
 * Open addressing with linear steps, as in nft_state.c. Half of a chain's hash and its kind are its key. Two
 * chains that shared one would spoil each other's handles: the kernel then finds no such rule in
 * the chain and refuses, and everything is compared.
 *
 * Handles never reach 2^48, and neither do pointers of programs.
 */

#define MIN_SIZE 64
#define LISTED   UINT16_MAX

struct entry {
	uint64_t key;
	uint64_t first : 48; /* or a pointer to a list: their number, then the handles */
	uint64_t n : 16;     /* or LISTED; 0: free */
};

static_assert(sizeof(struct entry) == 16, "entries are small");

/* What will be known of a chain. */
struct pending {
	uint64_t key;
	uint64_t *v; /* NULL: made one after another */
	uint64_t first;
	size_t n;
};

struct nft_handles {
	struct entry *entries;
	size_t size, count; /* size: a power of two */
	/* of the batch in hand */
	uint64_t n_made;
	struct pending *pending;
	size_t n_pending, pending_capacity;
	uint64_t low_at, low, high_at, high; /* what was told; 0: nothing */
	uint64_t from, to;                   /* what has to lie between the two */
};

static bool make_key(const char *chain, uint64_t *ret)
{
	struct chain_hash hash;
	enum chain_kind kind;

	if (!chain_name_parse(chain, &kind, &hash) ||
	    (kind != CHAIN_KIND_SVC && kind != CHAIN_KIND_SVL))
		return false;
	memcpy(ret, hash.bytes, sizeof(*ret));
	*ret ^= kind;
	return true;
}

static uint64_t *list_of(const struct entry *entry)
{
	return (uint64_t *)(uintptr_t)entry->first;
}

static void entry_done(struct entry *entry)
{
	if (entry->n == LISTED)
		free(list_of(entry));
	*entry = (struct entry){0};
}

struct nft_handles *nft_handles_new(void)
{
	struct nft_handles *handles = xcalloc(1, sizeof(*handles));

	handles->size = MIN_SIZE;
	handles->entries = xcalloc(handles->size, sizeof(*handles->entries));
	nft_handles_begin(handles);
	return handles;
}

struct nft_handles *nft_handles_free(struct nft_handles *handles)
{
	if (!handles)
		return NULL;
	nft_handles_begin(handles);
	nft_handles_forget_all(handles);
	free(handles->pending);
	free(handles->entries);
	free(handles);
	return NULL;
}

/* -- what is known */

static size_t find(const struct nft_handles *handles, uint64_t key)
{
	size_t at = key & (handles->size - 1);

	while (handles->entries[at].n && handles->entries[at].key != key)
		at = (at + 1) & (handles->size - 1);
	return at;
}

static void grow(struct nft_handles *handles)
{
	struct entry *old = handles->entries;
	size_t old_size = handles->size;

	handles->size *= 2;
	handles->entries = xcalloc(handles->size, sizeof(*handles->entries));
	for (size_t i = 0; i < old_size; i++)
		if (old[i].n)
			handles->entries[find(handles, old[i].key)] = old[i];
	free(old);
}

/* Closes the gap: whoever behind it may stand nearer to its home moves there. */
static void forget_key(struct nft_handles *handles, uint64_t key)
{
	size_t mask = handles->size - 1;
	size_t at = find(handles, key);

	if (!handles->entries[at].n)
		return;
	entry_done(&handles->entries[at]);
	handles->count--;
	for (size_t next = (at + 1) & mask; handles->entries[next].n; next = (next + 1) & mask) {
		size_t from_home = (next - handles->entries[next].key) & mask;

		if (from_home < ((next - at) & mask))
			continue;
		handles->entries[at] = handles->entries[next];
		handles->entries[next] = (struct entry){0};
		at = next;
	}
}

static bool is_run(const uint64_t *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (v[i] != v[0] + i)
			return false;
	return n < LISTED;
}

static void set_entry(struct nft_handles *handles, const struct entry *entry)
{
	forget_key(handles, entry->key);
	if (4 * (handles->count + 1) > 3 * handles->size)
		grow(handles);
	handles->entries[find(handles, entry->key)] = *entry;
	handles->count++;
}

static void set_key(struct nft_handles *handles, uint64_t key, const uint64_t *v, size_t n)
{
	struct entry entry = {.key = key};
	uint64_t *list;

	if (n == 0) {
		forget_key(handles, key);
		return;
	}
	if (is_run(v, n)) {
		entry.first = v[0] & 0xffffffffffffULL;
		entry.n = n & 0xffff;
	} else {
		list = xcalloc(n + 1, sizeof(*list));
		list[0] = n;
		memcpy(list + 1, v, n * sizeof(*v));
		entry.first = (uintptr_t)list & 0xffffffffffffULL;
		entry.n = LISTED;
	}
	set_entry(handles, &entry);
}

void nft_handles_set(struct nft_handles *handles, const char *chain, const uint64_t *v, size_t n)
{
	uint64_t key;

	if (make_key(chain, &key))
		set_key(handles, key, v, n);
}

uint64_t *nft_handles_get(const struct nft_handles *handles, const char *chain, size_t *ret_n)
{
	const struct entry *entry;
	uint64_t key, *v;
	size_t n;

	if (!make_key(chain, &key))
		return NULL;
	entry = &handles->entries[find(handles, key)];
	if (!entry->n)
		return NULL;
	n = entry->n == LISTED ? list_of(entry)[0] : entry->n;
	v = xcalloc(n, sizeof(*v));
	for (size_t i = 0; i < n; i++)
		v[i] = entry->n == LISTED ? list_of(entry)[i + 1] : entry->first + i;
	*ret_n = n;
	return v;
}

void nft_handles_forget(struct nft_handles *handles, const char *chain)
{
	uint64_t key;

	if (make_key(chain, &key))
		forget_key(handles, key);
}

void nft_handles_forget_all(struct nft_handles *handles)
{
	for (size_t i = 0; i < handles->size; i++)
		entry_done(&handles->entries[i]);
	handles->count = 0;
}

size_t nft_handles_count(const struct nft_handles *handles)
{
	return handles->count;
}

/* -- what will be known */

void nft_handles_begin(struct nft_handles *handles)
{
	for (size_t i = 0; i < handles->n_pending; i++)
		free(handles->pending[i].v);
	handles->n_pending = 0;
	handles->n_made = handles->low = handles->high = handles->to = 0;
	handles->from = UINT64_MAX;
}

uint64_t nft_handles_made(struct nft_handles *handles)
{
	return handles->n_made++;
}

static void need(struct nft_handles *handles, uint64_t at)
{
	handles->from = MIN(handles->from, at);
	handles->to = MAX(handles->to, at);
}

static struct pending *add_pending(struct nft_handles *handles, uint64_t key)
{
	struct pending *pending;

	array_grow(&handles->pending, &handles->pending_capacity, handles->n_pending,
		   sizeof(*handles->pending));
	pending = &handles->pending[handles->n_pending++];
	*pending = (struct pending){.key = key};
	return pending;
}

/* If rules of another chain come in between there are two entries for one chain, each with too few rules: who uses
 * them sees that they are not as many as the chain has. */
void nft_handles_append(struct nft_handles *handles, const char *chain, uint64_t at)
{
	struct pending *last =
		handles->n_pending ? &handles->pending[handles->n_pending - 1] : NULL;
	uint64_t key;

	if (!make_key(chain, &key))
		return;
	if (!last || last->key != key || last->v || at != last->first + last->n) {
		forget_key(handles, key);
		last = add_pending(handles, key);
		last->first = at;
	}
	last->n++;
	need(handles, at);
}

void nft_handles_plan(struct nft_handles *handles, const char *chain, const uint64_t *v, size_t n)
{
	struct pending *pending;
	uint64_t key;

	if (!make_key(chain, &key))
		return;
	pending = add_pending(handles, key);
	pending->n = n;
	pending->v = xcalloc(n + 1, sizeof(*v));
	memcpy(pending->v, v, n * sizeof(*v));
	for (size_t i = 0; i < n; i++)
		if (v[i] & NFT_HANDLE_MADE)
			need(handles, v[i] & ~NFT_HANDLE_MADE);
}

void nft_handles_told(struct nft_handles *handles, uint64_t at, uint64_t handle)
{
	if (!handles->low || at < handles->low_at) {
		handles->low = handle;
		handles->low_at = at;
	}
	if (!handles->high || at > handles->high_at) {
		handles->high = handle;
		handles->high_at = at;
	}
}

static void store(struct nft_handles *handles, const struct pending *pending, uint64_t base)
{
	cleanup_free uint64_t *v = xcalloc(pending->n + 1, sizeof(*v));

	for (size_t i = 0; i < pending->n; i++) {
		if (!pending->v)
			v[i] = base + pending->first + i;
		else if (pending->v[i] & NFT_HANDLE_MADE)
			v[i] = base + (pending->v[i] & ~NFT_HANDLE_MADE);
		else
			v[i] = pending->v[i];
	}
	set_key(handles, pending->key, v, pending->n);
}

static bool is_proven(const struct nft_handles *handles)
{
	uint64_t base = handles->low - handles->low_at;

	return handles->low && handles->low_at <= handles->from &&
	       handles->high_at >= handles->to && handles->high - handles->high_at == base;
}

/* A chain that was only shortened needs no proof; no other is known without. */
static bool is_old(const struct pending *pending)
{
	for (size_t i = 0; i < pending->n; i++)
		if (!pending->v || pending->v[i] & NFT_HANDLE_MADE)
			return false;
	return true;
}

void nft_handles_end(struct nft_handles *handles)
{
	bool proven = is_proven(handles);

	for (size_t i = 0; i < handles->n_pending; i++) {
		const struct pending *pending = &handles->pending[i];

		if (proven || is_old(pending))
			store(handles, pending, handles->low - handles->low_at);
		else
			forget_key(handles, pending->key);
	}
	nft_handles_begin(handles);
}
